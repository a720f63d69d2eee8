//! Iteration over maps of more than one page: what it reads, what it holds, and that it is right.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use element::{CodecError, Record, Schema, SchemaError, Value};
use slackwater_state::{MapState, StateCounters, WriteMode};
use support::{Kind, Random, Subject, Where, every_kind, every_store, in_order, set_key};

const PAGE: u64 = 1_024;

static LIVE: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);

/// A number that knows how many of its kind are in memory.
#[derive(Debug)]
struct Live(u64);

impl Live {
    fn new(number: u64) -> Self {
        let live = LIVE.fetch_add(1, Ordering::Relaxed) + 1;
        MOST.fetch_max(live, Ordering::Relaxed);
        Self(number)
    }
}

impl Clone for Live {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Record for Live {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        u64::decode(input).map(Self::new)
    }

    fn schema() -> Schema {
        u64::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        u64::from_value(value).map(Self::new)
    }
}

fn reads(subject: &mut Subject, work: impl FnOnce(&mut Subject)) -> u64 {
    let counts = |subject: &Subject| -> StateCounters { subject.backend.counters() };
    let before = counts(subject);
    work(subject);
    let after = counts(subject);
    assert_eq!(before.store_reads, after.store_reads);
    after.store_range_reads - before.store_range_reads
}

/// A large map is never in memory as a whole, and each of its pages is one range read.
#[test]
fn a_map_of_many_pages_is_read_page_by_page_and_not_kept() {
    const ENTRIES: u64 = 10 * PAGE;
    let map = MapState::<u64, Live>::new("map");
    for kind in every_store() {
        let mut subject = kind.open();
        for entry in 0..ENTRIES {
            set_key(&mut subject.backend, &1_u64);
            map.put(&mut subject.backend, &entry, Live::new(entry)).unwrap();
            if entry % PAGE == 0 {
                // Another key takes the only place in the cache.
                set_key(&mut subject.backend, &2_u64);
                map.put(&mut subject.backend, &0, Live::new(0)).unwrap();
            }
        }
        set_key(&mut subject.backend, &2_u64);
        map.put(&mut subject.backend, &0, Live::new(0)).unwrap();
        set_key(&mut subject.backend, &1_u64);
        for _ in 0..2 {
            MOST.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
            let mut next = 0;
            let pages = reads(&mut subject, |subject| {
                map.for_each(&mut subject.backend, |key, value| {
                    assert_eq!((key, value.0), (next, next));
                    next += 1;
                })
                .unwrap();
            });
            assert_eq!((next, pages), (ENTRIES, 10), "{kind:?}");
            let most = MOST.load(Ordering::Relaxed);
            assert!(most <= 2 * PAGE as i64 + 8, "{most} values at once on {kind:?}");
        }
        let one = reads(&mut subject, |subject| {
            assert!(!map.is_empty(&mut subject.backend).unwrap());
        });
        assert_eq!(one, 1, "{kind:?}: whether it is empty shows on the first page");
    }
}

#[test]
fn a_map_of_one_page_is_read_once_and_kept() {
    let map = MapState::<u64, u64>::new("map");
    for kind in every_store() {
        let mut subject = kind.open();
        for key in [1_u64, 2] {
            set_key(&mut subject.backend, &key);
            for entry in 0..PAGE {
                map.put(&mut subject.backend, &entry, entry).unwrap();
            }
        }
        set_key(&mut subject.backend, &1_u64);
        let once = reads(&mut subject, |subject| {
            for _ in 0..3 {
                assert_eq!(map.entries(&mut subject.backend).unwrap().len() as u64, PAGE);
            }
        });
        assert_eq!(once, 1, "{kind:?}");
    }
}

/// Trap tK3: changes that lie in the cache and in the store, around the ends of pages, are merged in
/// the order of keys, each visited once.
#[test]
fn an_iteration_over_many_pages_merges_what_is_cached_with_what_is_stored() {
    let map = MapState::<u32, u64>::new("map");
    for kind in every_kind() {
        let mut random = Random::new(kind.1 as u64 + 1);
        let (mut subject, mut model) = (kind.open(), BTreeMap::new());
        for round in 0..8 {
            change(&mut subject, &mut random, &map, &mut model, 900);
            if round % 2 == 0 {
                subject.backend.flush().unwrap();
                set_key(&mut subject.backend, &7_u64);
                map.put(&mut subject.backend, &1, 1).unwrap();
                change(&mut subject, &mut random, &map, &mut model, 60);
            }
            set_key(&mut subject.backend, &1_u64);
            let mut visited = Vec::new();
            map.retain(&mut subject.backend, |key, value| {
                visited.push((*key, *value));
                *value += u64::from(key % 7 == 3);
                key % 11 != round
            })
            .unwrap();
            assert_eq!(visited, model.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>());
            model.retain(|key, value| {
                *value += u64::from(key % 7 == 3);
                key % 11 != round
            });
            check(&mut subject, &map, &model);
        }
        check(&mut subject.moved_to(Kind(Where::Heap, 0)), &map, &model);
        subject.backend.begin_sorted_input(WriteMode::BulkLoad).unwrap();
        let (hash, bytes, _) = in_order([1]).remove(0);
        subject.backend.set_current_key(hash, &bytes);
        assert_eq!(map.entries(&mut subject.backend).unwrap().len(), model.len());
        map.clear(&mut subject.backend).unwrap();
        subject.backend.end_sorted_input().unwrap();
        check(&mut subject, &map, &BTreeMap::new());
    }
}

fn change(
    subject: &mut Subject,
    random: &mut Random,
    map: &MapState<u32, u64>,
    model: &mut BTreeMap<u32, u64>,
    changes: u64,
) {
    set_key(&mut subject.backend, &1_u64);
    for _ in 0..changes {
        let (key, value) = (random.below(4_000) as u32, random.below(100));
        if random.below(5) == 0 {
            map.remove(&mut subject.backend, &key).unwrap();
            model.remove(&key);
        } else {
            map.put(&mut subject.backend, &key, value).unwrap();
            model.insert(key, value);
        }
    }
}

#[track_caller]
fn check(subject: &mut Subject, map: &MapState<u32, u64>, model: &BTreeMap<u32, u64>) {
    set_key(&mut subject.backend, &1_u64);
    assert_eq!(map.is_empty(&mut subject.backend).unwrap(), model.is_empty());
    let expected: Vec<_> = model.iter().map(|(key, value)| (*key, *value)).collect();
    assert_eq!(map.entries(&mut subject.backend).unwrap(), expected);
}
