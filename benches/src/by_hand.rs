//! References without an engine: the same work in plain loops, as fast as one would write them.
//!
//! Each generates its own input, as the engine's source does, and returns the job's checksum.

use element::{Key, hash_key_bytes};
use hashbrown::{HashMap, HashTable};

use crate::generator::RIGHT;
use crate::generator::{check, co_group, exchange_check, exchange_record, key, mix, val, val16};
use crate::jobs::keyed_fold::{Folded, fold, mixed};

/// A running sum per key in one hash table, an output a record. `key_of` finds the key of a number.
pub fn running_sums(records: u64, key_of: impl Fn(u64) -> u64) -> u64 {
    let mut table = HashMap::<u64, u64>::new();
    (0..records).fold(0, |total, i| {
        let key = key_of(i);
        let sum = table.entry(key).or_insert(0);
        *sum += val(key);
        total.wrapping_add(check(key, *sum))
    })
}

/// A key's bytes, their hash, a look-up, two words folded, and an output: what a keyed function over state
/// in memory does for a record.
#[must_use]
pub fn folds(records: u64, keys: u64) -> u64 {
    let mut table = HashTable::<(u64, Folded)>::new();
    let mut bytes = Vec::with_capacity(8);
    (0..records).fold(0, |total, i| {
        let key = key(i, keys);
        bytes.clear();
        key.encode_key(&mut bytes);
        let hash = hash_key_bytes(&bytes).0;
        let rehash = |entry: &(u64, Folded)| hash_key_bytes(&entry.0.to_be_bytes()).0;
        let entry = table.entry(hash, |entry| entry.0 == key, rehash);
        let held = &mut entry.or_insert((key, (0, 0))).into_mut().1;
        *held = fold(*held, val(key));
        total.wrapping_add(check(key, mixed(*held)))
    })
}

/// As [`running_sums`], an output a key at the end.
pub fn final_sums(records: u64, key_of: impl Fn(u64) -> u64) -> u64 {
    let mut table = HashMap::<u64, u64>::new();
    for i in 0..records {
        let key = key_of(i);
        *table.entry(key).or_insert(0) += val(key);
    }
    table.iter().fold(0, |total, (key, sum)| total.wrapping_add(check(*key, *sum)))
}

/// Sorts the keys, then sums in one pass: what a batch engine does at best on one thread.
#[must_use]
pub fn sorted_sums(records: u64, keys: u64) -> u64 {
    let mut sorted: Vec<u64> = (0..records).map(|i| key(i, keys)).collect();
    sorted.sort_unstable();
    let mut total = 0_u64;
    for run in sorted.chunk_by(|a, b| a == b) {
        let mut sum = 0;
        for key in run {
            sum += val(*key);
            total = total.wrapping_add(check(*key, sum));
        }
    }
    total
}

/// Both sides sorted by key and merged.
#[must_use]
pub fn co_groups(records_each: u64, keys: u64) -> u64 {
    let side = |base: u64| {
        let pair = |i: u64| (key(i + base, keys), val16(mix(i + base)));
        let mut pairs: Vec<(u64, u64)> = (0..records_each).map(pair).collect();
        pairs.sort_unstable_by_key(|pair| pair.0);
        pairs
    };
    let (left, right) = (side(0), side(RIGHT));
    let (mut left, mut right) = (left.as_slice(), right.as_slice());
    let mut total = 0_u64;
    while let Some(key) = [left.first(), right.first()].into_iter().flatten().map(|p| p.0).min() {
        let groups = (take_group(&mut left, key), take_group(&mut right, key));
        total = total.wrapping_add(check(key, co_group(groups.0, groups.1)));
    }
    total
}

/// Count and sum of the records of `key` at the front of `side`, which is cut to those behind them.
fn take_group(side: &mut &[(u64, u64)], key: u64) -> (u64, u64) {
    let group = side.partition_point(|pair| pair.0 <= key);
    let (mine, rest) = side.split_at(group);
    *side = rest;
    (mine.len() as u64, mine.iter().map(|pair| pair.1).sum())
}

/// The exchange's checksum without an exchange: what generating and checking cost alone.
#[must_use]
pub fn exchange_checks(records: u64) -> u64 {
    (0..records).fold(0, |sum, i| sum.wrapping_add(exchange_check(&exchange_record(i))))
}

/// The costly rows of the cache job, in memory.
#[must_use]
pub fn costly_rows(rows: u64, rounds: u32) -> Vec<u64> {
    (0..rows).map(|i| costly(i, rounds)).collect()
}

/// A value that takes `rounds` steps to compute.
#[must_use]
pub fn costly(i: u64, rounds: u32) -> u64 {
    (0..rounds).fold(i, |x, _| mix(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_sums_agree_whether_hashed_or_sorted() {
        assert_eq!(running_sums(10_000, |i| key(i, 100)), sorted_sums(10_000, 100));
    }

    #[test]
    fn a_key_on_one_side_alone_is_a_group() {
        let pair = |i: u64| (key(i, 1 << 32), val16(mix(i)));
        let (left, right) = (pair(0), pair(RIGHT));
        let expected = check(left.0, co_group((1, left.1), (0, 0)))
            .wrapping_add(check(right.0, co_group((0, 0), (1, right.1))));
        assert_eq!(co_groups(1, 1 << 32), expected);
    }
}
