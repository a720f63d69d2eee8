//! Streams join by keys of one type.
use slackwater::prelude::*;

fn main() {
    let env = StreamExecutionEnvironment::new();
    let left = env.from_collection([1_u64]).key_by(|x| *x);
    let right = env.from_collection([1_u32]).key_by(|x| *x);
    let _ = left.interval_join(right);
}
