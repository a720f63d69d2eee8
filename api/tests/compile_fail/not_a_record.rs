//! What crosses tasks must be a record.
use slackwater::prelude::*;

#[derive(Clone)]
struct Click(u64);

fn main() {
    let env = StreamExecutionEnvironment::new();
    let _ = env.from_collection([Click(1)]).key_by(|click: &Click| click.0);
}
