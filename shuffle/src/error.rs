//! What goes wrong between tasks.
//!
//! [`ShuffleError`] is about partitions at rest and names the partition, for the cache decides by it
//! what to drop and make anew; [`ReadError`] and [`WriteError`] are what a task meets at its edges.

use element::{CodecError, StoreError, SubpartitionIndex};

use crate::PartitionIdentity;

/// What about a partition is not as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Damage {
    /// The data file is shorter or longer than its index says; in bytes.
    Length,
    /// A block, or what its header says, is not what was written there; CRC-32 values.
    Block,
    /// The index is not what was written; CRC-32 values.
    Index,
    /// The index is that of another partition or another making of it; CRC-32 values.
    Identity,
    /// A subpartition ends early; in blocks.
    Blocks,
    /// The partition has another number of subpartitions than the reader expects.
    Subpartitions,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Length => "length",
            Self::Block => "block checksum",
            Self::Index => "index checksum",
            Self::Identity => "identity",
            Self::Blocks => "number of blocks",
            Self::Subpartitions => "number of subpartitions",
        })
    }
}

/// Why a partition could not be written, read or released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShuffleError {
    /// It is not there: never finished, released, or gone with its worker or disk.
    #[error("{partition} is lost")]
    Lost {
        /// The partition.
        partition: PartitionIdentity,
    },
    /// It is there and not what was written. Reading again gives the same.
    #[error("{partition} is corrupt: {damage} {found}, expected {expected}")]
    Corrupt {
        /// The partition.
        partition: PartitionIdentity,
        /// What was compared.
        damage: Damage,
        /// The value written.
        expected: u64,
        /// The value found.
        found: u64,
    },
    /// A block is intact and holds no records of the expected type.
    #[error("{partition} cannot be decoded")]
    Undecodable {
        /// The partition.
        partition: PartitionIdentity,
        /// What the decoder said.
        #[source]
        source: CodecError,
    },
    /// The storage failed.
    #[error("{partition}: storage failed")]
    Storage {
        /// The partition.
        partition: PartitionIdentity,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// A shuffle service of the user's failed in its own way.
    #[error("{partition}: shuffle service failed")]
    Service {
        /// The partition.
        partition: PartitionIdentity,
        /// What the service said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Asked for what the partition does not have.
    #[error("{partition} has {subpartitions} subpartitions, not {asked}")]
    NoSuchSubpartition {
        /// The partition.
        partition: PartitionIdentity,
        /// How many there are.
        subpartitions: u32,
        /// The one asked for, or the end of the range asked for.
        asked: u32,
    },
    /// A compression that this build does not have: zstd needs the feature `zstd`.
    #[error("{partition}: compression `{compression:?}` is not supported by this build")]
    NoCompression {
        /// The partition.
        partition: PartitionIdentity,
        /// What it was to be compressed with, or is.
        compression: element::option_table::Compression,
    },
    /// A block beyond the limit of the format.
    #[error("{partition}: a block of {bytes} bytes is beyond the limit of {limit}")]
    BlockTooLarge {
        /// The partition.
        partition: PartitionIdentity,
        /// Its bytes.
        bytes: u64,
        /// The most a block can have.
        limit: u64,
    },
}

impl ShuffleError {
    /// The partition it is about.
    #[must_use]
    pub fn partition(&self) -> &PartitionIdentity {
        match self {
            Self::Lost { partition }
            | Self::Corrupt { partition, .. }
            | Self::Undecodable { partition, .. }
            | Self::Storage { partition, .. }
            | Self::Service { partition, .. }
            | Self::NoSuchSubpartition { partition, .. }
            | Self::NoCompression { partition, .. }
            | Self::BlockTooLarge { partition, .. } => partition,
        }
    }
}

/// Why a channel could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A partition at rest is lost, damaged or unreadable.
    #[error(transparent)]
    Partition(#[from] ShuffleError),
    /// The producer of a pipelined channel has gone without ending it: it failed or was cancelled.
    #[error("the producer has gone before the end of its channel")]
    Abandoned,
}

impl ReadError {
    /// The partition that cannot be read, if one at rest is the reason.
    #[must_use]
    pub fn partition(&self) -> Option<&PartitionIdentity> {
        match self {
            Self::Partition(error) => Some(error.partition()),
            Self::Abandoned => None,
        }
    }
}

/// Why an output edge could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The partition could not be written.
    #[error(transparent)]
    Partition(#[from] ShuffleError),
    /// The consumer of a pipelined channel has gone.
    #[error("the consumer of subpartition {subpartition} has gone")]
    Closed {
        /// Its subpartition.
        subpartition: SubpartitionIndex,
    },
    /// The edge has fewer subpartitions.
    #[error("no subpartition {subpartition} among {subpartitions}")]
    NoSuchSubpartition {
        /// The one asked for.
        subpartition: SubpartitionIndex,
        /// How many there are.
        subpartitions: u32,
    },
    /// Finished while elements were still queued: pump until it says ready, then finish.
    #[error("{queued} elements are still queued")]
    HeldUp {
        /// How many.
        queued: usize,
    },
    /// Written to after it was finished.
    #[error("the output is finished")]
    Finished,
}

/// Why an element was not taken. It is handed back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrySendError<E> {
    /// No room; the producer is woken when there is.
    Full(E),
    /// The receiver has gone.
    Closed(E),
}

impl<E> TrySendError<E> {
    /// The element.
    pub fn into_inner(self) -> E {
        match self {
            Self::Full(element) | Self::Closed(element) => element,
        }
    }
}
