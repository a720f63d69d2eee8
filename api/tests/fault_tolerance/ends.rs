//! The last commit of a job, and jobs that are stopped while a restart is pending.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{
    JobError, JobHandle, ScriptStep, ScriptedSource, Sink, SinkContext, SinkWriter, Suspension,
    options,
};

use crate::support::{Recorded, Row, TwoPhase, mixed, streaming, wait_for};

/// A sink that notes each commit, and fails the first one if it is told to.
#[derive(Clone, Default)]
struct Commits {
    rows: Arc<Mutex<Vec<Vec<i64>>>>,
    fails: Arc<AtomicBool>,
}

struct CommitsWriter {
    to: Commits,
    pending: Vec<i64>,
}

impl Sink<i64> for Commits {
    fn writer(&self, _: &SinkContext, _: &[Vec<u8>]) -> Result<Box<dyn SinkWriter<i64>>> {
        Ok(Box::new(CommitsWriter { to: self.clone(), pending: Vec::new() }))
    }
}

impl SinkWriter<i64> for CommitsWriter {
    fn write(&mut self, value: i64, _: Option<Timestamp>) -> Result<()> {
        self.pending.push(value);
        Ok(())
    }

    fn prepare_commit(&mut self) -> Result<Vec<Vec<u8>>> {
        let rows = std::mem::take(&mut self.pending);
        Ok(if rows.is_empty() { Vec::new() } else { vec![element::encode_to_vec(&rows)] })
    }

    fn snapshot(&mut self) -> Result<Vec<Vec<u8>>> {
        Ok(vec![b"never committed".to_vec()])
    }

    fn commit(&mut self, committable: &[u8]) -> Result<()> {
        if self.to.fails.swap(false, Ordering::SeqCst) {
            return Err(slackwater::Error::msg("the injected failure of a commit"));
        }
        self.to.rows.lock().unwrap().push(element::decode_exact(committable)?);
        Ok(())
    }
}

/// tK19: the last rows are committed once: with the final checkpoint in streaming mode, with the end
/// of the job in batch mode, and never with both.
#[test]
fn the_last_commit_belongs_to_the_final_checkpoint_or_to_the_end_of_a_batch() {
    use options::RuntimeMode;
    for (mode, checkpoints) in [(RuntimeMode::Streaming, 1), (RuntimeMode::Batch, 0)] {
        let env = streaming();
        env.set(&options::RUNTIME_MODE, mode)
            .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_secs(3_600)));
        let commits = Commits::default();
        env.from_collection([1, 2, 3]).sink_to(commits.clone());
        let report = env.execute("numbers").unwrap();
        assert_eq!(*commits.rows.lock().unwrap(), [[1, 2, 3]], "{mode:?}");
        assert_eq!(report.checkpoints.len(), checkpoints, "{mode:?}");
    }
}

/// tK19, FLIP-147: a crash between the final checkpoint and its commits is made up from that
/// checkpoint. Its parts of tasks that had ended were written in a form that no restore could read;
/// no test had gone on from them.
#[test]
fn a_failed_last_commit_is_made_up_from_the_final_checkpoint() {
    let env = streaming();
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_secs(3_600)));
    let commits = Commits::default();
    commits.fails.store(true, Ordering::SeqCst);
    env.from_collection([1, 2, 3]).sink_to(commits.clone());
    let report = env.execute("numbers").unwrap();
    assert_eq!(*commits.rows.lock().unwrap(), [[1, 2, 3]]);
    assert_eq!(report.recovered.len(), 1, "{:?}", report.recovered);
}

/// Running sums that fail at the record with value `0`, as often as `failures` says.
fn sums(
    env: &StreamExecutionEnvironment,
    steps: Vec<ScriptStep<Row>>,
    failures: &Arc<AtomicU64>,
    visible: &Recorded<Row>,
) -> JobHandle {
    let failures = Arc::clone(failures);
    env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
        .uid("source")
        .try_map(move |row: Row| {
            let left =
                || failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
            if row.1 == 0 && left().is_ok() {
                return Err(slackwater::Error::msg("the injected failure"));
            }
            Ok(row)
        })
        .key_by(|row: &Row| row.0.clone())
        .sum(|row: &Row| row.1)
        .uid("sums")
        .sink_to(TwoPhase::new(visible))
        .uid("sink");
    env.submit("sums").unwrap()
}

fn row(at: i64, value: i64) -> ScriptStep<Row> {
    ScriptStep::at(at, ("k".to_owned(), value))
}

fn with_checkpoints(env: &StreamExecutionEnvironment, home: &Path) {
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)))
        .set(&options::CHECKPOINT_DIR, Some(home.display().to_string()));
}

/// What `sums` makes of `rows` of value 1, one of value 0 and one more of value 1.
fn expected(rows: i64) -> Vec<Row> {
    (1..=rows).chain([rows, rows + 1]).map(|sum| ("k".to_owned(), sum)).collect()
}

