//! Keys that are told before they come: asked for where it can pay, and nothing changes by it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use element::{KeyGroups, KeyHash, MaxParallelism, hash_key_bytes, key_bytes};
use slackwater_state::{ComingKeys, KeyedStateBackend, TimerService, ValueState};

const KEYS: u64 = 50_000;

fn hash(key: u64) -> KeyHash {
    hash_key_bytes(&key_bytes(&key))
}

fn word(key: u64) -> ([u8; 8], KeyHash) {
    (key.to_be_bytes(), hash(key))
}

fn enter(backend: &mut KeyedStateBackend, key: u64) {
    backend.set_current_key(hash(key), &key_bytes(&key));
}

fn backend(keys: u64) -> (KeyedStateBackend, ValueState<u64>) {
    let mut backend = KeyedStateBackend::heap(KeyGroups::all(MaxParallelism::DEFAULT));
    let state = ValueState::new("value");
    for key in 0..keys {
        enter(&mut backend, key);
        state.set(&mut backend, key).unwrap();
    }
    (backend, state)
}

#[test]
fn few_keys_are_not_wanted_before_they_come() {
    let (mut few, _) = backend(1_000);
    assert!(!few.wants_prefetch());
    let mut one = KeyedStateBackend::one_key();
    assert!(!one.wants_prefetch());
}

#[test]
fn many_keys_are_wanted_and_found_and_nothing_changes() {
    let (mut many, state) = backend(KEYS);
    assert!(many.wants_prefetch());
    enter(&mut many, 7);
    let keys: Vec<_> = (KEYS - 40..KEYS + 10).map(word).collect();
    assert_eq!(
        many.prefetch(ComingKeys::Words(&keys)),
        50,
        "at 40 that are there and at 10 places for others"
    );
    assert_eq!(state.get(&mut many).unwrap(), Some(7), "the current key stays");
    for key in KEYS - 40..KEYS + 10 {
        enter(&mut many, key);
        assert_eq!(state.get(&mut many).unwrap(), (key < KEYS).then_some(key));
    }
    assert!(many.wants_prefetch());
}

#[test]
fn keys_of_namespaces_alone_are_not_wanted_for_a_while() {
    let (mut many, state) = backend(0);
    for key in 0..KEYS {
        enter(&mut many, key);
        state.set_in(&mut many, b"pane", key).unwrap();
    }
    assert!(many.wants_prefetch());
    let keys: Vec<_> = (0..64).map(word).collect();
    assert_eq!(many.prefetch(ComingKeys::Words(&keys)), 0);
    let refused = (0..1_000).take_while(|_| !many.wants_prefetch()).count();
    assert_eq!(refused, 64);
}

#[test]
fn keys_that_are_not_there_are_wanted_where_they_may_come() {
    let (mut many, state) = backend(KEYS);
    let keys: Vec<_> = (KEYS..KEYS + 64).map(word).collect();
    assert_eq!(many.prefetch(ComingKeys::Words(&keys)), 64);
    assert!(many.wants_prefetch());
    enter(&mut many, KEYS);
    state.set_in(&mut many, b"pane", 1).unwrap();
    assert_eq!(many.prefetch(ComingKeys::Words(&keys)), 0, "they may come under a namespace");
}

#[test]
fn what_a_snapshot_reads_is_left_alone() {
    let (mut many, state) = backend(KEYS);
    let snapshot = many.snapshot(&TimerService::default()).unwrap();
    assert!(!many.wants_prefetch(), "all shards are shared");
    assert_eq!(many.prefetch(ComingKeys::Words(&[word(7)])), 0);
    drop(snapshot);
    enter(&mut many, 7);
    assert_eq!(state.get(&mut many).unwrap(), Some(7));
}

#[test]
fn keys_of_other_lengths_are_found_by_their_hashes() {
    let mut many = KeyedStateBackend::heap(KeyGroups::all(MaxParallelism::DEFAULT));
    let state = ValueState::new("value");
    let keys: Vec<_> = (0..KEYS).map(|key| key_bytes(&format!("key {key}"))).collect();
    for key in &keys {
        many.set_current_key(hash_key_bytes(key), key);
        state.set(&mut many, 1_u64).unwrap();
    }
    assert!(many.wants_prefetch());
    let hashes: Vec<_> = keys[..50].iter().map(|key| hash_key_bytes(key)).collect();
    assert_eq!(many.prefetch(ComingKeys::Hashes(&hashes)), 50);
}
