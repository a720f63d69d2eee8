//! Windows group the records of a key.
use slackwater::prelude::*;

fn main() {
    let env = StreamExecutionEnvironment::new();
    let _ = env.from_collection([1_u64]).window(TumblingEventTime::of(1.mins()));
}
