//! FLIP-331: windows that end with the input, in streaming mode: when they are taken whole, what waits
//! for them, and what a checkpoint says meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{
    CountEvictor, EndOfStreamTrigger, EndOfStreamWindows, JobError, JobHandle, ScriptStep,
    ScriptedSource, Sink, SinkContext, SinkWriter, WindowedStream,
};

type Pair = (u64, u64);

fn streaming() -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(2));
    env
}

#[track_caller]
fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::yield_now();
    }
}

/// A condition of a script that a test makes true.
fn told<T>(flag: &Arc<AtomicBool>) -> ScriptStep<T> {
    let flag = Arc::clone(flag);
    ScriptStep::until(move || flag.load(Ordering::SeqCst))
}

/// Records that operator `windows` holds.
fn collected(job: &JobHandle) -> u64 {
    let operators = job.progress().operators();
    let windows = operators.iter().filter(|operator| operator.name == "windows");
    windows.flat_map(|operator| &operator.subtasks).map(|subtask| subtask.backlog_records).sum()
}

fn sums(windows: WindowedStream<u64, Pair>, as_list: bool) -> DataStream<Pair> {
    if as_list {
        let add = |records: Vec<Pair>| records.iter().map(|pair| pair.1).sum();
        windows
            .apply(move |records, _, out| {
                let key = *out.key();
                out.collect((key, add(records)));
            })
            .name("windows")
            .into_stream()
    } else {
        windows.reduce(|a, b| (a.0, a.1 + b.1)).name("windows").into_stream()
    }
}

/// E7: without a trigger or evictor of its own the window takes its input whole, combined or sorted;
/// with one it goes record by record; the results are the same.
#[test]
fn the_fast_path_is_taken_exactly_without_custom_triggers_or_evictors() {
    let mut all = Vec::new();
    for (custom, as_list, treatment) in [
        ("", false, Some("combine")),
        ("", true, Some("sort")),
        ("trigger", false, None),
        ("trigger", true, None),
        ("evictor", false, None),
        ("evictor", true, None),
    ] {
        let env = streaming();
        let windows = env
            .generate(5_000, |i| (i % 7, i))
            .key_by(|pair: &Pair| pair.0)
            .window(EndOfStreamWindows);
        let windows = match custom {
            "trigger" => windows.trigger(EndOfStreamTrigger),
            "evictor" => windows.evictor(CountEvictor::of(10_000)),
            _ => windows,
        };
        let results = sums(windows, as_list).execute_and_collect().unwrap();
        let report = results.report().operator("windows").unwrap();
        let taken = report.phases.iter().map(|phase| phase.treatment).next();
        assert_eq!(taken, treatment, "{custom} {as_list}");
        let whole: u64 = report.phases.iter().map(|phase| phase.records).sum();
        assert_eq!(whole, if custom.is_empty() { 5_000 } else { 0 });
        all.push(results.sorted());
    }
    assert_eq!(all[0].len(), 7);
    assert!(all.iter().all(|results| *results == all[0]), "{all:?}");
}

/// E7: a co-group over such windows too.
#[test]
fn a_window_join_to_the_end_of_the_input_takes_both_inputs_whole() {
    let mut all = Vec::new();
    for custom in [false, true] {
        let env = streaming();
        let right = env.generate(100, |i| (i % 5, i)).key_by(|pair: &Pair| pair.0);
        let joined = env
            .generate(100, |i| (i % 10, i))
            .key_by(|pair: &Pair| pair.0)
            .join(right)
            .window(EndOfStreamWindows);
        let joined = if custom { joined.trigger(EndOfStreamTrigger) } else { joined };
        let joined = joined
            .co_group(|left, right, _, out| {
                let key = *out.key();
                out.collect((key, left.len() as u64 * 1_000 + right.len() as u64));
            })
            .name("join");
        let results = joined.execute_and_collect().unwrap();
        let records: u64 =
            results.report().operator("join").unwrap().phases.iter().map(|p| p.records).sum();
        assert_eq!(records, if custom { 0 } else { 200 });
        all.push(results.sorted());
    }
    assert_eq!(all[0].len(), 10);
    assert_eq!(all[0], all[1]);
}

