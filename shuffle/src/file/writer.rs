//! Writes one partition: data as it comes, the index at the end, then makes both visible.

use std::sync::Arc;

use crc32fast::Hasher;
use element::option_table::Compression;
use element::{FileRole, SpillStore, StoreError, SubpartitionIndex};

use super::block::{self, EVERY, Place};
use super::data::{DataWriter, FILE_HEADER};
use super::index::{self, Contents, Index, Run};
use crate::{
    FinishedPartition, PartitionDescriptor, PartitionIdentity, ResultPartitionWriter, ShuffleError,
};

/// Writes one partition into one store. Dropped before [`ResultPartitionWriter::finish`] has
/// succeeded, it deletes what it wrote.
#[derive(Debug)]
pub(super) struct FileWriter {
    store: Arc<dyn SpillStore>,
    partition: PartitionIdentity,
    identity: u32,
    unique: u64,
    compression: Compression,
    sync: bool,
    /// `None` once written to its end.
    data: Option<DataWriter>,
    /// Runs in the order written; the last one may still grow.
    runs: Vec<Run>,
    /// Blocks of each subpartition, then those that belong to all.
    blocks: Vec<u32>,
    /// Over the checksums of all blocks, in the order written.
    checksum: Hasher,
    scratch: Vec<u8>,
    /// The partition is visible: nothing is to be deleted.
    visible: bool,
}

impl FileWriter {
    pub(super) fn create(
        store: Arc<dyn SpillStore>,
        descriptor: &PartitionDescriptor,
        unique: u64,
        sync: bool,
    ) -> Result<Self, StoreError> {
        let partition = descriptor.identity;
        let identity = index::identity_checksum(&partition);
        let name = index::data_name(&partition, unique);
        let data = DataWriter::create(store.as_ref(), &name, identity)?;
        Ok(Self {
            store,
            partition,
            identity,
            unique,
            compression: descriptor.compression,
            sync,
            data: Some(data),
            runs: Vec::new(),
            blocks: vec![0; descriptor.subpartitions as usize + 1],
            checksum: Hasher::new_with_initial(identity),
            scratch: Vec::new(),
            visible: false,
        })
    }

    fn failed(&self, source: StoreError) -> ShuffleError {
        ShuffleError::Storage { partition: self.partition, source }
    }

    /// Gives a block its number.
    fn place(&mut self, subpartition: u32, bytes: usize) -> Result<Place, ShuffleError> {
        let (partition, bytes, limit) = (self.partition, bytes as u64, block::LIMIT);
        if bytes > limit {
            return Err(ShuffleError::BlockTooLarge { partition, bytes, limit });
        }
        let no_such = self.no_such(subpartition);
        let Some((every, each)) = self.blocks.split_last_mut() else { return Err(no_such) };
        let next = match subpartition {
            EVERY => every,
            index => each.get_mut(index as usize).ok_or(no_such)?,
        };
        let number = *next;
        *next += 1;
        Ok(Place { identity: self.identity, subpartition, number })
    }

    fn no_such(&self, asked: u32) -> ShuffleError {
        let subpartitions = self.blocks.len() as u32 - 1;
        ShuffleError::NoSuchSubpartition { partition: self.partition, subpartitions, asked }
    }

    /// Notes a block of `length` bytes, header included, at the file's end.
    fn note(&mut self, subpartition: u32, offset: u64, length: u64, checksum: u32) {
        self.checksum.update(&checksum.to_le_bytes());
        match self.runs.last_mut() {
            Some(run) if run.subpartition == subpartition => run.length += length,
            _ => self.runs.push(Run { subpartition, offset, length }),
        }
    }

    fn data(&mut self) -> Result<&mut DataWriter, ShuffleError> {
        self.data.as_mut().ok_or(ShuffleError::Lost { partition: self.partition })
    }

    fn append(&mut self, subpartition: u32, block: &[u8]) -> Result<(), ShuffleError> {
        let place = self.place(subpartition, block.len())?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let (header, checksum, stored) = block::seal(place, block, self.compression, &mut scratch);
        let data = self.data()?;
        let offset = data.length();
        let (appended, length) = (data.append(&[&header, stored]), data.length() - offset);
        self.scratch = scratch;
        appended.map_err(|source| self.failed(source))?;
        self.note(subpartition, offset, length, checksum);
        Ok(())
    }

