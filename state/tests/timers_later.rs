//! Timers beyond those that may be in memory: in a store, and as good as all others.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use element::{KeyHash, MemoryStore, SpillStore, Timestamp, hash_key_bytes, key_bytes};
use slackwater_state::{
    ByteStore, KeyedStateBackend, MemoryByteStore, SnapshotSource, StateError, StoreFailure,
    StoreSnapshot, Timer, TimerKind, TimerService, Visit, WriteBatch,
};
use support::{Kind, Random, Where, all_groups, every_store, groups_of, in_order, store};

use TimerKind::{EventTime, ProcessingTime};

/// Kind, time, hash, key, namespace: in the order in which timers of a kind are due.
type Model = BTreeSet<(TimerKind, i64, KeyHash, Vec<u8>, Vec<u8>)>;

fn in_memory(most: usize) -> TimerService {
    TimerService::with_later(most, || Ok(Box::new(MemoryByteStore::new())))
}

fn place(key: u64) -> (KeyHash, Vec<u8>) {
    let bytes = key_bytes(&key);
    (hash_key_bytes(&bytes), bytes)
}

fn held(timer: Timer) -> (TimerKind, i64, KeyHash, Vec<u8>, Vec<u8>) {
    (timer.kind, timer.time.0, timer.hash, timer.key.into(), timer.namespace.into())
}

/// One phase of a history: registering and deleting by key, in order or not; then some fire.
fn phase(timers: &mut TimerService, model: &mut Model, random: &mut Random, at: &str) {
    let sorted = random.below(2) == 0;
    if sorted {
        timers.begin_sorted_input();
    }
    for (hash, key, _) in in_order(0..1 + random.below(4)) {
        for _ in 0..random.below(30) {
            let kind = if random.below(3) == 0 { ProcessingTime } else { EventTime };
            let time = random.below(40) as i64 - 10;
            let namespace = vec![random.below(2) as u8; random.below(3) as usize * 10];
            let entry = (kind, time, hash, key.clone(), namespace.clone());
            let time = Timestamp(time);
            if random.below(4) == 0 {
                let deleted = timers.delete(kind, time, hash, &key, &namespace);
                assert_eq!(deleted, model.remove(&entry), "{at}");
            } else {
                let added = timers.register(kind, time, hash, &key, &namespace);
                assert_eq!(added, model.insert(entry), "{at}");
            }
        }
        let upto = random.below(40) as i64 - 20;
        for _ in 0..random.below(5) {
            let of_key = model.iter().filter(|held| held.0 == EventTime && held.3 == key);
            let first = of_key.min_by_key(|held| (held.1, &held.4)).cloned();
            let first = first.filter(|held| held.1 <= upto);
            let found = timers.pop_due_of_key(EventTime, Timestamp(upto), hash, &key);
            assert_eq!(found.map(held), first, "{at}");
            first.map(|first| model.remove(&first));
        }
    }
    if sorted {
        timers.end_sorted_input();
    }
    let upto = random.below(60) as i64 - 30;
    for kind in [EventTime, ProcessingTime] {
        while let Some(due) = timers.pop_due(kind, Timestamp(upto)) {
            let first = model.iter().find(|held| held.0 == kind).cloned().unwrap();
            assert_eq!(held(due), first, "{at}");
            model.remove(&first);
        }
        let mut left = model.iter().filter(|held| held.0 == kind);
        assert_eq!(timers.next_time(kind), left.next().map(|held| Timestamp(held.1)), "{at}");
        assert!(timers.next_time(kind).is_none_or(|next| next.0 > upto), "{at}");
    }
    assert_eq!(timers.len(EventTime) + timers.len(ProcessingTime), model.len(), "{at}");
    assert_eq!(timers.is_empty(), model.is_empty(), "{at}");
    timers.check().unwrap();
}

fn written(timers: &TimerService, files: &Arc<dyn SpillStore>, from: Kind) -> SnapshotSource {
    let mut subject = from.open();
    let pending = subject.backend.snapshot(timers).unwrap();
    let handle = pending.write(files.as_ref(), "chk").unwrap();
    SnapshotSource { store: Arc::clone(files), handle }
}

