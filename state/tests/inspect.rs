//! Savepoints listed, dumped and compared without the program that wrote them.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::sync::Arc;

use derive::Record;
use element::{MemoryStore, SpillStore, Timestamp, key_bytes};
use slackwater_state::{
    MapState, SnapshotSource, StateKind, TimerKind, ValueState,
    inspect::{diff, dump, list},
};
use support::{Kind, Subject, Where, groups_of, set_key};

#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
struct Seen {
    first: Timestamp,
    name: String,
}

fn write(subject: &mut Subject, files: &Arc<dyn SpillStore>, name: &str) -> SnapshotSource {
    let pending = subject.backend.snapshot(&subject.timers).unwrap();
    let handle = pending.write(files.as_ref(), name).unwrap();
    SnapshotSource { store: Arc::clone(files), handle }
}

fn fill(subject: &mut Subject) {
    let seen = ValueState::<Seen>::new("seen");
    let map = MapState::<u8, u32>::new("map");
    for key in 0..10_u64 {
        let bytes = key_bytes(&key);
        if subject.backend.groups().contains(element::hash_key_bytes(&bytes)) {
            set_key(&mut subject.backend, &key);
            let value = Seen { first: Timestamp(7), name: format!("\"{key}\"") };
            seen.set(&mut subject.backend, value).unwrap();
            map.put_in(&mut subject.backend, b"w", &1, 5).unwrap();
            map.put_in(&mut subject.backend, b"w", &2, 6).unwrap();
        }
    }
}

#[test]
fn a_savepoint_lists_its_states_with_keys_entries_and_bytes() {
    let files: Arc<dyn SpillStore> = Arc::new(MemoryStore::new());
    let sources: Vec<_> = (0..3)
        .map(|i| {
            let mut subject = Kind(Where::Heap, 0).open_for(groups_of(i, 3));
            fill(&mut subject);
            write(&mut subject, &files, &i.to_string())
        })
        .collect();
    let states = list(&sources).unwrap();
    let [map, seen] = states.as_slice() else { panic!("{states:?}") };
    assert_eq!(
        (map.descriptor.kind, map.keys, map.entries, map.bytes),
        (StateKind::Map, 10, 20, 80)
    );
    assert_eq!((seen.descriptor.name.as_str(), seen.keys, seen.entries), ("seen", 10, 10));
    assert_eq!(seen.operator, "operator");
}

#[test]
fn a_dump_is_one_json_object_an_entry() {
    let files: Arc<dyn SpillStore> = Arc::new(MemoryStore::new());
    let mut subject = Kind(Where::Heap, 0).open();
    fill(&mut subject);
    set_key(&mut subject.backend, &1_u64);
    let (hash, key) = subject.backend.current_key().unwrap();
    subject.timers.register(TimerKind::EventTime, Timestamp(-4), hash, key, b"");
    let source = write(&mut subject, &files, "dumped");
    let mut out = Vec::new();
    dump(&source, None, &mut out).unwrap();
    let lines: Vec<serde_json::Value> =
        String::from_utf8(out).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 31);
    let of = |field: &str, is: &str| {
        let same =
            |line: &&serde_json::Value| line["key"] == "0000000000000001" && line[field] == is;
        lines.iter().find(same).unwrap().to_string()
    };
    assert_eq!(
        of("state", "seen"),
        r#"{"key":"0000000000000001","state":"seen","value":{"first":7,"name":"\"1\""}}"#
    );
    assert_eq!(
        of("map_key", "02"),
        r#"{"key":"0000000000000001","map_key":"02","namespace":"77","state":"map","value":6}"#
    );
    assert_eq!(of("timer", "event"), r#"{"key":"0000000000000001","time":-4,"timer":"event"}"#);
    let mut one = Vec::new();
    dump(&source, Some("seen"), &mut one).unwrap();
    assert_eq!(String::from_utf8(one).unwrap().lines().count(), 10);
}

#[test]
fn two_savepoints_are_compared_by_key_whatever_their_parallelism() {
    let files: Arc<dyn SpillStore> = Arc::new(MemoryStore::new());
    let parts: Vec<_> = (0..2)
        .map(|i| {
            let mut subject = Kind(Where::Heap, 0).open_for(groups_of(i, 2));
            fill(&mut subject);
            write(&mut subject, &files, &format!("before-{i}"))
        })
        .collect();
    let mut subject = Kind(Where::Heap, 0).open();
    fill(&mut subject);
    let same = write(&mut subject, &files, "same");
    assert_eq!(diff(&parts, std::slice::from_ref(&same)).unwrap(), []);
    let map = MapState::<u8, u32>::new("map");
    set_key(&mut subject.backend, &3_u64);
    map.put_in(&mut subject.backend, b"w", &2, 60).unwrap();
    map.remove_in(&mut subject.backend, b"w", &1).unwrap();
    let after = write(&mut subject, &files, "after");
    let found: Vec<_> = diff(&parts, &[after])
        .unwrap()
        .into_iter()
        .map(|found| (found.key, found.map_key, found.before, found.after))
        .collect();
    let key = key_bytes(&3_u64);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        found,
        [(key.clone(), vec![1], text("5"), None), (key, vec![2], text("6"), text("60"))]
    );
}
