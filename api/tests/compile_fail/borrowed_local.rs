//! A closure of a job outlives the function that makes it.
use slackwater::prelude::*;

fn main() {
    let env = StreamExecutionEnvironment::new();
    let factor = 3;
    let _ = env.from_collection([1]).map(|x| x * &factor);
}
