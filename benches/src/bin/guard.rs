//! Small fixed cases whose costs are counted, for `cargo xtask bench-guard`.
//!
//! `guard` prints every case's counts, one a line, tabs between: case, count, value. `guard CASE` runs one
//! case and prints nothing: that is what a profiler is put around. Counts are the same on every run and
//! machine; nothing here is timed. Cases of one thread count allocations, too. Whole jobs have threads
//! that meet by chance, so of them only what the engine reports is counted.

#![forbid(unsafe_code)]

use std::alloc::System;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use element::{
    ByteSize, Key, KeyGroups, MaxParallelism, MemoryBudget, MemoryStore, Record, hash_key_bytes,
};
use slackwater_benches::generator::{exchange_record, key, mix, val};
use slackwater_benches::jobs::running_sum::{Emit, RunningSum, backlog_counts};
use slackwater_benches::{Mode, Setting, Store};
use sort::{
    Combiner, CombiningSorter, ExternalSorter, NO_TIMESTAMP, SortStats, SorterOptions, SpillTarget,
};
use state::{KeyedStateBackend, MemoryByteStore, ValueState, WriteMode};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

type AnyError = Box<dyn std::error::Error>;

/// Named counts of one case.
type Counts = Vec<(&'static str, u64)>;

struct Case {
    name: &'static str,
    /// One thread, so that allocations repeat.
    counts_allocations: bool,
    run: fn() -> Result<Counts, AnyError>,
}

const CASES: &[Case] = &[
    Case { name: "codec", counts_allocations: true, run: codec },
    Case { name: "sort", counts_allocations: true, run: sort_spilling },
    Case { name: "combine", counts_allocations: true, run: combine },
    Case { name: "state-sorted", counts_allocations: true, run: state_sorted },
    Case { name: "state-cached", counts_allocations: true, run: state_cached },
    Case { name: "job-mixed", counts_allocations: false, run: job_mixed },
    Case { name: "job-combining", counts_allocations: false, run: job_combining },
    Case { name: "job-stream", counts_allocations: false, run: job_stream },
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    if let Some(name) = &wanted
        && !CASES.iter().any(|case| case.name == name)
    {
        eprintln!("no case `{name}`");
        return ExitCode::FAILURE;
    }
    for case in CASES {
        let result = match &wanted {
            None => print(case),
            Some(name) if case.name == name => (case.run)().map(drop),
            Some(_) => Ok(()),
        };
        if let Err(error) = result {
            eprintln!("{}: {error}", case.name);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn print(case: &Case) -> Result<(), AnyError> {
    // What is made once a process is not the case's.
    (case.run)()?;
    let region = Region::new(ALLOCATOR);
    let mut counts = (case.run)()?;
    let change = region.change();
    if case.counts_allocations {
        counts.push(("allocations", change.allocations as u64));
        counts.push(("reallocations", change.reallocations as u64));
    }
    for (count, value) in counts {
        println!("{}\t{count}\t{value}", case.name);
    }
    Ok(())
}

/// 20,000 records of 16 and of 100 bytes there and back, their keys hashed.
fn codec() -> Result<Counts, AnyError> {
    let (mut bytes, mut key_bytes, mut sum) = (Vec::new(), Vec::new(), 0_u64);
    for i in 0..20_000 {
        bytes.clear();
        key_bytes.clear();
        (i, val(i)).encode(&mut bytes);
        exchange_record(i).encode(&mut bytes);
        mix(i).encode_key(&mut key_bytes);
        let mut rest = bytes.as_slice();
        let pair = <(u64, u64)>::decode(&mut rest)?;
        let record = <[u8; 100]>::decode(&mut rest)?;
        let hash = hash_key_bytes(&key_bytes).0;
        sum = sum.wrapping_add(pair.1 ^ u64::from(record[99]) ^ hash);
    }
    Ok(vec![("checksum", sum), ("bytes", bytes.len() as u64)])
}

fn options(budget: ByteSize) -> SorterOptions {
    let spill = SpillTarget::new(Arc::new(MemoryStore::new()), "guard");
    SorterOptions::new(MemoryBudget::new(budget), spill)
}

fn counts_of(stats: SortStats) -> Counts {
    vec![
        ("bytes spilled", stats.spilled_written),
        ("runs", stats.runs),
        ("passes", stats.passes),
        ("deep comparisons", stats.deep_comparisons),
        ("combined", stats.combined),
    ]
}

/// 50,000 records sorted in a tenth of their size.
fn sort_spilling() -> Result<Counts, AnyError> {
    let mut sorter = ExternalSorter::new(options(ByteSize::kib(256)));
    for i in 0..50_000 {
        sorter.push(&mix(i).to_be_bytes(), NO_TIMESTAMP, &[i as u8; 24])?;
    }
    let mut sorted = sorter.finish()?;
    let (mut place, mut sum) = (0_u64, 0_u64);
    while let Some(record) = sorted.next()? {
        place += 1;
        sum = sum.wrapping_add(place ^ u64::from(record.key[0]));
    }
    let mut counts = counts_of(sorted.close()?);
    counts.push(("checksum", sum));
    Ok(counts)
}

struct Adding;

impl Combiner for Adding {
    type Accumulator = u64;

    fn merge(&self, into: &mut u64, later: u64) {
        *into = into.wrapping_add(later);
    }
}

/// 50,000 records of 5,000 keys combined in less memory than the keys need.
fn combine() -> Result<Counts, AnyError> {
    let mut sorter = CombiningSorter::new(Adding, options(ByteSize::kib(128)));
    for i in 0..50_000 {
        let key = key(i, 5_000).to_be_bytes();
        sorter.update(hash_key_bytes(&key).0, &key, NO_TIMESTAMP, |sum| match sum {
            None => Some(i),
            Some(sum) => {
                *sum += i;
                None
            }
        })?;
    }
    let (mut combined, mut sum) = (sorter.finish()?, 0_u64);
    while let Some(record) = combined.next()? {
        sum = sum.wrapping_add(mix(record.accumulator));
    }
    let mut counts = counts_of(combined.close()?);
    counts.push(("checksum", sum));
    Ok(counts)
}

fn update(backend: &mut KeyedStateBackend, keys: &[u64]) -> Result<Counts, AnyError> {
    let state = ValueState::<u64>::new("sum");
    let mut bytes = Vec::new();
    for key in keys {
        bytes.clear();
        key.encode_key(&mut bytes);
        backend.set_current_key(hash_key_bytes(&bytes), &bytes);
        state.update(backend, |sum| *sum = Some(sum.unwrap_or(0) + val(*key)))?;
    }
    backend.flush()?;
    let counters = backend.counters();
    Ok(vec![
        ("state reads", counters.store_reads),
        ("state range reads", counters.store_range_reads),
        ("state writes", counters.store_writes),
        ("ingested", counters.ingested_entries),
        ("cache hits", counters.hits),
    ])
}

fn backend(cache_entries: usize) -> KeyedStateBackend {
    let groups = KeyGroups::all(MaxParallelism::DEFAULT);
    KeyedStateBackend::over(Box::new(MemoryByteStore::new()), groups, cache_entries)
}

fn some_keys() -> Vec<u64> {
    (0..30_000).map(|i| key(i, 3_000)).collect()
}

/// 30,000 updates of 3,000 keys in the order of the store, twice: over nothing, then over what is there.
fn state_sorted() -> Result<Counts, AnyError> {
    let mut keys = some_keys();
    keys.sort_unstable_by_key(|key| (hash_key_bytes(&key.to_be_bytes()), *key));
    let mut backend = backend(0);
    for _ in 0..2 {
        backend.begin_sorted_input(WriteMode::BulkLoad)?;
        update(&mut backend, &keys)?;
        backend.end_sorted_input()?;
    }
    update(&mut backend, &[])
}

/// The same updates in no order through a cache of a tenth of the keys.
fn state_cached() -> Result<Counts, AnyError> {
    update(&mut backend(300), &some_keys())
}

fn job(mode: Mode, store: Store, emit: Emit) -> Result<Counts, AnyError> {
    let setting = Setting {
        parallelism: 2,
        sort_memory: Some(256 << 10),
        checkpoints: Some(Duration::from_secs(3_600)),
        ..Setting::new(mode, store)
    };
    let job = RunningSum { emit, ..RunningSum::new(50_000, 3_000) };
    let outcome = job.run(&setting).map_err(|error| format!("{error:#}"))?;
    let mut counts = backlog_counts(&outcome.report);
    counts.push(("checksum", outcome.checksum));
    counts.push(("outputs", outcome.outputs));
    if let Some(operator) = outcome.report.operator("sum") {
        counts.push(("all state reads", operator.state_reads));
        counts.push(("all state writes", operator.state_writes));
    }
    Ok(counts)
}

/// The running sum over a backlog that is sorted in a quarter of its size, state on disk.
fn job_mixed() -> Result<Counts, AnyError> {
    job(Mode::Mixed, Store::Disk, Emit::Each)
}

/// The last sums of a backlog that is combined.
fn job_combining() -> Result<Counts, AnyError> {
    job(Mode::Mixed, Store::Disk, Emit::Last)
}

/// The running sum record by record, state on disk.
fn job_stream() -> Result<Counts, AnyError> {
    job(Mode::Stream, Store::Disk, Emit::Each)
}
