//! When checkpoints are taken: the two intervals of FLIP-309, the switch, pauses and refusals.
//!
//! The coordinator has no clock: time is a number here, moved by hand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use element::{BarrierKind, CheckpointId, Configuration, SubtaskIndex, VertexId, option_table};
use slackwater_runtime::checkpoint::{
    BacklogOrigin, CheckpointCoordinator, CheckpointSettings, Decision, Participant,
};

const SOURCE: BacklogOrigin = BacklogOrigin::Source(VertexId(0));
const OTHER: BacklogOrigin = BacklogOrigin::Source(VertexId(1));
const TASK: Participant = (VertexId(0), SubtaskIndex(0));

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Interval 10 s, in backlog as given.
fn settings(in_backlog: Option<u64>) -> CheckpointSettings {
    let mut config = Configuration::new();
    config.set(&option_table::CHECKPOINT_INTERVAL, Some(secs(10)));
    let in_backlog = in_backlog.map(secs);
    config.set(&option_table::CHECKPOINT_INTERVAL_DURING_BACKLOG, in_backlog);
    CheckpointSettings::of(&config).unwrap()
}

/// A job whose checkpoints are whole as soon as they are triggered.
struct Job {
    coordinator: CheckpointCoordinator,
    triggered: Vec<u64>,
    aborted: Vec<CheckpointId>,
    /// Whether tasks answer at once.
    answers: bool,
}

impl Job {
    fn new(settings: CheckpointSettings) -> Self {
        let coordinator = CheckpointCoordinator::new(settings, CheckpointId(0), secs(0));
        Self { coordinator, triggered: Vec::new(), aborted: Vec::new(), answers: true }
    }

    fn carry_out(&mut self, decisions: Vec<Decision>, now: u64) {
        for decision in decisions {
            match decision {
                Decision::Trigger(barrier) => {
                    self.triggered.push(now);
                    let owing = BTreeSet::from([TASK]);
                    self.coordinator.begun(barrier, owing, Vec::new(), secs(now));
                    if self.answers {
                        let more =
                            self.coordinator.acknowledged(barrier.id, TASK, Vec::new(), secs(now));
                        self.carry_out(more, now);
                    }
                }
                Decision::Abort { id, .. } => self.aborted.push(id),
                Decision::Complete { .. } => {}
                Decision::Fail { reason, .. } => panic!("the job failed: {reason}"),
            }
        }
    }

    fn backlog(&mut self, who: BacklogOrigin, is_backlog: bool, now: u64) {
        let decisions = self.coordinator.backlog(who, is_backlog, secs(now));
        self.carry_out(decisions, now);
    }

    fn collecting(&mut self, collects: bool, now: u64) {
        let decisions = self.coordinator.collecting(TASK, collects, secs(now));
        self.carry_out(decisions, now);
    }

    /// Lets time pass, second by second, up to and with `to`.
    fn run(&mut self, seconds: std::ops::RangeInclusive<u64>) {
        for now in seconds {
            let decisions = self.coordinator.poll(secs(now));
            self.carry_out(decisions, now);
        }
    }
}

/// K1, K6: the longer interval in backlog, one checkpoint at once behind it, then the normal one.
#[test]
fn a_backlog_sets_the_longer_interval_until_the_last_source_is_live() {
    let mut job = Job::new(settings(Some(30)));
    job.backlog(SOURCE, true, 0);
    job.backlog(OTHER, true, 0);
    job.run(1..=40);
    assert_eq!(job.triggered, [30]);
    job.backlog(SOURCE, false, 41);
    job.run(41..=50);
    assert_eq!(job.triggered, [30], "one source is still in backlog");
    job.backlog(OTHER, false, 51);
    assert_eq!(job.triggered, [30, 51]);
    job.run(51..=72);
    assert_eq!(job.triggered, [30, 51, 61, 71]);
}

/// K2: without the option a backlog changes nothing.
#[test]
fn without_the_option_the_interval_stays() {
    let mut job = Job::new(settings(None));
    job.backlog(SOURCE, true, 0);
    job.run(1..=25);
    assert_eq!(job.triggered, [10, 20]);
}

