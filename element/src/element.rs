//! [`StreamElement`]: all that a channel can carry.
//!
//! Batches carry records; [`Control`] elements travel between them, in order. The legal order is the
//! grammar of [`crate::ElementOrder`].

use crate::{Batch, CheckpointId, RecordAttributes, Timestamp};

/// One element of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamElement<T> {
    /// Records.
    Batch(Batch<T>),
    /// What is said about records.
    Control(Control),
}

/// What travels between batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// No record with this timestamp or an earlier one follows; later ones that do are late.
    Watermark(Timestamp),
    /// Attributes of the records that follow.
    Attributes(RecordAttributes),
    /// The channel has nothing to say for now and must hold nobody up.
    Idle,
    /// The channel is alive again.
    Active,
    /// The line between what a checkpoint covers and what it does not.
    Barrier(Barrier),
    /// Nothing follows.
    EndOfInput,
}

/// A checkpoint's line through the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// The checkpoint.
    pub id: CheckpointId,
    /// What kind of checkpoint.
    pub kind: BarrierKind,
}

/// What a barrier asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    /// A checkpoint, aligned: records behind the barrier wait until it has come on all channels.
    ExactlyOnce,
    /// A checkpoint without waiting: after a restore some records are seen twice.
    AtLeastOnce,
    /// A savepoint, aligned; the job goes on.
    Savepoint,
    /// A savepoint after which the job stops without ending its input: nothing is flushed.
    StopWithSavepoint,
    /// A savepoint behind the end of event time, after which the job stops: windows and event-time
    /// timers have fired.
    DrainWithSavepoint,
}

impl BarrierKind {
    /// Whether a client asked for it: then it takes no room among checkpoints and replaces none.
    #[must_use]
    pub fn is_savepoint(self) -> bool {
        matches!(self, Self::Savepoint) || self.stops()
    }

    /// Whether the job stops behind it.
    #[must_use]
    pub fn stops(self) -> bool {
        matches!(self, Self::StopWithSavepoint | Self::DrainWithSavepoint)
    }
}
