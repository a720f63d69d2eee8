//! `process` takes a maker of functions, each with state of its own.
use slackwater::prelude::*;

struct Forgotten;

fn main() {
    let env = StreamExecutionEnvironment::new();
    let keyed = env.from_collection([1_u64]).key_by(|x| *x);
    let _: DataStream<u64> = keyed.process(|| Forgotten);
}