/// Notes whether the source had ended when a writer was opened.
struct Late {
    source_done: Arc<AtomicBool>,
    opened_early: Arc<AtomicBool>,
    rows: Arc<AtomicU64>,
}

impl Sink<u64> for Late {
    fn writer(&self, _: &SinkContext, _: &[Vec<u8>]) -> Result<Box<dyn SinkWriter<u64>>> {
        if !self.source_done.load(Ordering::SeqCst) {
            self.opened_early.store(true, Ordering::SeqCst);
        }
        Ok(Box::new(Rows(Arc::clone(&self.rows))))
    }
}

struct Rows(Arc<AtomicU64>);

impl SinkWriter<u64> for Rows {
    fn write(&mut self, _: u64, _: Option<Timestamp>) -> Result<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// E2, E3, E5: the window's input is pipelined (it collects while the source waits); what reads the
/// chain behind it is started only after the source has ended.
#[test]
fn what_reads_an_end_of_stream_window_is_started_after_it() {
    let env = streaming();
    let (go_on, done): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
    let (opened_early, rows): (Arc<AtomicBool>, Arc<AtomicU64>) = Default::default();
    let ended = Arc::clone(&done);
    let mut steps: Vec<ScriptStep<Pair>> =
        (0..1_000).map(|i| ScriptStep::at(1, (i % 10, 1))).collect();
    steps.push(told(&go_on));
    steps.push(ScriptStep::until(move || {
        ended.store(true, Ordering::SeqCst);
        true
    }));
    let source =
        env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script");
    let windows = source.parallelism(1).key_by(|pair: &Pair| pair.0).window(EndOfStreamWindows);
    sums(windows, false).map(|pair| pair.1).rebalance().sink_to(Late {
        source_done: Arc::clone(&done),
        opened_early: Arc::clone(&opened_early),
        rows: Arc::clone(&rows),
    });
    let plan = env.explain().unwrap();
    assert!(plan.contains("its producer emits only at the end of its input"), "{plan}");
    let job = env.submit("end of stream").unwrap();
    wait_for("the windows' input", || collected(&job) == 1_000);
    assert_eq!(rows.load(Ordering::SeqCst), 0);
    go_on.store(true, Ordering::SeqCst);
    job.wait().unwrap();
    assert!(!opened_early.load(Ordering::SeqCst), "the sink was started before the end");
    assert_eq!(rows.load(Ordering::SeqCst), 10);
}

/// E6: no checkpoint while such a window waits for its end, and a savepoint is declined by name; once
/// what follows it runs, both are as ever.
#[test]
fn there_are_no_checkpoints_before_the_end_of_a_stream_and_normal_ones_after() {
    let home = tempfile::tempdir().unwrap();
    let env = streaming();
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)));
    let (go_on, finish): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
    let mut steps: Vec<ScriptStep<Pair>> =
        (0..1_000).map(|i| ScriptStep::at(1, (i % 10, 1))).collect();
    steps.push(told(&go_on));
    let none = WatermarkStrategy::none;
    let windows = env
        .from_source(ScriptedSource::new(steps), none(), "script")
        .parallelism(1)
        .key_by(|pair: &Pair| pair.0)
        .window(EndOfStreamWindows);
    let live = vec![ScriptStep::at(1, (0, 0)), told(&finish)];
    let live = env.from_source(ScriptedSource::new(live), none(), "live").parallelism(1);
    let rows: Arc<AtomicU64> = Arc::default();
    let seen = Arc::clone(&rows);
    sums(windows, false).rebalance().union(live).for_each(move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
    });
    let job = env.submit("end of stream").unwrap();
    wait_for("the windows' input", || collected(&job) == 1_000);
    let declined = job.savepoint(home.path()).unwrap_err();
    assert!(matches!(declined, JobError::SavepointDeclined { .. }), "{declined}");
    assert!(!declined.to_string().is_empty());
    assert_eq!(job.progress().checkpoints(), 0);
    go_on.store(true, Ordering::SeqCst);
    wait_for("a checkpoint", || job.progress().checkpoints() > 0);
    wait_for("a savepoint", || job.savepoint(home.path()).is_ok());
    finish.store(true, Ordering::SeqCst);
    let report = job.wait().unwrap();
    assert!(!report.checkpoints.is_empty());
    assert_eq!(rows.load(Ordering::SeqCst), 11);
}
