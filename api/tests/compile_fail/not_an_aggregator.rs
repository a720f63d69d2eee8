//! A window is aggregated by an `Aggregator`, not by a closure.
use slackwater::prelude::*;

fn main() {
    let env = StreamExecutionEnvironment::new();
    let keyed = env.from_collection([1_u64]).key_by(|x| *x);
    let _ = keyed.window(TumblingEventTime::of(1.mins())).aggregate(7);
}
