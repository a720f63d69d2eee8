//! Savepoints, restores by path, and rescaling.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{JobError, JobHandle, ScriptStep, ScriptedSource, TumblingEventTime, options};

use crate::support::{Recorded, Row, Switch, TwoPhase, json, mixed, streaming, wait_for};

/// A running sum with uids, at a parallelism, from a savepoint if there is one.
fn sums(
    env: &StreamExecutionEnvironment,
    steps: Vec<ScriptStep<Row>>,
    from: Option<&Path>,
    visible: &Recorded<Row>,
) -> JobHandle {
    env.set(&options::SAVEPOINT_PATH, from.map(|path| path.display().to_string()));
    env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
        .uid("source")
        .parallelism(1)
        .key_by(|row: &Row| row.0.clone())
        .sum(|row: &Row| row.1)
        .uid("sums")
        .sink_to(TwoPhase::new(visible))
        .uid("sink");
    env.submit("sums").unwrap()
}

fn all_read(job: &JobHandle, n: u64) {
    let progress = job.progress();
    wait_for("the input", || job.is_finished() || progress.records_read() >= n);
    assert!(progress.records_read() >= n, "the job has ended early");
}

/// Case 23; F10, tK18: stopped with a savepoint after each third, restored at another parallelism.
#[test]
fn case_23_parallelism_3_then_4_then_2_with_a_savepoint_between() {
    let input = json(include_str!("../cases/23-rescale/input.json"));
    let expected = json(include_str!("../cases/23-rescale/expected.json"));
    let rows: Vec<Row> = input["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row[0].as_str().unwrap().to_owned(), row[1].as_i64().unwrap()))
        .collect();
    let parallelism = input["parallelism"].as_array().unwrap();
    let groups = u32::try_from(input["key_groups"].as_u64().unwrap()).unwrap();
    for store in [options::StateBackendKind::Heap, options::StateBackendKind::Disk] {
        let home = tempfile::tempdir().unwrap();
        let visible = Recorded::new();
        let part = rows.len() / parallelism.len();
        let mut from: Option<std::path::PathBuf> = None;
        for (i, subtasks) in parallelism.iter().enumerate() {
            let subtasks = u32::try_from(subtasks.as_u64().unwrap()).unwrap();
            let env = streaming();
            env.set(&options::PARALLELISM, Some(subtasks))
                .set(&options::MAX_PARALLELISM, groups)
                .set(&options::STATE_BACKEND, store);
            // Each run's script is the whole input; positions are in the savepoint.
            let mut steps = Vec::new();
            for (n, row) in rows.iter().enumerate() {
                if n == (i + 1) * part {
                    steps.push(ScriptStep::until(|| false));
                }
                steps.push(ScriptStep::at(i64::try_from(n).unwrap(), row.clone()));
            }
            // The waits of earlier runs take a step as well.
            for earlier in 0..i {
                steps.insert((earlier + 1) * part + earlier, ScriptStep::until(|| true));
            }
            let job = sums(&env, steps, from.as_deref(), &visible);
            if i + 1 < parallelism.len() {
                all_read(&job, part as u64);
                from = Some(job.stop_with_savepoint(home.path()).unwrap());
            }
            job.wait().unwrap();
        }
        let mut per_key: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for (key, sum) in visible.all() {
            per_key.entry(key).or_default().push(sum);
        }
        assert_eq!(serde_json::json!(per_key), expected["per_key"]);
    }
    let ranges = expected["ranges"].as_object().unwrap();
    let groups = element::MaxParallelism::new(groups).unwrap();
    for (subtasks, ranges) in ranges {
        let subtasks: u32 = subtasks.parse().unwrap();
        for (i, range) in (0..subtasks).zip(ranges.as_array().unwrap()) {
            let own = groups.groups_of(element::SubtaskIndex(i), subtasks);
            assert_eq!(serde_json::json!([own.start, own.end - 1]), *range);
        }
    }
}

/// F3, D13: in backlog a savepoint is declined by name, and the job goes on; later it works.
#[test]
fn a_savepoint_in_backlog_is_declined_and_the_job_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let (go_on, visible) = (Switch::default(), Recorded::new());
    let end = Switch::default();
    let env = mixed();
    let row = |i: i64| ScriptStep::at(i, ("k".to_owned(), 1));
    let mut steps = vec![ScriptStep::Backlog(true)];
    steps.extend((0..100).map(row));
    steps.extend([go_on.step(), ScriptStep::Backlog(false), row(200), end.step()]);
    let job = sums(&env, steps, None, &visible);
    all_read(&job, 100);
    let declined = job.savepoint(home.path()).unwrap_err();
    assert!(
        matches!(&declined, JobError::SavepointDeclined { reason, .. } if reason.contains("backlog"))
    );
    go_on.turn();
    all_read(&job, 101);
    wait_for("a savepoint", || job.savepoint(home.path()).is_ok());
    end.turn();
    job.wait().unwrap();
    assert_eq!(visible.all(), [("k".to_owned(), 100), ("k".to_owned(), 101)]);
}

