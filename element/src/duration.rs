//! Durations as programs write them: `5.secs()`, `10.mins()`.

use std::time::Duration;

/// Makes a [`Duration`] from a whole number.
///
/// ```
/// use element::DurationExt;
/// assert_eq!(2.mins().as_secs(), 120);
/// ```
pub trait DurationExt {
    /// Milliseconds.
    fn millis(self) -> Duration;
    /// Seconds.
    fn secs(self) -> Duration;
    /// Minutes.
    fn mins(self) -> Duration;
    /// Hours.
    fn hours(self) -> Duration;
    /// Days of 24 hours.
    fn days(self) -> Duration;
}

impl DurationExt for u64 {
    fn millis(self) -> Duration {
        Duration::from_millis(self)
    }
    fn secs(self) -> Duration {
        Duration::from_secs(self)
    }
    fn mins(self) -> Duration {
        Duration::from_secs(self.saturating_mul(60))
    }
    fn hours(self) -> Duration {
        Duration::from_secs(self.saturating_mul(3_600))
    }
    fn days(self) -> Duration {
        Duration::from_secs(self.saturating_mul(86_400))
    }
}
