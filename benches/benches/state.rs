//! State in memory, the write-back cache and the bulk load, as a whole job sees them.
//!
//! In memory the job is a fold of 16 bytes a key, at 1,000, a million and 20 million keys, against a loop
//! by hand that does the same work: generate, encode the key, hash, look up, fold.
//!
//! On disk the job is the running sum (J1). `state/benches` times stores, cache and bulk load alone; here they
//! stand behind the exchange and the sorter, so a ratio says what a choice is worth to a user.

mod common;

use common::Comparison;
use criterion::Criterion;
use slackwater::{StreamExecutionEnvironment, options};
use slackwater_benches::jobs::keyed_fold::KeyedFold;
use slackwater_benches::jobs::running_sum::RunningSum;
use slackwater_benches::{Mode, Order, Setting, Shape, Store, by_hand, is_smoke, records};

fn shape(job: RunningSum) -> Shape {
    Shape {
        records: job.records,
        key_bytes: 8,
        value_bytes: 8,
        distinct_keys: job.keys,
        order: job.order,
        parallelism: 2,
        budget: None,
    }
}

fn on_disk() -> impl Iterator<Item = Store> {
    Store::BUILT_IN.iter().copied().filter(|store| !matches!(store, Store::Heap))
}

/// Record by record in memory, the whole operator path.
fn in_memory(criterion: &mut Criterion) {
    for keys in if is_smoke() { vec![100] } else { vec![1_000, 1_000_000, 20_000_000] } {
        let job = KeyedFold { records: records(20_000_000), keys };
        let shape = Shape {
            records: job.records,
            key_bytes: 8,
            value_bytes: 16,
            distinct_keys: keys,
            order: Order::Uniform,
            parallelism: 1,
            budget: None,
        };
        Comparison::new(&format!("state, in memory, {keys} keys"), shape)
            .with("loop by hand", move || by_hand::folds(job.records, job.keys))
            .with("stream, heap", move || job.run(1).expect("the job ends well").checksum)
            .run(criterion);
    }
}

/// Record by record over a store on disk, skewed keys, by the size of the cache.
fn by_cache_size(criterion: &mut Criterion) {
    let keys = if is_smoke() { 100 } else { 1_000_000 };
    let job = RunningSum { order: Order::Skewed, ..RunningSum::new(records(200_000), keys) };
    let mut table = Comparison::new("state, by cache size", shape(job))
        .with("hash table by hand", move || by_hand::running_sums(job.records, job.key_of()));
    for store in on_disk() {
        for entries in [0, 1, 1_000, 100_000] {
            let setting =
                Setting { cache_entries: Some(entries), ..Setting::new(Mode::Stream, store) };
            let name = format!("stream, {}, {entries} entries", store.name());
            table =
                table.with(name, move || job.run(&setting).expect("the job ends well").checksum);
        }
    }
    table.run(criterion);
}

/// A backlog with as many keys as records, by how its writes reach the store.
fn by_write_path(criterion: &mut Criterion) {
    let n = records(1_000_000);
    let job = RunningSum { order: Order::Counted, ..RunningSum::new(n, n) };
    let mut table = Comparison::new("state, by write path", shape(job))
        .with("hash table by hand", move || by_hand::running_sums(job.records, job.key_of()));
    for store in on_disk() {
        for bulk in [true, false] {
            let setting = Setting::new(Mode::Mixed, store);
            let how = if bulk { "bulk load" } else { "sorted writes" };
            table = table.with(format!("mixed, {}, {how}", store.name()), move || {
                let env: StreamExecutionEnvironment = setting.environment();
                env.set(&options::STATE_BULK_LOAD, bulk);
                job.run_on(&env).expect("the job ends well").checksum
            });
        }
    }
    table.run(criterion);
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    in_memory(&mut criterion);
    by_cache_size(&mut criterion);
    by_write_path(&mut criterion);
    criterion.final_summary();
}
