//! Keyed state against a hand-written loop, sorted input over stores, and the cache's curve.
//!
//! Every group has its reference in the same run: `hand written` does the same work (encode the key,
//! hash it, look up in hashbrown, fold 16 bytes) without an engine; `heap` is the store in memory.
//! 20 M updates, sorted or not; `SLACKWATER_BENCH_SMOKE=1` makes all sizes tiny.

mod common;

use std::hint::black_box;

use common::{Open, STORES, groups, is_smoke, mix, on_disk, sorted, through, through_sorted};
use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use element::{Key, hash_key_bytes};
use hashbrown::HashTable;
use slackwater_state::{KeyedStateBackend, ValueState, WriteMode};

fn updates() -> u64 {
    if is_smoke() { 2_000 } else { 20_000_000 }
}

fn key_counts() -> Vec<u64> {
    if is_smoke() { vec![100] } else { vec![1_000, 1_000_000] }
}

fn uniform(keys: u64) -> Vec<u64> {
    (0..updates()).map(|i| mix(i) % keys).collect()
}

/// The fourth power of a uniform number: half of the updates go to a sixteenth of the keys.
fn skewed(keys: u64, updates: u64) -> Vec<u64> {
    let place = |i: u64| (mix(i) >> 11) as f64 / (1_u64 << 53) as f64;
    (0..updates).map(|i| (place(i).powi(4) * keys as f64) as u64).collect()
}

fn hand_written(keys: &[u64]) -> u64 {
    let mut table = HashTable::<(u64, (u64, u64))>::new();
    let mut bytes = Vec::with_capacity(8);
    for key in keys {
        bytes.clear();
        key.encode_key(&mut bytes);
        let hash = hash_key_bytes(&bytes).0;
        let of = |entry: &(u64, (u64, u64))| hash_key_bytes(&entry.0.to_be_bytes()).0;
        let entry = table
            .entry(hash, |entry| entry.0 == *key, of)
            .or_insert_with(|| (*key, (0, 0)))
            .into_mut();
        entry.1.0 += 1;
        entry.1.1 = entry.1.1.max(*key);
    }
    table.len() as u64
}

fn on_heap(keys: &[u64]) -> KeyedStateBackend {
    let mut backend = KeyedStateBackend::heap(groups());
    through(&mut backend, &ValueState::new("fold"), keys.iter().copied());
    backend
}

fn in_sorted_phase(open: Open, keys: &[u64], mode: WriteMode) -> u64 {
    let (store, directory) = open();
    let mut backend = KeyedStateBackend::over(store, groups(), 0);
    through_sorted(&mut backend, &ValueState::new("fold"), keys, mode);
    drop(directory);
    backend.counters().store_writes
}

fn over_cache(open: Open, cache: usize, keys: &[u64]) -> u64 {
    let (store, directory) = open();
    let mut backend = KeyedStateBackend::over(store, groups(), cache);
    through(&mut backend, &ValueState::new("fold"), keys.iter().copied());
    backend.flush().expect("the store works");
    drop(directory);
    backend.counters().hits
}

/// 8-byte keys in random order, 16-byte values, in memory.
fn in_memory(c: &mut Criterion) {
    let mut group = c.benchmark_group("update in memory");
    group.sample_size(10).throughput(Throughput::Elements(updates()));
    group.sampling_mode(SamplingMode::Flat);
    for keys in key_counts() {
        let input = uniform(keys);
        group.bench_with_input(BenchmarkId::new("hand written", keys), &input, |b, input| {
            b.iter(|| hand_written(black_box(input)));
        });
        group.bench_with_input(BenchmarkId::new("heap", keys), &input, |b, input| {
            b.iter(|| on_heap(black_box(input)));
        });
        let input = sorted(input);
        group.bench_with_input(BenchmarkId::new("heap sorted", keys), &input, |b, input| {
            b.iter(|| on_heap(black_box(input)));
        });
    }
    group.finish();
}

/// The same input sorted, over each store, by bulk load and by batches of writes.
fn sorted_over_stores(c: &mut Criterion) {
    let mut group = c.benchmark_group("update over a store, sorted");
    group.sample_size(10).throughput(Throughput::Elements(updates()));
    group.sampling_mode(SamplingMode::Flat);
    for keys in key_counts() {
        let input = sorted(uniform(keys));
        group.bench_with_input(BenchmarkId::new("heap", keys), &input, |b, input| {
            b.iter(|| on_heap(black_box(input)));
        });
        for (name, open) in STORES {
            for (how, mode) in [("bulk load", WriteMode::BulkLoad), ("writes", WriteMode::Writes)] {
                let id = BenchmarkId::new(format!("{name}, {how}"), keys);
                group.bench_with_input(id, &input, |b, input| {
                    b.iter(|| in_sorted_phase(*open, black_box(input), mode));
                });
            }
        }
    }
    group.finish();
}

/// Unsorted skewed input, by the size of the cache; a hundredth of the updates.
fn cache_curve(c: &mut Criterion) {
    let keys = if is_smoke() { 100 } else { 1_000_000 };
    let input = skewed(keys, updates() / 100);
    let mut group = c.benchmark_group("update over a store, skewed, by cache size");
    group.sample_size(10).throughput(Throughput::Elements(input.len() as u64));
    group.bench_function("heap", |b| b.iter(|| on_heap(black_box(&input))));
    for (name, open) in on_disk() {
        for cache in [1, 1_000, 100_000] {
            group.bench_function(BenchmarkId::new(*name, cache), |b| {
                b.iter(|| over_cache(*open, cache, black_box(&input)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, in_memory, sorted_over_stores, cache_curve);
criterion_main!(benches);
