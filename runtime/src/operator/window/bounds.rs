//! [`Window`]: two instants, and the namespace that they make.

use std::fmt;

use element::{CodecError, Key, Record, Schema, SchemaError, Timestamp, Value};

/// A window in time: from `start`, up to but without `end`. Ordered by start, then end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    start: Timestamp,
    end: Timestamp,
}

impl Window {
    /// The window of all time.
    pub const GLOBAL: Self = Self { start: Timestamp::MIN, end: Timestamp::MAX };

    /// The window from `start` up to `end`.
    #[must_use]
    pub const fn new(start: Timestamp, end: Timestamp) -> Self {
        Self { start, end }
    }

    /// As [`new`](Self::new), from bounds that may lie beyond the ends of time: they are held there.
    pub(crate) fn clamped(start: i128, end: i128) -> Self {
        Self { start: clamp(start), end: clamp(end) }
    }

    /// The first instant.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        self.start
    }

    /// The first instant behind it.
    #[must_use]
    pub const fn end(self) -> Timestamp {
        self.end
    }

    /// The last instant in it: the watermark that ends it. A window held at the end of time lasts
    /// until [`Timestamp::MAX`], which no instant follows.
    #[must_use]
    pub fn max_timestamp(self) -> Timestamp {
        if self.end == Timestamp::MAX { Timestamp::MAX } else { self.end.saturating_sub(1) }
    }

    /// Whether it overlaps another one or begins where that ends.
    #[must_use]
    pub fn touches(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// The least window that holds both.
    #[must_use]
    pub fn cover(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Its bounds as sixteen bytes that compare as windows do: the namespace of its state and timers.
    pub(crate) fn namespace(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let (start, end) = bytes.split_at_mut(8);
        start.copy_from_slice(&ordered(self.start));
        end.copy_from_slice(&ordered(self.end));
        bytes
    }

    /// The window of a namespace; `None` if it is not one of a window.
    pub(crate) fn of_namespace(bytes: &[u8]) -> Option<Self> {
        let (start, end) = bytes.split_first_chunk::<8>()?;
        let end = <[u8; 8]>::try_from(end).ok()?;
        Some(Self { start: from_ordered(*start), end: from_ordered(end) })
    }
}

/// An instant on a longer scale, held at the ends of time.
pub(crate) fn clamp(instant: i128) -> Timestamp {
    let least = i128::from(i64::MIN);
    let held = instant.clamp(least, i128::from(i64::MAX));
    Timestamp(i64::try_from(held).unwrap_or(i64::MAX))
}

fn ordered(at: Timestamp) -> [u8; 8] {
    (at.0 ^ i64::MIN).to_be_bytes()
}

fn from_ordered(bytes: [u8; 8]) -> Timestamp {
    Timestamp(i64::from_be_bytes(bytes) ^ i64::MIN)
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Record for Window {
    fn encode(&self, out: &mut Vec<u8>) {
        self.start.encode(out);
        self.end.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(Self { start: Timestamp::decode(input)?, end: Timestamp::decode(input)? })
    }

    fn schema() -> Schema {
        <(Timestamp, Timestamp)>::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        <(Timestamp, Timestamp)>::from_value(value).map(|(start, end)| Self { start, end })
    }
}

impl Key for Window {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.start.encode_key(out);
        self.end.encode_key(out);
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(Self { start: Timestamp::decode_key(input)?, end: Timestamp::decode_key(input)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_gives_its_window_back_and_orders_as_windows_do() {
        let at = [i64::MIN, -11, -1, 0, 1, 10, i64::MAX].map(Timestamp);
        let windows: Vec<Window> =
            at.iter().flat_map(|a| at.iter().map(|b| Window::new(*a, *b))).collect();
        for a in &windows {
            assert_eq!(Window::of_namespace(&a.namespace()), Some(*a));
            for b in &windows {
                assert_eq!(a.cmp(b), a.namespace().cmp(&b.namespace()), "{a} and {b}");
            }
        }
        assert_eq!(Window::of_namespace(b"other"), None);
    }
}
