//! [`PartitionWriter`] and [`ChannelReader`]: what a task sees of its edges, whatever is behind them.
//!
//! A task writes each output edge through one [`PartitionWriter`] and reads each input through an
//! [`crate::InputGate`] over [`ChannelReader`]s. Neither ever blocks.

use element::{Batch, Control, StreamElement, SubpartitionIndex};

use crate::{FinishedPartition, ReadError, WriteError};

/// Whether a writer can take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// Everything queued has left.
    Ready,
    /// Something is still queued: the task writes no more until it is woken.
    HeldUp,
}

/// Writes one output edge of one subtask.
///
/// Implemented by [`crate::PipelinedWriter`] and [`crate::BlockingWriter`]; called by the one task
/// that owns it: `(emit | scatter | emit_all | broadcast)* flush? pump` in each step, and at the end
/// `broadcast(EndOfInput)`, [`pump`](Self::pump) until ready, [`finish`](Self::finish).
///
/// Records of one subpartition arrive in the order of the calls, controls in between them. Nothing
/// blocks: what does not fit is queued, so a task that is [held up](Flow::HeldUp) must stop writing,
/// which bounds the queue by what one step emits.
pub trait PartitionWriter<T>: Send {
    /// Sends records to one subpartition. Small batches for the same one are joined.
    ///
    /// # Errors
    ///
    /// [`WriteError`]; the edge is of no use afterwards.
    fn emit(&mut self, subpartition: SubpartitionIndex, batch: Batch<T>) -> Result<(), WriteError>;

    /// Sends each record to a subpartition of its own: the i-th to `targets[i]`. Costs one move a
    /// record, so it is the way for keyed edges.
    ///
    /// # Errors
    ///
    /// As [`PartitionWriter::emit`].
    ///
    /// # Panics
    ///
    /// If there are not as many targets as records.
    fn scatter(&mut self, batch: Batch<T>, targets: &[SubpartitionIndex])
    -> Result<(), WriteError>;

    /// Sends records to every subpartition; `clone` makes the copies, where copies are needed.
    ///
    /// # Errors
    ///
    /// As [`PartitionWriter::emit`].
    fn emit_all(
        &mut self,
        batch: Batch<T>,
        clone: fn(&Batch<T>) -> Batch<T>,
    ) -> Result<(), WriteError>;

    /// Sends a control element to every subpartition, behind all records so far.
    ///
    /// # Errors
    ///
    /// As [`PartitionWriter::emit`].
    fn broadcast(&mut self, control: Control) -> Result<(), WriteError>;

    /// Lets batches go that are not full yet. Called when the input is empty, or after the buffer
    /// timeout. Does nothing where nobody waits for the records.
    ///
    /// # Errors
    ///
    /// As [`PartitionWriter::emit`].
    fn flush(&mut self) -> Result<(), WriteError>;

    /// Sends what is queued.
    ///
    /// # Errors
    ///
    /// As [`PartitionWriter::emit`].
    fn pump(&mut self) -> Result<Flow, WriteError>;

    /// Ends the writing; a blocking partition becomes visible. Called once, after `EndOfInput` was
    /// broadcast and [`pump`](Self::pump) said ready. A writer dropped before leaves nothing behind.
    ///
    /// # Errors
    ///
    /// [`WriteError::HeldUp`] if something is still queued; else as [`PartitionWriter::emit`].
    fn finish(&mut self) -> Result<Option<FinishedPartition>, WriteError>;
}

/// What a channel has.
#[derive(Debug, Clone, PartialEq)]
pub enum ChannelEvent<T> {
    /// The next element. `EndOfInput` is the last one of every channel that ends well.
    Element(StreamElement<T>),
    /// Nothing for now; the reader's task is woken when that changes.
    Empty,
    /// Nothing any more; `EndOfInput` was given before.
    Ended,
}

/// Reads one channel: one subpartition, or one range of them, of one producer.
///
/// Implemented by [`crate::PipelinedReceiver`] and [`crate::BlockingReader`]; called by a gate.
pub trait ChannelReader<T>: Send {
    /// The next element, if there is one. Never blocks on another task.
    ///
    /// # Errors
    ///
    /// [`ReadError`]; the channel is of no use afterwards.
    fn poll(&mut self) -> Result<ChannelEvent<T>, ReadError>;
}
