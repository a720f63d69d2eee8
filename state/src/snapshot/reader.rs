//! [`SnapshotReader`]: a snapshot's header at once, its entries by range of the hash.
//!
//! Everything that is read is checked first: length, footer, header and each block. Read by restores
//! and by inspection.

use std::ops::RangeInclusive;

use element::{FileRole, KeyHash, SpillStore, StoreReader};

use super::writer::failed;
use super::{
    END_MAGIC, FOOTER, MAGIC, SnapshotError, SnapshotHandle, SnapshotHeader, TABLES_MAGIC, VERSION,
};
use crate::store_key::{StoreKey, hash_of, take_varint};
use crate::{StateDescriptor, TimerKind};

/// A snapshot that is open for reading.
#[derive(Debug)]
pub struct SnapshotReader {
    name: String,
    file: Box<dyn StoreReader>,
    bytes: u64,
    header: SnapshotHeader,
    /// First hash and offset of each block.
    index: Vec<(u64, u64)>,
    entries: u64,
    checksum: u32,
}

/// Takes a stored key and its value.
pub(crate) type VisitRaw<'a, E> = dyn FnMut(&[u8], &[u8]) -> Result<(), E> + 'a;

/// One entry of a snapshot, taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SnapshotEntry<'a> {
    /// The hash of the key.
    pub hash: KeyHash,
    /// The canonical bytes of the key.
    pub key: &'a [u8],
    /// The state; `None` for a timer.
    pub state: Option<&'a StateDescriptor>,
    /// The kind of timer; `None` for a state's entry.
    pub timer: Option<TimerKind>,
    /// The namespace.
    pub namespace: &'a [u8],
    /// The canonical bytes of a map's key; of a timer, its time.
    pub map_key: &'a [u8],
    /// The value's bytes.
    pub value: &'a [u8],
}

impl SnapshotReader {
    /// Opens the snapshot of a handle.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`], also if the file is not the one the handle was made for, or if the state
    /// lies in tables of a store.
    pub fn open(store: &dyn SpillStore, handle: &SnapshotHandle) -> Result<Self, SnapshotError> {
        if handle.files.is_empty() {
            return Self::open_own(store, handle, MAGIC);
        }
        Err(SnapshotError::InTables { name: handle.name.clone() })
    }

    /// Opens the file of a handle whose state lies in tables: its header and timers.
    pub(crate) fn open_beside_tables(
        store: &dyn SpillStore,
        handle: &SnapshotHandle,
    ) -> Result<Self, SnapshotError> {
        Self::open_own(store, handle, TABLES_MAGIC)
    }

    fn open_own(
        store: &dyn SpillStore,
        handle: &SnapshotHandle,
        magic: [u8; 8],
    ) -> Result<Self, SnapshotError> {
        let reader = Self::open_file(store, &handle.name, magic, Some(handle.bytes))?;
        if reader.checksum != handle.checksum {
            return Err(SnapshotError::Swapped {
                name: reader.name,
                found: reader.checksum,
                expected: handle.checksum,
            });
        }
        if reader.entries != handle.entries {
            return Err(reader.damaged("footer", handle.bytes.saturating_sub(FOOTER)));
        }
        Ok(reader)
    }

    /// Opens a snapshot by its name alone.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`].
    pub fn open_named(store: &dyn SpillStore, name: &str) -> Result<Self, SnapshotError> {
        Self::open_file(store, name, MAGIC, None)
    }

    fn open_file(
        store: &dyn SpillStore,
        name: &str,
        magic: [u8; 8],
        expected: Option<u64>,
    ) -> Result<Self, SnapshotError> {
        let file = store.open(FileRole::Snapshot, name).map_err(|source| failed(name, source))?;
        let len = file.len().map_err(|source| failed(name, source))?;
        if let Some(expected) = expected.filter(|expected| *expected != len) {
            return Err(SnapshotError::Length { name: name.to_owned(), found: len, expected });
        }
        let input = Input { name, file: file.as_ref(), len };
        let header = input.header(magic)?;
        let footer_at = len.checked_sub(FOOTER).ok_or_else(|| input.foreign())?;
        let footer = input.read(footer_at, FOOTER as usize)?;
        let footer = Footer::parse(&footer).ok_or_else(|| input.damaged("footer", footer_at))?;
        let index = input.index(footer.index_at, footer_at)?;
        let (entries, checksum) = (footer.entries, footer.checksum);
        Ok(Self { name: name.to_owned(), file, bytes: len, header, index, entries, checksum })
    }

    /// A handle of the file as it is.
    #[must_use]
    pub fn handle(&self) -> SnapshotHandle {
        SnapshotHandle {
            name: self.name.clone(),
            bytes: self.bytes,
            checksum: self.checksum,
            groups: self.header.groups,
            entries: self.entries,
            files: Vec::new(),
        }
    }

