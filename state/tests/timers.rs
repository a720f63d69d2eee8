//! Timers: unique, in order of time, deletable, of one key; in memory and across a restore.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::collections::BTreeSet;

use element::{KeyHash, Timestamp, hash_key_bytes, key_bytes};
use slackwater_state::{Timer, TimerKind, TimerService};
use support::{Kind, Random, Where, every_kind, in_order};

use TimerKind::{EventTime, ProcessingTime};

fn place(key: u64) -> (KeyHash, Vec<u8>) {
    let bytes = key_bytes(&key);
    (hash_key_bytes(&bytes), bytes)
}

fn register(timers: &mut TimerService, kind: TimerKind, time: i64, key: u64, ns: &[u8]) -> bool {
    let (hash, bytes) = place(key);
    timers.register(kind, Timestamp(time), hash, &bytes, ns)
}

fn times(due: impl Iterator<Item = Timer>) -> Vec<i64> {
    due.map(|timer| timer.time.0).collect()
}

#[test]
fn a_timer_is_unique_per_kind_key_namespace_and_time() {
    let mut timers = TimerService::new();
    assert!(register(&mut timers, EventTime, 5, 1, b""));
    assert!(!register(&mut timers, EventTime, 5, 1, b""));
    assert!(register(&mut timers, ProcessingTime, 5, 1, b""));
    assert!(register(&mut timers, EventTime, 5, 1, b"w"));
    assert!(register(&mut timers, EventTime, 5, 2, b""));
    assert_eq!((timers.len(EventTime), timers.len(ProcessingTime)), (3, 1));
    assert_eq!(timers.next_time(EventTime), Some(Timestamp(5)));
}

#[test]
fn due_timers_come_in_order_of_time_and_up_to_the_time_asked() {
    let mut timers = TimerService::new();
    for time in [9, -3, 4, 7, i64::MIN, 4] {
        register(&mut timers, EventTime, time, time.unsigned_abs() % 3, b"");
    }
    let mut due = |upto| times(std::iter::from_fn(|| timers.pop_due(EventTime, Timestamp(upto))));
    assert_eq!(due(6), [i64::MIN, -3, 4]);
    assert_eq!(due(6), []);
    assert_eq!(due(i64::MAX), [7, 9]);
}

/// Random histories against a set, streaming and sorted.
#[test]
fn every_history_of_timers_is_that_of_a_set() {
    type Model = BTreeSet<(TimerKind, i64, KeyHash, Vec<u8>, Vec<u8>)>;
    for seed in 0..40 {
        let (mut random, mut timers) = (Random::new(seed), TimerService::new());
        let mut model = Model::new();
        for round in 0..30 {
            let sorted = random.below(2) == 0;
            if sorted {
                timers.begin_sorted_input();
            }
            for (hash, key, _) in in_order(0..1 + random.below(4)) {
                for _ in 0..random.below(40) {
                    let kind = if random.below(3) == 0 { ProcessingTime } else { EventTime };
                    let time = random.below(50) as i64;
                    let namespace = vec![7; random.below(3) as usize * 10];
                    let entry = (kind, time, hash, key.clone(), namespace);
                    let (time, namespace) = (Timestamp(time), &entry.4);
                    match random.below(4) {
                        0 => {
                            let deleted = timers.delete(kind, time, hash, &key, namespace);
                            assert_eq!(deleted, model.remove(&entry), "seed {seed}");
                        }
                        1 if random.below(8) == 0 => {
                            let found = timers.pop_due_of_key(kind, time, hash, &key);
                            let first = model
                                .iter()
                                .filter(|held| held.0 == kind && held.3 == key)
                                .min_by_key(|held| (held.1, held.4.clone()))
                                .filter(|held| held.1 <= time.0)
                                .cloned();
                            assert_eq!(
                                found.map(|timer| (timer.time.0, timer.namespace.into_vec())),
                                first.as_ref().map(|held| (held.1, held.4.clone())),
                                "seed {seed}, round {round}"
                            );
                            first.map(|first| model.remove(&first));
                        }
                        _ => {
                            let added = timers.register(kind, time, hash, &key, namespace);
                            assert_eq!(added, model.insert(entry), "seed {seed}");
                        }
                    }
                }
            }
            if sorted {
                timers.end_sorted_input();
            }
            let upto = random.below(50) as i64;
            for kind in [EventTime, ProcessingTime] {
                let next = model.iter().find(|held| held.0 == kind).map(|held| Timestamp(held.1));
                assert_eq!(timers.next_time(kind), next);
                while let Some(due) = timers.pop_due(kind, Timestamp(upto)) {
                    let first = model.iter().find(|held| held.0 == kind).cloned().unwrap();
                    let found =
                        (kind, due.time.0, due.hash, due.key.into(), due.namespace.into_vec());
                    assert_eq!(found, first, "seed {seed}");
                    model.remove(&first);
                }
                assert!(!model.iter().any(|held| held.0 == kind && held.1 <= upto));
            }
            assert_eq!(timers.len(EventTime) + timers.len(ProcessingTime), model.len());
        }
    }
}

/// Traps tB5 and tS18: foreign timers are neither touched nor mistaken for the key's own.
#[test]
fn a_million_foreign_timers_do_not_show_at_a_change_of_key() {
    let mut timers = TimerService::new();
    for key in 0..100_000 {
        for time in 0..10 {
            register(&mut timers, EventTime, time, 1_000_000 + key, b"");
        }
    }
    timers.begin_sorted_input();
    for (hash, key, number) in in_order(0..50_000) {
        timers.register(EventTime, Timestamp(3), hash, &key, b"");
        timers.register(EventTime, Timestamp(99), hash, &key, b"");
        let due = timers.pop_due_of_key(EventTime, Timestamp(50), hash, &key).unwrap();
        assert_eq!((due.hash, &*due.key, due.time), (hash, &*key, Timestamp(3)), "key {number}");
        assert_eq!(timers.pop_due_of_key(EventTime, Timestamp(50), hash, &key), None);
    }
    timers.end_sorted_input();
    assert_eq!(timers.len(EventTime), 1_050_000);
}

/// Trap tW11.
#[test]
fn a_million_timers_of_one_key_are_deleted_in_logarithmic_time_each() {
    let mut timers = TimerService::new();
    let (hash, key) = place(1);
    for time in 0..1_000_000 {
        timers.register(EventTime, Timestamp(time), hash, &key, b"");
    }
    for time in 0..1_000_000 {
        let time = (time * 7_919) % 1_000_000;
        assert!(timers.delete(EventTime, Timestamp(time), hash, &key, b""));
    }
    assert!(timers.is_empty());
}

/// Trap tW26: a restored timer is due by the clock as it is.
#[test]
fn restored_timers_of_both_kinds_are_due_and_those_of_the_past_at_once() {
    for kind in every_kind() {
        let mut subject = kind.open();
        for key in 0..20 {
            register(&mut subject.timers, ProcessingTime, 100, key, b"");
            register(&mut subject.timers, EventTime, 50 + key as i64, key, b"window");
        }
        let mut moved = subject.moved_to(Kind(Where::Heap, 0));
        let now = Timestamp(5_000);
        for _ in 0..20 {
            assert!(moved.timers.pop_due(ProcessingTime, now).is_some());
        }
        let due = std::iter::from_fn(|| moved.timers.pop_due(EventTime, now));
        assert_eq!(times(due), (50..70).collect::<Vec<_>>());
        assert!(moved.timers.is_empty());
    }
}
