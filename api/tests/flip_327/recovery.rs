//! Crashes: in backlog, while draining, at the switch, behind it; exactly once each time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{JobError, ScriptStep, ScriptedSource, options};

use crate::support::{Crash, Recorded, TwoPhase, mixed, streaming, wait_for};

type Pair = (u32, i64);

fn rows(keys: u32, from: i64, to: i64) -> Vec<ScriptStep<Pair>> {
    (from..to).map(|i| ScriptStep::at(i, (u32::try_from(i).unwrap() % keys, 1))).collect()
}

struct Sum(ValueState<i64>);

impl KeyedProcessFunction<u32, Pair, Pair> for Sum {
    fn process(&mut self, pair: Pair, context: &mut KeyedContext<'_, u32, Pair>) -> Result<()> {
        let sum = self.0.update(context, |sum| {
            let sum = sum.get_or_insert(0);
            *sum += pair.1;
            *sum
        })?;
        context.collect((pair.0, sum));
        Ok(())
    }
}

/// Runs a running sum of `steps`, with crashes before and behind the keyed operator, into a two-phase
/// sink. What is visible at the end, and the report.
fn run(
    env: &StreamExecutionEnvironment,
    steps: Vec<ScriptStep<Pair>>,
    before: &Crash,
    behind: &Crash,
) -> (Vec<Pair>, JobReport) {
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)));
    let visible = Recorded::new();
    let (before, behind) = (before.clone(), behind.clone());
    env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
        .parallelism(1)
        .try_map(move |pair: Pair| before.pass().map(|()| pair))
        .key_by(|pair: &Pair| pair.0)
        .process(|| Sum(ValueState::new("sum")))
        .name("sum")
        .try_map(move |pair: Pair| behind.pass().map(|()| pair))
        .sink_to(TwoPhase::new(&visible));
    let report = env.execute("sums").unwrap();
    (visible.all(), report)
}

/// Every running sum once, in order.
#[track_caller]
fn check(visible: &[Pair], keys: u32, records: i64) {
    let mut sums: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for (key, sum) in visible {
        sums.entry(*key).or_default().push(*sum);
    }
    assert_eq!(visible.len() as i64, records, "no row twice, none missing");
    assert_eq!(sums.len(), keys as usize);
    for (key, sums) in sums {
        let expected: Vec<i64> = (1..=records / i64::from(keys)).collect();
        assert_eq!(sums, expected, "key {key}");
    }
}

fn never() -> Crash {
    Crash::at(i64::MAX)
}

/// F4, F5: a crash at any place of the backlog or of the drain, over both stores.
#[test]
fn a_crash_in_backlog_or_while_draining_loses_and_doubles_nothing() {
    for store in [options::StateBackendKind::Heap, options::StateBackendKind::Disk] {
        for (before, behind) in
            [(1, None), (700, None), (1_000, None), (i64::MAX, Some(1)), (i64::MAX, Some(990))]
        {
            let env = mixed();
            env.set(&options::STATE_BACKEND, store).set(&options::PARALLELISM, Some(2));
            let mut steps = vec![ScriptStep::Backlog(true)];
            steps.extend(rows(10, 0, 1_000));
            steps.push(ScriptStep::Backlog(false));
            steps.extend(rows(10, 1_000, 1_500));
            let (before, behind) = (Crash::at(before), behind.map_or_else(never, Crash::at));
            let (visible, report) = run(&env, steps, &before, &behind);
            check(&visible, 10, 1_500);
            assert_eq!(report.recovered.len(), 1, "{:?}", report.recovered);
        }
    }
}

/// F5, D4: a crash between the flag and the checkpoint, at the first live record.
#[test]
fn a_crash_between_the_switch_and_its_checkpoint() {
    let env = mixed();
    let mut steps = vec![ScriptStep::Backlog(true)];
    steps.extend(rows(10, 0, 1_000));
    steps.push(ScriptStep::Backlog(false));
    steps.extend(rows(10, 1_000, 1_100));
    let (visible, report) = run(&env, steps, &Crash::at(1_001), &never());
    check(&visible, 10, 1_100);
    assert_eq!(report.recovered.len(), 1);
}

