//! A shuffle of one's own: partitions in memory, in a hundred lines.
//!
//! Implements the three traits of the byte seam and runs the contract over itself. What it leaves to
//! the engine: records, controls, batches and memory, which the typed layer handles above the seam.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use element::SubpartitionIndex;
use slackwater_shuffle::testing::check_shuffle_service;
use slackwater_shuffle::{
    Damage, FinishedPartition, PartitionDescriptor, PartitionIdentity, ResultPartitionReader,
    ResultPartitionWriter, ShuffleError, ShuffleService,
};

/// A block and the subpartition it is for; `None` for all.
type Block = (Option<u32>, Vec<u8>);

/// A complete partition: blocks in the order written, and which making of it this is.
#[derive(Debug)]
struct Kept {
    subpartitions: u32,
    version: u32,
    blocks: Vec<Block>,
}

#[derive(Debug, Default)]
struct Shelf {
    partitions: HashMap<PartitionIdentity, Arc<Kept>>,
    versions: u32,
}

/// Keeps finished partitions in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryShuffle {
    shelf: Arc<Mutex<Shelf>>,
}

impl MemoryShuffle {
    fn with<V>(&self, act: impl FnOnce(&mut Shelf) -> V) -> V {
        act(&mut self.shelf.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ShuffleService for MemoryShuffle {
    fn writer(
        &self,
        descriptor: &PartitionDescriptor,
    ) -> Result<Box<dyn ResultPartitionWriter>, ShuffleError> {
        let (shuffle, descriptor) = (self.clone(), descriptor.clone());
        Ok(Box::new(MemoryWriter { shuffle, descriptor, blocks: Vec::new() }))
    }

    fn reader(
        &self,
        descriptor: &PartitionDescriptor,
        subpartitions: Range<u32>,
    ) -> Result<Box<dyn ResultPartitionReader>, ShuffleError> {
        let partition = descriptor.identity;
        let kept = self
            .with(|shelf| shelf.partitions.get(&partition).cloned())
            .ok_or(ShuffleError::Lost { partition })?;
        if subpartitions.end > kept.subpartitions {
            let (subpartitions, asked) = (kept.subpartitions, subpartitions.end);
            return Err(ShuffleError::NoSuchSubpartition { partition, subpartitions, asked });
        }
        if let Some(expected) = descriptor.checksum.filter(|checksum| *checksum != kept.version) {
            let (expected, found) = (u64::from(expected), u64::from(kept.version));
            let damage = Damage::Identity;
            return Err(ShuffleError::Corrupt { partition, damage, expected, found });
        }
        Ok(Box::new(MemoryReader { kept, subpartitions, next: 0 }))
    }

    fn release(&self, partition: &PartitionIdentity) -> Result<(), ShuffleError> {
        self.with(|shelf| shelf.partitions.remove(partition));
        Ok(())
    }
}

struct MemoryWriter {
    shuffle: MemoryShuffle,
    descriptor: PartitionDescriptor,
    blocks: Vec<Block>,
}

impl ResultPartitionWriter for MemoryWriter {
    fn write(&mut self, subpartition: SubpartitionIndex, block: &[u8]) -> Result<(), ShuffleError> {
        let subpartitions = self.descriptor.subpartitions;
        if subpartition.0 >= subpartitions {
            let (partition, asked) = (self.descriptor.identity, subpartition.0);
            return Err(ShuffleError::NoSuchSubpartition { partition, subpartitions, asked });
        }
        self.blocks.push((Some(subpartition.0), block.to_vec()));
        Ok(())
    }

    fn write_broadcast(&mut self, block: &[u8]) -> Result<(), ShuffleError> {
        self.blocks.push((None, block.to_vec()));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<FinishedPartition, ShuffleError> {
        let Self { shuffle, descriptor, blocks } = *self;
        let (identity, subpartitions) = (descriptor.identity, descriptor.subpartitions);
        let bytes = blocks.iter().map(|(_, block)| block.len() as u64).sum();
        let version = shuffle.with(|shelf| {
            shelf.versions += 1;
            let kept = Kept { subpartitions, version: shelf.versions, blocks };
            shelf.partitions.insert(identity, Arc::new(kept));
            shelf.versions
        });
        Ok(FinishedPartition { identity, subpartitions, bytes, records: None, checksum: version })
    }
}

struct MemoryReader {
    kept: Arc<Kept>,
    subpartitions: Range<u32>,
    next: usize,
}

impl ResultPartitionReader for MemoryReader {
    fn next(&mut self) -> Result<Option<&[u8]>, ShuffleError> {
        let wanted = &self.subpartitions;
        if wanted.is_empty() {
            return Ok(None);
        }
        while let Some((subpartition, block)) = self.kept.blocks.get(self.next) {
            self.next += 1;
            if subpartition.is_none_or(|subpartition| wanted.contains(&subpartition)) {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }
}

#[allow(dead_code, reason = "the crate's tests include this file for the service alone")]
fn main() {
    check_shuffle_service(|| Arc::new(MemoryShuffle::default()));
    println!("the shuffle in memory keeps the contract");
}
