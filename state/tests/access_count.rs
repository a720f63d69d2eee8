//! FLIP-327's and FLIP-325's promises about the store, held by counts: behaviours M14, M15 and M16.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use element::{Key, Record};
use slackwater_state::{
    AggregateFunction, AggregatingState, KeyedStateBackend, ListState, MapState, ReducingState,
    StateCounters, StateError, ValueState, WriteMode,
};
use support::{Kind, Subject, Where, every_kind, every_store, in_order, set_key};

const KEYS: u64 = 500;
const MODES: [WriteMode; 2] = [WriteMode::BulkLoad, WriteMode::Writes];

struct Sum;

impl AggregateFunction for Sum {
    type In = u64;
    type Accumulator = u64;
    type Out = u64;

    fn create(&self) -> u64 {
        0
    }

    fn add(&self, sum: &mut u64, value: u64) {
        *sum += value;
    }

    fn result(&self, sum: &u64) -> u64 {
        *sum
    }

    fn merge(&self, into: &mut u64, other: u64) {
        *into += other;
    }
}

/// Puts every second key into the store, then counts a sorted phase over all keys.
fn counted(
    kind: Kind,
    mode: WriteMode,
    touch: impl Fn(&mut KeyedStateBackend),
) -> (Subject, StateCounters) {
    let mut subject = kind.open();
    for key in (0..KEYS).step_by(2) {
        set_key(&mut subject.backend, &key);
        touch(&mut subject.backend);
    }
    subject.backend.flush().unwrap();
    let before = subject.backend.counters();
    subject.backend.begin_sorted_input(mode).unwrap();
    for (hash, bytes, _) in in_order(0..KEYS) {
        for _ in 0..5 {
            subject.backend.set_current_key(hash, &bytes);
            touch(&mut subject.backend);
        }
    }
    subject.backend.end_sorted_input().unwrap();
    let after = subject.backend.counters();
    let mut counts = after;
    counts.store_reads -= before.store_reads;
    counts.store_range_reads -= before.store_range_reads;
    counts.store_writes -= before.store_writes;
    (subject, counts)
}

/// M15: at most one read and one write per key, state and namespace.
#[track_caller]
fn check_once(kind: Kind, name: &str, touch: impl Fn(&mut KeyedStateBackend)) {
    for mode in MODES {
        let (_subject, counts) = counted(kind, mode, &touch);
        assert_eq!(counts.store_reads, 0, "{name} on {kind:?}: the merge replaces point reads");
        assert!(counts.store_range_reads <= KEYS, "{name} on {kind:?}: {counts:?}");
        assert_eq!(counts.store_writes, KEYS, "{name} on {kind:?}: one write a key");
    }
}

#[test]
fn sorted_input_reads_and_writes_each_key_once_for_every_kind_of_state() {
    let value = ValueState::<u64>::new("value");
    let list = ListState::<u64>::new("list");
    let map = MapState::<u64, u64>::new("map");
    let reducing = ReducingState::<u64>::new("reducing", |a, b| a + b);
    let aggregating = AggregatingState::new("aggregating", Sum);
    for kind in every_store() {
        check_once(kind, "value", |backend| {
            value.update(backend, |held| *held = Some(held.unwrap_or(0) + 1)).unwrap();
        });
        check_once(kind, "value by get and set", |backend| {
            let held = value.get(backend).unwrap().unwrap_or(0);
            value.set(backend, held + 1).unwrap();
        });
        check_once(kind, "value in a namespace", |backend| {
            value.update_in(backend, b"window", |held| *held = Some(1)).unwrap();
        });
        check_once(kind, "list", |backend| list.add(backend, 1).unwrap());
        check_once(kind, "map entry", |backend| {
            map.update(backend, &7, |held| *held = Some(held.unwrap_or(0) + 1)).unwrap();
        });
        check_once(kind, "map by iteration", |backend| {
            if map.entries(backend).unwrap().is_empty() {
                map.put(backend, &7, 1).unwrap();
            }
            map.retain(backend, |_, held| {
                *held += 1;
                true
            })
            .unwrap();
        });
        check_once(kind, "reducing", |backend| reducing.add(backend, 1).unwrap());
        check_once(kind, "aggregating", |backend| aggregating.add(backend, 1).unwrap());
    }
}

