//! The sorter against the standard library and hand-written loops, in one run.
//!
//! Each group has its reference beside it, over the same records; what counts is the ratio.
//! `SLACKWATER_BENCH_SMOKE=1` makes every size tiny, to see that all still runs.

#![allow(missing_docs, reason = "criterion's macros make functions without")]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use element::{ByteSize, hash_key_bytes};
use element::{DirectoryStore, MemoryBudget, MemoryStore, SpillStore};
use hashbrown::HashTable;
use slackwater_sort::{
    Combiner, CombiningSorter, ExternalSorter, NO_TIMESTAMP, SortError, SorterOptions, SpillTarget,
};

fn size(records: u64) -> u64 {
    if std::env::var_os("SLACKWATER_BENCH_SMOKE").is_some() { records / 1_000 } else { records }
}

fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

fn options(budget: u64, store: Arc<dyn SpillStore>) -> SorterOptions {
    SorterOptions::new(MemoryBudget::new(ByteSize(budget)), SpillTarget::new(store, "bench"))
}

fn in_memory(budget: u64) -> SorterOptions {
    options(budget, Arc::new(MemoryStore::new()))
}

fn group<'a>(
    c: &'a mut Criterion,
    name: &str,
    records: u64,
) -> criterion::BenchmarkGroup<'a, criterion::measurement::WallTime> {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(records));
    group.sample_size(10).warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_secs(3));
    group
}

fn sort_u64(options: SorterOptions, records: u64) -> u64 {
    let mut sorter = ExternalSorter::new(options);
    for n in 0..records {
        let key = mix(n).to_be_bytes();
        sorter.push(&key, NO_TIMESTAMP, &n.to_le_bytes()).expect("memory is there");
    }
    drain(sorter)
}

fn drain(sorter: ExternalSorter) -> u64 {
    let sorted = sorter.finish().expect("the sort ends well");
    let mut sum = 0_u64;
    let mut position = 0_u64;
    let drained = sorted.for_each(|record| {
        position += 1;
        sum = sum.wrapping_add(position ^ record.payload.len() as u64 ^ u64::from(record.key[0]));
        Ok::<_, SortError>(())
    });
    drained.expect("the run reads back");
    sum
}

/// u64 keys, 8-byte payloads, uniform, all in memory; against pairs without payload.
///
/// The fastest crate for these pairs on one thread is rdst 0.20: 0.8 of the standard library's time
/// at 10 M, where voracious 1.2 takes 1.2 and radsort 0.1 takes 2.0. It would lock seventeen more
/// packages, so the standard library stands for it here: a ratio to it times 0.8 is one to rdst.
fn memory(c: &mut Criterion) {
    for records in [size(1_000_000), size(10_000_000)] {
        let mut group = group(c, "memory", records);
        group.bench_function(BenchmarkId::new("std unstable, bare pairs", records), |b| {
            b.iter(|| {
                let mut pairs: Vec<(u64, u64)> = (0..records).map(|n| (mix(n), n)).collect();
                pairs.sort_unstable_by_key(|pair| pair.0);
                pairs.iter().fold(0_u64, |sum, pair| sum.wrapping_add(sum ^ pair.1))
            });
        });
        group.bench_function(BenchmarkId::new("external sorter", records), |b| {
            b.iter(|| sort_u64(in_memory(2 << 30), records));
        });
        group.finish();
    }
}

/// The runtime's shape: hash, key, value; two threads, each with half of the records and the budget.
fn backlog(c: &mut Criterion) {
    let records = size(20_000_000);
    let mut group = group(c, "backlog", records);
    group.sample_size(10);
    for (name, budget) in [("spills, 128 MB", 128_u64 << 20), ("fits, 2 GB", 2 << 30)] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store: Arc<dyn SpillStore> = Arc::new(DirectoryStore::new(directory.path()));
        let budget = if records < 1_000_000 { budget / 1_000 } else { budget };
        group.bench_function(BenchmarkId::new(name, records), |b| {
            b.iter(|| {
                std::thread::scope(|scope| {
                    for half in 0..2_u64 {
                        let options = options(budget / 2, Arc::clone(&store));
                        scope.spawn(move || black_box(sort_hashed(options, half, records / 2)));
                    }
                });
            });
        });
    }
    group.bench_function(BenchmarkId::new("hand-written radix partition", records), |b| {
        b.iter(|| {
            std::thread::scope(|scope| {
                for half in 0..2_u64 {
                    scope.spawn(move || black_box(partition(half, records / 2)));
                }
            });
        });
    });
    group.finish();
}

fn sort_hashed(options: SorterOptions, half: u64, records: u64) -> u64 {
    let mut sorter = ExternalSorter::new(options);
    for n in half * records..(half + 1) * records {
        let key = mix(n).to_be_bytes();
        let hash = hash_key_bytes(&key).0;
        let write_key = |out: &mut Vec<u8>| {
            let mut both = [0; 16];
            both[..8].copy_from_slice(&hash.to_be_bytes());
            both[8..].copy_from_slice(&key);
            out.extend_from_slice(&both);
        };
        let write_payload = |out: &mut Vec<u8>| out.extend_from_slice(&n.to_le_bytes());
        sorter.push_with(NO_TIMESTAMP, write_key, write_payload).expect("the disk has room");
    }
    drain(sorter)
}

