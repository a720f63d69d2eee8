//! Sinks that cost as little as a sink can: checksums and latencies, added up per subtask.
//!
//! Nothing is shared while records come; each writer hands in what it has at the end of input.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use slackwater::{Result, Sink, SinkContext, SinkWriter, Timestamp};

/// The sum of a check value over all records, and their number. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CheckSum(Arc<[AtomicU64; 2]>);

impl CheckSum {
    /// The wrapping sum.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0[0].load(Ordering::Acquire)
    }

    /// The records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.0[1].load(Ordering::Acquire)
    }

    /// A sink that adds `check` of each record.
    pub fn sink<T, F: Fn(&T) -> u64 + Clone>(&self, check: F) -> CheckSink<F> {
        CheckSink { total: self.clone(), check }
    }

    fn add(&self, sum: u64, records: u64) {
        self.0[0].fetch_add(sum, Ordering::AcqRel);
        self.0[1].fetch_add(records, Ordering::AcqRel);
    }
}

/// Adds a check value of each record to a [`CheckSum`].
#[derive(Debug)]
pub struct CheckSink<F> {
    total: CheckSum,
    check: F,
}

struct CheckWriter<F> {
    total: CheckSum,
    check: F,
    sum: u64,
    records: u64,
}

impl<T, F> Sink<T> for CheckSink<F>
where
    F: Fn(&T) -> u64 + Clone + Send + Sync + 'static,
{
    fn writer(&self, _: &SinkContext, _: &[Vec<u8>]) -> Result<Box<dyn SinkWriter<T>>> {
        let (total, check) = (self.total.clone(), self.check.clone());
        Ok(Box::new(CheckWriter { total, check, sum: 0, records: 0 }))
    }
}

impl<T, F: Fn(&T) -> u64 + Send> SinkWriter<T> for CheckWriter<F> {
    #[inline]
    fn write(&mut self, value: T, _: Option<Timestamp>) -> Result<()> {
        self.sum = self.sum.wrapping_add((self.check)(&value));
        self.records += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.total.add(self.sum, self.records);
        Ok(())
    }
}

/// One live record at the sink, in nanoseconds: when it was due, after the live part began; and how
/// much later it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it was due.
    pub due: u64,
    /// From due to the sink.
    pub latency: u64,
}

/// Arrivals of live records, and the checksum of all. Clones share them.
#[derive(Clone, Debug)]
pub struct Latencies {
    start: Instant,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    total: CheckSum,
}

impl Latencies {
    /// Counts time from `start`, which the source must count from, too.
    #[must_use]
    pub fn since(start: Instant) -> Self {
        Self { start, arrivals: Arc::default(), total: CheckSum::default() }
    }

    /// The checksum of all records.
    #[must_use]
    pub fn total(&self) -> &CheckSum {
        &self.total
    }

    /// The live records, in order of when they were due.
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrival> {
        let mut all = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_unstable_by_key(|arrival| arrival.due);
        all
    }
}

/// A key, its sum, and when it was due: nanoseconds from the start of the program's clock and from the
/// start of the live part; zero for backlog.
pub type Timed = (u64, u64, (u64, u64));

struct LatencyWriter {
    shared: Latencies,
    arrivals: Vec<Arrival>,
    sum: u64,
    records: u64,
}

impl Sink<Timed> for Latencies {
    fn writer(&self, _: &SinkContext, _: &[Vec<u8>]) -> Result<Box<dyn SinkWriter<Timed>>> {
        let shared = self.clone();
        Ok(Box::new(LatencyWriter { shared, arrivals: Vec::new(), sum: 0, records: 0 }))
    }
}

impl SinkWriter<Timed> for LatencyWriter {
    fn write(&mut self, (key, sum, (at, due)): Timed, _: Option<Timestamp>) -> Result<()> {
        self.sum = self.sum.wrapping_add(crate::generator::check(key, sum));
        self.records += 1;
        if at > 0 {
            let now = self.shared.start.elapsed().as_nanos() as u64;
            self.arrivals.push(Arrival { due, latency: now.saturating_sub(at) });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.shared.total.add(self.sum, self.records);
        let mut all = self.shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(&mut self.arrivals);
        Ok(())
    }
}
