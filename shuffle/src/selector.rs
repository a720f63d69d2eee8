//! Which subpartition a record goes to, and which subtasks an edge joins: arithmetic, no state but a
//! counter.
//!
//! Pointwise edges ("rescale", FLIP-134) divide whole numbers, as key groups do; there is no float
//! anywhere, so no pair is ever missed or met twice.

use std::ops::Range;

use element::{Key, MaxParallelism, SubpartitionIndex, SubtaskIndex, hash_key_bytes};

/// The consumers that producer `producer` of `producers` feeds, on a pointwise edge to `consumers`.
///
/// Each consumer has at least one producer and each producer at least one consumer; the smaller
/// side's members are each joined to one contiguous range of the larger side's.
#[must_use]
pub fn pointwise_consumers(producer: SubtaskIndex, producers: u32, consumers: u32) -> Range<u32> {
    joined(producer.0, producers, consumers)
}

/// The producers that consumer `consumer` of `consumers` reads, on a pointwise edge from `producers`.
///
/// The exact inverse of [`pointwise_consumers`].
#[must_use]
pub fn pointwise_producers(consumer: SubtaskIndex, producers: u32, consumers: u32) -> Range<u32> {
    joined(consumer.0, consumers, producers)
}

/// What member `index` of `own` is joined to among `other`: symmetric in the two sides.
fn joined(index: u32, own: u32, other: u32) -> Range<u32> {
    let (index, own, other) = (u64::from(index), u64::from(own.max(1)), u64::from(other));
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    if own <= other {
        narrow((index * other).div_ceil(own))..narrow(((index + 1) * other).div_ceil(own))
    } else {
        let one = index * other / own;
        narrow(one)..narrow((one + 1).min(other))
    }
}

/// Writes to `targets` the subpartition of each value on a keyed edge: the subtask that owns the hash
/// of its key. Costs one key encoding and one hash a record; `scratch` is reused.
pub fn key_targets<T, K: Key>(
    values: &[T],
    key: impl Fn(&T) -> K,
    max_parallelism: MaxParallelism,
    subpartitions: u32,
    scratch: &mut Vec<u8>,
    targets: &mut Vec<SubpartitionIndex>,
) {
    targets.clear();
    targets.extend(values.iter().map(|value| {
        scratch.clear();
        key(value).encode_key(scratch);
        let subtask = max_parallelism.subtask_of(hash_key_bytes(scratch), subpartitions);
        SubpartitionIndex(subtask.0)
    }));
}

/// Hands records out in turn ("rebalance"): over any number of calls the shares of two subpartitions
/// differ by one record at most.
#[derive(Clone, Debug)]
pub struct Rebalance {
    next: u32,
    subpartitions: u32,
}

impl Rebalance {
    /// Starts at a subpartition that depends on the producer, so that many producers of few records
    /// do not all feed the first consumer.
    #[must_use]
    pub fn new(producer: SubtaskIndex, subpartitions: u32) -> Self {
        let subpartitions = subpartitions.max(1);
        Self { next: producer.0 % subpartitions, subpartitions }
    }

    /// The next subpartition in turn.
    pub fn next_target(&mut self) -> SubpartitionIndex {
        let target = SubpartitionIndex(self.next);
        self.next = if self.next + 1 == self.subpartitions { 0 } else { self.next + 1 };
        target
    }

    /// Writes to `targets` the subpartition of each of `records` records.
    pub fn targets(&mut self, records: usize, targets: &mut Vec<SubpartitionIndex>) {
        targets.clear();
        targets.extend((0..records).map(|_| self.next_target()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tF1.
    #[test]
    fn pointwise_edges_join_everyone_and_both_sides_agree_for_all_sizes_to_300() {
        for producers in 1..=300_u32 {
            for consumers in 1..=300_u32 {
                check_pointwise(producers, consumers);
            }
        }
    }

    #[track_caller]
    fn check_pointwise(producers: u32, consumers: u32) {
        let (many, few) = (producers.max(consumers), producers.min(consumers));
        let of_few = |index| {
            if producers <= consumers {
                pointwise_consumers(SubtaskIndex(index), producers, consumers)
            } else {
                pointwise_producers(SubtaskIndex(index), producers, consumers)
            }
        };
        let of_many = |index| {
            if producers <= consumers {
                pointwise_producers(SubtaskIndex(index), producers, consumers)
            } else {
                pointwise_consumers(SubtaskIndex(index), producers, consumers)
            }
        };
        let mut next = 0;
        for index in 0..few {
            let range = of_few(index);
            assert_eq!(range.start, next, "{producers} to {consumers}: ranges follow each other");
            assert!(range.len() as u32 >= many / few && range.len() as u32 <= many.div_ceil(few));
            for other in range.clone() {
                assert_eq!(of_many(other), index..index + 1, "{producers} to {consumers}");
            }
            next = range.end;
        }
        assert_eq!(next, many, "{producers} to {consumers}: everyone is joined once");
    }

    #[test]
    fn equal_sides_are_joined_one_to_one() {
        for index in 0..7 {
            assert_eq!(pointwise_consumers(SubtaskIndex(index), 7, 7), index..index + 1);
        }
    }

    #[test]
    fn rebalance_gives_every_subpartition_the_same_share() {
        let mut rebalance = Rebalance::new(SubtaskIndex(5), 3);
        let mut targets = Vec::new();
        let mut shares = [0_u32; 3];
        for records in [1, 5, 2, 8, 14] {
            rebalance.targets(records, &mut targets);
            for target in &targets {
                shares[target.0 as usize] += 1;
            }
        }
        assert_eq!(shares, [10, 10, 10]);
        assert_eq!(Rebalance::new(SubtaskIndex(5), 3).next_target(), SubpartitionIndex(2));
    }

    #[test]
    fn keyed_targets_are_the_owners_of_the_hash() {
        let values: Vec<u64> = (0..1_000).collect();
        let (mut scratch, mut targets) = (Vec::new(), Vec::new());
        key_targets(&values, |v| *v, MaxParallelism::DEFAULT, 7, &mut scratch, &mut targets);
        for (value, target) in values.iter().zip(&targets) {
            let hash = hash_key_bytes(&element::key_bytes(value));
            let owner = MaxParallelism::DEFAULT.groups_of(SubtaskIndex(target.0), 7);
            assert!(owner.contains(hash));
        }
    }
}