#[test]
fn the_same_store_shows_after_the_switch_what_the_backlog_left() {
    // M14.
    let count = ValueState::<u64>::new("count");
    for kind in every_kind() {
        for mode in MODES {
            let (mut subject, _) = counted(kind, mode, |backend| {
                count.update(backend, |held| *held = Some(held.unwrap_or(0) + 1)).unwrap();
            });
            for key in 0..KEYS {
                set_key(&mut subject.backend, &key);
                let expected = if key % 2 == 0 { 6 } else { 5 };
                assert_eq!(count.get(&mut subject.backend).unwrap(), Some(expected));
            }
        }
    }
}

#[test]
fn an_empty_store_is_looked_at_once() {
    let count = ValueState::<u64>::new("count");
    for kind in every_store() {
        let mut subject = kind.open();
        subject.backend.begin_sorted_input(WriteMode::BulkLoad).unwrap();
        for (hash, bytes, key) in in_order(0..KEYS) {
            subject.backend.set_current_key(hash, &bytes);
            count.update(&mut subject.backend, |held| *held = Some(key)).unwrap();
        }
        subject.backend.end_sorted_input().unwrap();
        let counts = subject.backend.counters();
        assert_eq!((counts.store_reads, counts.store_range_reads), (0, 1), "{kind:?}");
        assert_eq!(counts.store_writes, KEYS);
        if kind.0 != Where::Memory {
            assert_eq!(counts.ingested_entries, KEYS, "all writes went through the bulk load");
        }
    }
}

#[test]
fn sparse_sorted_input_skips_what_it_does_not_need() {
    let count = ValueState::<u64>::new("count");
    for kind in every_store() {
        let mut subject = kind.open();
        subject.backend.begin_sorted_input(WriteMode::BulkLoad).unwrap();
        for (hash, bytes, key) in in_order(0..20_000) {
            subject.backend.set_current_key(hash, &bytes);
            count.set(&mut subject.backend, key).unwrap();
        }
        subject.backend.end_sorted_input().unwrap();
        subject.backend.begin_sorted_input(WriteMode::BulkLoad).unwrap();
        for (hash, bytes, key) in in_order((0..20_000).step_by(2_000)) {
            subject.backend.set_current_key(hash, &bytes);
            assert_eq!(count.get(&mut subject.backend).unwrap(), Some(key));
        }
        subject.backend.end_sorted_input().unwrap();
        let reads = subject.backend.counters().store_range_reads;
        assert!(reads <= 1 + 2 * 10, "{reads} range reads for 10 keys among 20,000 on {kind:?}");
    }
}

#[test]
fn the_cache_has_one_key_in_backlog_and_the_users_size_otherwise() {
    // M16.
    for (size, in_backlog) in [(0, 1), (1, 1), (9, 9)] {
        let mut subject = Kind(Where::Memory, size).open();
        assert_eq!(subject.backend.cache_entries(), Some(size));
        subject.backend.begin_sorted_input(WriteMode::BulkLoad).unwrap();
        assert_eq!(subject.backend.cache_entries(), Some(in_backlog));
        let count = ValueState::<u64>::new("count");
        for (hash, bytes, key) in in_order(0..20) {
            subject.backend.set_current_key(hash, &bytes);
            count.set(&mut subject.backend, key).unwrap();
        }
        assert_eq!(subject.backend.counters().cached_keys, in_backlog as u64);
        subject.backend.end_sorted_input().unwrap();
        assert_eq!(subject.backend.cache_entries(), Some(size));
    }
}

/// L1: off is off.
#[test]
fn without_a_cache_every_access_goes_to_the_store() {
    let mut subject = Kind(Where::Memory, 0).open();
    let count = ValueState::<u64>::new("count");
    set_key(&mut subject.backend, &1_u64);
    for _ in 0..3 {
        count.update(&mut subject.backend, |held| *held = Some(held.unwrap_or(0) + 1)).unwrap();
    }
    count.get(&mut subject.backend).unwrap();
    let counts = subject.backend.counters();
    assert_eq!((counts.store_reads, counts.store_writes, counts.hits), (4, 3, 0));
}

