//! What has gone wrong in other engines' state: one test a trap.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::sync::{Arc, Mutex};

use element::{KeyHash, hash_key_bytes, key_bytes};
use slackwater_state::{
    ByteStore, FjallByteStore, KeyedStateBackend, ListState, MapState, MemoryByteStore,
    ReducingState, StoreFailure, StoreSnapshot, ValueState, Visit, WriteBatch, WriteMode,
};
use support::{Kind, Where, all_groups, every_kind, every_store, in_order, set_key};

/// Trap tK1: two stateful operators of one chain have a store each, in directories of their own.
#[test]
fn two_operators_in_one_directory_do_not_delete_each_others_state() {
    let root = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let store = FjallByteStore::open(&root.path().join(name), 1 << 20).unwrap();
        KeyedStateBackend::over(Box::new(store), all_groups(), 1)
    };
    let (mut first, second) = (open("first"), open("second"));
    let count = ValueState::<u64>::new("count");
    set_key(&mut first, &1_u64);
    count.set(&mut first, 1).unwrap();
    first.flush().unwrap();
    drop(second);
    std::fs::remove_dir_all(root.path().join("second")).unwrap();
    set_key(&mut first, &2_u64);
    assert_eq!(count.get(&mut first).unwrap(), None);
    set_key(&mut first, &1_u64);
    assert_eq!(count.get(&mut first).unwrap(), Some(1));
}

/// Trap tK2: what was merged away is empty.
#[test]
fn the_sources_of_a_merge_of_namespaces_are_empty_afterwards() {
    for kind in every_kind() {
        let mut subject = kind.open();
        let backend = &mut subject.backend;
        let sum = ReducingState::<u64>::new("sum", |a, b| a + b);
        let list = ListState::<u64>::new("list");
        set_key(backend, &1_u64);
        for (window, value) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
            sum.add_in(backend, window, value).unwrap();
            list.add_in(backend, window, value).unwrap();
        }
        backend.flush().unwrap();
        sum.merge_namespaces(backend, b"a", &[b"b", b"c", b"a"]).unwrap();
        list.merge_namespaces(backend, b"a", &[b"b", b"c", b"a"]).unwrap();
        backend.flush().unwrap();
        assert_eq!(sum.get_in(backend, b"a").unwrap(), Some(6));
        assert_eq!(list.get_in(backend, b"a").unwrap(), [1, 2, 3]);
        for window in [b"b", b"c"] {
            assert_eq!(sum.get_in(backend, window).unwrap(), None);
            assert_eq!(list.get_in(backend, window).unwrap(), []);
        }
    }
}

/// Trap tK3: whatever is removed, and wherever a portion ends, the iteration visits each once.
#[test]
fn removal_at_each_position_hits_the_entry_visited() {
    for kind in every_store() {
        let mut subject = kind.open();
        let map = MapState::<u32, u32>::new("map");
        for position in (0..300).step_by(13) {
            set_key(&mut subject.backend, &position);
            for i in 0..300 {
                map.put(&mut subject.backend, &i, i).unwrap();
            }
            subject.backend.flush().unwrap();
            let mut visited = Vec::new();
            map.retain(&mut subject.backend, |key, value| {
                assert_eq!(key, value);
                visited.push(*key);
                *key != position
            })
            .unwrap();
            assert_eq!(visited, (0..300).collect::<Vec<_>>());
            let left = map.entries(&mut subject.backend).unwrap();
            assert_eq!(left.len(), 299);
            assert!(left.iter().all(|(key, _)| *key != position));
        }
    }
}

/// Trap tK9: one hash of the canonical bytes, whatever the key's type.
#[test]
fn equal_keys_have_equal_bytes_and_one_hash() {
    let owned = key_bytes(&"key".to_owned());
    let shared = key_bytes(&std::sync::Arc::<str>::from("key"));
    assert_eq!(owned, shared);
    assert_eq!(hash_key_bytes(&owned), hash_key_bytes(&shared));
}

/// Trap tK10: the hash is no identity, in a table, a cache, a store, sorted input or a snapshot.
#[test]
fn keys_whose_hashes_collide_do_not_share_state() {
    let hash = KeyHash(0x1234_5678_9abc_def0);
    let keys: Vec<Vec<u8>> = (0..50_u64).map(|key| key_bytes(&key)).collect();
    for kind in every_kind() {
        let mut subject = kind.open();
        let count = ValueState::<u64>::new("count");
        let map = MapState::<u8, u64>::new("map");
        for (key, number) in keys.iter().zip(0..) {
            subject.backend.set_current_key(hash, key);
            count.set(&mut subject.backend, number).unwrap();
            map.put(&mut subject.backend, &1, number).unwrap();
        }
        subject.backend.begin_sorted_input(WriteMode::BulkLoad).unwrap();
        for key in &keys {
            subject.backend.set_current_key(hash, key);
            count.update(&mut subject.backend, |held| *held = held.map(|n| n + 100)).unwrap();
        }
        subject.backend.end_sorted_input().unwrap();
        let mut moved = subject.moved_to(kind);
        for (key, number) in keys.iter().zip(0..) {
            moved.backend.set_current_key(hash, key);
            assert_eq!(count.get(&mut moved.backend).unwrap(), Some(number + 100), "{kind:?}");
            assert_eq!(map.entries(&mut moved.backend).unwrap(), [(1, number)]);
        }
    }
}

