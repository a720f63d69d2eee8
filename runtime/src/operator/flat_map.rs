//! One record to any number of records.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Batch, Timestamp};

use super::Operator;
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::output::{BatchBuffer, FirstError, Output, Signal};
use crate::user::UserCode;

/// Takes results, one by one. Handed to users' functions.
pub struct Collector<'a, T> {
    buffer: &'a mut BatchBuffer<T>,
    out: &'a mut dyn Output<T>,
    timestamp: Option<Timestamp>,
    failed: FirstError,
}

impl<'a, T> Collector<'a, T> {
    /// Collects into `buffer`, full batches into `out`.
    pub fn new(buffer: &'a mut BatchBuffer<T>, out: &'a mut dyn Output<T>) -> Self {
        Self { buffer, out, timestamp: None, failed: FirstError::default() }
    }

    /// Results from here on carry `timestamp`.
    pub fn set_timestamp(&mut self, timestamp: Option<Timestamp>) {
        self.timestamp = timestamp;
    }

    /// Emits a result with the timestamp of the record at hand.
    #[inline]
    pub fn collect(&mut self, value: T) {
        self.collect_at(value, self.timestamp);
    }

    /// Emits a result with a timestamp of its own.
    #[inline]
    pub fn collect_at(&mut self, value: T, timestamp: Option<Timestamp>) {
        let Self { buffer, out, failed, .. } = self;
        failed.of(|| buffer.push(value, timestamp, *out));
    }

    /// The error of an output below, if one came up since the last call. Operators ask after each
    /// record, so that `collect` need not return a result.
    ///
    /// # Errors
    ///
    /// What the output said.
    pub fn check(&mut self) -> Result<(), TaskError> {
        self.failed.check()
    }
}

impl<T> Extend<T> for Collector<'_, T> {
    /// Emits results with the timestamp of the record at hand.
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.collect(value));
    }
}

/// Applies a function that emits any number of results.
pub struct FlatMap<F, O> {
    function: Arc<F>,
    user: UserCode,
    buffer: BatchBuffer<O>,
    result: PhantomData<fn() -> O>,
}

impl<F, O> FlatMap<F, O> {
    /// Applies `function`; results carry the timestamp of their record.
    #[must_use]
    pub fn new(function: Arc<F>, context: &OperatorContext) -> Self {
        Self {
            function,
            user: UserCode::new(context),
            buffer: BatchBuffer::default(),
            result: PhantomData,
        }
    }
}

impl<I, O, F> Operator<I, O> for FlatMap<F, O>
where
    I: Send,
    O: Send,
    F: Fn(I, &mut Collector<'_, O>) -> anyhow::Result<()> + Send + Sync,
{
    fn batch(&mut self, batch: Batch<I>, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        let Self { function, user, buffer, .. } = self;
        user.run_batch(|position| {
            let mut collector = Collector::new(buffer, out);
            for (value, timestamp) in batch.into_records() {
                position.next();
                collector.set_timestamp(timestamp);
                function(value, &mut collector)?;
                collector.check()?;
            }
            Ok(())
        })?;
        self.buffer.flush(out)
    }

    fn signal(&mut self, signal: Signal, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        self.buffer.flush(out)?;
        out.signal(signal)
    }
}