/// tK20: a job whose restart is pending keeps its checkpoints when it is suspended, when its
/// environment is closed, and when it is cancelled if they are retained.
#[test]
fn stopping_while_a_restart_is_pending_keeps_the_checkpoints() {
    for way in ["suspend", "close", "cancel"] {
        let home = tempfile::tempdir().unwrap();
        let visible = Recorded::new();
        let script = |waits: &Recorded<Row>| {
            let mut steps: Vec<_> = (0..10).map(|at| row(at, 1)).collect();
            steps.extend([waits.reaches(10), row(10, 0), row(11, 1)]);
            steps
        };
        let failures = Arc::new(AtomicU64::new(1));
        let env = streaming();
        with_checkpoints(&env, home.path());
        env.set(&options::RESTART_DELAY, Duration::from_secs(3_600))
            .set(&options::CHECKPOINT_RETAIN_ON_CANCEL, true);
        let job = sums(&env, script(&visible), &failures, &visible);
        wait_for("the failure", || failures.load(Ordering::SeqCst) == 0);
        match way {
            "suspend" => job.suspend(),
            "close" => env.close().unwrap(),
            _ => job.cancel(),
        }
        let error = job.wait().unwrap_err();
        match way {
            "suspend" => assert!(
                matches!(
                    &error,
                    JobError::Suspended { ended: Suspension::WithoutCheckpoint { .. }, .. }
                ),
                "{error}"
            ),
            "close" => assert!(matches!(error, JobError::Closed), "{error}"),
            _ => assert!(matches!(error, JobError::Cancelled { .. }), "{error}"),
        }
        let env = streaming();
        let from = home.path().join("sums");
        env.set(&options::SAVEPOINT_PATH, Some(from.display().to_string()));
        sums(&env, script(&visible), &failures, &visible).wait().unwrap();
        assert_eq!(visible.all(), expected(10), "{way}");
    }
}

/// A live job is suspended behind a checkpoint of its own, also when no other is due for an hour,
/// and goes on from it without a duplicate or a gap; nothing is flushed.
#[test]
fn a_suspended_job_goes_on_from_its_final_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let (visible, none) = (Recorded::new(), Arc::new(AtomicU64::new(0)));
    let script = |waits: bool| {
        let mut steps: Vec<_> = (0..10).map(|at| row(at, 1)).collect();
        steps.extend([ScriptStep::until(move || !waits), row(10, 0), row(11, 1)]);
        steps
    };
    let env = streaming();
    with_checkpoints(&env, home.path());
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_secs(3_600)));
    let job = sums(&env, script(true), &none, &visible);
    let progress = job.progress();
    wait_for("the input", || progress.records_read() == 10);
    job.suspend();
    let error = job.wait().unwrap_err();
    let JobError::Suspended { ended: Suspension::FinalCheckpoint(_), .. } = error else {
        panic!("{error}")
    };
    assert_eq!(visible.len(), 10, "what the final checkpoint covers is committed");
    let env = streaming();
    let from = home.path().join("sums");
    env.set(&options::SAVEPOINT_PATH, Some(from.display().to_string()));
    sums(&env, script(false), &none, &visible).wait().unwrap();
    assert_eq!(visible.all(), expected(10));
}

/// Where there can be no final checkpoint the job ends without one and says why.
#[test]
fn a_job_that_can_take_no_final_checkpoint_says_why() {
    let home = tempfile::tempdir().unwrap();
    for (backlog, directory, reason) in
        [(true, true, "backlog"), (false, false, options::CHECKPOINT_DIR.key)]
    {
        let (visible, none) = (Recorded::new(), Arc::new(AtomicU64::new(0)));
        let env = mixed();
        env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)));
        if directory {
            with_checkpoints(&env, home.path());
        }
        let steps = vec![ScriptStep::Backlog(backlog), row(1, 1), ScriptStep::until(|| false)];
        let job = sums(&env, steps, &none, &visible);
        let progress = job.progress();
        wait_for("the input", || progress.records_read() == 1);
        job.suspend();
        let text = job.wait().unwrap_err().to_string();
        assert!(text.contains("without a final checkpoint") && text.contains(reason), "{text}");
    }
}

/// A commit that fails behind the last checkpoint of a suspended job, or behind the savepoint of one
/// that stops, ends the job, and the next run makes up for it. It was run again: from an older
/// checkpoint, and for ever, for it had been asked to end before.
#[test]
fn a_commit_that_fails_behind_the_last_savepoint_is_made_up_by_the_next_run() {
    for suspends in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let commits = Commits::default();
        let run = |waits: bool, from: Option<&Path>| {
            let env = streaming();
            with_checkpoints(&env, home.path());
            env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_secs(3_600)))
                .set(&options::SAVEPOINT_PATH, from.map(|path| path.display().to_string()));
            let steps = vec![row(0, 7), ScriptStep::until(move || !waits)];
            env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
                .uid("source")
                .map(|row: Row| row.1)
                .sink_to(commits.clone())
                .uid("sink");
            let job = env.submit("numbers").unwrap();
            (env, job)
        };
        let (_env, job) = run(true, None);
        let progress = job.progress();
        wait_for("the input", || progress.records_read() == 1);
        commits.fails.store(true, Ordering::SeqCst);
        let from = if suspends {
            job.suspend();
            home.path().join("numbers")
        } else {
            job.stop_with_savepoint(home.path().join("savepoints")).unwrap()
        };
        wait_for("the end", || job.is_finished());
        let error = job.wait().unwrap_err();
        match suspends {
            true => assert!(
                matches!(error, JobError::Suspended { ended: Suspension::FinalCheckpoint(_), .. }),
                "{error}"
            ),
            false => assert!(matches!(error, JobError::Failed { .. }), "{error}"),
        }
        assert!(commits.rows.lock().unwrap().is_empty());
        run(false, Some(&from)).1.wait().unwrap();
        assert_eq!(*commits.rows.lock().unwrap(), [[7]]);
    }
}
