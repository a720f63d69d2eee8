//! The shared cases of keyed state: lists, maps, time to live, rescaling.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use element::{ManualClock, MaxParallelism, MemoryStore, SpillStore, SubtaskIndex, Timestamp};
use serde_json::{Value, json};
use slackwater_state::{
    KeyedStateBackend, ListState, MapState, SnapshotSource, TtlConfig, ValueState,
};
use support::{Subject, every_kind, set_key};

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key_of(row: &Value) -> String {
    row["k"].as_str().unwrap().to_owned()
}

/// Case 20.
#[test]
fn list_elements_with_separators_and_empty_ones_stay_apart() {
    let expected = parse(include_str!("cases/20-list-state/expected.json"));
    for kind in every_kind() {
        let mut subject = kind.open();
        let backend = &mut subject.backend;
        let list = ListState::<Vec<u8>>::new("list");
        let mut answers = Vec::new();
        for row in include_str!("cases/20-list-state/input.jsonl").lines().map(parse) {
            if row.get("flush").is_some() {
                backend.flush().unwrap();
                continue;
            }
            set_key(backend, &key_of(&row));
            let values = || row["v"].as_array().unwrap().iter().map(bytes);
            match row["op"].as_str().unwrap() {
                "get" => {
                    let list: Vec<_> = list.get(backend).unwrap().iter().map(|v| hex(v)).collect();
                    answers.push(json!([row["k"], list]));
                }
                "add" => list.add(backend, bytes(&row["v"])).unwrap(),
                "add_all" => list.add_all(backend, values()).unwrap(),
                "update" => list.update(backend, values()).unwrap(),
                _ => list.clear(backend).unwrap(),
            }
        }
        assert_eq!(Value::Array(answers), expected, "{kind:?}");
    }
}

/// Case 21, trap tK3.
#[test]
fn removing_while_iterating_visits_every_entry_once() {
    let input = parse(include_str!("cases/21-map-state/input.json"));
    let expected = parse(include_str!("cases/21-map-state/expected.json"));
    let extra: Vec<u64> =
        input["extra"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    for kind in every_kind() {
        let mut subject = kind.open();
        let backend = &mut subject.backend;
        let map = MapState::<u64, i64>::new("map");
        for key in ["before", "own", "later"] {
            set_key(backend, &key.to_owned());
            for i in 0..input["n"].as_u64().unwrap() {
                map.put(backend, &i, (i * i) as i64).unwrap();
            }
        }
        backend.flush().unwrap();
        set_key(backend, &"own".to_owned());
        let mut visited = 0;
        map.retain(backend, |i, _| {
            visited += 1;
            !(i.is_multiple_of(3) || extra.contains(i))
        })
        .unwrap();
        let left = map.entries(backend).unwrap().len();
        for i in 1000..1010 {
            map.put(backend, &i, -1).unwrap();
        }
        map.put(backend, &31, 0).unwrap();
        backend.flush().unwrap();
        let pass2 = map.entries(backend).unwrap();
        map.retain(backend, |_, value| *value >= 0).unwrap();
        let end = map.entries(backend).unwrap();
        let unchanged = ["before", "later"].iter().all(|key| {
            set_key(backend, &(*key).to_owned());
            map.entries(backend).unwrap().len() == 300
        });
        let answer = json!({
            "visited_pass1": visited,
            "left_after_pass1": left,
            "pass2": pass2,
            "left_at_end": end.len(),
            "sum_keys_at_end": end.iter().map(|(key, _)| key).sum::<u64>(),
            "sum_values_at_end": end.iter().map(|(_, value)| value).sum::<i64>(),
            "other_keys_unchanged": unchanged,
        });
        assert_eq!(answer, expected, "{kind:?}");
    }
}

/// Case 22.
#[test]
fn a_value_is_gone_at_the_instant_of_its_expiry_and_only_writes_renew_it() {
    let expected = parse(include_str!("cases/22-state-ttl/expected.json"));
    for kind in every_kind() {
        let clock = ManualClock::default();
        let mut subject = kind.open();
        subject.backend = subject.backend.with_clock(Arc::new(clock.clone()));
        let backend = &mut subject.backend;
        let state =
            ValueState::<u64>::new("value").with_ttl(TtlConfig::new(Duration::from_millis(100)));
        let mut answers = Vec::new();
        for row in include_str!("cases/22-state-ttl/input.jsonl").lines().map(parse) {
            clock.set(Timestamp(row["now"].as_i64().unwrap()));
            set_key(backend, &key_of(&row));
            match row["op"].as_str().unwrap() {
                "write" => state.set(backend, row["v"].as_u64().unwrap()).unwrap(),
                "clear" => state.clear(backend).unwrap(),
                _ => answers.push(json!([row["now"], row["k"], state.get(backend).unwrap()])),
            }
        }
        assert_eq!(Value::Array(answers), expected, "{kind:?}");
    }
}

/// Case 23.
#[test]
fn rescaling_is_not_visible_in_the_results() {
    let input = parse(include_str!("cases/23-rescale/input.json"));
    let expected = parse(include_str!("cases/23-rescale/expected.json"));
    let groups = MaxParallelism::new(input["key_groups"].as_u64().unwrap() as u32).unwrap();
    let rows = input["rows"].as_array().unwrap();
    let parallelism: Vec<u32> = input["parallelism"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p.as_u64().unwrap() as u32)
        .collect();
    for kind in every_kind() {
        let sum = ValueState::<i64>::new("sum");
        let files: Arc<dyn SpillStore> = Arc::new(MemoryStore::new());
        let (mut sources, mut ranges) = (Vec::<SnapshotSource>::new(), json!({}));
        let mut per_key = BTreeMap::<String, Vec<i64>>::new();
        for (part, &parallelism) in rows.chunks(rows.len() / 3).zip(&parallelism) {
            let mut subtasks: Vec<Subject> = (0..parallelism)
                .map(|i| kind.open_for(groups.groups_of(SubtaskIndex(i), parallelism)))
                .collect();
            for subtask in &mut subtasks {
                subtask.backend.restore(&mut subtask.timers, &sources).unwrap();
            }
            let owned = subtasks.iter().map(|subtask| {
                let range = subtask.backend.groups().range();
                json!([range.start, range.end - 1])
            });
            ranges[parallelism.to_string()] = owned.collect();
            for row in part {
                let key = row[0].as_str().unwrap().to_owned();
                let hash = element::hash_key_bytes(&element::key_bytes(&key));
                let owner = groups.subtask_of(hash, parallelism).0 as usize;
                let backend: &mut KeyedStateBackend = &mut subtasks[owner].backend;
                set_key(backend, &key);
                let add = row[1].as_i64().unwrap();
                let total = sum.update(backend, |held| *held.insert(held.unwrap_or(0) + add));
                per_key.entry(key).or_default().push(total.unwrap());
            }
            let write = |(i, subtask): (usize, &mut Subject)| {
                let pending = subtask.backend.snapshot(&subtask.timers).unwrap();
                let name = format!("{parallelism}/{i}");
                let handle = pending.write(files.as_ref(), &name).unwrap();
                SnapshotSource { store: Arc::clone(&files), handle }
            };
            sources = subtasks.iter_mut().enumerate().map(write).collect();
        }
        assert_eq!(json!({ "per_key": per_key, "ranges": ranges }), expected, "{kind:?}");
    }
}
