//! Sliding windows against tumbling ones: a window of an hour every second costs what one of a second does.
//!
//! Records come in time order over 10,000 seconds (in the full size) and 100 keys, nearly every key in
//! every second; each window sums by key.
//!
//! Sliding windows have more outputs, for they go on until the last record has left them: at an hour,
//! 3,599 more of each key, 36 % in the full size. Each costs what one of a tumbling window does, so the
//! hour is to be held against the second row: tumbling windows of as many records over 3,599 seconds
//! more, which have as many outputs.

mod common;

use common::Comparison;
use criterion::Criterion;
use slackwater::prelude::*;
use slackwater::{GeneratorSource, Sum};
use slackwater_benches::sinks::CheckSum;
use slackwater_benches::{Mode, Order, Setting, Shape, Store, records};

const KEYS: u64 = 100;

/// Records of a second of event time, but in the second row.
const A_SECOND: u64 = 1_000;

const AN_HOUR: u64 = 3_600;

/// Runs one kind of window over records of so many seconds. The sum over all outputs: each record
/// counts once for each of its windows.
fn run(mode: Mode, number: u64, seconds: u64, size_seconds: u64) -> u64 {
    let env = Setting::new(mode, Store::Heap).environment();
    let total = CheckSum::default();
    let record = move |i: u64| {
        let at = Timestamp::from_millis((i * seconds * 1_000 / number) as i64);
        ((i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % KEYS, Some(at))
    };
    let source = GeneratorSource::bounded(number, record);
    let keyed = env
        .from_source(source, WatermarkStrategy::monotonous(), "records")
        .parallelism(1)
        .key_by(|key: &u64| *key);
    let sum = Sum::new(|_: &u64| 1_u64);
    let sums = match size_seconds {
        1 => keyed.window(TumblingEventTime::of(1.secs())).aggregate(sum),
        size => keyed.window(SlidingEventTime::of(size.secs(), 1.secs())).aggregate(sum),
    };
    sums.sink_to(total.sink(|row: &(u64, Window, u64)| row.2));
    env.execute("windows").expect("the job ends well");
    total.sum() / size_seconds
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let number = records(10_000_000);
    let seconds = number.div_ceil(A_SECOND);
    let longer = seconds + AN_HOUR - 1;
    let shape = Shape {
        records: number,
        key_bytes: 8,
        value_bytes: 8,
        distinct_keys: KEYS,
        order: Order::Counted,
        parallelism: 2,
        budget: None,
    };
    for mode in [Mode::Stream, Mode::Batch] {
        Comparison::new(&format!("windows, {}", mode.name()), shape)
            .with("tumbling, 1 s", move || run(mode, number, seconds, 1))
            .with("tumbling, outputs of an hour", move || run(mode, number, longer, 1))
            .with("sliding, 1 min every second", move || run(mode, number, seconds, 60))
            .with("sliding, 1 h every second", move || run(mode, number, seconds, AN_HOUR))
            .run(&mut criterion);
    }
    criterion.final_summary();
}
