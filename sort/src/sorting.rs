//! Puts entries into the full order: prefix, key, timestamp, arrival.
//!
//! Sorted and reversed input is recognised in one pass. Otherwise entries are sorted by prefix, then
//! each group of equal prefix by what its keys have beyond their common beginning: seven more bytes
//! at a time, read once a key, so a long shared beginning costs one comparison a key and not one a
//! comparison. A group of one single key is ordered by arrival and timestamp alone, in linear time
//! if it came so.
//!
//! Called by the combining table, and by the buffer before it is spilled or handed out. The buffer
//! leaves its small groups to [`crate::window`].

use std::cmp::Ordering;

use crate::radix::{Entry, sort_by_prefix};
use crate::rules::Rules;
use crate::{CancelFlag, SortError};

/// Groups up to this length are compared key by key.
const SMALL: usize = 12;

/// Groups beyond this length are ordered by the buffer's sort, smaller ones as they are drained.
pub(crate) const LARGE: usize = 64;

/// Beyond this many common beginnings inside each other, keys are compared whole: a bound on the
/// recursion that only keys made for it reach.
const DEEPEST: u32 = 48;

/// Where entries point to.
pub(crate) trait Keyed {
    /// The key of the record at `at`.
    fn key(&self, at: u64) -> &[u8];
    /// Its timestamp.
    fn timestamp(&self, at: u64) -> i64;
    /// Both, for one look at the record.
    #[inline]
    fn key_and_timestamp(&self, at: u64) -> (&[u8], i64) {
        (self.key(at), self.timestamp(at))
    }
    /// The key of the record at `at` in one look, if it has eight bytes, as numbers have, and the record
    /// no timestamp.
    #[inline]
    fn number(&self, _: u64) -> Option<u64> {
        None
    }
}

/// Sorts entries by prefix, and orders those groups of one prefix that are longer than `small`. Gives the
/// number of whole keys that were looked at.
///
/// # Errors
///
/// [`SortError::Cancelled`].
pub(crate) fn sort_groups_beyond(
    small: usize,
    entries: &mut [Entry],
    source: &impl Keyed,
    rules: &Rules,
    cancel: Option<&CancelFlag>,
) -> Result<u64, SortError> {
    if !entries.is_sorted_by_key(|entry| entry.prefix) {
        if entries.is_sorted_by(|a, b| a.prefix > b.prefix) {
            entries.reverse();
        } else {
            sort_by_prefix(entries);
        }
    }
    order_groups_beyond(small, entries, source, rules, cancel)
}

/// Orders those groups of one prefix, of entries sorted by prefix, that are longer than `small`.
///
/// # Errors
///
/// [`SortError::Cancelled`].
pub(crate) fn order_groups_beyond(
    small: usize,
    entries: &mut [Entry],
    source: &impl Keyed,
    rules: &Rules,
    cancel: Option<&CancelFlag>,
) -> Result<u64, SortError> {
    // One that is longer has two entries half of `small` apart, the first of them at a multiple of that.
    let half = small / 2;
    let is_long = |at: usize| match (entries.get(at), entries.get(at + half)) {
        (Some(a), Some(b)) => a.prefix == b.prefix,
        _ => false,
    };
    if half > 0 && !(0..entries.len()).step_by(half).any(is_long) {
        return Ok(0);
    }
    let mut sorting = Sorting { source, rules, deep: 0, cancel, since_check: 0 };
    sorting.groups(small, entries, |sorting, group| {
        let prefix = group.first().map_or(0, |first| first.prefix);
        sorting.group(group, 0, 0)?;
        // What the group's own order needed is of no meaning to others.
        group.iter_mut().for_each(|entry| entry.prefix = prefix);
        Ok(())
    })?;
    Ok(sorting.deep)
}

/// Orders a small group of one prefix. Nearly always it is of one key and came in the order of time,
/// so that is what is looked at first. Gives the number of whole keys that were looked at.
pub(crate) fn order_group(entries: &mut [Entry], source: &impl Keyed, rules: &Rules) -> u64 {
    sort_by_arrival(entries);
    let mut deep = entries.len() as u64;
    if !are_one_key_in_time(entries, source, rules) {
        entries.sort_unstable_by(|a, b| {
            deep += 1;
            compare(a, b, source, rules)
        });
    }
    deep
}