/// L2.
#[test]
fn the_cache_writes_only_what_changed_and_drops_the_least_recently_used() {
    let mut subject = Kind(Where::Memory, 2).open();
    let count = ValueState::<u64>::new("count");
    for key in [1_u64, 2] {
        set_key(&mut subject.backend, &key);
        count.set(&mut subject.backend, key).unwrap();
    }
    subject.backend.flush().unwrap();
    assert_eq!(subject.backend.counters().store_writes, 2);
    let mut get = |key: u64| {
        set_key(&mut subject.backend, &key);
        let value = count.get(&mut subject.backend).unwrap();
        let counts = subject.backend.counters();
        (value, counts.hits, counts.misses, counts.store_writes)
    };
    assert_eq!(get(1), (Some(1), 1, 2, 2), "a hit");
    assert_eq!(get(3), (None, 1, 3, 2), "2 was used least recently and leaves, clean");
    assert_eq!(get(1), (Some(1), 2, 3, 2), "1 has stayed");
    assert_eq!(get(2), (Some(2), 2, 4, 2), "2 is read again");
}

/// L6.
#[test]
fn a_value_handed_out_and_changed_stays_out_of_the_store_until_it_is_set() {
    let mut subject = Kind(Where::Memory, 4).open();
    let list = ValueState::<Vec<u64>>::new("list");
    set_key(&mut subject.backend, &1_u64);
    list.set(&mut subject.backend, vec![1]).unwrap();
    let mut held = list.get(&mut subject.backend).unwrap().unwrap();
    held.push(2);
    subject.backend.flush().unwrap();
    assert_eq!(list.get(&mut subject.backend).unwrap(), Some(vec![1]));
}

#[test]
fn a_key_out_of_order_in_sorted_input_is_an_error() {
    let mut subject = Kind(Where::Memory, 1).open();
    let count = ValueState::<u64>::new("count");
    subject.backend.begin_sorted_input(WriteMode::BulkLoad).unwrap();
    let mut keys = in_order(0..2);
    keys.reverse();
    let mut set = |(hash, bytes, key): &(element::KeyHash, Vec<u8>, u64)| {
        subject.backend.set_current_key(*hash, bytes);
        count.set(&mut subject.backend, *key)
    };
    set(&keys[0]).unwrap();
    assert!(matches!(set(&keys[1]), Err(StateError::OutOfOrder { .. })));
}

#[test]
fn a_bulk_load_that_is_abandoned_leaves_the_store_as_it_was() {
    for kind in every_store().into_iter().filter(|kind| kind.0 != Where::Memory) {
        let (mut store, _directory) = support::store(kind.0);
        let mut batch = slackwater_state::WriteBatch::new();
        batch.put(b"kept", b"1");
        store.write(&batch).unwrap();
        let mut load = store.bulk_load().unwrap().unwrap();
        let mut entries = slackwater_state::WriteBatch::new();
        entries.put(b"a", b"2");
        entries.put(b"kept", b"2");
        load.write(entries.clone()).unwrap();
        assert_eq!(store.get(b"kept").unwrap(), Some(b"1".to_vec()), "nothing is seen before");
        drop(load);
        assert_eq!(store.get(b"kept").unwrap(), Some(b"1".to_vec()));
        assert_eq!(store.get(b"a").unwrap(), None);
        let mut load = store.bulk_load().unwrap().unwrap();
        load.write(entries.clone()).unwrap();
        assert!(load.write(entries).is_err(), "keys must ascend");
    }
}

#[test]
fn keys_and_values_of_any_bytes_are_told_apart() {
    fn all_of<K: Key, V: Record + Clone + PartialEq + std::fmt::Debug>(pairs: Vec<(K, V)>) {
        for kind in every_kind() {
            let mut subject = kind.open();
            let held = ValueState::<V>::new("held");
            for (key, value) in &pairs {
                set_key(&mut subject.backend, key);
                held.set(&mut subject.backend, value.clone()).unwrap();
            }
            for (key, value) in &pairs {
                set_key(&mut subject.backend, key);
                assert_eq!(held.get(&mut subject.backend).unwrap().as_ref(), Some(value));
            }
        }
    }
    let texts = ["", "\0", "\0\0", "a", "a\0", "a\0b", "\u{ffff}", &"x".repeat(300)];
    all_of(texts.iter().enumerate().map(|(i, text)| ((*text).to_owned(), i as u64)).collect());
    all_of(vec![((), vec![0_u8; 1 << 20])]);
}
