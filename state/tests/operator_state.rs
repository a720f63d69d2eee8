//! Lists and maps that belong to a subtask: split, united and broadcast when the parallelism changes.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use element::{decode_exact, encode_to_vec};
use slackwater_state::{
    BroadcastState, OperatorListState, OperatorStateBackend, OperatorStateSnapshot,
};

fn subtasks() -> Vec<OperatorStateSnapshot> {
    (0..3_u64)
        .map(|subtask| {
            let mut backend = OperatorStateBackend::new();
            let split = OperatorListState::<u64>::split("split");
            let union = OperatorListState::<String>::union("union");
            let rules = BroadcastState::<String, u32>::new("rules");
            for i in 0..subtask * 2 {
                split.add(&mut backend, &(subtask * 10 + i)).unwrap();
            }
            union.update(&mut backend, &[format!("of {subtask}")]).unwrap();
            rules.put(&mut backend, &"b".to_owned(), 2).unwrap();
            rules.put(&mut backend, &"a".to_owned(), 1).unwrap();
            rules.put(&mut backend, &"c".to_owned(), 3).unwrap();
            rules.remove(&mut backend, &"c".to_owned()).unwrap();
            backend.snapshot()
        })
        .collect()
}

#[test]
fn elements_are_split_united_or_handed_to_all() {
    let snapshots = subtasks();
    for parallelism in 1..8 {
        let mut all = Vec::new();
        for index in 0..parallelism {
            let mut backend = OperatorStateBackend::restore(&snapshots, index, parallelism);
            all.extend(OperatorListState::<u64>::split("split").get(&mut backend).unwrap());
            let union = OperatorListState::<String>::union("union").get(&mut backend).unwrap();
            assert_eq!(union, ["of 0", "of 1", "of 2"]);
            let rules = BroadcastState::<String, u32>::new("rules");
            let expected = [("a".to_owned(), 1), ("b".to_owned(), 2)];
            assert_eq!(rules.entries(&mut backend).unwrap(), expected);
            assert_eq!(rules.get(&mut backend, &"a".to_owned()).unwrap(), Some(1));
        }
        assert_eq!(all, [10, 11, 20, 21, 22, 23], "each element at one subtask of {parallelism}");
    }
}

#[test]
fn a_snapshot_travels_as_a_record_and_cut_ones_are_errors() {
    for snapshot in subtasks() {
        let bytes = encode_to_vec(&snapshot);
        assert_eq!(decode_exact::<OperatorStateSnapshot>(&bytes).unwrap(), snapshot);
        for cut in 0..bytes.len() {
            assert!(decode_exact::<OperatorStateSnapshot>(&bytes[..cut]).is_err());
        }
    }
}

#[test]
fn a_widened_type_is_read_and_another_mode_is_refused() {
    let mut backend = OperatorStateBackend::restore(&subtasks(), 0, 1);
    let widened = OperatorListState::<Option<u64>>::split("split").get(&mut backend).unwrap();
    assert_eq!(widened.first(), Some(&Some(10)));
    assert!(OperatorListState::<Option<u64>>::union("split").get(&mut backend).is_err());
    assert!(OperatorListState::<bool>::union("union").get(&mut backend).is_err());
}

#[test]
fn a_restored_broadcast_map_of_another_type_is_refused_and_a_widened_one_is_read() {
    let restored = || OperatorStateBackend::restore(&subtasks(), 2, 3);
    let widened = BroadcastState::<String, Option<u32>>::new("rules");
    let entries = widened.entries(&mut restored()).unwrap();
    assert_eq!(entries, [("a".to_owned(), Some(1)), ("b".to_owned(), Some(2))]);
    assert!(BroadcastState::<String, bool>::new("rules").entries(&mut restored()).is_err());
    assert!(BroadcastState::<String, u64>::new("split").entries(&mut restored()).is_err());
    let mut backend = restored();
    widened.remove(&mut backend, &"a".to_owned()).unwrap();
    assert!(
        BroadcastState::<String, u32>::new("rules").get(&mut backend, &"b".to_owned()).is_err()
    );
    // What no handle has asked for is kept.
    let again = OperatorStateBackend::restore(&[restored().snapshot()], 0, 1).snapshot();
    assert_eq!(again, OperatorStateBackend::restore(std::slice::from_ref(&again), 0, 1).snapshot());
}
