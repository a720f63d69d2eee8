//! Walks over the keys of one state, in memory and on disk.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use slackwater_state::{KeyedStateBackend, MapState, ValueState, WriteMode};
use support::{every_kind, in_order, set_key};

/// L7: deleted keys are gone from the walk, dirty ones are in it, each once whatever its namespaces,
/// in the order of hashes; other states do not disturb.
#[test]
fn a_walk_over_keys_sees_what_the_handles_see() {
    for kind in every_kind() {
        let mut subject = kind.open();
        let backend = &mut subject.backend;
        let (value, other) = (ValueState::<u64>::new("value"), ValueState::<u64>::new("other"));
        let map = MapState::<u64, u64>::new("map");
        assert!(backend.keys_of(&value).unwrap().is_empty());
        for key in 0..20_u64 {
            set_key(backend, &key);
            value.set(backend, key).unwrap();
            value.set_in(backend, b"window", key).unwrap();
            map.put(backend, &key, 1).unwrap();
            map.put(backend, &(key + 1), 1).unwrap();
        }
        for key in (0..20_u64).step_by(2) {
            set_key(backend, &key);
            value.clear(backend).unwrap();
            value.clear_in(backend, b"window").unwrap();
            map.clear(backend).unwrap();
        }
        set_key(backend, &100_u64);
        other.set(backend, 1).unwrap();
        let odd: Vec<_> =
            in_order((1..20).step_by(2)).into_iter().map(|(hash, key, _)| (hash, key)).collect();
        assert_eq!(backend.keys_of(&value).unwrap(), odd, "{kind:?}");
        assert_eq!(backend.keys_of(&map).unwrap(), odd, "{kind:?}");
        assert_eq!(backend.keys_of(&other).unwrap().len(), 1, "{kind:?}");
    }
}

/// In sorted input a walk is refused by name; state of one key at a time has no others.
#[test]
fn there_is_no_walk_within_sorted_input() {
    for kind in every_kind() {
        let mut subject = kind.open();
        let value = ValueState::<u64>::new("value");
        subject.backend.begin_sorted_input(WriteMode::BulkLoad).unwrap();
        let walked = subject.backend.keys_of(&value);
        assert!(walked.is_err() || walked.unwrap().is_empty(), "{kind:?}");
    }
    let mut one_key = KeyedStateBackend::one_key();
    let value = ValueState::<u64>::new("value");
    set_key(&mut one_key, &1_u64);
    value.set(&mut one_key, 1).unwrap();
    assert!(one_key.keys_of(&value).unwrap().is_empty());
}