/// K3: a positive interval below the normal one is refused; 0 is not below.
#[test]
fn an_interval_below_the_normal_one_is_refused_by_name() {
    let mut config = Configuration::new();
    config.set(&option_table::CHECKPOINT_INTERVAL, Some(secs(10)));
    for (in_backlog, refused) in [(9, true), (0, false), (10, false), (11, false)] {
        config.set(&option_table::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(secs(in_backlog)));
        let settings = CheckpointSettings::of(&config);
        assert_eq!(settings.is_err(), refused, "{in_backlog}");
        if let Err(error) = settings {
            let key = option_table::CHECKPOINT_INTERVAL_DURING_BACKLOG.key;
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}

/// tB8: 0 is no normal interval; "none" is to leave the option out.
#[test]
fn a_normal_interval_of_0_is_refused() {
    let mut config = Configuration::new();
    config.set(&option_table::CHECKPOINT_INTERVAL, Some(secs(0)));
    assert!(CheckpointSettings::of(&config).is_err());
}

/// K4, D5, tB6: the first one, an armed one, and one under way are all given up with interval 0.
#[test]
fn with_interval_0_no_checkpoint_is_taken_in_backlog() {
    let mut first = Job::new(settings(Some(0)));
    first.backlog(SOURCE, true, 0);
    first.run(1..=100);
    assert!(first.triggered.is_empty());
    assert_eq!(first.coordinator.next_deadline(), None);

    let mut armed = Job::new(settings(Some(0)));
    armed.run(1..=9);
    armed.backlog(SOURCE, true, 9);
    armed.run(10..=100);
    assert!(armed.triggered.is_empty());

    let mut under_way = Job::new(settings(Some(0)));
    under_way.answers = false;
    under_way.run(1..=10);
    assert_eq!(under_way.triggered, [10]);
    under_way.backlog(SOURCE, true, 11);
    assert_eq!(under_way.aborted, [CheckpointId(1)]);
    let late = under_way.coordinator.acknowledged(CheckpointId(1), TASK, Vec::new(), secs(12));
    assert!(late.is_empty(), "a late part completes nothing");
}

/// K5: the last report counts, repeated ones change nothing.
#[test]
fn the_last_report_of_a_source_counts() {
    let mut job = Job::new(settings(Some(0)));
    job.backlog(SOURCE, true, 0);
    job.backlog(SOURCE, true, 1);
    job.backlog(SOURCE, false, 2);
    assert!(!job.coordinator.is_backlog());
    assert_eq!(job.triggered, [2]);
    job.backlog(SOURCE, false, 3);
    assert_eq!(job.triggered, [2]);
}

/// D4, F1, F2: the checkpoint at the switch waits for the drain, then comes at once.
#[test]
fn the_checkpoint_at_the_switch_waits_for_the_drain() {
    let mut job = Job::new(settings(Some(0)));
    job.backlog(SOURCE, true, 0);
    job.collecting(true, 1);
    job.backlog(SOURCE, false, 5);
    job.run(5..=50);
    assert!(job.triggered.is_empty());
    job.collecting(false, 51);
    assert_eq!(job.triggered, [51]);
    job.run(51..=61);
    assert_eq!(job.triggered, [51, 61]);
}

/// K7, D4: the least pause holds for all but the checkpoint at the switch.
#[test]
fn the_least_pause_holds_but_for_the_switch() {
    let mut with_pause = settings(Some(30));
    with_pause.min_pause = secs(25);
    let mut job = Job::new(with_pause);
    job.run(1..=40);
    assert_eq!(job.triggered, [10, 35]);
    job.backlog(SOURCE, true, 41);
    job.backlog(SOURCE, false, 42);
    assert_eq!(job.triggered, [10, 35, 42]);
}

/// K7: no more at once than allowed; and a full house asks for no deadline that has passed.
#[test]
fn no_more_checkpoints_at_once_than_allowed() {
    let mut job = Job::new(settings(None));
    job.answers = false;
    job.run(1..=30);
    assert_eq!(job.triggered, [10]);
    let timeout = Some(secs(610));
    assert_eq!(job.coordinator.next_deadline(), timeout, "nothing is due before the time-out");
    job.answers = true;
    let decisions = job.coordinator.acknowledged(CheckpointId(1), TASK, Vec::new(), secs(31));
    job.carry_out(decisions, 31);
    job.run(31..=31);
    assert_eq!(job.triggered, [10, 31]);
}

/// K12, K13: lag and enumerator are told apart, also for subtask 0; either is enough.
#[test]
fn lag_and_the_sources_own_word_are_told_apart() {
    let lag = BacklogOrigin::Lag(VertexId(0), SubtaskIndex(0));
    let mut job = Job::new(settings(Some(0)));
    job.backlog(SOURCE, true, 0);
    job.backlog(lag, true, 0);
    job.backlog(lag, false, 1);
    assert!(job.coordinator.is_backlog(), "the source still says so");
    job.backlog(SOURCE, false, 2);
    assert!(!job.coordinator.is_backlog());
    job.backlog(lag, true, 3);
    let ended = job.coordinator.ended(TASK, secs(4));
    job.carry_out(ended, 4);
    assert!(!job.coordinator.is_backlog(), "a subtask that has ended does not lag");
}

/// K10: a restart forgets the flags of what restarts, and of nothing else.
#[test]
fn a_restart_forgets_only_its_own_flags() {
    let mut job = Job::new(settings(Some(0)));
    job.backlog(SOURCE, true, 0);
    job.backlog(OTHER, true, 0);
    job.coordinator.restarted(&BTreeSet::from([VertexId(0)]), secs(1));
    assert!(job.coordinator.is_backlog(), "the other region is still in backlog");
    job.coordinator.restarted(&BTreeSet::from([VertexId(1)]), secs(2));
    assert!(!job.coordinator.is_backlog());
    job.backlog(SOURCE, true, 3);
    job.run(4..=30);
    assert!(job.triggered.is_empty(), "the flag is reported again and counts again");
}

/// D13, F3: a savepoint in backlog is declined with its reason, and nothing else changes.
#[test]
fn a_savepoint_in_backlog_is_declined_with_its_reason() {
    let mut job = Job::new(settings(Some(0)));
    job.backlog(SOURCE, true, 0);
    let declined = job.coordinator.savepoint(BarrierKind::Savepoint).unwrap_err();
    assert!(declined.contains("backlog"), "{declined}");
    job.collecting(true, 1);
    job.backlog(SOURCE, false, 2);
    let declined = job.coordinator.savepoint(BarrierKind::Savepoint).unwrap_err();
    assert!(declined.contains("drain"), "{declined}");
    job.collecting(false, 3);
    assert!(job.coordinator.savepoint(BarrierKind::Savepoint).is_ok());
}

/// A source that has ended declines: that is no failure, however often it happens.
#[test]
fn a_declined_checkpoint_is_no_failure() {
    let mut job = Job::new(settings(None));
    job.answers = false;
    job.run(1..=10);
    let decisions = job.coordinator.declined(CheckpointId(1), "it has ended", secs(11));
    job.carry_out(decisions, 11);
    assert_eq!(job.aborted, [CheckpointId(1)]);
    job.run(12..=20);
    let failed = job.coordinator.failed(CheckpointId(2), "the disk is full", secs(21));
    assert!(matches!(failed.last(), Some(Decision::Fail { .. })), "a failure is one");
}

/// Case 11: bounds from the case's file, for both of its runs.
#[test]
fn case_11_interval_0_and_the_very_first_checkpoint() {
    let input = include_str!("cases/11-backlog-checkpoints/input.json");
    let expected = include_str!("cases/11-backlog-checkpoints/expected.json");
    let input: serde_json::Value = serde_json::from_str(input).unwrap();
    let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    for (name, run) in input["runs"].as_object().unwrap() {
        let mut config = Configuration::new();
        config.set(&option_table::CHECKPOINT_INTERVAL, Some(secs(number(&input["interval"]))));
        let in_backlog = Some(secs(number(&input["interval_during_backlog"])));
        config.set(&option_table::CHECKPOINT_INTERVAL_DURING_BACKLOG, in_backlog);
        let mut job = Job::new(CheckpointSettings::of(&config).unwrap());
        let mut inside = Vec::new();
        for now in 0..=number(&run["end"]) {
            for change in run["changes"].as_array().unwrap() {
                if number(&change[0]) == now {
                    job.backlog(SOURCE, change[1].as_bool().unwrap(), now);
                }
            }
            let begun: BTreeSet<u64> = job.triggered.iter().copied().collect();
            job.run(now..=now);
            let new = job.triggered.iter().filter(|at| !begun.contains(at));
            if job.coordinator.is_backlog() {
                inside.extend(new.copied());
            }
        }
        let expected = &expected[name];
        assert_eq!(inside.len() as u64, number(&expected["inside_backlog"]), "run {name}");
        let end = run["changes"].as_array().unwrap().last().map(|change| number(&change[0]));
        let after: Vec<u64> = job.triggered.iter().copied().filter(|at| Some(*at) >= end).collect();
        assert!(after[0] <= number(&expected["first_after_not_later_than"]), "{after:?}");
        // The checkpoint at the switch itself is decision D4's; the bounds are for those by timer.
        let by_timer = after.iter().filter(|at| Some(**at) != end).count() as u64;
        let range = number(&expected["after_min"])..=number(&expected["after_max"]);
        assert!(range.contains(&by_timer) || range.contains(&(after.len() as u64)), "{after:?}");
    }
}
