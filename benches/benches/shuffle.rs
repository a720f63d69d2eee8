//! The exchange of a whole job: pipelined and blocking, by compression, fan-out and service.
//!
//! The job moves records of 100 bytes by key from one stage to the next, without state (J6). The
//! reference generates and checks the same records on one thread and moves nothing, so a ratio says
//! what moving costs. `shuffle/benches` times the exchange alone, against channels by hand.

mod common;

use common::Comparison;
use criterion::Criterion;
use slackwater::shuffle::ShuffleService;
use slackwater::{EnvironmentBuilder, StreamExecutionEnvironment, options};
use slackwater_benches::jobs::exchange::{By, run};
use slackwater_benches::{Mode, Order, Setting, Shape, Store, by_hand, is_smoke, records};

/// Makes an environment's builder use a shuffle.
type WithShuffle = fn(EnvironmentBuilder) -> EnvironmentBuilder;

/// The services behind blocking exchanges. One line adds your own: its name, and `with(...)`.
const SERVICES: &[(&str, WithShuffle)] = &[("files", |builder| builder)];

/// What a line for a service of one's own needs: `("mine", |b| with(b, MyShuffle::default()))`.
#[allow(dead_code, reason = "stands ready for a service of the reader's own")]
fn with(builder: EnvironmentBuilder, service: impl ShuffleService + 'static) -> EnvironmentBuilder {
    builder.shuffle(service)
}

fn shape(parallelism: u32) -> Shape {
    let records = records(2_000_000);
    let (key_bytes, value_bytes) = (8, 92);
    let order = Order::Counted;
    let distinct_keys = records;
    Shape { records, key_bytes, value_bytes, distinct_keys, order, parallelism, budget: None }
}

fn builder(mode: Mode, parallelism: u32) -> EnvironmentBuilder {
    let setting = Setting { parallelism, ..Setting::new(mode, Store::Heap) };
    setting.apply(StreamExecutionEnvironment::builder())
}

fn checksum(builder: EnvironmentBuilder, records: u64, by: By) -> u64 {
    run(&builder.build(), records, by).expect("the job ends well").checksum
}

/// Pipelined and blocking, by key and in turn, each service, each compression.
fn ways(criterion: &mut Criterion) {
    let shape = shape(2);
    let n = shape.records;
    let mut table = Comparison::new("shuffle, by way", shape)
        .with("nothing moved, one thread", move || by_hand::exchange_checks(n));
    for (by, name) in [(By::Key, "by key"), (By::Turn, "in turn")] {
        table = table
            .with(format!("pipelined, {name}"), move || checksum(builder(Mode::Stream, 2), n, by));
        for (service, with_service) in SERVICES {
            table = table.with(format!("blocking, {name}, {service}"), move || {
                checksum(with_service(builder(Mode::Batch, 2)), n, by)
            });
        }
    }
    let lz4 = options::Compression::Lz4;
    table
        .with("blocking, by key, lz4", move || {
            checksum(builder(Mode::Batch, 2).set(&options::SHUFFLE_COMPRESSION, lz4), n, By::Key)
        })
        .run(criterion);
}

/// More consumers than cores, blocking: a buffer a consumer, then sorted from 64 on.
fn fan_out(criterion: &mut Criterion) {
    for parallelism in if is_smoke() { vec![2] } else { vec![2, 8, 64] } {
        let shape = shape(parallelism);
        let n = shape.records;
        Comparison::new("shuffle, by fan-out", shape)
            .with("nothing moved, one thread", move || by_hand::exchange_checks(n))
            .with("pipelined", move || checksum(builder(Mode::Stream, parallelism), n, By::Key))
            .with("blocking", move || checksum(builder(Mode::Batch, parallelism), n, By::Key))
            .run(criterion);
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    ways(&mut criterion);
    fan_out(&mut criterion);
    criterion.final_summary();
}
