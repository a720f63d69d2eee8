//! A running job in a program's hands, plans as pictures, and the list of options.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use slackwater::prelude::*;
use slackwater::{JobStatus, ScriptStep, ScriptedSource};

#[track_caller]
fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(begun.elapsed().as_secs() < 60, "{what} never came");
        std::thread::yield_now();
    }
}

#[test]
fn a_handle_tells_status_and_counters_while_the_job_runs() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(1));
    let told = |flag: &Arc<AtomicBool>| {
        let flag = Arc::clone(flag);
        ScriptStep::until(move || flag.load(Ordering::SeqCst))
    };
    let (live, end): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
    let mut steps = vec![ScriptStep::Backlog(true)];
    steps.extend((0..10).map(|i| ScriptStep::at(i, i)));
    steps.extend([told(&live), ScriptStep::Backlog(false), ScriptStep::at(10, 10), told(&end)]);
    env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
        .map(|i| i * 2)
        .name("twice")
        .for_each(|_| {});
    let job = env.submit("status").unwrap();
    let came_in = || {
        let operators = job.metrics();
        let twice = operators.iter().find(|operator| operator.name == "twice");
        twice.map_or(0, |twice| twice.subtasks.iter().map(|subtask| subtask.records_in).sum())
    };
    wait_for("the backlog", || came_in() == 10);
    assert_eq!(job.status(), JobStatus::InBacklog);
    live.store(true, Ordering::SeqCst);
    wait_for("the live record", || came_in() == 11);
    assert_eq!(job.status(), JobStatus::Running);
    end.store(true, Ordering::SeqCst);
    wait_for("the end", || job.status() == JobStatus::Ended);
    assert_eq!(job.wait().unwrap().operator("twice").unwrap().records_in, 11);
}

#[test]
fn a_plan_is_text_a_flowchart_and_a_digraph() {
    let env = StreamExecutionEnvironment::new();
    let counts = env.generate(10, |i| i).key_by(|i: &u64| i % 3).count();
    counts.for_each(|_| {});
    assert!(env.explain().unwrap().contains("key group, blocking"));
    let mermaid = env.explain_mermaid().unwrap();
    assert!(mermaid.starts_with("flowchart LR") && mermaid.contains("==>"), "{mermaid}");
    let dot = env.explain_dot().unwrap();
    assert!(dot.starts_with("digraph") && dot.contains("style=bold"), "{dot}");
}

#[test]
fn the_list_of_options_has_every_key_with_its_default() {
    let text = options::describe();
    for option in element::all_options() {
        assert!(text.lines().any(|line| line == option.key), "{}", option.key);
    }
    let of_mode = text.split_once("execution.runtime-mode\n").unwrap().1;
    assert!(
        of_mode.trim_start().starts_with("`streaming`, `batch` or `automatic`; default: automatic")
    );
}
