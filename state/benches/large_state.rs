//! State of 20 million keys: sorted input against unsorted, and a snapshot of a gigabyte beside updates.
//!
//! `unsorted` updates keys of a store that has all of them already, in random order with the cache at
//! one key; its reference is `sorted`, which loads all keys. `meanwhile` updates while another thread
//! writes a whole snapshot, the taking of which counts; its reference is `alone`.
//! `SLACKWATER_BENCH_SMOKE=1` makes all sizes tiny.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Open, groups, is_smoke, mix, on_disk, sorted, through, through_sorted};
use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use element::{DirectoryStore, SpillStore};
use slackwater_state::{KeyedStateBackend, TimerService, ValueState, WriteMode};
use tempfile::TempDir;

fn keys() -> u64 {
    if is_smoke() { 2_000 } else { 20_000_000 }
}

/// A snapshot's entry is about 40 bytes: key of the store and value.
fn keys_of_a_gigabyte() -> u64 {
    keys() / 4 * 5
}

/// Updates in random order that are timed at once.
fn portion() -> u64 {
    if is_smoke() { 100 } else { 100_000 }
}

/// Keys in random order, others each time.
struct RandomKeys {
    keys: u64,
    next: u64,
}

impl RandomKeys {
    fn portion(&mut self) -> impl Iterator<Item = u64> {
        let (start, keys) = (self.next, self.keys);
        self.next += portion();
        (start..self.next).map(move |i| mix(i) % keys)
    }
}

fn fold() -> ValueState<(u64, u64)> {
    ValueState::new("fold")
}

/// A backend in memory or over a store, full of keys.
struct Full {
    backend: KeyedStateBackend,
    random: RandomKeys,
    _directory: Option<TempDir>,
}

impl Full {
    fn new(open: Option<Open>, cache: usize, keys: u64) -> Self {
        let (mut backend, directory) = match open {
            None => (KeyedStateBackend::heap(groups()), None),
            Some(open) => {
                let (store, directory) = open();
                (KeyedStateBackend::over(store, groups(), cache), directory)
            }
        };
        let input = sorted((0..keys).collect());
        through_sorted(&mut backend, &fold(), &input, WriteMode::BulkLoad);
        Self { backend, random: RandomKeys { keys, next: 0 }, _directory: directory }
    }

    fn update_a_portion(&mut self) {
        through(&mut self.backend, &fold(), self.random.portion());
    }
}

fn sorted_against_unsorted(c: &mut Criterion) {
    let mut group = c.benchmark_group("20 M keys over a store");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for (name, open) in on_disk() {
        let mut input = None;
        group.throughput(Throughput::Elements(keys()));
        group.bench_function(format!("{name}, sorted"), |b| {
            let input = input.get_or_insert_with(|| sorted((0..keys()).collect()));
            b.iter(|| {
                let (store, directory) = open();
                let mut backend = KeyedStateBackend::over(store, groups(), 1);
                through_sorted(&mut backend, &fold(), input, WriteMode::BulkLoad);
                drop((backend, directory));
            });
        });
        let mut full = None;
        group.throughput(Throughput::Elements(portion()));
        group.bench_function(format!("{name}, unsorted"), |b| {
            let full = full.get_or_insert_with(|| Full::new(Some(*open), 1, keys()));
            b.iter(|| full.update_a_portion());
        });
    }
    group.finish();
}

/// Updates until a snapshot has been written; how long a portion of them took.
fn beside_a_snapshot(full: &mut Full, target: &Arc<dyn SpillStore>) -> Duration {
    let (began, mut portions) = (Instant::now(), 0);
    let pending = full.backend.snapshot(&TimerService::new()).expect("the store works");
    let target = Arc::clone(target);
    let writer = std::thread::spawn(move || pending.write(target.as_ref(), "whole"));
    while portions == 0 || !writer.is_finished() {
        full.update_a_portion();
        portions += 1;
    }
    let took = began.elapsed();
    let written = writer.join().expect("the writer ends").expect("the snapshot is written");
    std::hint::black_box(written);
    took / portions
}

fn snapshot_beside_updates(c: &mut Criterion) {
    let mut group = c.benchmark_group("update of 25 M keys beside a snapshot");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(portion()));
    let on_disk = on_disk().map(|(name, open)| (*name, Some(*open)));
    for (name, open) in std::iter::once(("heap", None)).chain(on_disk) {
        let mut full = None;
        let fill = || Full::new(open, 100_000, keys_of_a_gigabyte());
        group.bench_function(format!("{name}, alone"), |b| {
            let full = full.get_or_insert_with(fill);
            b.iter(|| full.update_a_portion());
        });
        let snapshots = tempfile::tempdir().expect("a directory");
        let target: Arc<dyn SpillStore> = Arc::new(DirectoryStore::new(snapshots.path()));
        group.bench_function(format!("{name}, meanwhile"), |b| {
            let full = full.get_or_insert_with(fill);
            b.iter_custom(|iterations| {
                (0..iterations).map(|_| beside_a_snapshot(full, &target)).sum()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, sorted_against_unsorted, snapshot_beside_updates);
criterion_main!(benches);