/// Whether records are of one key, and in the order of time.
fn are_one_key_in_time(entries: &[Entry], source: &impl Keyed, rules: &Rules) -> bool {
    let Some((first, rest)) = entries.split_first() else { return true };
    if let Some(number) = source.number(first.at) {
        return rest.iter().all(|entry| source.number(entry.at) == Some(number));
    }
    let (first_key, mut last) = source.key_and_timestamp(first.at);
    rest.iter().all(|entry| {
        let (key, timestamp) = source.key_and_timestamp(entry.at);
        let before = std::mem::replace(&mut last, timestamp);
        rules.compare_timestamps(before, last).is_le() && key == first_key
    })
}

fn sort_by_arrival(entries: &mut [Entry]) {
    if !entries.is_sorted_by_key(|entry| entry.at) {
        entries.sort_unstable_by_key(|entry| entry.at);
    }
}

/// The whole order of two records of equal prefix.
fn compare(a: &Entry, b: &Entry, source: &impl Keyed, rules: &Rules) -> Ordering {
    rules
        .compare_keys(source.key(a.at), source.key(b.at))
        .then_with(|| rules.compare_timestamps(source.timestamp(a.at), source.timestamp(b.at)))
        .then(a.at.cmp(&b.at))
}

struct Sorting<'a, S> {
    source: &'a S,
    rules: &'a Rules,
    deep: u64,
    cancel: Option<&'a CancelFlag>,
    since_check: usize,
}

impl<S: Keyed> Sorting<'_, S> {
    /// Calls `each` for every group of more than `small` entries with one prefix.
    fn groups(
        &mut self,
        small: usize,
        entries: &mut [Entry],
        mut each: impl FnMut(&mut Self, &mut [Entry]) -> Result<(), SortError>,
    ) -> Result<(), SortError> {
        let mut start = 0;
        while let Some(first) = entries.get(start) {
            let prefix = first.prefix;
            let rest = entries.get(start + 1..).unwrap_or_default();
            let more = rest.iter().take_while(|entry| entry.prefix == prefix).count();
            if more >= small {
                each(self, &mut entries[start..=start + more])?;
            }
            start += more + 1;
            self.check_cancel(more + 1)?;
        }
        Ok(())
    }

    fn check_cancel(&mut self, done: usize) -> Result<(), SortError> {
        self.since_check += done;
        if self.since_check > 1 << 16 {
            self.since_check = 0;
            if self.cancel.is_some_and(CancelFlag::is_cancelled) {
                return Err(SortError::Cancelled);
            }
        }
        Ok(())
    }

    /// Sorts entries whose keys agree in their first `depth` bytes.
    fn group(&mut self, entries: &mut [Entry], depth: usize, level: u32) -> Result<(), SortError> {
        if entries.len() <= SMALL || level > DEEPEST {
            self.deep += order_group(entries, self.source, self.rules);
            return Ok(());
        }
        let (common, is_one_key) = self.common_beginning(entries, depth);
        if is_one_key {
            self.order_one_key(entries);
            return Ok(());
        }
        for entry in entries.iter_mut() {
            entry.prefix = self.rules.prefix_at(self.source.key(entry.at), common);
        }
        sort_by_prefix(entries);
        self.groups(1, entries, |sorting, group| {
            if group.first().is_some_and(|first| sorting.rules.is_last(first.prefix)) {
                sorting.order_one_key(group);
                Ok(())
            } else {
                sorting.group(group, common + 7, level + 1)
            }
        })
    }

    /// How many bytes all keys begin with, and whether that is all of every key.
    fn common_beginning(&mut self, entries: &[Entry], depth: usize) -> (usize, bool) {
        let first = entries.first().map_or(&[][..], |entry| self.source.key(entry.at));
        let mut common = first.len();
        let mut longest = 0;
        for entry in entries {
            let key = self.source.key(entry.at);
            longest = longest.max(key.len());
            common = common.min(key.len());
            if key.get(depth..common) != first.get(depth..common) {
                let same = |(a, b): &(&u8, &u8)| a == b;
                let tails = key.iter().zip(first).skip(depth);
                common = depth + tails.take_while(same).count();
            }
        }
        self.deep += entries.len() as u64;
        (common, common == first.len() && common == longest)
    }

    /// Orders entries of one key: by arrival, then, stable, by timestamp.
    fn order_one_key(&self, entries: &mut [Entry]) {
        if !entries.is_sorted_by_key(|entry| entry.at) {
            for entry in entries.iter_mut() {
                entry.prefix = entry.at;
            }
            sort_by_prefix(entries);
        }
        let compare = |a: &Entry, b: &Entry| {
            let (a, b) = (self.source.timestamp(a.at), self.source.timestamp(b.at));
            self.rules.compare_timestamps(a, b)
        };
        entries.sort_by(compare);
    }
}