/// Cuts records into 512 parts by the top bits, sorts each part, folds.
fn partition(half: u64, records: u64) -> u64 {
    let mut parts: Vec<Vec<(u64, u64, u64)>> = vec![Vec::new(); 512];
    for n in half * records..(half + 1) * records {
        let key = mix(n);
        let hash = hash_key_bytes(&key.to_be_bytes()).0;
        parts[(hash >> 55) as usize].push((hash, key, n));
    }
    let mut sum = 0_u64;
    for part in &mut parts {
        part.sort_unstable_by_key(|record| record.0);
        sum = part.iter().fold(sum, |sum, record| sum.wrapping_add(sum ^ record.2));
    }
    sum
}

struct Sum;

impl Combiner for Sum {
    type Accumulator = u64;

    fn merge(&self, into: &mut u64, other: u64) {
        *into = into.wrapping_add(other);
    }
}

/// Few keys, folded before they are sorted; against a table and the same loop.
fn combining(c: &mut Criterion) {
    let records = size(20_000_000);
    for keys in [1_000_u64, 1_000_000] {
        let key_of = move |n: u64| (((mix(n) >> 32) * keys) >> 32).to_be_bytes();
        let mut group = group(c, "combining", records);
        group.bench_function(BenchmarkId::new("hand-written table", keys), |b| {
            b.iter(|| {
                let mut table: HashTable<(u64, [u8; 8], u64)> = HashTable::new();
                for n in 0..records {
                    let key = key_of(n);
                    let hash = hash_key_bytes(&key).0;
                    match table.find_mut(hash, |slot| slot.1 == key) {
                        Some(slot) => slot.2 += n,
                        None => {
                            table.insert_unique(hash, (hash, key, n), |slot| slot.0);
                        }
                    }
                }
                table.iter().fold(0_u64, |sum, slot| sum.wrapping_add(slot.2))
            });
        });
        group.bench_function(BenchmarkId::new("combining sorter", keys), |b| {
            b.iter(|| {
                let mut sorter = CombiningSorter::new(Sum, in_memory(1 << 30));
                for n in 0..records {
                    let key = key_of(n);
                    let hash = hash_key_bytes(&key).0;
                    let fold = |sum: Option<&mut u64>| match sum {
                        Some(sum) => {
                            *sum += n;
                            None
                        }
                        None => Some(n),
                    };
                    sorter.update(hash, &key, NO_TIMESTAMP, fold).expect("memory is there");
                }
                let mut sorted = sorter.finish().expect("the sort ends well");
                let mut sum = 0_u64;
                while let Some(record) = sorted.next().expect("nothing was spilled") {
                    sum = sum.wrapping_add(record.accumulator);
                }
                sum
            });
        });
        group.finish();
    }
}

/// 208-byte keys with 200 bytes in common; against random keys of the same length.
fn prefixes(c: &mut Criterion) {
    let records = size(1_000_000);
    let mut group = group(c, "strings of 208 bytes", records);
    for (name, shared) in [("random", 0_usize), ("200 bytes in common", 200)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut sorter = ExternalSorter::new(in_memory(1 << 30));
                let mut key = [b'p'; 208];
                for n in 0..records {
                    key[shared..shared + 8].copy_from_slice(&mix(n).to_be_bytes());
                    sorter.push(&key, NO_TIMESTAMP, &[]).expect("memory is there");
                }
                drain(sorter)
            });
        });
    }
    group.finish();
}

/// 100-byte lines with 10-byte keys, file to file, in an eighth of their size; against a plain copy.
fn files(c: &mut Criterion) {
    let records = size(2_000_000);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (input, output) = (directory.path().join("in"), directory.path().join("out"));
    let mut lines = Vec::new();
    for n in 0..records {
        let key = mix(2 * n + (3 << 40)).to_be_bytes();
        lines.extend(key.iter().chain(&key[..2]).map(|byte| b' ' + byte % 95));
        lines.extend_from_slice(format!(" {n:020}").as_bytes());
        lines.resize(lines.len() + 68, b'A' + (n % 26) as u8);
        lines.push(b'\n');
    }
    fs::write(&input, &lines).expect("the disk has room");
    drop(lines);
    let mut group = group(c, "file to file", records);
    group.bench_function("plain copy", |b| {
        b.iter(|| {
            let mut writer = File::create(&output).expect("the disk has room");
            read_chunks(&input, 1 << 20, |chunk| {
                writer.write_all(chunk).expect("the disk has room");
            });
        });
    });
    group.bench_function("external sorter", |b| {
        b.iter(|| {
            let store: Arc<dyn SpillStore> = Arc::new(DirectoryStore::new(directory.path()));
            let mut sorter = ExternalSorter::new(options(records * 100 / 8, store));
            read_chunks(&input, 1_000_000, |chunk| {
                for line in chunk.chunks_exact(100) {
                    let (key, rest) = line.split_at(10);
                    sorter.push(key, NO_TIMESTAMP, rest).expect("the disk has room");
                }
            });
            let file = File::create(&output).expect("the disk has room");
            let mut writer = BufWriter::with_capacity(1 << 20, file);
            let mut sorted = sorter.finish().expect("the sort ends well");
            while let Some(record) = sorted.next().expect("the run reads back") {
                writer.write_all(record.key).expect("the disk has room");
                writer.write_all(record.payload).expect("the disk has room");
            }
        });
    });
    group.finish();
}

fn read_chunks(path: &Path, bytes: usize, mut each: impl FnMut(&[u8])) {
    let mut file = File::open(path).expect("the input is there");
    let mut left = file.metadata().expect("the input is there").len();
    let mut chunk = vec![0; bytes];
    while left > 0 {
        let length = left.min(bytes as u64);
        let part = &mut chunk[..length as usize];
        file.read_exact(part).expect("the input is there");
        each(part);
        left -= length;
    }
}

criterion_group!(benches, memory, backlog, combining, prefixes, files);
criterion_main!(benches);