#[test]
fn every_history_of_timers_in_a_store_is_that_of_a_set() {
    for seed in 0..150 {
        let most = [1, 2, 5, 17, 60][seed as usize % 5];
        let (mut random, mut timers, mut model) =
            (Random::new(seed), in_memory(most), Model::new());
        for round in 0..20 {
            phase(&mut timers, &mut model, &mut random, &format!("seed {seed}, round {round}"));
        }
    }
}

#[test]
fn timers_in_every_store_are_those_in_memory_and_move_to_any_parallelism() {
    let kinds: Vec<Kind> = every_store();
    for (i, kind) in kinds.iter().copied().enumerate() {
        let (later, directory) = store(kind.0);
        let mut timers = TimerService::with_later(20, move || Ok(later));
        let (mut random, mut model) = (Random::new(i as u64), Model::new());
        for round in 0..10 {
            phase(&mut timers, &mut model, &mut random, &format!("{kind:?}, round {round}"));
        }
        for time in 0..400 {
            let (hash, key) = place(time % 50);
            timers.register(EventTime, Timestamp(100 + time as i64), hash, &key, b"w");
            model.insert((EventTime, 100 + time as i64, hash, key, b"w".to_vec()));
        }
        assert!(timers.later(EventTime) > 300, "{kind:?}");
        // Beside state in memory and in a store, where timers are written in other ways.
        for beside in [Kind(Where::Heap, 0), kind] {
            let files: Arc<dyn SpillStore> = Arc::new(MemoryStore::new());
            let sources = [written(&timers, &files, beside)];
            let mut found = Model::new();
            for subtask in 0..3 {
                let mut backend =
                    KeyedStateBackend::heap(groups_of(subtask, 3)).with_operator("operator");
                let mut moved = in_memory(7);
                backend.restore(&mut moved, &sources).unwrap();
                assert!(moved.len(EventTime) - moved.later(EventTime) <= 7);
                for kind in [EventTime, ProcessingTime] {
                    let due = std::iter::from_fn(|| moved.pop_due(kind, Timestamp::MAX));
                    found.extend(due.map(held));
                }
            }
            assert_eq!(found, model, "{kind:?} beside {beside:?}");
        }
        drop((timers, directory));
    }
}

#[derive(Debug, Default)]
struct Counts {
    gets: AtomicU64,
    scanned: AtomicU64,
    scans: AtomicU64,
    writes: AtomicU64,
}

/// Counts what it is asked; fails when it is written beyond a number of entries.
#[derive(Debug)]
struct Counted {
    inner: MemoryByteStore,
    counts: Arc<Counts>,
    room: u64,
}

impl ByteStore for Counted {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFailure> {
        self.counts.gets.fetch_add(1, Ordering::Relaxed);
        self.inner.get(key)
    }

    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        self.counts.scans.fetch_add(1, Ordering::Relaxed);
        self.inner.scan(from, to, &mut |key, value| {
            self.counts.scanned.fetch_add(1, Ordering::Relaxed);
            visit(key, value)
        })
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        let before = self.counts.writes.fetch_add(batch.len() as u64, Ordering::Relaxed);
        if before + batch.len() as u64 > self.room {
            return Err(StoreFailure::new("write", "the disk is full"));
        }
        self.inner.write(batch)
    }

    fn snapshot(&mut self) -> Result<Box<dyn StoreSnapshot>, StoreFailure> {
        self.inner.snapshot()
    }
}

fn counted(most: usize, room: u64) -> (TimerService, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let store = Counted { inner: MemoryByteStore::new(), counts: Arc::clone(&counts), room };
    (TimerService::with_later(most, move || Ok(Box::new(store))), counts)
}

fn taken(counts: &Counts) -> [u64; 3] {
    [&counts.gets, &counts.scans, &counts.scanned].map(|count| count.swap(0, Ordering::Relaxed))
}

