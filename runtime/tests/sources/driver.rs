//! The driver of a source: flags before records, barriers before splits, and time without records.

use std::sync::Arc;

use element::{Barrier, BarrierKind, CheckpointId};
use graph::ResolvedMode;
use slackwater_runtime::events::TaskMail;
use slackwater_runtime::output::Signal;
use slackwater_runtime::source::TypedSource;
use slackwater_runtime::source::generator::GeneratorSource;
use slackwater_runtime::task::{Driver, SourceDriver, Step};

use crate::hand::{Hand, reader_of};
use crate::stage::{Seen, Stage, Tape};

fn numbers() -> Arc<dyn TypedSource<u64>> {
    Arc::new(GeneratorSource::bounded(2, |i| (i, None)).splits(1))
}

/// A split of `numbers`, as an enumerator hands it out.
fn split() -> Vec<u8> {
    let mut hand = Hand::new(numbers(), 1);
    hand.poll(0);
    hand.sides[0].assigned[0].clone()
}

fn driver(
    stage: &Stage,
    tape: &Tape<u64>,
    is_backlog: bool,
    splits: &[Vec<u8>],
) -> SourceDriver<u64> {
    let reader = reader_of(&*numbers(), 0);
    SourceDriver::new(reader, Box::new(tape.clone()), is_backlog, splits, &stage.context).unwrap()
}

/// K11, tB16: a reader that is there late, with a split in its hands already, says the present flag
/// before its first record.
#[test]
fn the_present_flag_comes_before_the_first_record() {
    for flag in [true, false] {
        let (stage, tape) = (Stage::new(ResolvedMode::Mixed), Tape::new());
        let mut late = driver(&stage, &tape, flag, &[split()]);
        late.step().unwrap();
        assert_eq!(tape.take(), [Seen::Backlog(flag), Seen::Record(0), Seen::Record(1)]);
    }
}

/// tB16, M31: an enumerator that assigns first and sets the flag then: both flags come before the
/// record, for mail is read before the reader.
#[test]
fn a_flag_that_comes_behind_a_split_comes_before_its_records() {
    let (stage, tape) = (Stage::new(ResolvedMode::Mixed), Tape::new());
    let mut late = driver(&stage, &tape, false, &[]);
    late.mail(TaskMail::Splits(vec![split()])).unwrap();
    late.mail(TaskMail::Backlog(true)).unwrap();
    late.step().unwrap();
    let flags = [Seen::Backlog(false), Seen::Backlog(true)];
    assert_eq!(tape.take(), [flags.as_slice(), &[Seen::Record(0), Seen::Record(1)]].concat());
}

/// A split that was handed out after the enumerator had stored what is left lay in the checkpoint twice
/// if its mail was read together with the trigger: a restored job read it twice.
#[test]
fn a_split_that_comes_behind_a_barrier_is_not_in_its_checkpoint() {
    let (stage, tape) = (Stage::new(ResolvedMode::Streaming), Tape::new());
    let mut source = driver(&stage, &tape, false, &[]);
    let barrier = |id| Barrier { id: CheckpointId(id), kind: BarrierKind::ExactlyOnce };
    source.mail(TaskMail::Trigger(barrier(1))).unwrap();
    source.mail(TaskMail::Splits(vec![split()])).unwrap();
    source.mail(TaskMail::Trigger(barrier(2))).unwrap();
    source.mail(TaskMail::NoMoreSplits).unwrap();
    let mut stored = Vec::new();
    while stored.len() < 2 {
        if let Step::Snapshot(barrier) = source.step().unwrap() {
            let snapshot = stage.context.snapshots.lock().pop().unwrap();
            stored.push((barrier.id.0, snapshot.items.len()));
        }
    }
    assert_eq!(stored, [(1, 0), (2, 1)]);
    while source.step().unwrap() != Step::Done {}
    let seen = tape.take();
    assert_eq!(seen.iter().filter(|seen| matches!(seen, Seen::Record(_))).count(), 2);
    assert_eq!(seen.last(), Some(&Seen::End));
}

/// A source that was held up while its last savepoint was given up sent the barrier when it could, and
/// then stood still for ever: whoever stops behind a barrier waits for a savepoint or its end, and had
/// heard of the end already.
#[test]
fn a_barrier_that_was_given_up_is_not_sent() {
    let (stage, tape) = (Stage::new(ResolvedMode::Streaming), Tape::new());
    let mut source = driver(&stage, &tape, false, &[split()]);
    for id in [1, 2] {
        let kind = BarrierKind::StopWithSavepoint;
        source.mail(TaskMail::Trigger(Barrier { id: CheckpointId(id), kind })).unwrap();
    }
    source.mail(TaskMail::NoMoreSplits).unwrap();
    for id in [1, 2] {
        source.signal(Signal::Aborted(CheckpointId(id))).unwrap();
    }
    while source.step().unwrap() != Step::Done {}
    let seen = tape.take();
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Barrier(_))), "{seen:?}");
    assert_eq!(seen.last(), Some(&Seen::End));
}

/// Once event time has ended for a savepoint, a source whose savepoint is given up cannot go on.
#[test]
fn a_source_whose_drain_is_given_up_fails() {
    let (stage, tape) = (Stage::new(ResolvedMode::Streaming), Tape::new());
    let mut source = driver(&stage, &tape, false, &[split()]);
    let barrier = Barrier { id: CheckpointId(3), kind: BarrierKind::DrainWithSavepoint };
    source.mail(TaskMail::Trigger(barrier)).unwrap();
    source.step().unwrap();
    source.signal(Signal::Aborted(CheckpointId(2))).unwrap();
    let failed = source.signal(Signal::Aborted(CheckpointId(3))).unwrap_err();
    assert!(failed.to_string().contains("savepoint 3, which was given up"), "{failed}");
}
