//! Checkpoints that fail: in time, by a part that cannot be written, and how many of them are borne.
//!
//! The coordinator has no clock: time is a number here, moved by hand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use element::option_table as options;
use element::{Barrier, BarrierKind, CheckpointId, Configuration, SubtaskIndex, VertexId};
use slackwater_runtime::checkpoint::{
    BacklogOrigin, CheckpointCoordinator, CheckpointSettings, Decision, Participant,
};

const TASK: Participant = (VertexId(0), SubtaskIndex(0));

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Interval 10 s, timeout 5 s, so many failures borne.
fn coordinator(tolerable: u32) -> CheckpointCoordinator {
    let mut config = Configuration::new();
    config
        .set(&options::CHECKPOINT_INTERVAL, Some(secs(10)))
        .set(&options::CHECKPOINT_TIMEOUT, secs(5))
        .set(&options::CHECKPOINT_TOLERABLE_FAILURES, tolerable);
    let settings = CheckpointSettings::of(&config).unwrap();
    CheckpointCoordinator::new(settings, CheckpointId(0), secs(0))
}

/// The checkpoint that is triggered at `now`, under way from here on.
#[track_caller]
fn begin(coordinator: &mut CheckpointCoordinator, now: u64) -> Barrier {
    let decisions = coordinator.poll(secs(now));
    let [Decision::Trigger(barrier)] = decisions[..] else { panic!("{decisions:?} at {now}") };
    coordinator.begun(barrier, BTreeSet::from([TASK]), Vec::new(), secs(now));
    barrier
}

/// What became of checkpoints, as words.
fn words(decisions: &[Decision]) -> Vec<String> {
    let word = |decision: &Decision| match decision {
        Decision::Trigger(barrier) => format!("trigger {}", barrier.id),
        Decision::Complete { barrier, .. } => format!("complete {}", barrier.id),
        Decision::Abort { id, .. } => format!("abort {id}"),
        Decision::Fail { id, reason } => format!("fail {id}: {reason}"),
    };
    decisions.iter().map(word).collect()
}

#[test]
fn a_checkpoint_that_takes_too_long_is_given_up_and_counts_as_a_failure() {
    let mut coordinator = coordinator(0);
    begin(&mut coordinator, 10);
    assert_eq!(coordinator.next_deadline(), Some(secs(15)));
    assert!(coordinator.poll(secs(14)).is_empty());
    assert_eq!(words(&coordinator.poll(secs(15))), ["abort 1", "fail 1: it has timed out"]);
    let late = coordinator.acknowledged(CheckpointId(1), TASK, Vec::new(), secs(16));
    assert!(late.is_empty(), "what was given up is never complete: {late:?}");
}

#[test]
fn failures_in_a_row_are_borne_up_to_the_number_and_a_success_starts_anew() {
    let mut coordinator = coordinator(2);
    for (id, now) in [(1, 10), (2, 20)] {
        begin(&mut coordinator, now);
        let failed = coordinator.failed(CheckpointId(id), "the disk is full", secs(now));
        assert_eq!(words(&failed), [format!("abort {id}")]);
    }
    begin(&mut coordinator, 30);
    let done = coordinator.acknowledged(CheckpointId(3), TASK, Vec::new(), secs(31));
    assert_eq!(words(&done), ["complete 3"]);
    for (id, now) in [(4, 40), (5, 50), (6, 60)] {
        begin(&mut coordinator, now);
        let failed = coordinator.failed(CheckpointId(id), "the disk is full", secs(now));
        let mut expected = vec![format!("abort {id}")];
        expected.extend((id == 6).then(|| "fail 6: the disk is full".to_owned()));
        assert_eq!(words(&failed), expected);
    }
}

#[test]
fn savepoints_take_no_room_and_are_not_made_useless_by_a_newer_checkpoint() {
    let mut coordinator = coordinator(0);
    let savepoint = coordinator.savepoint(BarrierKind::Savepoint).unwrap();
    coordinator.begun(savepoint, BTreeSet::from([TASK]), Vec::new(), secs(9));
    let checkpoint = begin(&mut coordinator, 10);
    let done = coordinator.acknowledged(checkpoint.id, TASK, Vec::new(), secs(11));
    assert_eq!(words(&done), ["complete 2"]);
    assert!(coordinator.is_pending(savepoint.id));
}

/// Behind the savepoint that stops a job no checkpoint is triggered. One was, and became "complete"
/// without the parts of tasks that had stopped; no test took checkpoints as fast as it stopped.
#[test]
fn no_checkpoint_follows_the_savepoint_that_stops_the_job() {
    for kind in [BarrierKind::StopWithSavepoint, BarrierKind::DrainWithSavepoint] {
        let mut coordinator = coordinator(1);
        let savepoint = coordinator.savepoint(kind).unwrap();
        coordinator.begun(savepoint, BTreeSet::from([TASK]), Vec::new(), secs(9));
        assert!(coordinator.savepoint(BarrierKind::Savepoint).is_err());
        assert!(coordinator.poll(secs(13)).is_empty());
        // It fails: the job goes on, and so do its checkpoints.
        assert_eq!(words(&coordinator.poll(secs(14))), ["abort 1"]);
        begin(&mut coordinator, 24);
        let savepoint = coordinator.savepoint(kind).unwrap();
        coordinator.begun(savepoint, BTreeSet::from([TASK]), Vec::new(), secs(25));
        let done = coordinator.acknowledged(savepoint.id, TASK, Vec::new(), secs(26));
        assert_eq!(words(&done), ["abort 2", "complete 3"]);
        assert!(coordinator.poll(secs(1_000)).is_empty());
    }
}

const SOURCE: BacklogOrigin = BacklogOrigin::Source(VertexId(0));

/// With a durable backlog checkpoints go on in backlog with interval 0: by the normal interval, and
/// when a sorter asks for one; savepoints are still declined, and behind the backlog nothing is
/// triggered before the drain.
#[test]
fn a_durable_backlog_has_checkpoints_where_others_have_none() {
    for durable in [true, false] {
        let mut config = Configuration::new();
        config
            .set(&options::CHECKPOINT_INTERVAL, Some(secs(10)))
            .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO));
        let settings = CheckpointSettings::of(&config).unwrap();
        let settings = CheckpointSettings { durable_backlog: durable, ..settings };
        let mut job = CheckpointCoordinator::new(settings, CheckpointId(0), secs(0));
        job.backlog(SOURCE, true, secs(0));
        job.collecting(TASK, true, secs(0));
        assert!(job.savepoint(BarrierKind::Savepoint).is_err());
        if !durable {
            assert!(job.wanted(secs(3)).is_empty());
            assert!(job.poll(secs(1_000)).is_empty());
            continue;
        }
        assert!(job.poll(secs(9)).is_empty());
        let first = begin(&mut job, 10);
        job.acknowledged(first.id, TASK, Vec::new(), secs(11));
        let wanted = job.wanted(secs(12));
        let [Decision::Trigger(second)] = wanted[..] else { panic!("{wanted:?}") };
        job.begun(second, BTreeSet::from([TASK]), Vec::new(), secs(12));
        // The backlog ends while one is under way, and the task drains.
        assert_eq!(words(&job.backlog(SOURCE, false, secs(13))), ["abort 2"]);
        assert!(job.poll(secs(1_000)).is_empty());
        assert_eq!(words(&job.collecting(TASK, false, secs(1_001))), ["trigger 3"]);
    }
}