/// tK21: stopping with a savepoint flushes nothing: no window fires early, and what was prepared is
/// committed; the next job goes on without a gap or a duplicate.
#[test]
fn stopping_with_a_savepoint_flushes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let run = |steps: Vec<ScriptStep<Row>>, from: Option<&Path>, visible: &Recorded<i64>| {
        let env = streaming();
        env.set(&options::SAVEPOINT_PATH, from.map(|path| path.display().to_string()));
        env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
            .uid("source")
            .key_by(|row: &Row| row.0.clone())
            .window(TumblingEventTime::of(Duration::from_millis(100)))
            .reduce(|a: Row, b: Row| (a.0, a.1 + b.1))
            .uid("windows")
            .map(|row: Row| row.1)
            .sink_to(TwoPhase::new(visible))
            .uid("sink");
        let job = env.submit("windows").unwrap();
        (env, job)
    };
    let row = |at: i64| ScriptStep::at(at, ("k".to_owned(), 1));
    let script = |stop: bool| {
        vec![row(0), row(50), row(110), ScriptStep::until(move || !stop), row(120), row(300)]
    };
    let visible = Recorded::new();
    let (_env, job) = run(script(true), None, &visible);
    all_read(&job, 3);
    let savepoint = job.stop_with_savepoint(home.path()).unwrap();
    job.wait().unwrap();
    assert_eq!(visible.all(), [2], "the window that was complete, and no other");
    // A savepoint may be moved.
    let moved = home.path().join("moved");
    std::fs::rename(savepoint, &moved).unwrap();
    let (_env, job) = run(script(false), Some(&moved), &visible);
    job.wait().unwrap();
    assert_eq!(visible.all(), [2, 2, 1]);
}

/// State that no uid claims is refused by name, unless that is allowed.
#[test]
fn state_of_removed_operators_is_refused_unless_allowed() {
    let home = tempfile::tempdir().unwrap();
    let visible = Recorded::new();
    let steps = || vec![ScriptStep::at(1, ("k".to_owned(), 1)), ScriptStep::until(|| false)];
    let env = streaming();
    let job = sums(&env, steps(), None, &visible);
    all_read(&job, 1);
    let savepoint = job.stop_with_savepoint(home.path()).unwrap();
    job.wait().unwrap();

    let program = |allow: bool| {
        let env = streaming();
        env.set(&options::SAVEPOINT_PATH, Some(savepoint.display().to_string()))
            .set(&options::ALLOW_NON_RESTORED_STATE, allow);
        let steps = vec![ScriptStep::at(1, ("k".to_owned(), 1))];
        env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
            .uid("source")
            .for_each(|_: Row| {});
        env.execute("without sums")
    };
    let refused = program(false).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, JobError::Restore { .. }), "{text}");
    assert!(
        text.contains("`sums`") && text.contains(options::ALLOW_NON_RESTORED_STATE.key),
        "{text}"
    );
    program(true).unwrap();
}

/// A path without a checkpoint, and a damaged manifest, are refused before any task starts.
#[test]
fn a_missing_or_damaged_manifest_is_refused_before_any_task_starts() {
    let home = tempfile::tempdir().unwrap();
    for damage in [false, true] {
        if damage {
            std::fs::write(home.path().join("manifest"), b"SLKWCHKP no manifest").unwrap();
        }
        let env = streaming();
        env.set(&options::SAVEPOINT_PATH, Some(home.path().display().to_string()));
        let steps = vec![ScriptStep::at(1, 1_i64)];
        env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
            .for_each(|_| {});
        let error = env.submit("restored").map(|_| ()).unwrap_err();
        assert!(matches!(error, JobError::Restore { .. }), "{error}");
    }
}

/// A retained checkpoint of a cancelled job is what a new environment goes on from, by the directory
/// of the job's checkpoints.
#[test]
fn a_retained_checkpoint_is_restored_in_a_new_environment() {
    let home = tempfile::tempdir().unwrap();
    let visible = Recorded::new();
    let row = |i: i64| ScriptStep::at(i, ("k".to_owned(), 1));
    let script = |stop: bool| {
        let mut steps: Vec<_> = (0..10).map(row).collect();
        steps.push(ScriptStep::until(move || !stop));
        steps.push(row(20));
        steps
    };
    let env = streaming();
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)))
        .set(&options::CHECKPOINT_DIR, Some(home.path().display().to_string()))
        .set(&options::CHECKPOINT_RETAIN_ON_CANCEL, true);
    let job = sums(&env, script(true), None, &visible);
    // Visible rows are covered by a complete checkpoint.
    wait_for("a checkpoint", || visible.len() == 10);
    job.cancel();
    assert!(matches!(job.wait().unwrap_err(), JobError::Cancelled { .. }));
    drop(env);

    let env = streaming();
    let job = sums(&env, script(false), Some(&home.path().join("sums")), &visible);
    job.wait().unwrap();
    let sums: Vec<i64> = visible.all().into_iter().map(|row| row.1).collect();
    assert_eq!(sums, (1..=11).collect::<Vec<i64>>());
}
