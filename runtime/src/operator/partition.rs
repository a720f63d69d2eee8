//! [`PartitionOperator`]: all records of a subtask, sorted or in the order of their coming, at the end
//! of its input.
//!
//! ```text
//!   records -> sorter (spills beyond its memory)      end of input -> function over an iterator
//! ```
//!
//! Emits only at the end of its input (FLIP-331), so it takes part in no checkpoint before that; the
//! plan says so. Watermarks wait for the end too. Holds no more than the sorter's memory.
//!
//! Source: FLIP-380, "full window processing on non-keyed streams".

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Batch, Control, Key, MemoryBudget, Record, Timestamp, option_table};
use sort::{TypedSorter, TypedStream};

use super::Operator;
use super::flat_map::Collector;
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::output::{BatchBuffer, Output, Signal};
use crate::temporary::sorter_options;
use crate::user::UserCode;

/// A record as the sorter holds it: arrival decides among equal keys, not time.
type Stamped<T> = (Option<Timestamp>, T);

/// The records of a partition, in order, with their timestamps. Ends early if they cannot be read; the
/// job then fails.
pub struct PartitionRecords<'a, K, T> {
    stream: TypedStream<K, Stamped<T>>,
    failed: &'a mut Option<sort::SortError>,
}

impl<K: Key, T: Record> Iterator for PartitionRecords<'_, K, T> {
    type Item = (T, Option<Timestamp>);

    fn next(&mut self) -> Option<Self::Item> {
        match self.stream.next()? {
            Ok((_, _, (timestamp, value))) => Some((value, timestamp)),
            Err(error) => {
                *self.failed = Some(error);
                None
            }
        }
    }
}

/// Collects a subtask's records by key; at the end they go to a function.
pub struct PartitionOperator<K, T, O, S, F> {
    sorter: Option<TypedSorter<K, Stamped<T>>>,
    key: Arc<S>,
    function: Arc<F>,
    watermark: Option<Timestamp>,
    user: UserCode,
    context: Arc<OperatorContext>,
    output: PhantomData<fn() -> O>,
}

impl<K: Key, T: Record, O, S, F> PartitionOperator<K, T, O, S, F> {
    /// Records ordered by what `key` finds, then by arrival, given to `function` at the end.
    ///
    /// # Errors
    ///
    /// [`TaskError::Config`] if an option of the sorter has no valid value.
    pub fn new(
        key: Arc<S>,
        function: Arc<F>,
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        let task = &context.task;
        let wanted = match context.treatment.memory {
            Some(memory) => memory,
            None => task.config.get(&option_table::SORTED_INPUTS_MEMORY)?,
        };
        let memory = MemoryBudget::new(wanted.min(task.memory.total()));
        Ok(Self {
            sorter: Some(TypedSorter::new(sorter_options(context, memory)?)),
            key,
            function,
            watermark: None,
            user: UserCode::new(context),
            context: Arc::clone(context),
            output: PhantomData,
        })
    }
}

impl<K, T, O, S, F> PartitionOperator<K, T, O, S, F>
where
    K: Key,
    T: Record,
    O: Send,
    F: Fn(PartitionRecords<'_, K, T>, &mut Collector<'_, O>) -> anyhow::Result<()>,
{
    fn finish(&mut self, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        let Some(sorter) = self.sorter.take() else { return Ok(()) };
        let failed = TaskError::sort(&self.context.name);
        let stream = sorter.finish().map_err(&failed)?;
        let mut unread = None;
        let mut buffer = BatchBuffer::default();
        let function = &*self.function;
        self.user.run_batch(|_| {
            let mut collector = Collector::new(&mut buffer, &mut *out);
            function(PartitionRecords { stream, failed: &mut unread }, &mut collector)?;
            Ok(collector.check()?)
        })?;
        unread.map_or(Ok(()), |error| Err(failed(error)))?;
        buffer.flush(out)
    }
}

impl<K, T, O, S, F> Operator<T, O> for PartitionOperator<K, T, O, S, F>
where
    K: Key,
    T: Record,
    O: Send,
    S: Fn(&T) -> K + Send + Sync,
    F: Fn(PartitionRecords<'_, K, T>, &mut Collector<'_, O>) -> anyhow::Result<()> + Send + Sync,
{
    fn batch(&mut self, batch: Batch<T>, _: &mut dyn Output<O>) -> Result<(), TaskError> {
        let Some(sorter) = &mut self.sorter else { return Ok(()) };
        let failed = TaskError::sort(&self.context.name);
        let key = &*self.key;
        self.user.run_batch(|position| {
            for (value, timestamp) in batch.into_records() {
                position.next();
                let key = key(&value);
                sorter.push(&key, None, &(timestamp, value)).map_err(&failed)?;
            }
            Ok(())
        })
    }

    fn signal(&mut self, signal: Signal, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        match signal {
            Signal::Stream(Control::Watermark(watermark)) => {
                self.watermark = self.watermark.max(Some(watermark));
                Ok(())
            }
            Signal::Stream(Control::EndOfInput) => {
                self.finish(out)?;
                if let Some(watermark) = self.watermark.take() {
                    out.signal(Signal::Stream(Control::Watermark(watermark)))?;
                }
                out.signal(signal)
            }
            other => out.signal(other),
        }
    }
}