/// Trap tK24: a map's range read ends where the map does, however much was deleted behind it: each
/// read is bounded at both ends, and none goes on to the next key to find its end.
#[test]
fn a_range_read_is_bounded_by_its_prefix() {
    for kind in every_store() {
        let mut subject = kind.open();
        let map = MapState::<u32, u32>::new("map");
        let keys = in_order(0..100);
        for (hash, bytes, _) in &keys {
            subject.backend.set_current_key(*hash, bytes);
            for i in 0..1_000 {
                map.put(&mut subject.backend, &i, i).unwrap();
            }
        }
        for (hash, bytes, key) in &keys {
            subject.backend.set_current_key(*hash, bytes);
            map.clear(&mut subject.backend).unwrap();
            if *key == 99 {
                map.put(&mut subject.backend, &7, 7).unwrap();
            }
        }
        subject.backend.flush().unwrap();
        let before = subject.backend.counters();
        for (hash, bytes, key) in &keys {
            subject.backend.set_current_key(*hash, bytes);
            let expected = if *key == 99 { vec![(7, 7)] } else { vec![] };
            assert_eq!(map.entries(&mut subject.backend).unwrap(), expected, "{kind:?}");
        }
        let after = subject.backend.counters();
        assert_eq!(after.store_range_reads - before.store_range_reads, 100, "{kind:?}");
        assert_eq!(after.store_reads, before.store_reads, "{kind:?}");
    }
}

/// Trap tK24: every range that a store is asked for has an end, and lies within one key's state.
#[test]
fn every_range_that_a_store_is_asked_for_has_an_end() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let store = Asked { inner: MemoryByteStore::new(), asked: Arc::clone(&asked) };
    let mut backend = KeyedStateBackend::over(Box::new(store), all_groups(), 1);
    let map = MapState::<u32, u32>::new("map");
    for key in 0..50_u64 {
        set_key(&mut backend, &key);
        map.put_in(&mut backend, b"window", &1, 1).unwrap();
        assert_eq!(map.entries_in(&mut backend, b"window").unwrap(), [(1, 1)]);
        map.clear_in(&mut backend, b"window").unwrap();
        assert!(map.is_empty(&mut backend).unwrap());
    }
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 100);
    for (from, to) in asked.iter() {
        let to = to.as_ref().unwrap();
        // The end differs from the beginning in its last byte alone.
        assert_eq!(from[..from.len() - 1], to[..from.len() - 1]);
    }
}

type Range = (Vec<u8>, Option<Vec<u8>>);

/// A store that remembers the ranges it was asked for.
#[derive(Debug)]
struct Asked {
    inner: MemoryByteStore,
    asked: Arc<Mutex<Vec<Range>>>,
}

impl ByteStore for Asked {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFailure> {
        self.inner.get(key)
    }

    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        self.asked.lock().unwrap().push((from.to_vec(), to.map(<[u8]>::to_vec)));
        self.inner.scan(from, to, visit)
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        self.inner.write(batch)
    }

    fn snapshot(&mut self) -> Result<Box<dyn StoreSnapshot>, StoreFailure> {
        self.inner.snapshot()
    }
}

/// Trap tW10: a set of merged windows is kept after each change, so no snapshot misses it.
#[test]
fn a_snapshot_between_changes_of_a_map_holds_the_changes_so_far() {
    for kind in every_kind() {
        let mut subject = kind.open();
        let windows = MapState::<(u64, u64), u64>::new("merging-windows");
        set_key(&mut subject.backend, &1_u64);
        windows.put(&mut subject.backend, &(0, 10), 0).unwrap();
        windows.put(&mut subject.backend, &(5, 15), 5).unwrap();
        let _earlier = subject.moved_to(kind);
        windows.remove(&mut subject.backend, &(0, 10)).unwrap();
        windows.remove(&mut subject.backend, &(5, 15)).unwrap();
        windows.put(&mut subject.backend, &(0, 15), 0).unwrap();
        let mut restored = subject.moved_to(kind);
        set_key(&mut restored.backend, &1_u64);
        assert_eq!(windows.entries(&mut restored.backend).unwrap(), [((0, 15), 0)]);
    }
}

/// Trap tK6: stores that are opened and closed again and again give everything back.
#[test]
fn stores_opened_fifty_times_leave_no_file_open() {
    let open_files = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let mut after_first = 0;
    for round in 0..50 {
        let mut subject = Kind(Where::Fjall, 1).open();
        set_key(&mut subject.backend, &round);
        ValueState::<u64>::new("count").set(&mut subject.backend, 1).unwrap();
        subject.backend.flush().unwrap();
        drop(subject);
        if round == 0 {
            after_first = open_files();
        }
    }
    // Other tests of this file run meanwhile and hold a few.
    assert!(open_files() <= after_first + 100, "{after_first} files, then {}", open_files());
}
