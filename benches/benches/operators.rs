//! What an operator costs in a chain: maps and filters against the same closures on an iterator.
//!
//! One subtask, no exchange: source, chain and sink run in one task. Records are 8 bytes.

mod common;

use common::Comparison;
use criterion::Criterion;
use slackwater::{DataStream, StreamExecutionEnvironment};
use slackwater_benches::generator::mix;
use slackwater_benches::sinks::CheckSum;
use slackwater_benches::{Mode, Order, Setting, Shape, Store, records};

fn shape() -> Shape {
    let records = records(10_000_000);
    Shape {
        records,
        key_bytes: 0,
        value_bytes: 8,
        distinct_keys: records,
        order: Order::Counted,
        parallelism: 1,
        budget: None,
    }
}

fn environment(mode: Mode) -> StreamExecutionEnvironment {
    Setting { parallelism: 1, ..Setting::new(mode, Store::Heap) }.environment()
}

fn in_the_engine(
    mode: Mode,
    records: u64,
    chain: impl Fn(DataStream<u64>) -> DataStream<u64>,
) -> u64 {
    let env = environment(mode);
    let total = CheckSum::default();
    chain(env.generate(records, mix)).sink_to(total.sink(|x: &u64| *x));
    env.execute("chain").expect("the job ends well");
    total.sum()
}

fn maps(stream: DataStream<u64>, n: u32) -> DataStream<u64> {
    (0..n).fold(stream, |stream, i| stream.map(move |x: u64| x.rotate_left(i) ^ u64::from(i)))
}

/// One map, and eight of them.
fn chain_of_maps(criterion: &mut Criterion) {
    for n in [1, 8] {
        let shape = shape();
        let by_hand = move || {
            let through = |x: u64| (0..n).fold(x, |x, i| x.rotate_left(i) ^ u64::from(i));
            (0..shape.records).map(mix).map(through).fold(0, u64::wrapping_add)
        };
        Comparison::new(&format!("operators, {n} maps"), shape)
            .with("iterator", by_hand)
            .with("stream", move || in_the_engine(Mode::Stream, shape.records, |s| maps(s, n)))
            .with("batch", move || in_the_engine(Mode::Batch, shape.records, |s| maps(s, n)))
            .run(criterion);
    }
}

/// A filter that keeps half, then a flat map that gives two for one.
fn filter_and_flat_map(criterion: &mut Criterion) {
    let shape = shape();
    let by_hand = move || {
        let kept = (0..shape.records).map(mix).filter(|x| x % 2 == 0);
        kept.flat_map(|x| [x, x >> 1]).fold(0, u64::wrapping_add)
    };
    let chain = |stream: DataStream<u64>| {
        stream.filter(|x| x % 2 == 0).flat_map(|x: u64, out| {
            out.collect(x);
            out.collect(x >> 1);
        })
    };
    Comparison::new("operators, filter and flat map", shape)
        .with("iterator", by_hand)
        .with("stream", move || in_the_engine(Mode::Stream, shape.records, chain))
        .run(criterion);
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    chain_of_maps(&mut criterion);
    filter_and_flat_map(&mut criterion);
    criterion.final_summary();
}