    /// The file's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the snapshot says about itself.
    #[must_use]
    pub fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// The number of entries, timers included.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Visits all entries, in order.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`].
    pub fn for_each(
        &self,
        mut visit: impl FnMut(SnapshotEntry<'_>) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        self.scan(&(0..=u64::MAX), &mut |key, value| {
            let damaged =
                || SnapshotError::Damaged { name: self.name.clone(), part: "entry", offset: 0 };
            let parts = StoreKey::parse(key).ok_or_else(damaged)?;
            let state = self.header.state(parts.state).map(|state| &state.descriptor);
            visit(SnapshotEntry {
                hash: parts.hash,
                key: parts.key,
                state,
                timer: TimerKind::of_state(parts.state),
                namespace: parts.namespace,
                map_key: parts.map_key,
                value,
            })
        })
    }

    /// Visits the stored keys and values of a range of the hash, in order. Reads only the blocks that
    /// may hold some.
    pub(crate) fn scan<E: From<SnapshotError>>(
        &self,
        hashes: &RangeInclusive<u64>,
        visit: &mut VisitRaw<'_, E>,
    ) -> Result<(), E> {
        // A block before the first that begins in the range may reach into it.
        let first = self.index.partition_point(|(hash, _)| hash < hashes.start()).saturating_sub(1);
        for (hash, offset) in self.index.get(first..).unwrap_or_default() {
            if hash > hashes.end() {
                break;
            }
            let block = self.block(*offset)?;
            let mut rest = block.as_slice();
            while !rest.is_empty() {
                let entry = take_entry(&mut rest).ok_or_else(|| self.damaged("block", *offset))?;
                if hash_of(entry.0).is_some_and(|hash| hashes.contains(&hash.0)) {
                    visit(entry.0, entry.1)?;
                }
            }
        }
        Ok(())
    }

    fn block(&self, offset: u64) -> Result<Vec<u8>, SnapshotError> {
        Input { name: &self.name, file: self.file.as_ref(), len: self.bytes }.block(offset, "block")
    }

    pub(crate) fn damaged(&self, part: &'static str, offset: u64) -> SnapshotError {
        SnapshotError::Damaged { name: self.name.clone(), part, offset }
    }
}

fn take_entry<'a>(input: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut part = || {
        let len = take_varint(input)? as usize;
        let (part, rest) = input.split_at_checked(len)?;
        *input = rest;
        Some(part)
    };
    Some((part()?, part()?))
}

struct Footer {
    index_at: u64,
    entries: u64,
    checksum: u32,
}

impl Footer {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (index_at, rest) = bytes.split_first_chunk::<8>()?;
        let (entries, rest) = rest.split_first_chunk::<8>()?;
        let (checksum, magic) = rest.split_first_chunk::<4>()?;
        (magic == END_MAGIC).then_some(Self {
            index_at: u64::from_le_bytes(*index_at),
            entries: u64::from_le_bytes(*entries),
            checksum: u32::from_le_bytes(*checksum),
        })
    }
}

/// A file under suspicion.
struct Input<'a> {
    name: &'a str,
    file: &'a dyn StoreReader,
    len: u64,
}

impl Input<'_> {
    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = vec![0; len];
        self.file.read_at(offset, &mut bytes).map_err(|source| failed(self.name, source))?;
        Ok(bytes)
    }

    fn read_u32(&self, offset: u64) -> Result<u32, SnapshotError> {
        let bytes = self.read(offset, 4)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    fn foreign(&self) -> SnapshotError {
        SnapshotError::Foreign { name: self.name.to_owned() }
    }

    fn damaged(&self, part: &'static str, offset: u64) -> SnapshotError {
        SnapshotError::Damaged { name: self.name.to_owned(), part, offset }
    }

    /// Checks that `len` bytes from `offset` on lie before the footer.
    fn check_within(&self, offset: u64, len: u64, part: &'static str) -> Result<(), SnapshotError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len.saturating_sub(FOOTER) => Ok(()),
            _ => Err(self.damaged(part, offset)),
        }
    }

    fn header(&self, magic: [u8; 8]) -> Result<SnapshotHeader, SnapshotError> {
        if self.len < 16 + FOOTER {
            return Err(self.foreign());
        }
        let found = self.read(0, 8)?;
        if found != magic {
            let in_tables = found == TABLES_MAGIC;
            let name = || self.name.to_owned();
            return Err(if in_tables {
                SnapshotError::InTables { name: name() }
            } else {
                self.foreign()
            });
        }
        let found = self.read_u32(8)?;
        if found != VERSION {
            let name = self.name.to_owned();
            return Err(SnapshotError::Version { name, found, known: VERSION });
        }
        let len = self.read_u32(12)?;
        self.check_within(16, u64::from(len) + 4, "header")?;
        let bytes = self.read(16, len as usize)?;
        if crc32fast::hash(&bytes) != self.read_u32(16 + u64::from(len))? {
            return Err(self.damaged("header", 16));
        }
        SnapshotHeader::decode(&mut &bytes[..])
            .map_err(|source| SnapshotError::Header { name: self.name.to_owned(), source })
    }

    fn block(&self, offset: u64, part: &'static str) -> Result<Vec<u8>, SnapshotError> {
        self.check_within(offset, 8, part)?;
        let (len, crc) = (self.read_u32(offset)?, self.read_u32(offset + 4)?);
        self.check_within(offset, u64::from(len) + 8, part)?;
        let bytes = self.read(offset + 8, len as usize)?;
        if crc32fast::hash(&bytes) == crc { Ok(bytes) } else { Err(self.damaged(part, offset)) }
    }

    fn index(&self, index_at: u64, footer_at: u64) -> Result<Vec<(u64, u64)>, SnapshotError> {
        let bytes = self.block(index_at, "index")?;
        if index_at + 8 + bytes.len() as u64 != footer_at {
            return Err(self.damaged("index", index_at));
        }
        let (pairs, _) = bytes.as_chunks::<16>();
        let pair = |pair: &[u8; 16]| {
            let number = u128::from_le_bytes(*pair);
            (number as u64, (number >> 64) as u64)
        };
        Ok(pairs.iter().map(pair).collect())
    }
}
