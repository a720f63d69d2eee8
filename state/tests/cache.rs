//! The write-back cache of FLIP-325 on input in any order: its size, its worth, and that nothing
//! shows through it but the truth. What it costs on sorted input is in `access_count.rs`.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use element::{ManualClock, MemoryStore, Timestamp, decode_exact, decode_key_exact};
use slackwater_state::{MapState, SnapshotReader, StateCounters, TtlConfig, ValueState};
use support::{Kind, Random, Where, every_kind, set_key};

/// L1: after every access the cache holds no more keys than it may.
#[test]
fn a_cache_of_n_keys_never_holds_more() {
    for size in [0, 1, 2, 7, 64] {
        let mut subject = Kind(Where::Memory, size).open();
        let count = ValueState::<u64>::new("count");
        let mut random = Random::new(size as u64);
        for _ in 0..2_000 {
            set_key(&mut subject.backend, &random.below(100));
            count.update(&mut subject.backend, |held| *held = Some(1)).unwrap();
            // With the cache off the key at hand is known, and none of its values is kept.
            assert!(subject.backend.counters().cached_keys <= size.max(1) as u64, "size {size}");
        }
        let counts = subject.backend.counters();
        assert_eq!(counts.hits == 0, size == 0, "size {size}: {counts:?}");
    }
}

/// Counts updates of `keys` keys, half of them of a sixteenth of the keys, by a cache of `size`.
fn counted(size: usize, keys: u64) -> StateCounters {
    let mut subject = Kind(Where::Memory, size).open();
    let count = ValueState::<u64>::new("count");
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let unit = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        set_key(&mut subject.backend, &((unit.powi(4) * keys as f64) as u64));
        count.update(&mut subject.backend, |held| *held = Some(held.unwrap_or(0) + 1)).unwrap();
    }
    subject.backend.flush().unwrap();
    subject.backend.counters()
}

/// L5: the larger the cache, the fewer accesses reach the store; one that holds all keys reads and
/// writes each of them once, as memory would.
#[test]
fn a_larger_cache_leaves_less_to_the_store_down_to_once_a_key() {
    const KEYS: u64 = 1_000;
    let sizes = [0, 1, 10, 100, 300, 1_000];
    let counts = sizes.map(|size| counted(size, KEYS));
    for (pair, sizes) in counts.windows(2).zip(sizes.windows(2)) {
        assert!(pair[0].hits < pair[1].hits, "hits by {sizes:?}: {pair:?}");
        assert!(pair[0].store_reads > pair[1].store_reads, "reads by {sizes:?}: {pair:?}");
        assert!(pair[0].store_writes >= pair[1].store_writes, "writes by {sizes:?}: {pair:?}");
    }
    let [off, .., all] = counts;
    assert_eq!((off.store_reads, off.store_writes), (20_000, 20_000));
    assert!(all.store_reads <= KEYS && all.store_writes <= KEYS, "{all:?}");
    assert_eq!(all.hits + all.misses, 20_000);
    assert!(counts[4].hits * 2 > 20_000, "a third of the keys serves most: {:?}", counts[4]);
}

/// L7: what was deleted or has expired while it lay in the cache is gone, for the key at hand, for an
/// iteration of its map, and for one over all keys.
#[test]
fn deletes_expiry_and_iteration_see_through_the_cache() {
    for kind in every_kind() {
        let clock = ManualClock::default();
        let mut subject = kind.open();
        subject.backend = subject.backend.with_clock(Arc::new(clock.clone()));
        let backend = &mut subject.backend;
        let value = ValueState::<u64>::new("value");
        let brief =
            ValueState::<u64>::new("brief").with_ttl(TtlConfig::new(Duration::from_millis(100)));
        let map = MapState::<u8, u64>::new("map");
        for key in 0..20_u64 {
            set_key(backend, &key);
            value.set(backend, key).unwrap();
            brief.set(backend, key).unwrap();
            for entry in 0..4 {
                map.put(backend, &entry, key).unwrap();
            }
        }
        backend.flush().unwrap();
        clock.set(Timestamp(50));
        for key in 0..20_u64 {
            set_key(backend, &key);
            if key % 2 == 0 {
                value.clear(backend).unwrap();
                map.remove(backend, &2).unwrap();
                brief.set(backend, key).unwrap();
            }
            map.put(backend, &9, key).unwrap();
            let expected = if key % 2 == 0 { vec![0, 1, 3, 9] } else { vec![0, 1, 2, 3, 9] };
            let found: Vec<u8> =
                map.entries(backend).unwrap().into_iter().map(|entry| entry.0).collect();
            assert_eq!(found, expected, "{kind:?}: what is stored and what is cached, in order");
        }
        clock.set(Timestamp(120));
        for key in 0..20_u64 {
            set_key(backend, &key);
            let even = key % 2 == 0;
            assert_eq!(value.get(backend).unwrap(), (!even).then_some(key), "{kind:?}");
            assert_eq!(brief.get(backend).unwrap(), even.then_some(key), "{kind:?}");
        }
        assert_eq!(all_values(&mut subject), (1..20).step_by(2).collect::<Vec<_>>(), "{kind:?}");
    }
}

/// The state `value` of all keys, by key, as a snapshot lists it.
fn all_values(subject: &mut support::Subject) -> Vec<u64> {
    let files = MemoryStore::new();
    let pending = subject.backend.snapshot(&subject.timers).unwrap();
    let handle = pending.write(&files, "all").unwrap();
    let mut found = Vec::new();
    let visited = SnapshotReader::open(&files, &handle).unwrap().for_each(|entry| {
        if entry.state.is_some_and(|state| state.name == "value") {
            let key: u64 = decode_key_exact(entry.key).unwrap();
            assert_eq!(decode_exact::<u64>(entry.value).unwrap(), key);
            found.push(key);
        }
        Ok(())
    });
    visited.unwrap();
    found.sort_unstable();
    found
}