    /// Seals some blocks as they are, and writes them from where they lie. They are about a piece, so
    /// that the processor's cache has them still when they are written.
    fn append_raw(&mut self, blocks: &[(SubpartitionIndex, &[u8])]) -> Result<(), ShuffleError> {
        let mut offset = self.data()?.length();
        let mut headers = Vec::with_capacity(blocks.len());
        for (subpartition, block) in blocks {
            let place = self.place(subpartition.0, block.len())?;
            let (header, checksum, _) =
                block::seal(place, block, Compression::None, &mut self.scratch);
            let length = (header.len() + block.len()) as u64;
            self.note(subpartition.0, offset, length, checksum);
            offset += length;
            headers.push(header);
        }
        let sealed = headers.iter().zip(blocks);
        let parts: Vec<&[u8]> = sealed.flat_map(|(header, block)| [&header[..], block.1]).collect();
        self.data()?.append(&parts).map_err(|source| self.failed(source))
    }

    /// Writes the index beside, then gives it its name: from here on the partition is there.
    fn publish(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let unfinished = index::unfinished_name(&self.partition, self.unique);
        let mut file = self.store.create(FileRole::PartitionIndex, &unfinished)?;
        file.write(bytes)?;
        if self.sync {
            file.sync()?;
        }
        drop(file);
        let name = index::index_name(&self.partition);
        self.store.rename(FileRole::PartitionIndex, &unfinished, &name)
    }
}

impl ResultPartitionWriter for FileWriter {
    fn write(&mut self, subpartition: SubpartitionIndex, block: &[u8]) -> Result<(), ShuffleError> {
        if subpartition.0 == EVERY {
            return Err(self.no_such(EVERY));
        }
        self.append(subpartition.0, block)
    }

    fn write_all(&mut self, mut blocks: &[(SubpartitionIndex, &[u8])]) -> Result<(), ShuffleError> {
        if self.compression != Compression::None {
            return blocks.iter().try_for_each(|(index, block)| self.write(*index, block));
        }
        while !blocks.is_empty() {
            let (mut room, mut count) = (self.data()?.room(), 0);
            for (_, block) in blocks {
                count += 1;
                let length = block::HEADER + block.len();
                if length >= room {
                    break;
                }
                room -= length;
            }
            let (piece, rest) = blocks.split_at(count);
            self.append_raw(piece)?;
            blocks = rest;
        }
        Ok(())
    }

    fn write_broadcast(&mut self, block: &[u8]) -> Result<(), ShuffleError> {
        self.append(EVERY, block)
    }

    fn finish(mut self: Box<Self>) -> Result<FinishedPartition, ShuffleError> {
        let data = self.data.take().ok_or(ShuffleError::Lost { partition: self.partition })?;
        let data_length = data.finish(self.sync).map_err(|source| self.failed(source))?;
        let checksum = self.checksum.clone().finalize();
        let bytes = index::encode(&Contents {
            identity: &self.partition,
            checksum,
            unique: self.unique,
            data_length,
            runs: &self.runs,
            blocks: &self.blocks,
        });
        let before = Index::unique_of(self.store.as_ref(), self.partition);
        self.publish(&bytes).map_err(|source| self.failed(source))?;
        self.visible = true;
        if let Some(before) = before {
            // What an earlier attempt has written is not readable any more. That it cannot be
            // deleted is no reason to refuse this one; `discard_unfinished` finds it.
            let name = index::data_name(&self.partition, before);
            let _ = self.store.delete(FileRole::PartitionData, &name);
        }
        Ok(FinishedPartition {
            identity: self.partition,
            subpartitions: self.blocks.len() as u32 - 1,
            bytes: data_length.max(FILE_HEADER as u64) + bytes.len() as u64,
            records: None,
            checksum,
        })
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if self.visible {
            return;
        }
        self.data = None;
        // Neither may be there, and a store that is full or gone may refuse: `discard_unfinished`
        // tries again.
        let data = index::data_name(&self.partition, self.unique);
        let unfinished = index::unfinished_name(&self.partition, self.unique);
        let _ = self.store.delete(FileRole::PartitionData, &data);
        let _ = self.store.delete(FileRole::PartitionIndex, &unfinished);
    }
}
