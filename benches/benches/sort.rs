//! The external sorter by budget: from all in memory to a small part of it, records of 100 bytes.
//!
//! The reference sorts the same records in memory with the standard library. Runs go to files in the
//! system's directory for temporary files. `sort/benches` has the sorter's other shapes.

mod common;

use std::sync::Arc;

use common::Comparison;
use criterion::Criterion;
use element::{ByteSize, DirectoryStore, MemoryBudget};
use slackwater_benches::generator::{G, mix, sort_record};
use slackwater_benches::{Order, Shape, is_smoke, records};
use sort::{ExternalSorter, NO_TIMESTAMP, SorterOptions, SpillTarget};

const KEY_BYTES: usize = 10;

/// What the record at a place adds to the checksum: its first eight bytes as a number, and its place.
fn placed(place: u64, key: &[u8]) -> u64 {
    let front = key.iter().take(8).fold(0_u64, |front, byte| (front << 8) | u64::from(*byte));
    mix(place.wrapping_mul(G) ^ front)
}

fn by_hand(records: u64) -> u64 {
    let mut all: Vec<[u8; 100]> = (0..records).map(sort_record).collect();
    all.sort_unstable_by(|a, b| a[..KEY_BYTES].cmp(&b[..KEY_BYTES]));
    (0..).zip(&all).fold(0, |sum: u64, (place, record)| sum.wrapping_add(placed(place, record)))
}

fn by_the_sorter(records: u64, budget: u64) -> u64 {
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    let spill = SpillTarget::new(Arc::new(DirectoryStore::new(directory.path())), "sort");
    let options = SorterOptions::new(MemoryBudget::new(ByteSize(budget)), spill);
    let mut sorter = ExternalSorter::new(options);
    for i in 0..records {
        let record = sort_record(i);
        let (key, rest) = record.split_at(KEY_BYTES);
        sorter.push(key, NO_TIMESTAMP, rest).expect("the disk has room");
    }
    let mut sorted = sorter.finish().expect("the disk has room");
    let (mut place, mut sum) = (0, 0_u64);
    while let Some(record) = sorted.next().expect("runs read back") {
        sum = sum.wrapping_add(placed(place, record.key));
        place += 1;
    }
    sum
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let n = records(2_000_000);
    let budgets: &[u64] =
        if is_smoke() { &[1 << 20, 64 << 10] } else { &[512 << 20, 64 << 20, 16 << 20, 4 << 20] };
    let shape = Shape {
        records: n,
        key_bytes: KEY_BYTES as u64,
        value_bytes: 90,
        distinct_keys: n,
        order: Order::Uniform,
        parallelism: 1,
        budget: budgets.first().copied(),
    };
    let mut table = Comparison::new("sort, by budget", shape)
        .with("standard library, in memory", move || by_hand(n));
    for budget in budgets {
        let name = format!("external sorter, {:.2} MiB", *budget as f64 / f64::from(1 << 20));
        table = table.with(name, move || by_the_sorter(n, *budget));
    }
    table.run(&mut criterion);
    criterion.final_summary();
}
