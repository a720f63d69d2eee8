//! [`Rules`]: the one order of a sorter, used alike in memory and while merging.
//!
//! That both use this file is the point: runs sorted by one order and merged by another are the
//! classic way to complete a key twice.

use std::cmp::Ordering;

use crate::options::KeyPrefix;
use crate::{Order, SorterOptions, Ties};

/// How two records compare: prefix, key, timestamp; the arrival is the caller's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// All ones if descending: a flipped prefix compares the other way round.
    mask: u64,
    by_timestamp: bool,
    prefix: Option<KeyPrefix>,
}

impl Rules {
    pub(crate) fn of(options: &SorterOptions) -> Self {
        Self {
            mask: if options.order == Order::Descending { u64::MAX } else { 0 },
            by_timestamp: options.ties == Ties::Timestamp,
            prefix: options.prefix,
        }
    }

    /// The number that decides most comparisons, direction included.
    #[inline]
    pub(crate) fn prefix(&self, key: &[u8]) -> u64 {
        let plain = match self.prefix {
            None => leading_bytes(key),
            Some(of_user) => of_user(key),
        };
        self.directed(plain)
    }

    /// The prefix of a key, direction included, where it is known what the user's function says.
    #[inline]
    pub(crate) fn directed(&self, plain: u64) -> u64 {
        plain ^ self.mask
    }

    /// The eight bytes of the key that come behind the prefix, or its first eight where the prefix is
    /// the user's: keys of equal prefix compare as these numbers do where they differ.
    #[inline]
    pub(crate) fn second(&self, key: &[u8]) -> u64 {
        let rest = if self.prefix.is_none() { key.get(8..).unwrap_or_default() } else { key };
        leading_bytes(rest) ^ self.mask
    }

    /// The longest keys of which prefix and second word leave nothing out.
    #[inline]
    pub(crate) fn whole_key(&self) -> usize {
        if self.prefix.is_none() { 16 } else { 8 }
    }

    /// Seven bytes of the key from `depth` on and how many there were (at most 8), direction
    /// included: two keys with equal bytes before `depth` compare as these numbers do, and are equal
    /// if the numbers are and [`Rules::is_last`] says so.
    #[inline]
    pub(crate) fn prefix_at(&self, key: &[u8], depth: usize) -> u64 {
        let rest = key.get(depth..).unwrap_or_default();
        let count = rest.len().min(8) as u64;
        ((leading_bytes(rest) & !0xff) | count) ^ self.mask
    }

    /// Whether keys with this [`Rules::prefix_at`] end within it.
    #[inline]
    pub(crate) fn is_last(&self, prefix: u64) -> bool {
        (prefix ^ self.mask) & 0xff < 8
    }

    /// Compares whole keys.
    #[inline]
    pub(crate) fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.mask == 0 { a.cmp(b) } else { b.cmp(a) }
    }

    /// Compares the timestamps of equal keys.
    #[inline]
    pub(crate) fn compare_timestamps(&self, a: i64, b: i64) -> Ordering {
        if self.by_timestamp { a.cmp(&b) } else { Ordering::Equal }
    }
}

/// The first eight bytes as a big-endian number; what is missing counts as zero.
#[inline]
fn leading_bytes(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => key.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)) << short_shift(key),
    }
}

#[inline]
fn short_shift(key: &[u8]) -> u32 {
    // An empty key is zero whatever the shift; a shift of 64 would overflow.
    (64 - 8 * key.len() as u32) & 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_never_contradicts_the_key() {
        let keys: [&[u8]; 11] = [
            b"",
            b"\0",
            b"\0\0",
            b"a",
            b"a\0",
            b"abcdefg",
            b"abcdefgh",
            b"abcdefgh\0",
            b"abcdefgh\0a",
            b"abcdefghabcdefgh",
            b"abcdefghabcdefgi\0",
        ];
        for mask in [0, u64::MAX] {
            let rules = Rules { mask, by_timestamp: true, prefix: None };
            for a in keys {
                for b in keys {
                    let order = rules.compare_keys(a, b);
                    let short = rules.prefix(a).cmp(&rules.prefix(b));
                    assert!(short == order || short == Ordering::Equal, "{a:?} {b:?}");
                    let (deep_a, deep_b) = (rules.prefix_at(a, 0), rules.prefix_at(b, 0));
                    let deep = deep_a.cmp(&deep_b);
                    assert!(deep == order || (deep.is_eq() && !rules.is_last(deep_a)));
                    let of_user = Rules { prefix: Some(|_| 7), ..rules };
                    for (rules, is_equal) in [(rules, short.is_eq()), (of_user, true)] {
                        let second = rules.second(a).cmp(&rules.second(b));
                        assert!(!is_equal || second == order || second.is_eq(), "{a:?} {b:?}");
                        let is_whole = a.len() == b.len() && a.len() <= rules.whole_key();
                        assert!(!(is_equal && is_whole && second.is_eq()) || a == b);
                    }
                }
            }
        }
    }
}
