//! A history through the backlog path against record by record, by store, keys, skew and combining.
//!
//! The job is a running sum per key (J1); the reference is a hash table in a plain loop on one thread.
//! All candidates of a table emit the same outputs, which their checksums prove; at 20,000,000 records
//! (`SLACKWATER_BENCH_RECORDS=20000000`) they are held against the published ones, too.

mod common;

use common::Comparison;
use criterion::Criterion;
use slackwater_benches::jobs::running_sum::{Emit, RunningSum};
use slackwater_benches::jobs::{expected, keyed_reduce};
use slackwater_benches::{Mode, Order, Setting, Shape, Store, by_hand, is_smoke, records};
use state::MemoryByteStore;

/// The stores that are compared. One line adds your own: its name, and how it is opened.
const STORES: &[Store] = &[
    Store::Heap,
    Store::Disk,
    #[cfg(feature = "rocksdb")]
    Store::Rocksdb,
    Store::Own("sorted map", |_| Ok(Box::new(MemoryByteStore::new()))),
];

/// Memory of each sorter.
const BUDGET: u64 = 128 << 20;

fn key_counts() -> Vec<u64> {
    if is_smoke() { vec![100] } else { vec![1_000, 1_000_000, 20_000_000] }
}

fn shape(job: RunningSum, budget: u64) -> Shape {
    Shape {
        records: job.records,
        key_bytes: 8,
        value_bytes: 8,
        distinct_keys: job.keys,
        order: job.order,
        parallelism: 2,
        budget: Some(budget),
    }
}

fn run(job: RunningSum, setting: &Setting) -> u64 {
    let outcome = job.run(setting).expect("the job ends well");
    is_as_published(job, setting.mode, outcome.checksum);
    outcome.checksum
}

fn is_as_published(job: RunningSum, mode: Mode, checksum: u64) {
    let same = |row: &&(u64, u64, u64)| row.0 == job.keys;
    let Some(row) = expected::RUNNING_SUM.iter().find(same) else { return };
    let is_full = job.records == expected::RUNNING_SUM_RECORDS && job.order == Order::Uniform;
    if is_full && job.emit == Emit::Each {
        assert_eq!(checksum, row.1, "{mode:?}");
    } else if is_full && mode != Mode::Stream {
        assert_eq!(checksum, row.2, "{mode:?}");
    }
}

fn setting(mode: Mode, store: Store) -> Setting {
    Setting { sort_memory: Some(BUDGET), ..Setting::new(mode, store) }
}

/// Each mode over each store, an output a record.
fn by_store(criterion: &mut Criterion) {
    for keys in key_counts() {
        let job = RunningSum::new(records(1_000_000), keys);
        let mut table = Comparison::new("backlog, by store", shape(job, BUDGET))
            .with("hash table by hand", move || by_hand::running_sums(job.records, job.key_of()));
        for store in STORES {
            for mode in [Mode::Stream, Mode::Mixed] {
                let setting = setting(mode, *store);
                let name = format!("{}, {}", mode.name(), store.name());
                table = table.with(name, move || run(job, &setting));
            }
        }
        let batch = setting(Mode::Batch, Store::Heap);
        table.with("batch", move || run(job, &batch)).run(criterion);
    }
}

/// Skewed keys: half of the records have a sixteenth of them.
fn skewed(criterion: &mut Criterion) {
    let keys = if is_smoke() { 100 } else { 1_000_000 };
    let job = RunningSum { order: Order::Skewed, ..RunningSum::new(records(1_000_000), keys) };
    let mut table = Comparison::new("backlog, skewed", shape(job, BUDGET))
        .with("hash table by hand", move || by_hand::running_sums(job.records, job.key_of()));
    for mode in Mode::ALL {
        let setting = setting(mode, Store::Disk);
        table = table.with(format!("{}, disk", mode.name()), move || run(job, &setting));
    }
    table.run(criterion);
}

/// One output a key, through an aggregate, which combines before it sorts.
fn combining(criterion: &mut Criterion) {
    for keys in key_counts() {
        let plain = RunningSum::new(records(1_000_000), keys);
        let job = RunningSum { emit: Emit::Last, ..plain };
        let mut table = Comparison::new("backlog, last sums by combining", shape(job, BUDGET))
            .with("hash table by hand", move || by_hand::final_sums(job.records, job.key_of()));
        for store in [Store::Heap, Store::Disk] {
            let setting = setting(Mode::Mixed, store);
            let name = format!("mixed, {}", store.name());
            table = table.with(name, move || run(job, &setting));
        }
        let batch = setting(Mode::Batch, Store::Heap);
        table.with("batch", move || run(job, &batch)).run(criterion);
    }
}

/// Budgets from all of the input in memory down to a sixteenth of it.
fn by_budget(criterion: &mut Criterion) {
    let job = RunningSum::new(records(4_000_000), if is_smoke() { 100 } else { 1_000_000 });
    let mut table = Comparison::new("backlog, by budget", shape(job, BUDGET))
        .with("sorted by hand", move || by_hand::sorted_sums(job.records, job.keys));
    for budget in [256_u64 << 20, 64 << 20, 16 << 20, 4 << 20] {
        let setting = Setting { sort_memory: Some(budget), ..setting(Mode::Mixed, Store::Disk) };
        let name = format!("mixed, disk, {} MiB a sorter", budget >> 20);
        table = table.with(name, move || run(job, &setting));
    }
    table.run(criterion);
}

/// FLIP-327's own job (B1): parallelism 1, one key in the cache. Stream mode is the reference.
fn flip_327(criterion: &mut Criterion) {
    let number = records(1_000_000);
    for keys in if is_smoke() { vec![100] } else { vec![1_000, number / 10, number] } {
        let job = RunningSum::new(number, keys);
        let shape = Shape { value_bytes: 16, key_bytes: 4, parallelism: 1, ..shape(job, BUDGET) };
        let mut table = Comparison::new("backlog, FLIP-327's job", shape);
        for store in STORES {
            for mode in Mode::ALL {
                let setting =
                    Setting { parallelism: 1, cache_entries: Some(1), ..setting(mode, *store) };
                table = table.with(format!("{}, {}", mode.name(), store.name()), move || {
                    let outcome = keyed_reduce::run(&setting, number, keys).expect("it ends well");
                    let found = (outcome.checksum, outcome.outputs);
                    assert_eq!(found, keyed_reduce::expected(mode, number, keys), "{mode:?}");
                    number
                });
            }
        }
        table.run(criterion);
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    by_store(&mut criterion);
    skewed(&mut criterion);
    combining(&mut criterion);
    by_budget(&mut criterion);
    flip_327(&mut criterion);
    criterion.final_summary();
}
