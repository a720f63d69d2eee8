//! What checkpoints cost a stream: the running sum with none, with few, with many.
//!
//! The reference is the same job without checkpoints, over the same store. Intervals are set so that a
//! run of a second or two has some; how many it had is not a promise of this bench.

mod common;

use std::time::Duration;

use common::Comparison;
use criterion::Criterion;
use slackwater_benches::jobs::running_sum::RunningSum;
use slackwater_benches::{Mode, Setting, Shape, Store, is_smoke, records};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let usual = [(Store::Heap, 5_000_000), (Store::Disk, 500_000)];
    for (store, usual) in usual {
        let job = RunningSum::new(records(usual), if is_smoke() { 100 } else { 100_000 });
        let shape = Shape {
            records: job.records,
            key_bytes: 8,
            value_bytes: 8,
            distinct_keys: job.keys,
            order: job.order,
            parallelism: 2,
            budget: None,
        };
        let mut table = Comparison::new(&format!("checkpoint, {}", store.name()), shape);
        let intervals = [None, Some(1_000), Some(100), Some(10)];
        for interval in intervals {
            let checkpoints = interval.map(Duration::from_millis);
            let setting = Setting { checkpoints, ..Setting::new(Mode::Stream, store) };
            let name = match interval {
                None => "none".to_owned(),
                Some(ms) => format!("each {ms} ms"),
            };
            table =
                table.with(name, move || job.run(&setting).expect("the job ends well").checksum);
        }
        table.run(&mut criterion);
    }
    criterion.final_summary();
}
