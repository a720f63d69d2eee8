//! [`SnapshotWriter`]: entries in order, into one file.
//!
//! Writes under a temporary name; only [`SnapshotWriter::finish`] gives the file its own. A writer
//! that fails leaves nothing behind, as far as the store lets it.

use element::{FileRole, KeyGroups, SpillStore, StoreError, StoreWriter};

use super::{END_MAGIC, SnapshotError, SnapshotHandle, SnapshotHeader, VERSION};
use crate::store_key::{hash_of, push_varint};

/// Bytes of a block, about.
const BLOCK: usize = 64 << 10;

pub(crate) struct SnapshotWriter<'a> {
    store: &'a dyn SpillStore,
    name: &'a str,
    file: Box<dyn StoreWriter>,
    crc: crc32fast::Hasher,
    written: u64,
    block: Vec<u8>,
    block_first: u64,
    index: Vec<u8>,
    entries: u64,
    groups: KeyGroups,
}

impl<'a> SnapshotWriter<'a> {
    pub(crate) fn create(
        store: &'a dyn SpillStore,
        name: &'a str,
        magic: [u8; 8],
        header: &SnapshotHeader,
    ) -> Result<Self, SnapshotError> {
        let file = store
            .create(FileRole::Snapshot, &part_name(name))
            .map_err(|source| failed(name, source))?;
        let mut writer = Self {
            store,
            name,
            file,
            crc: crc32fast::Hasher::new(),
            written: 0,
            block: Vec::with_capacity(BLOCK + 1024),
            block_first: 0,
            index: Vec::new(),
            entries: 0,
            groups: header.groups,
        };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        let mut head = magic.to_vec();
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        head.extend_from_slice(&bytes);
        head.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        writer.write(&head)?;
        Ok(writer)
    }

    /// Adds an entry, whose key is greater than all before.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), SnapshotError> {
        if self.block.is_empty() {
            self.block_first = hash_of(key).unwrap_or_default().0;
        }
        push_varint(key.len() as u32, &mut self.block);
        self.block.extend_from_slice(key);
        push_varint(value.len() as u32, &mut self.block);
        self.block.extend_from_slice(value);
        self.entries += 1;
        if self.block.len() >= BLOCK { self.end_block() } else { Ok(()) }
    }

    /// Makes the file durable and gives it its name.
    pub(crate) fn finish(mut self) -> Result<SnapshotHandle, SnapshotError> {
        self.end_block()?;
        let index_at = self.written;
        let index = std::mem::take(&mut self.index);
        self.write_block(&index)?;
        let checksum = self.crc.clone().finalize();
        let mut footer = index_at.to_le_bytes().to_vec();
        footer.extend_from_slice(&self.entries.to_le_bytes());
        footer.extend_from_slice(&checksum.to_le_bytes());
        footer.extend_from_slice(&END_MAGIC);
        self.write(&footer)?;
        let synced = self.file.sync().map_err(|source| failed(self.name, source));
        let renamed = synced.and_then(|()| {
            self.store
                .rename(FileRole::Snapshot, &part_name(self.name), self.name)
                .map_err(|source| failed(self.name, source))
        });
        self.cleaned_up(renamed)?;
        Ok(SnapshotHandle {
            name: self.name.to_owned(),
            bytes: self.written,
            checksum,
            groups: self.groups,
            entries: self.entries,
            files: Vec::new(),
        })
    }

    /// Deletes what was written, for a snapshot that is given up.
    pub(crate) fn discard(&mut self) {
        // What cannot be deleted stays under a name that nothing reads.
        let _ = self.store.delete(FileRole::Snapshot, &part_name(self.name));
    }

    fn end_block(&mut self) -> Result<(), SnapshotError> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.index.extend_from_slice(&self.block_first.to_le_bytes());
        self.index.extend_from_slice(&self.written.to_le_bytes());
        let mut block = std::mem::take(&mut self.block);
        let written = self.write_block(&block);
        block.clear();
        self.block = block;
        written
    }

    fn write_block(&mut self, payload: &[u8]) -> Result<(), SnapshotError> {
        let mut head = (payload.len() as u32).to_le_bytes().to_vec();
        head.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
        self.write(&head)?;
        self.write(payload)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.crc.update(bytes);
        self.written += bytes.len() as u64;
        let written = self.file.write(bytes).map_err(|source| failed(self.name, source));
        self.cleaned_up(written)
    }

    fn cleaned_up(&mut self, done: Result<(), SnapshotError>) -> Result<(), SnapshotError> {
        if done.is_err() {
            self.discard();
        }
        done
    }
}

/// The name of a file that is not complete.
pub(super) fn part_name(name: &str) -> String {
    format!("{name}.part")
}

pub(crate) fn failed(name: &str, source: StoreError) -> SnapshotError {
    SnapshotError::File { name: name.to_owned(), source }
}
