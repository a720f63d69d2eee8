//! Two inputs grouped by key at their end (J2, FLIP-331), against two sorted lists merged by hand.
//!
//! Stream and batch mode both own two sorters for it; few keys make large groups, many keys small ones.

mod common;

use common::Comparison;
use criterion::Criterion;
use slackwater_benches::jobs::{co_group, distinct_groups, expected};
use slackwater_benches::{Mode, Order, Setting, Shape, Store, by_hand, is_smoke, records};

/// Memory of each of the two sorters.
const BUDGET: u64 = 128 << 20;

fn run(mode: Mode, records_each: u64, keys: u64) -> u64 {
    let setting = Setting { sort_memory: Some(BUDGET), ..Setting::new(mode, Store::Heap) };
    let outcome = co_group::run(&setting.environment(), records_each, keys);
    let checksum = outcome.expect("the job ends well").checksum;
    if (records_each, keys) == (10_000_000, 1_000_000) {
        assert_eq!(checksum, expected::CO_GROUP, "{mode:?}");
    }
    checksum
}

/// FLIP-331's own job (B2): each key once a side, parallelism 1.
fn flip_331(criterion: &mut Criterion) {
    let groups = records(1_000_000);
    let shape = Shape {
        records: 2 * groups,
        key_bytes: 8,
        value_bytes: 8,
        distinct_keys: groups,
        order: Order::Counted,
        parallelism: 1,
        budget: Some(BUDGET),
    };
    let run = move |mode| {
        let setting = Setting { sort_memory: Some(BUDGET), ..Setting::new(mode, Store::Heap) };
        let env = Setting { parallelism: 1, ..setting }.environment();
        distinct_groups::run(&env, groups).expect("the job ends well").checksum
    };
    Comparison::new("co-group, FLIP-331's job", shape)
        .with("stream", move || run(Mode::Stream))
        .with("batch", move || run(Mode::Batch))
        .run(criterion);
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for keys in if is_smoke() { vec![100] } else { vec![1_000, 1_000_000] } {
        let each = records(1_000_000);
        let shape = Shape {
            records: 2 * each,
            key_bytes: 8,
            value_bytes: 8,
            distinct_keys: keys,
            order: Order::Uniform,
            parallelism: 2,
            budget: Some(BUDGET),
        };
        Comparison::new("co-group", shape)
            .with("two sorts by hand", move || by_hand::co_groups(each, keys))
            .with("stream", move || run(Mode::Stream, each, keys))
            .with("batch", move || run(Mode::Batch, each, keys))
            .run(&mut criterion);
    }
    flip_331(&mut criterion);
    criterion.final_summary();
}
