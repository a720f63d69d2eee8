//! From a key's hash to the subtask that owns it.
//!
//! `group = hash * max parallelism / 2^64`, `subtask = group * parallelism / max parallelism`, both
//! rounded down in integers, so a subtask owns one contiguous range of the hash and rescaling moves
//! ranges.

use std::ops::Range;

use crate::{KeyHash, SubtaskIndex};

/// The number of key groups of an operator: 1 to 32768. It bounds the operator's parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaxParallelism(u32);

impl MaxParallelism {
    /// The default: 32768, the finest split.
    pub const DEFAULT: Self = Self(32_768);

    /// `None` outside of 1 to 32768.
    #[must_use]
    pub const fn new(groups: u32) -> Option<Self> {
        if groups >= 1 && groups <= 32_768 { Some(Self(groups)) } else { None }
    }

    /// The number of groups.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The group of a hash.
    #[inline]
    #[must_use]
    pub const fn group_of(self, hash: KeyHash) -> KeyGroup {
        KeyGroup(((hash.0 as u128 * self.0 as u128) >> 64) as u32)
    }

    /// The subtask of `parallelism` that owns a hash.
    #[inline]
    #[must_use]
    pub const fn subtask_of(self, hash: KeyHash, parallelism: u32) -> SubtaskIndex {
        let share = self.group_of(hash).0 as u64 * parallelism as u64;
        // Nearly every maximum is a power of two, and a division takes longer than all the rest.
        let subtask = if self.0.is_power_of_two() {
            share >> self.0.trailing_zeros()
        } else {
            share / self.0 as u64
        };
        SubtaskIndex(subtask as u32)
    }

    /// The groups that subtask `index` of `parallelism` owns.
    #[must_use]
    pub const fn groups_of(self, index: SubtaskIndex, parallelism: u32) -> KeyGroups {
        let (max, p) = (self.0 as u64, parallelism as u64);
        let start = (index.0 as u64 * max).div_ceil(p);
        let end = ((index.0 as u64 + 1) * max).div_ceil(p);
        KeyGroups { start: start as u32, end: end as u32, max: self }
    }
}

/// One slice of the hash space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyGroup(pub u32);

/// A contiguous range of key groups, `start` in, `end` out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyGroups {
    /// The first group.
    pub start: u32,
    /// The group behind the last.
    pub end: u32,
    /// Of how many groups.
    pub max: MaxParallelism,
}

impl KeyGroups {
    /// All groups there are.
    #[must_use]
    pub const fn all(max: MaxParallelism) -> Self {
        Self { start: 0, end: max.0, max }
    }

    /// Whether the range holds `hash`.
    #[must_use]
    pub const fn contains(self, hash: KeyHash) -> bool {
        let group = self.max.group_of(hash).0;
        self.start <= group && group < self.end
    }

    /// Whether the range holds nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The hashes of this range: first to last, both in; `None` if the range is empty.
    #[must_use]
    pub fn hash_range(self) -> Option<std::ops::RangeInclusive<u64>> {
        if self.is_empty() {
            return None;
        }
        let first_of = |group: u32| (u128::from(group) << 64).div_ceil(u128::from(self.max.0));
        let first = u64::try_from(first_of(self.start)).unwrap_or(u64::MAX);
        let last = u64::try_from(first_of(self.end) - 1).unwrap_or(u64::MAX);
        Some(first..=last)
    }

    /// The groups as a range of numbers.
    #[must_use]
    pub const fn range(self) -> Range<u32> {
        self.start..self.end
    }
}
