//! A closure of a job is shared by threads.
use std::rc::Rc;

use slackwater::prelude::*;

fn main() {
    let env = StreamExecutionEnvironment::new();
    let names = Rc::new(["ebb", "flood"]);
    let _ = env.from_collection([1_usize]).map(move |x| names[x]);
}
