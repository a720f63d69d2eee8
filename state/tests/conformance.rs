//! One suite over every store, with the cache off, of one key, small and large, and over memory.
//!
//! Random histories of all kinds of state, with flushes, sorted phases and moves to other backends
//! between, are held against plain maps. What each kind promises by itself is in `kinds.rs`.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::collections::BTreeMap;

use slackwater_state::{
    AggregateFunction, AggregatingState, KeyedStateBackend, ListState, MapState, ReducingState,
    ValueState, WriteMode,
};
use support::{Kind, Random, Subject, every_kind, in_order, set_key};

const KEYS: u64 = 12;
const NAMESPACES: [&[u8]; 3] = [b"", b"\0", b"a window that is longer than an inline key"];

struct Mean;

impl AggregateFunction for Mean {
    type In = u32;
    type Accumulator = (u64, u64);
    type Out = u64;

    fn create(&self) -> (u64, u64) {
        (0, 0)
    }

    fn add(&self, (count, sum): &mut (u64, u64), value: u32) {
        *count += 1;
        *sum += u64::from(value);
    }

    fn result(&self, (count, sum): &(u64, u64)) -> u64 {
        sum / count
    }

    fn merge(&self, into: &mut (u64, u64), other: (u64, u64)) {
        into.0 += other.0;
        into.1 += other.1;
    }
}

struct States {
    value: ValueState<u64>,
    list: ListState<Vec<u8>>,
    map: MapState<u16, String>,
    reducing: ReducingState<u64>,
    aggregating: AggregatingState<Mean>,
}

impl States {
    fn new() -> Self {
        Self {
            value: ValueState::new("value"),
            list: ListState::new("list"),
            map: MapState::new("map"),
            reducing: ReducingState::new("reducing", |a, b| a * 31 + b),
            aggregating: AggregatingState::new("aggregating", Mean),
        }
    }
}

/// What a key and namespace hold.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    value: Option<u64>,
    list: Vec<Vec<u8>>,
    map: BTreeMap<u16, String>,
    reducing: Option<u64>,
    aggregating: Option<(u64, u64)>,
}

type Models = BTreeMap<(u64, usize), Model>;

fn step(random: &mut Random, backend: &mut KeyedStateBackend, key: u64, models: &mut Models) {
    let states = STATES.with(std::clone::Clone::clone);
    let place = random.below(3) as usize;
    let namespace = NAMESPACES[place];
    let model = models.entry((key, place)).or_default();
    let number = random.below(1_000);
    match random.below(16) {
        0 | 1 => {
            states.value.set_in(backend, namespace, number).unwrap();
            model.value = Some(number);
        }
        2 => {
            let change = |held: &mut Option<u64>| *held = held.map(|held| held + 1);
            states.value.update_in(backend, namespace, change).unwrap();
            change(&mut model.value);
        }
        3 => {
            states.value.clear_in(backend, namespace).unwrap();
            model.value = None;
        }
        4 | 5 => {
            let element = vec![b','; (number % 5) as usize];
            states.list.add_in(backend, namespace, element.clone()).unwrap();
            model.list.push(element);
        }
        6 => {
            let list = vec![vec![0]; (number % 3) as usize];
            states.list.update_in(backend, namespace, list.clone()).unwrap();
            model.list = list;
        }
        7 | 8 => {
            let map_key = (number % 40) as u16;
            states.map.put_in(backend, namespace, &map_key, number.to_string()).unwrap();
            model.map.insert(map_key, number.to_string());
        }
        9 => {
            let map_key = (number % 40) as u16;
            states.map.remove_in(backend, namespace, &map_key).unwrap();
            model.map.remove(&map_key);
        }
        10 => {
            let map_key = (number % 40) as u16;
            let found = states.map.get_in(backend, namespace, &map_key).unwrap();
            assert_eq!(found, model.map.get(&map_key).cloned());
        }
        11 if number < 200 => {
            states.map.clear_in(backend, namespace).unwrap();
            model.map.clear();
        }
        11 => {
            let plain = models.entry((key, 0)).or_default();
            states.map.retain(backend, |map_key, _| map_key % 3 != 0).unwrap();
            plain.map.retain(|map_key, _| map_key % 3 != 0);
        }
        12 | 13 => {
            states.reducing.add_in(backend, namespace, number).unwrap();
            let before = model.reducing;
            model.reducing =
                Some(before.map_or(number, |before| before.wrapping_mul(31).wrapping_add(number)));
            if model.reducing > Some(1 << 40) {
                states.reducing.clear_in(backend, namespace).unwrap();
                model.reducing = None;
            }
        }
        14 => {
            states.aggregating.add_in(backend, namespace, number as u32).unwrap();
            let held = model.aggregating.get_or_insert((0, 0));
            Mean.add(held, number as u32);
        }
        _ => check(backend, key, place, models),
    }
}

