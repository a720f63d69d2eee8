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

    /// How long until [`now`](Self::now) says `time`; nothing if it has come. A clock that knows parts of
    /// a millisecond counts them, so that who waits again and again wakes once a millisecond, not later
    /// each time.
    fn left_until(&self, time: Timestamp) -> Duration {
        let millis = time.0.saturating_sub(self.now().0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

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

    fn left_until(&self, time: Timestamp) -> Duration {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Duration::from_millis(u64::try_from(time.0).unwrap_or(0)).saturating_sub(since)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_a_part_of_the_millisecond_at_hand() {
        let clock = SystemClock::default();
        let before = clock.now();
        let left = clock.left_until(before.saturating_add(1));
        assert!(left <= Duration::from_millis(1), "{left:?}");
        // A clock that runs on leaves less than the whole milliseconds sooner or later.
        let parts = std::iter::repeat_with(|| clock.left_until(before.saturating_add(60_000)));
        let part = parts.take(1_000).find(|left| left.subsec_nanos() % 1_000_000 != 0);
        assert!(part.is_some());
        assert_eq!(clock.left_until(before), Duration::ZERO);
        assert_eq!(clock.left_until(Timestamp::MIN), Duration::ZERO);
    }

    #[test]
    fn a_clock_moved_by_hand_leaves_whole_milliseconds() {
        let clock = ManualClock::default();
        clock.set(Timestamp(7));
        assert_eq!(clock.left_until(Timestamp(9)), Duration::from_millis(2));
        assert_eq!(clock.left_until(Timestamp(7)), Duration::ZERO);
        assert_eq!(clock.left_until(Timestamp::MIN), Duration::ZERO);
    }
}
