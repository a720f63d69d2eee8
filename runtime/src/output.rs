//! [`Output`]: one link of a chain, seen from above.
//!
//! Operators of a chain push batches and signals down; the last link writes to result partitions.
//! A virtual call is paid once a batch. Nothing here blocks: what a writer cannot send it queues, and
//! [`Output::pump`] says so, upon which the task takes no further input until it is sent.

use element::{Batch, CheckpointId, Control, Timestamp};

use crate::error::TaskError;

/// What passes down a chain beside records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// What travels in the stream.
    Stream(Control),
    /// Processing time has reached this point; due processing-time timers fire. Stays in the task.
    ProcessingTime(Timestamp),
    /// There is nothing more to read for now: half-filled batches leave. Stays in the task.
    Flush,
    /// A checkpoint is complete: what waits for it may be committed. Stays in the task.
    Complete(CheckpointId),
    /// A checkpoint was given up. Stays in the task.
    Aborted(CheckpointId),
    /// The last rows, prepared at the end of the input, may be committed. Stays in the task.
    Finished,
}

/// What [`Output::pump`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pump {
    /// No work is pending: the task may read on.
    Idle,
    /// Some pending work was done and more may be.
    Progress,
    /// An output is full: the task waits until it is woken.
    HeldUp,
}

/// The receiving side of a link. Implemented by operators with what follows them, by partition
/// outputs and by test vectors; called by the task's thread only.
pub trait Output<T>: Send {
    /// Takes records.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError>;

    /// Takes a signal.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn signal(&mut self, signal: Signal) -> Result<(), TaskError>;

    /// Does a bounded piece of pending work, the furthest link first.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn pump(&mut self) -> Result<Pump, TaskError>;
}

impl<T, O: Output<T> + ?Sized> Output<T> for Box<O> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        (**self).batch(batch)
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        (**self).signal(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        (**self).pump()
    }
}

/// Where nobody listens.
#[derive(Debug, Default)]
pub struct Discard;

impl<T> Output<T> for Discard {
    fn batch(&mut self, _: Batch<T>) -> Result<(), TaskError> {
        Ok(())
    }

    fn signal(&mut self, _: Signal) -> Result<(), TaskError> {
        Ok(())
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        Ok(Pump::Idle)
    }
}

/// Gives every record to several outputs; cloned for all but the last.
pub struct Tee<T> {
    outputs: Vec<Box<dyn Output<T>>>,
}

impl<T> Tee<T> {
    /// Copies to `outputs`, in order.
    #[must_use]
    pub fn new(outputs: Vec<Box<dyn Output<T>>>) -> Self {
        Self { outputs }
    }
}

impl<T: Clone + Send> Output<T> for Tee<T> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        let Some((last, others)) = self.outputs.split_last_mut() else { return Ok(()) };
        for output in others {
            output.batch(batch.clone())?;
        }
        last.batch(batch)
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.outputs.iter_mut().try_for_each(|output| output.signal(signal))
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        let mut all = Pump::Idle;
        for output in &mut self.outputs {
            match output.pump()? {
                Pump::Idle => {}
                Pump::HeldUp => all = Pump::HeldUp,
                Pump::Progress if all == Pump::Idle => all = Pump::Progress,
                Pump::Progress => {}
            }
        }
        Ok(all)
    }
}

/// Collects records into batches before they go down, so that an operator that emits one by one
/// pays the virtual call once a batch.
///
/// In: records one by one. Out: the same in order, in batches of [`element::BATCH_RECORDS`], the
/// rest at [`BatchBuffer::flush`].
#[derive(Debug)]
pub struct BatchBuffer<T> {
    pending: Batch<T>,
}

impl<T> Default for BatchBuffer<T> {
    fn default() -> Self {
        Self { pending: Batch::default() }
    }
}

impl<T> BatchBuffer<T> {
    /// Adds a record, and hands a full batch to `out`.
    ///
    /// # Errors
    ///
    /// What `out` says of the batch.
    #[inline(always)]
    pub fn push(
        &mut self,
        value: T,
        timestamp: Option<Timestamp>,
        out: &mut dyn Output<T>,
    ) -> Result<(), TaskError> {
        match self.push_within(value, timestamp) {
            Ok(()) => Ok(()),
            Err(value) => self.push_at_edge(value, timestamp, out),
        }
    }

    /// Adds a record that is neither a batch's first nor its last; else gives its value back.
    ///
    /// # Errors
    ///
    /// The value.
    #[inline(always)]
    pub(crate) fn push_within(&mut self, value: T, timestamp: Option<Timestamp>) -> Result<(), T> {
        if self.pending.len() + 1 >= element::BATCH_RECORDS {
            return Err(value);
        }
        self.pending.push_within(value, timestamp)
    }

    /// Adds a batch's first or last record.
    #[cold]
    #[inline(never)]
    fn push_at_edge(
        &mut self,
        value: T,
        timestamp: Option<Timestamp>,
        out: &mut dyn Output<T>,
    ) -> Result<(), TaskError> {
        if !self.pending.admits(timestamp) {
            self.flush(out)?;
        }
        if self.pending.is_empty() {
            self.pending.reserve(element::BATCH_RECORDS);
        }
        self.pending.push(value, timestamp);
        if self.pending.len() >= element::BATCH_RECORDS { self.flush(out) } else { Ok(()) }
    }

    /// Hands what is there to `out`.
    ///
    /// # Errors
    ///
    /// What `out` says of the batch.
    pub fn flush(&mut self, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        out.batch(std::mem::take(&mut self.pending))
    }
}

/// The first error of an output below, kept until it can be answered: what a user's function calls to
/// emit returns nothing.
#[derive(Debug, Default)]
pub(crate) struct FirstError(Option<Box<TaskError>>);

impl FirstError {
    /// Does `emit`, unless an error is kept.
    // Once a record: what `emit` borrows goes by way of memory to a call.
    #[inline(always)]
    pub(crate) fn of(&mut self, emit: impl FnOnce() -> Result<(), TaskError>) {
        if self.0.is_none()
            && let Err(error) = emit()
        {
            self.keep(error);
        }
    }

    /// Adds a record that is its batch's first or last. Where an output has failed, no batch gets there.
    #[cold]
    #[inline(never)]
    pub(crate) fn push_at_edge<T>(
        &mut self,
        buffer: &mut BatchBuffer<T>,
        value: T,
        timestamp: Option<Timestamp>,
        out: &mut dyn Output<T>,
    ) {
        self.of(|| buffer.push_at_edge(value, timestamp, out));
    }

    /// Keeps an error; there is none yet.
    #[cold]
    #[inline(never)]
    pub(crate) fn keep(&mut self, error: TaskError) {
        self.0 = Some(Box::new(error));
    }

    /// The error, if one is kept.
    #[inline]
    pub(crate) fn check(&mut self) -> Result<(), TaskError> {
        if self.0.is_none() { Ok(()) } else { self.answer() }
    }

    #[cold]
    fn answer(&mut self) -> Result<(), TaskError> {
        self.0.take().map_or(Ok(()), |error| Err(*error))
    }
}