/// Traps tB5 and tW11, where timers are in a store.
#[test]
fn a_hundred_thousand_timers_in_a_store_cost_a_key_that_has_none_of_them_nothing() {
    let (mut timers, counts) = counted(1_000, u64::MAX);
    for key in 0..100_000 {
        let (hash, bytes) = place(1_000_000 + key);
        timers.register(EventTime, Timestamp(1_000 + key as i64 % 997), hash, &bytes, b"");
        assert!(timers.len(EventTime) - timers.later(EventTime) <= 1_000);
    }
    let moved = counts.writes.swap(0, Ordering::Relaxed);
    assert!((198_000..400_000).contains(&moved), "two puts for each, and few move back: {moved}");
    taken(&counts);

    timers.begin_sorted_input();
    for (hash, key, _) in in_order(0..10_000) {
        timers.register(EventTime, Timestamp(3), hash, &key, b"");
        assert!(timers.pop_due_of_key(EventTime, Timestamp(50), hash, &key).is_some());
        assert!(timers.pop_due_of_key(EventTime, Timestamp(50), hash, &key).is_none());
    }
    assert_eq!(taken(&counts), [0, 0, 0], "no later timer is due");
    for (hash, key, _) in in_order(0..1_000) {
        assert!(timers.pop_due_of_key(EventTime, Timestamp(5_000), hash, &key).is_none());
    }
    assert_eq!(taken(&counts), [0, 1_000, 0], "one range read for each key, of no entry");
    timers.end_sorted_input();

    let later = timers.later(EventTime) as u64;
    for key in 0..100_000 {
        let (hash, bytes) = place(1_000_000 + key);
        let time = Timestamp(1_000 + key as i64 % 997);
        assert!(timers.delete(EventTime, time, hash, &bytes, b""));
    }
    let [gets, scans, scanned] = taken(&counts);
    assert!(gets <= later && scanned <= 2 * later, "{gets} gets, {scanned} scanned of {later}");
    assert!(scans <= 400, "{scans}");
    assert!(timers.is_empty());
    timers.check().unwrap();
}

#[test]
fn due_timers_come_back_from_the_store_in_pieces_each_read_once() {
    let (mut timers, counts) = counted(1_000, u64::MAX);
    for time in (0..50_000_i64).rev() {
        let (hash, key) = place(time as u64);
        timers.register(EventTime, Timestamp(time), hash, &key, b"");
    }
    let later = timers.later(EventTime) as u64;
    assert!(later >= 49_000, "{later}");
    taken(&counts);
    for time in 0..50_000 {
        let due = timers.pop_due(EventTime, Timestamp::MAX).unwrap();
        assert_eq!(due.time, Timestamp(time));
    }
    let [gets, scans, scanned] = taken(&counts);
    assert_eq!(gets, 0);
    assert!(scans <= 2 + later / 500, "{scans} range reads");
    assert!(scanned <= later + scans, "{scanned} entries read of {later}");
    assert!(timers.is_empty());
}

#[test]
fn a_store_that_fails_is_said_once_and_by_name() {
    let (mut timers, _) = counted(100, 60);
    for time in 0..200 {
        let (hash, key) = place(time);
        timers.register(EventTime, Timestamp(time as i64), hash, &key, b"");
    }
    let error = timers.check().unwrap_err();
    assert!(matches!(error, StateError::Store(_)), "{error:?}");
    timers.check().unwrap();

    let broken = || Err(StoreFailure::new("open", "no such directory"));
    let mut timers = TimerService::with_later(1, broken);
    for time in 0..3 {
        let (hash, key) = place(time);
        timers.register(EventTime, Timestamp(time as i64), hash, &key, b"");
    }
    assert!(timers.check().is_err());
}

#[test]
fn timers_that_fit_into_memory_open_no_store() {
    let mut timers = TimerService::with_later(100, || panic!("nothing is due later"));
    for time in 0..100 {
        let (hash, key) = place(time);
        timers.register(EventTime, Timestamp(time as i64), hash, &key, b"");
        timers.register(ProcessingTime, Timestamp(time as i64), hash, &key, b"");
    }
    let mut backend = KeyedStateBackend::heap(all_groups());
    backend.snapshot(&timers).unwrap();
    assert_eq!((timers.later(EventTime), timers.len(ProcessingTime)), (0, 100));
}
