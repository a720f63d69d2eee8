//! [`ShuffleService`] and its writers and readers: the byte seam that a user may implement.
//!
//! A result partition is what one producing subtask leaves behind on one edge, cut into
//! subpartitions; each subpartition is a sequence of blocks. This file says who a partition is and
//! what a service owes; [`crate::FileShuffle`] is the one that comes with the engine, and
//! `examples/memory_shuffle.rs` one that a user would write.
//!
//! ```text
//! writer(descriptor) -> write* -> finish -> readable, as often as wanted -> release
//!                          \-> drop: nothing was ever there
//! ```
//!
//! Left out on purpose: records (the typed layer packs them into blocks), and how long a partition is
//! wanted (its owner calls [`ShuffleService::release`]).

use std::fmt;
use std::ops::Range;

use element::option_table::Compression;
use element::{Attempt, DataSetId, Generation, PartitionId, SubpartitionIndex, SubtaskIndex};

use crate::ShuffleError;

/// Who a partition is: part of every checksum, so that a file put in another's place is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartitionIdentity {
    /// The result of a subtask for consumers in the same job.
    Result(PartitionId),
    /// A part of a cached data set, which outlives its job (FLIP-67, "cluster partitions").
    DataSet {
        /// The data set.
        data_set: DataSetId,
        /// Which making of it.
        generation: Generation,
        /// The attempt that wrote it: where partitions outlive workers, one that was given up may
        /// still write.
        attempt: Attempt,
        /// The subtask that wrote it.
        producer: SubtaskIndex,
    },
}

impl fmt::Display for PartitionIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(id) => write!(f, "partition {id}"),
            Self::DataSet { data_set, generation, producer, .. } => {
                write!(f, "partition {producer} of data set {data_set}.{generation}")
            }
        }
    }
}

impl From<PartitionId> for PartitionIdentity {
    fn from(id: PartitionId) -> Self {
        Self::Result(id)
    }
}

/// What a service must know to write or read one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionDescriptor {
    /// Who it is.
    pub identity: PartitionIdentity,
    /// Into how many subpartitions it is cut; the same for writer and readers.
    pub subpartitions: u32,
    /// For readers: the checksum that the writer's [`FinishedPartition`] had. A complete file of an
    /// earlier attempt has another one. `None`: any complete partition of this identity will do.
    pub checksum: Option<u32>,
    /// For writers: how blocks are compressed. A hint; readers find out by themselves.
    pub compression: Compression,
}

impl PartitionDescriptor {
    /// A partition of `subpartitions` parts.
    #[must_use]
    pub fn new(identity: impl Into<PartitionIdentity>, subpartitions: u32) -> Self {
        let (identity, compression) = (identity.into(), Compression::None);
        Self { identity, subpartitions, checksum: None, compression }
    }

    /// The same, written with this compression.
    #[must_use]
    pub fn compressed(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// The same, readable only if its checksum is that of `finished`.
    #[must_use]
    pub fn as_finished(mut self, finished: &FinishedPartition) -> Self {
        self.checksum = Some(finished.checksum);
        self
    }
}

/// What a writer leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedPartition {
    /// Who it is.
    pub identity: PartitionIdentity,
    /// Its subpartitions.
    pub subpartitions: u32,
    /// Bytes at rest, headers and index included.
    pub bytes: u64,
    /// Records, as counted by the typed layer; `None` from a service, which does not know.
    pub records: Option<u64>,
    /// A checksum over all blocks in the order written; see [`PartitionDescriptor::checksum`].
    pub checksum: u32,
}

/// Makes writers and readers of blocking partitions, and drops partitions: the pluggable shuffle.
///
/// Implemented by [`crate::FileShuffle`] and by users; called by tasks from many threads at once. A
/// partition is either complete or not there: readers never see a part of one.
pub trait ShuffleService: Send + Sync + fmt::Debug {
    /// Starts a partition. One of the same identity that is complete stays until this one is.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Storage`] if there is no place for it.
    fn writer(
        &self,
        descriptor: &PartitionDescriptor,
    ) -> Result<Box<dyn ResultPartitionWriter>, ShuffleError>;

    /// Opens some subpartitions of a complete partition.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Lost`] if it is not there, not complete or released, and
    /// [`ShuffleError::Corrupt`] if it is damaged; either may also come from the reader later.
    fn reader(
        &self,
        descriptor: &PartitionDescriptor,
        subpartitions: Range<u32>,
    ) -> Result<Box<dyn ResultPartitionReader>, ShuffleError>;

    /// Drops a partition; harmless if it is not there. Readers that are open may finish or fail with
    /// [`ShuffleError::Lost`], and never give other data.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Storage`]; the partition may still be there.
    fn release(&self, partition: &PartitionIdentity) -> Result<(), ShuffleError>;

    /// Whether partitions outlive the TaskManager that wrote them (FLIP-205, "Fault tolerance").
    fn survives_worker_loss(&self) -> bool {
        false
    }

    /// Whether this partition does, where a service keeps some here and some there.
    fn outlives_worker(&self, _partition: &PartitionIdentity) -> bool {
        self.survives_worker_loss()
    }
}

/// Writes one partition, front to back. Dropping it unfinished leaves nothing behind.
pub trait ResultPartitionWriter: Send {
    /// Appends a block to one subpartition. Blocks are opaque and come back whole.
    ///
    /// # Errors
    ///
    /// [`ShuffleError`]; the writer is of no use afterwards.
    fn write(&mut self, subpartition: SubpartitionIndex, block: &[u8]) -> Result<(), ShuffleError>;

    /// Appends many blocks, in this order: as [`ResultPartitionWriter::write`] of each. A service that
    /// can take them to where they rest without a copy of its own does.
    ///
    /// # Errors
    ///
    /// As [`ResultPartitionWriter::write`]; some of the blocks may have been appended.
    fn write_all(&mut self, blocks: &[(SubpartitionIndex, &[u8])]) -> Result<(), ShuffleError> {
        blocks.iter().try_for_each(|(subpartition, block)| self.write(*subpartition, block))
    }

    /// Appends a block to every subpartition; stored once (FLIP-148, "broadcast").
    ///
    /// # Errors
    ///
    /// As [`ResultPartitionWriter::write`].
    fn write_broadcast(&mut self, block: &[u8]) -> Result<(), ShuffleError>;

    /// Makes the partition visible, whole.
    ///
    /// # Errors
    ///
    /// [`ShuffleError`]; the partition is then not there.
    fn finish(self: Box<Self>) -> Result<FinishedPartition, ShuffleError>;
}

/// Reads some subpartitions of one partition, once, front to back.
///
/// The blocks of each subpartition come in the order written; those of several come mixed, in the
/// order that is cheapest to read. A broadcast block comes once, however many subpartitions are read,
/// and in its place among the blocks of each.
pub trait ResultPartitionReader: Send {
    /// The next block; `None` behind the last. Valid until the next call.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Lost`], [`ShuffleError::Corrupt`], [`ShuffleError::Storage`]; the end of a file
    /// is never taken for the end of the data.
    fn next(&mut self) -> Result<Option<&[u8]>, ShuffleError>;
}
