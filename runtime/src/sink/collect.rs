//! Collects records for the program that runs the job.

use std::sync::Arc;

use element::Timestamp;
use parking_lot::Mutex;

use super::{Sink, SinkContext, SinkWriter, number, to_number};

/// Records collected by a job, in order of arrival at the sink; shared with the program.
pub struct Collected<T> {
    shared: Arc<Mutex<Shared<T>>>,
}

struct Shared<T> {
    records: Vec<(T, Option<Timestamp>)>,
    /// How many writers have been opened. Only the last one's records count: the task of another may
    /// still run, on a worker that was lost.
    writers: u64,
}

impl<T> Clone for Collected<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        let shared = Shared { records: Vec::new(), writers: 0 };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }
}

impl<T> Collected<T> {
    /// Takes what is there.
    #[must_use]
    pub fn take(&self) -> Vec<(T, Option<Timestamp>)> {
        std::mem::take(&mut self.shared.lock().records)
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
        let covered: u64 = restored
            .iter()
            .map(|bytes| to_number::<u64>(bytes))
            .try_fold(0, |most, covered| covered.map(|covered| most.max(covered)))?;
        let mut shared = self.collected.shared.lock();
        shared.records.truncate(usize::try_from(covered)?);
        shared.writers += 1;
        let number = shared.writers;
        drop(shared);
        Ok(Box::new(Writer { collected: self.collected.clone(), limit: self.limit, number }))
    }
}

struct Writer<T> {
    collected: Collected<T>,
    limit: Option<u64>,
    /// Which of the writers it is.
    number: u64,
}

impl<T: Send> SinkWriter<T> for Writer<T> {
    fn write(&mut self, value: T, timestamp: Option<Timestamp>) -> anyhow::Result<()> {
        let mut shared = self.collected.shared.lock();
        if shared.writers != self.number {
            anyhow::bail!("another attempt collects");
        }
        if self.limit.is_none_or(|limit| (shared.records.len() as u64) < limit) {
            shared.records.push((value, timestamp));
        }
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.limit.is_some_and(|limit| self.collected.shared.lock().records.len() as u64 >= limit)
    }

    fn prepare_commit(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        Ok(vec![number(&(self.collected.shared.lock().records.len() as u64))])
    }
}
