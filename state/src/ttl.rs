//! Time to live: stamps on values, and who still sees them.
//!
//! A value written at `t` is gone from `t + duration` on. The stamp travels in front of the value,
//! 8 bytes, so a snapshot can leave expired entries out without knowing the type.
//!
//! What has expired is cleaned up when it is accessed; where nobody asks for it, in memory a few places
//! at each access to the state, over a store when the store compacts ([`crate::Expiry`]). The
//! elements of a list expire each by its own time and are cleaned up on access alone.

use std::time::Duration;

use element::{CodecError, Record, Schema, SchemaError, Timestamp, Value};

/// What renews a value's time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TtlUpdate {
    /// Creation and every write.
    #[default]
    OnCreateAndWrite,
    /// Reads as well.
    OnReadAndWrite,
}

/// Whether a value that has expired, and is not cleaned up yet, is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TtlVisibility {
    /// Never.
    #[default]
    NeverReturnExpired,
    /// Until the first access after its expiry has cleaned it up.
    ReturnExpiredIfNotCleanedUp,
}

/// Whose time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TtlClock {
    /// The backend's clock.
    #[default]
    ProcessingTime,
    /// The operator's watermark.
    EventTime,
}

/// How long the values of a state live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlConfig {
    /// From the last renewal to the expiry.
    pub duration: Duration,
    /// What renews.
    pub update: TtlUpdate,
    /// Who sees what has expired.
    pub visibility: TtlVisibility,
    /// Whose time counts.
    pub clock: TtlClock,
}

impl TtlConfig {
    /// Renewed on write, never seen after expiry, by processing time.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self {
            duration,
            update: TtlUpdate::default(),
            visibility: TtlVisibility::default(),
            clock: TtlClock::default(),
        }
    }

    /// Sets what renews.
    #[must_use]
    pub fn with_update(self, update: TtlUpdate) -> Self {
        Self { update, ..self }
    }

    /// Sets who sees what has expired.
    #[must_use]
    pub fn with_visibility(self, visibility: TtlVisibility) -> Self {
        Self { visibility, ..self }
    }

    /// Sets whose time counts.
    #[must_use]
    pub fn with_clock(self, clock: TtlClock) -> Self {
        Self { clock, ..self }
    }

    /// Whether a value stamped `at` has expired at `now`.
    pub(crate) fn is_expired(&self, at: Timestamp, now: Timestamp) -> bool {
        at + self.duration <= now
    }
}

/// A value and the time of its last renewal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stamped<V> {
    pub(crate) at: Timestamp,
    pub(crate) value: V,
}

impl<V: Record> Record for Stamped<V> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.at.encode(out);
        self.value.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(Self { at: Timestamp::decode(input)?, value: V::decode(input)? })
    }

    fn schema() -> Schema {
        Schema::Tuple(vec![Schema::Timestamp, V::schema()])
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        let (at, value) = <(Timestamp, Wrapped<V>)>::from_value(value)?;
        Ok(Self { at, value: value.0 })
    }
}

/// Lets a stamped value be read through the tuple's implementation.
struct Wrapped<V>(V);

impl<V: Record> Record for Wrapped<V> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        V::decode(input).map(Self)
    }

    fn schema() -> Schema {
        V::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        V::from_value(value).map(Self)
    }
}