/// F6, K10: behind the checkpoint of the switch a crash goes on from it, without sorting again.
#[test]
fn a_crash_behind_the_switch_does_not_sort_again() {
    for store in [options::StateBackendKind::Heap, options::StateBackendKind::Disk] {
        let env = mixed();
        env.set(&options::STATE_BACKEND, store)
            .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)));
        let visible = Recorded::new();
        let mut steps = vec![ScriptStep::Backlog(true)];
        steps.extend(rows(10, 0, 1_000));
        steps.push(ScriptStep::Backlog(false));
        // Rows become visible with a complete checkpoint: all of the backlog's are.
        steps.push(visible.reaches(1_000));
        steps.extend(rows(10, 1_000, 1_500));
        let crash = Crash::at(1_200);
        let passes = crash.clone();
        env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
            .try_map(move |pair: Pair| passes.pass().map(|()| pair))
            .key_by(|pair: &Pair| pair.0)
            .process(|| Sum(ValueState::new("sum")))
            .name("sum")
            .sink_to(TwoPhase::new(&visible));
        let report = env.execute("sums").unwrap();
        check(&visible.all(), 10, 1_500);
        assert!(crash.has_happened());
        let sum = report.operator("sum").unwrap();
        assert!(sum.phases.is_empty(), "the second attempt sorts nothing: {:?}", sum.phases);
        let source = report.operator("script").unwrap();
        assert!(source.records_in <= 500, "what the checkpoint covers is not read again");
    }
}

/// F1, F2: no checkpoint in backlog; one behind it at once, with an interval that never comes.
#[test]
fn the_only_checkpoint_is_the_one_at_the_switch() {
    let env = mixed();
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_secs(3_600)));
    let visible = Recorded::new();
    let mut steps = vec![ScriptStep::Backlog(true)];
    steps.extend(rows(10, 0, 1_000));
    steps.push(ScriptStep::Backlog(false));
    steps.push(visible.reaches(1_000));
    env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
        .key_by(|pair: &Pair| pair.0)
        .process(|| Sum(ValueState::new("sum")))
        .sink_to(TwoPhase::new(&visible));
    let report = env.execute("sums").unwrap();
    check(&visible.all(), 10, 1_000);
    assert!(!report.checkpoints.is_empty());
}

/// F7: dirty entries of a write-back cache are in the checkpoint.
#[test]
fn dirty_cache_entries_are_in_the_checkpoint() {
    let env = streaming();
    env.set(&options::STATE_BACKEND, options::StateBackendKind::Disk)
        .set(&options::STATE_CACHE_ENTRIES, Some(1_000));
    let (visible, _) = run(&env, rows(10, 0, 5_000), &Crash::at(4_000), &never());
    check(&visible, 10, 5_000);
}

/// F9, M9: a job that spills, fails and gives up leaves no file; nor does one that is cancelled.
#[test]
fn spill_files_end_with_a_failed_and_a_cancelled_job() {
    let home = tempfile::tempdir().unwrap();
    for cancel in [false, true] {
        let env = mixed();
        env.set(&options::TMP_DIRS, Some(home.path().display().to_string()))
            .set(&options::SORTED_INPUTS_MEMORY, slackwater::ByteSize::kib(4))
            .set(&options::RESTART_STRATEGY, Some(options::RestartStrategy::None));
        let mut steps = vec![ScriptStep::Backlog(true)];
        steps.extend(rows(100, 0, 5_000));
        steps.push(ScriptStep::until(move || !cancel));
        let crash = Crash::at(if cancel { i64::MAX } else { 5_000 });
        env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
            .try_map(move |pair: Pair| crash.pass().map(|()| pair))
            .key_by(|pair: &Pair| pair.0)
            .process(|| Sum(ValueState::new("sum")))
            .for_each(|_| {});
        let job = env.submit("spills").unwrap();
        let progress = job.progress();
        wait_for("the input", || job.is_finished() || progress.records_read() == 5_000);
        if cancel {
            job.cancel();
        }
        let error = job.wait().unwrap_err();
        assert_eq!(matches!(error, JobError::Cancelled { .. }), cancel, "{error}");
        let runs = files_below(home.path()).into_iter().filter(|file| file.ends_with(".spill"));
        assert_eq!(runs.collect::<Vec<_>>(), Vec::<String>::new());
        drop(env);
        assert_eq!(files_below(home.path()), Vec::<String>::new());
    }
}

fn files_below(directory: &std::path::Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path.display().to_string());
        }
    }
    files
}

/// A union of a bounded and a live source: checkpoints go on when one of them has ended, and a crash
/// afterwards is recovered from.
#[test]
fn checkpoints_go_on_when_one_source_has_ended() {
    let env = streaming();
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)));
    let visible = Recorded::new();
    let crash = Crash::at(150);
    let passes = crash.clone();
    let mut live = vec![visible.reaches(100)];
    live.extend(rows(10, 100, 200));
    let ended = ScriptedSource::new(rows(10, 0, 100));
    let ended = env.from_source(ended, WatermarkStrategy::none(), "ended");
    let live = env.from_source(ScriptedSource::new(live), WatermarkStrategy::none(), "live");
    let shared = Arc::new(passes);
    ended
        .union(live)
        .key_by(|pair: &Pair| pair.0)
        .process(|| Sum(ValueState::new("sum")))
        .try_map(move |pair: Pair| shared.pass().map(|()| pair))
        .sink_to(TwoPhase::new(&visible));
    let report = env.execute("union").unwrap();
    check(&visible.all(), 10, 200);
    assert_eq!(report.recovered.len(), 1);
}