thread_local! {
    static STATES: std::rc::Rc<States> = std::rc::Rc::new(States::new());
}

fn check(backend: &mut KeyedStateBackend, key: u64, place: usize, models: &Models) {
    let states = STATES.with(std::clone::Clone::clone);
    let namespace = NAMESPACES[place];
    let model = models.get(&(key, place)).cloned().unwrap_or_default();
    let found = Model {
        value: states.value.get_in(backend, namespace).unwrap(),
        list: states.list.get_in(backend, namespace).unwrap(),
        map: states.map.entries_in(backend, namespace).unwrap().into_iter().collect(),
        reducing: states.reducing.get_in(backend, namespace).unwrap(),
        aggregating: None,
    };
    let mean = states.aggregating.get_in(backend, namespace).unwrap();
    assert_eq!(mean, model.aggregating.map(|held| Mean.result(&held)));
    assert_eq!(found, Model { aggregating: None, ..model }, "key {key}, namespace {place}");
}

fn check_all(subject: &mut Subject, models: &Models) {
    for key in 0..KEYS {
        set_key(&mut subject.backend, &key);
        for place in 0..NAMESPACES.len() {
            check(&mut subject.backend, key, place, models);
        }
    }
}

fn unsorted(random: &mut Random, subject: &mut Subject, models: &mut Models) {
    for _ in 0..60 {
        let key = random.below(KEYS);
        set_key(&mut subject.backend, &key);
        for _ in 0..=random.below(4) {
            step(random, &mut subject.backend, key, models);
        }
    }
}

fn sorted(random: &mut Random, subject: &mut Subject, models: &mut Models) {
    let mode = if random.below(2) == 0 { WriteMode::BulkLoad } else { WriteMode::Writes };
    subject.backend.begin_sorted_input(mode).unwrap();
    let picked: Vec<u64> = (0..KEYS).filter(|_| random.below(3) > 0).collect();
    for (hash, bytes, key) in in_order(picked) {
        subject.backend.set_current_key(hash, &bytes);
        for _ in 0..random.below(6) {
            step(random, &mut subject.backend, key, models);
        }
    }
    subject.backend.end_sorted_input().unwrap();
}

fn run(kind: Kind, seed: u64) {
    let mut random = Random::new(seed);
    let (mut subject, mut models) = (kind.open(), Models::new());
    let kinds = every_kind();
    for _ in 0..12 {
        match random.below(6) {
            0 | 1 => unsorted(&mut random, &mut subject, &mut models),
            2 => sorted(&mut random, &mut subject, &mut models),
            3 => subject.backend.flush().unwrap(),
            4 => check_all(&mut subject, &models),
            _ => {
                let other = kinds[random.below(kinds.len() as u64) as usize];
                subject = subject.moved_to(other).moved_to(kind);
            }
        }
    }
    check_all(&mut subject, &models);
}

/// L3: with the cache off, of one key, small and large, and in memory.
#[test]
fn every_backend_holds_what_plain_maps_hold() {
    for kind in every_kind() {
        for seed in 0..6 {
            run(kind, seed);
        }
    }
}

#[test]
fn one_key_state_holds_the_current_key_and_forgets_it() {
    let mut backend = KeyedStateBackend::one_key();
    let states = States::new();
    for key in 0_u64..50 {
        set_key(&mut backend, &key);
        assert_eq!(states.value.get(&mut backend).unwrap(), None, "T10: key {key} starts empty");
        assert!(states.map.is_empty(&mut backend).unwrap());
        states.value.set(&mut backend, key).unwrap();
        states.list.add(&mut backend, vec![1]).unwrap();
        states.map.put(&mut backend, &1, "one".to_owned()).unwrap();
        set_key(&mut backend, &key);
        assert_eq!(states.value.get(&mut backend).unwrap(), Some(key));
        assert_eq!(states.list.get(&mut backend).unwrap(), [[1]]);
        assert_eq!(states.map.entries(&mut backend).unwrap(), [(1, "one".to_owned())]);
    }
    set_key(&mut backend, &7_u64);
    assert_eq!(states.value.get(&mut backend).unwrap(), None, "a key that comes again is new");
    assert_eq!(backend.counters().store_reads, 0);
}
