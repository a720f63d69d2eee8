//! A side output has the type of its tag.
use slackwater::prelude::*;

fn main() {
    let env = StreamExecutionEnvironment::new();
    let late = SideTag::<String>::new("late");
    let stream = env.from_collection([1_u64]);
    let _: DataStream<u64> = stream.side_output(&late);
}
