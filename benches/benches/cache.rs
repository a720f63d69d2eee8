//! Five jobs over one costly stream: kept by the first, against made anew by each (J4, FLIP-205).
//!
//! The reference makes the records once in a plain loop on one thread and sums five times. Beside the
//! table, each job's time stands by itself: later jobs should cost little.

mod common;

use common::Comparison;
use criterion::Criterion;
use slackwater_benches::jobs::cache::{Jobs, KEYS};
use slackwater_benches::{Mode, Order, Setting, Shape, Store, is_smoke, records};

fn run(jobs: Jobs) -> u64 {
    let env = Setting::new(Mode::Batch, Store::Heap).environment();
    let outcomes = jobs.run(&env).expect("the jobs end well");
    let each: Vec<String> =
        outcomes.took.iter().map(|took| format!("{:.0}", took.as_secs_f64() * 1e3)).collect();
    let how = if jobs.cached { "kept by the first" } else { "made anew by each" };
    println!("  {how}: jobs took {} ms", each.join(", "));
    outcomes.checksum
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let rounds = if is_smoke() { 3 } else { 300 };
    let jobs = Jobs { rows: records(500_000), rounds, jobs: 5, cached: true };
    let shape = Shape {
        records: jobs.rows * jobs.jobs,
        key_bytes: 0,
        value_bytes: 8,
        distinct_keys: KEYS,
        order: Order::Counted,
        parallelism: 2,
        budget: None,
    };
    Comparison::new("cache, five jobs", shape)
        .with("made once by hand, one thread", move || jobs.by_hand())
        .with("kept by the first", move || run(jobs))
        .with("made anew by each", move || run(Jobs { cached: false, ..jobs }))
        .run(&mut criterion);
    criterion.final_summary();
}
