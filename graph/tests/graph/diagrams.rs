//! Golden pictures, and names that would break out of their quotes.
//!
//! The files are in `tests/plans`, beside the plans as text.

use slackwater_graph::{OutputTag, Partitioner};

use crate::plans::golden;
use crate::program::*;

fn program() -> Program {
    let mut program = Program::new();
    let rows = program.source("rows", BOUNDED);
    program.cache(rows, OutputTag::Main, 1);
    let lookup = program.source("lookup", BOUNDED);
    program.cache(lookup, OutputTag::Main, 2);
    program.complete(2);
    let sum = program.step("sum", KEYED, [keyed(rows), by(Partitioner::Broadcast, lookup)]);
    program.sink("print", sum);
    program
}

#[test]
fn a_batch_job_as_mermaid() {
    golden("batch.mmd", &program().plan(|_| {}).to_mermaid());
}

#[test]
fn a_batch_job_as_dot() {
    golden("batch.dot", &program().plan(|_| {}).to_dot());
}

#[test]
fn a_streaming_job_frames_its_region() {
    let job = crate::plans::departures(false).plan(mixed);
    golden("mixed.mmd", &job.to_mermaid());
    golden("mixed.dot", &job.to_dot());
}

#[test]
fn names_are_escaped() {
    let mut program = Program::new();
    let odd = program.source("say \"<hi>\" \\ #1", BOUNDED);
    program.sink("print", odd);
    let job = program.plan(|settings| settings.chaining = false);
    assert!(
        job.to_mermaid().contains("v0[\"say #quot;#lt;hi#gt;#quot; \\ #35;1<br/>parallelism 2\"]")
    );
    assert!(job.to_dot().contains(r#"v0 [label="say \"<hi>\" \\ #1\nparallelism 2"];"#));
}
