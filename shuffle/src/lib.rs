//! Records from one task to the next: live from hand to hand, or through a kept partition.
//!
//! | | pipelined | blocking |
//! |---|---|---|
//! | written by | [`PipelinedWriter`] | [`BlockingWriter`] over a [`ResultPartitionWriter`] |
//! | read by | [`PipelinedReceiver`] | [`BlockingReader`] over a [`ResultPartitionReader`] |
//! | when | while it is written, once | when it is finished, as often as wanted |
//! | as | typed values that move | encoded records in blocks |
//! | held by | a bounded queue | a [`ShuffleService`]; [`FileShuffle`] is ours |
//!
//! A task writes through [`PartitionWriter`] and reads through an [`InputGate`], which joins channels
//! of either kind and combines their backlog, watermarks and barriers. The `selector` functions say
//! which subpartition a record goes to.
//!
//! Left out on purpose: how long a partition is kept, and on which worker it lies. The runtime knows.

#![deny(missing_docs)]
#![deny(unsafe_code)]

mod blocking;
mod channel_status;
mod edge;
mod error;
mod file;
mod gate;
mod packer;
mod partition;
mod pipelined;
mod selector;
#[cfg(feature = "testing")]
pub mod testing;
mod wake;

pub use blocking::{BlockingOptions, BlockingReader, BlockingWriter};
pub use channel_status::ChannelStatus;
pub use edge::{ChannelEvent, ChannelReader, Flow, PartitionWriter};
pub use error::{Damage, ReadError, ShuffleError, TrySendError, WriteError};
pub use file::{FileShuffle, FileShuffleOptions, ReadMode, supports_compression};
pub use gate::{GateEvent, InputGate};
pub use partition::{
    FinishedPartition, PartitionDescriptor, PartitionIdentity, ResultPartitionReader,
    ResultPartitionWriter, ShuffleService,
};
pub use pipelined::{
    ChannelCapacity, PipelinedReceiver, PipelinedSender, PipelinedWriter, pipelined,
    pipelined_weighed,
};
pub use selector::{Rebalance, key_targets, pointwise_consumers, pointwise_producers};
pub use wake::{NoWake, Wake};
