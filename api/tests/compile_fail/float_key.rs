//! A float is no key: NaN is not equal to itself.
use slackwater::prelude::*;

fn main() {
    let env = StreamExecutionEnvironment::new();
    let _ = env.from_collection([1.5_f64]).key_by(|x| *x);
}
