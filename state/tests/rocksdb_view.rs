//! Writes behind a view of RocksDB, which is made while they come.

#![cfg(feature = "rocksdb")]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::ops::ControlFlow;

use slackwater_state::{ByteStore, RocksByteStore, StoreFailure, Visit, WriteBatch};

const KEYS: u32 = 300;

type Scan<'a> = &'a dyn Fn(Visit<'_>) -> Result<(), StoreFailure>;

fn entries(scan: Scan<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    scan(&mut |key, value| {
        entries.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })
    .unwrap();
    entries
}

/// In each round other keys are deleted.
fn is_there(key: u32, round: u32) -> bool {
    !(key + round).is_multiple_of(3)
}

fn expected(round: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    let keys = (0..KEYS).filter(|key| is_there(*key, round));
    keys.map(|key| (key.to_be_bytes().to_vec(), round.to_be_bytes().to_vec())).collect()
}

fn write(store: &mut RocksByteStore, keys: std::ops::Range<u32>, round: u32) {
    let mut batch = WriteBatch::new();
    for key in keys {
        if is_there(key, round) {
            batch.put(&key.to_be_bytes(), &round.to_be_bytes());
        } else {
            batch.delete(&key.to_be_bytes());
        }
    }
    store.write(&batch).unwrap();
}

#[test]
fn a_view_holds_its_moment_and_writes_behind_it_are_seen_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = RocksByteStore::open(&directory.path().join("store"), 8 << 20).unwrap();
    write(&mut store, 0..KEYS, 0);
    let mut views = Vec::new();
    for round in 1..40 {
        views.push((round - 1, store.snapshot().unwrap()));
        // In pieces, so that some come while the view is made and some when it is there.
        for start in (0..KEYS).step_by(50) {
            write(&mut store, start..start + 50, round);
            let key = (start + 7).to_be_bytes();
            let value = is_there(start + 7, round).then(|| round.to_be_bytes().to_vec());
            assert_eq!(store.get(&key).unwrap(), value, "round {round}");
        }
        let found = entries(&|visit| store.scan(&[], None, visit));
        assert_eq!(found, expected(round), "round {round}");
        if views.len() == 3 {
            let (of, view) = views.remove(0);
            assert_eq!(entries(&|visit| view.scan(&[], None, visit)), expected(of));
        }
    }
    for (of, view) in views {
        assert_eq!(entries(&|visit| view.scan(&[], None, visit)), expected(of));
    }
}

#[test]
fn a_store_may_go_while_its_view_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut store = RocksByteStore::open(&path, 8 << 20).unwrap();
    write(&mut store, 0..KEYS, 0);
    let view = store.snapshot().unwrap();
    write(&mut store, 0..KEYS, 1);
    drop(store);
    assert_eq!(entries(&|visit| view.scan(&[], None, visit)), expected(0));
    drop(view);
    std::fs::remove_dir_all(&path).unwrap();
}
