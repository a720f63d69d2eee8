//! Event and processing time: milliseconds since the Unix epoch, signed.
//!
//! Arithmetic on time saturates; there is no sentinel "idle" or "unknown" value: those are
//! `Option<Timestamp>` or enums where they occur. [`Timestamp::MAX`] as a watermark means "no more
//! records", [`Timestamp::MIN`] "nothing known yet".

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time, in milliseconds since the Unix epoch; may be negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The least point in time; as a watermark: nothing is known.
    pub const MIN: Self = Self(i64::MIN);
    /// The greatest point in time; as a watermark: the end of all input.
    pub const MAX: Self = Self(i64::MAX);

    /// From milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This time and `millis` more, held at the limits.
    #[must_use]
    pub const fn saturating_add(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// This time less `millis`, held at the limits.
    #[must_use]
    pub const fn saturating_sub(self, millis: i64) -> Self {
        Self(self.0.saturating_sub(millis))
    }
}

/// A duration in whole milliseconds, held at `i64::MAX`.
pub(crate) fn millis_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        self.saturating_add(millis_of(duration))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, duration: Duration) -> Self {
        self.saturating_sub(millis_of(duration))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MIN => f.write_str("-inf"),
            Self::MAX => f.write_str("+inf"),
            Self(millis) => write!(f, "{millis}ms"),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
