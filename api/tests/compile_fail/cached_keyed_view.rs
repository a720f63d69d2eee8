//! A keyed view has no records of its own to cache (A6).
use slackwater::prelude::*;

fn main() {
    let env = StreamExecutionEnvironment::new();
    let _ = env.from_collection([1_u64]).key_by(|x| *x).cache();
}
