//! Collects records for the program that runs the job.

use std::sync::Arc;

use element::Timestamp;
use parking_lot::Mutex;

use super::{Sink, SinkContext, SinkWriter, number, to_number};

/// Records collected by a job, in order of arrival at the sink; shared with the program.
pub struct Collected<T> {
    records: Arc<Mutex<Vec<(T, Option<Timestamp>)>>>,
}

impl<T> Clone for Collected<T> {
    fn clone(&self) -> Self {
        Self { records: Arc::clone(&self.records) }
    }
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self { records: Arc::default() }
    }
}

impl<T> Collected<T> {
    /// Takes what is there.
    #[must_use]
    pub fn take(&self) -> Vec<(T, Option<Timestamp>)> {
        std::mem::take(&mut *self.records.lock())
    }
}

/// A sink of parallelism 1 that keeps records in memory. Holds no row of a failed attempt: a restart
/// cuts it to what the checkpoint covers, or to nothing.
pub struct CollectSink<T> {
    collected: Collected<T>,
    limit: Option<u64>,
}

impl<T: Send + 'static> CollectSink<T> {
    /// Collects into `collected`, at most `limit` records.
    #[must_use]
    pub fn new(collected: Collected<T>, limit: Option<u64>) -> Self {
        Self { collected, limit }
    }
}

impl<T: Send + 'static> Sink<T> for CollectSink<T> {
    fn writer(
        &self,
        _: &SinkContext,
        restored: &[Vec<u8>],
    ) -> anyhow::Result<Box<dyn SinkWriter<T>>> {
        let covered: u64 = restored.iter().map(|bytes| to_number::<u64>(bytes)).try_fold(
            0,
            |most, covered| covered.map(|covered| most.max(covered)),
        )?;
        let mut records = self.collected.records.lock();
        records.truncate(usize::try_from(covered)?);
        drop(records);
        Ok(Box::new(Writer { collected: self.collected.clone(), limit: self.limit }))
    }
}

struct Writer<T> {
    collected: Collected<T>,
    limit: Option<u64>,
}

impl<T: Send> SinkWriter<T> for Writer<T> {
    fn write(&mut self, value: T, timestamp: Option<Timestamp>) -> anyhow::Result<()> {
        let mut records = self.collected.records.lock();
        if self.limit.is_none_or(|limit| (records.len() as u64) < limit) {
            records.push((value, timestamp));
        }
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.limit.is_some_and(|limit| self.collected.records.lock().len() as u64 >= limit)
    }

    fn prepare_commit(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        Ok(vec![number(&(self.collected.records.lock().len() as u64))])
    }
}
