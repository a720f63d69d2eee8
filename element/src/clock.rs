//! [`Clock`]: the one way to read the time, so that a test can move it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Timestamp;

/// Reads processing time. Implemented by the system's clock and by one moved by hand; called by
/// tasks once a step, on the task's thread.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Processing time: milliseconds since the epoch.
    fn now(&self) -> Timestamp;

    /// Time that never goes back, from an arbitrary start; for durations only.
    fn monotonic(&self) -> Duration;

    /// How long a thread may sleep before it reads this clock again, when what it waits for is `left`
    /// away by this clock. The machine's clock needs no second look before then.
    fn patience(&self, left: Duration) -> Duration {
        left
    }
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(crate::time::millis_of(since))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that stands still until it is moved. Clones share one time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    millis: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that reads `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self { millis: Arc::new(AtomicI64::new(now.0)) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.millis.fetch_add(crate::time::millis_of(by), Ordering::SeqCst);
    }

    /// Sets the clock.
    pub fn set(&self, now: Timestamp) {
        self.millis.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.millis.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.millis.load(Ordering::SeqCst).max(0).unsigned_abs())
    }

    /// It moves at any time.
    fn patience(&self, left: Duration) -> Duration {
        left.min(Duration::from_millis(2))
    }
}
