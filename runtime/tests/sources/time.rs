//! A source's time: when it is idle, when it only waits, and when it is held back by its group.

use std::sync::Arc;
use std::time::Duration;

use element::{Barrier, BarrierKind, Batch, CheckpointId, Control, Timestamp};
use graph::ResolvedMode;
use slackwater_runtime::TaskError;
use slackwater_runtime::events::{TaskEvent, TaskMail};
use slackwater_runtime::operator::timestamps::{Timestamps, WatermarkStrategy};
use slackwater_runtime::operator::{Chained, Operator};
use slackwater_runtime::output::Signal;
use slackwater_runtime::source::TypedSource;
use slackwater_runtime::source::alignment::AlignmentState;
use slackwater_runtime::source::collection::CollectionSource;
use slackwater_runtime::source::generator::GeneratorSource;
use slackwater_runtime::source::hybrid::HybridSource;
use slackwater_runtime::source::scripted::{ScriptStep, ScriptedSource};
use slackwater_runtime::task::{Driver, SourceDriver, Step};

use crate::hand::{Hand, reader_of};
use crate::stage::{Seen, Stage, Tape};

const IDLE_AFTER: Duration = Duration::from_millis(100);
const DRIFT: Duration = Duration::from_millis(10);
const INTERVAL: Duration = Duration::from_millis(50);

fn by_time() -> WatermarkStrategy<i64> {
    WatermarkStrategy::monotonous().with_idleness(IDLE_AFTER)
}

fn aligned() -> WatermarkStrategy<i64> {
    by_time().with_watermark_alignment("pace", DRIFT, INTERVAL)
}

/// One subtask of a source, stepped as its task would.
struct Subtask {
    driver: SourceDriver<i64>,
    tape: Tape<i64>,
    stage: Stage,
}

impl Subtask {
    fn new(
        mode: ResolvedMode,
        source: &dyn TypedSource<i64>,
        splits: &[Vec<u8>],
        strategy: WatermarkStrategy<i64>,
    ) -> Self {
        let (stage, tape) = (Stage::new(mode), Tape::new());
        let stamps = Timestamps::behind_source(strategy, &stage.context).unwrap();
        let head = Chained::new(stamps, Box::new(tape.clone()), Arc::clone(&stage.context));
        let reader = reader_of(source, 0);
        let backlog = mode == ResolvedMode::Mixed;
        let driver =
            SourceDriver::new(reader, Box::new(head), backlog, splits, &stage.context).unwrap();
        Self { driver, tape, stage }
    }

    /// Steps until there is nothing to do; timers first, as a task does.
    fn run(&mut self) {
        loop {
            let now = element::Clock::now(&self.stage.clock);
            if self.stage.context.task.deadline.take_due(now) {
                self.driver.signal(Signal::ProcessingTime(now)).unwrap();
            }
            match self.driver.step().unwrap() {
                Step::Wait(_) | Step::Done => return,
                Step::Progress | Step::Snapshot(_) => {}
            }
        }
    }

    fn advance(&mut self, millis: i64) {
        let now = element::Clock::now(&self.stage.clock);
        self.stage.clock.set(now + Duration::from_millis(millis.unsigned_abs()));
        self.run();
    }

    fn mail(&mut self, mail: TaskMail) {
        self.driver.mail(mail).unwrap();
        self.run();
    }

    /// Idle and active, in order.
    fn idleness(&self) -> Vec<bool> {
        let idle = |seen| match seen {
            Seen::Idle(idle) => Some(idle),
            _ => None,
        };
        self.tape.take().into_iter().filter_map(idle).collect()
    }

    fn reports(&self) -> Vec<AlignmentState> {
        let report = |event| match event {
            TaskEvent::Alignment(report) => Some(report.state),
            _ => None,
        };
        self.stage.events.try_iter().filter_map(|(_, event)| report(event)).collect()
    }
}

/// Numbers without end, each at its time, and the split to read them by.
fn endless() -> (Arc<dyn TypedSource<i64>>, Vec<Vec<u8>>) {
    let source = GeneratorSource::unbounded(|i| (i as i64, Some(Timestamp(i as i64)))).splits(1);
    let source: Arc<dyn TypedSource<i64>> = Arc::new(source);
    let mut hand = Hand::new(Arc::clone(&source), 1);
    hand.poll(0);
    (source, hand.sides[0].assigned.clone())
}

/// The records 10, 20 and so on to 1,000, each at its time in a batch of its own.
fn tens() -> (Arc<dyn TypedSource<i64>>, Vec<Vec<u8>>) {
    let tens = (1..=100).flat_map(|i| [ScriptStep::at(i * 10, i * 10), ScriptStep::until(|| true)]);
    let source: Arc<dyn TypedSource<i64>> = Arc::new(ScriptedSource::new(tens));
    let mut hand = Hand::new(Arc::clone(&source), 1);
    hand.poll(0);
    (source, hand.sides[0].assigned.clone())
}

/// Nothing to read, from the first moment on.
fn nothing() -> Arc<dyn TypedSource<i64>> {
    Arc::new(CollectionSource::new([]))
}

/// tB15: a reader that has read its part and waits for the others is idle until the next one begins; so
/// is one that never had a split.
#[test]
fn a_reader_between_two_parts_is_idle_until_the_next() {
    let part = |from: i64| {
        GeneratorSource::bounded(2, move |i| (from + i as i64, Some(Timestamp(from + i as i64))))
    };
    let hybrid: Arc<dyn TypedSource<i64>> =
        Arc::new(HybridSource::starting_with(part(0).splits(1)).then(part(50).splits(1)));
    let mut hand = Hand::new(Arc::clone(&hybrid), 2);
    hand.run(0);
    let first = hand.sides[0].assigned.clone();
    let mut subtask = Subtask::new(ResolvedMode::Streaming, &*hybrid, &first, by_time());
    subtask.run();
    subtask.advance(99);
    assert_eq!(subtask.idleness(), []);
    subtask.advance(1);
    assert_eq!(subtask.idleness(), [true]);
    // The other reader has finished too, and the second part's split comes.
    hand.run(1);
    let second = hand.sides.iter().flat_map(|side| side.assigned.clone()).skip(first.len());
    subtask.mail(TaskMail::Splits(second.collect()));
    assert_eq!(subtask.idleness(), [false]);

    let mut subtask = Subtask::new(ResolvedMode::Streaming, &*nothing(), &[], by_time());
    subtask.run();
    subtask.advance(100);
    assert_eq!(subtask.idleness(), [true]);
}

/// tW23: a source that its consumer does not let read is not idle, however long, nor in the moment in
/// which it may read again.
#[test]
fn a_source_held_back_by_its_consumer_is_not_idle() {
    let (source, splits) = tens();
    let mut subtask = Subtask::new(ResolvedMode::Streaming, &*source, &splits, by_time());
    subtask.driver.step().unwrap();
    *subtask.tape.full.lock() = true;
    for _ in 0..20 {
        subtask.advance(60);
    }
    *subtask.tape.full.lock() = false;
    subtask.run();
    let seen = subtask.tape.take();
    assert!(seen.contains(&Seen::Record(1_000)));
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Idle(_))), "{seen:?}");
    // It has read all there is: from here on it counts.
    subtask.advance(100);
    assert_eq!(subtask.idleness(), [true]);
}

/// tW24: a record every 60 ms, with nothing to read in between, gives no idle event.
#[test]
fn a_steady_load_gives_no_idle_events() {
    let (stage, mut tape) = (Stage::new(ResolvedMode::Streaming), Tape::new());
    let mut stamps = Timestamps::behind_source(by_time(), &stage.context).unwrap();
    for i in 0..50 {
        let now = Timestamp::from_millis(1_000 + i * 60);
        stage.clock.set(now);
        if stage.context.task.deadline.take_due(now) {
            stamps.signal(Signal::ProcessingTime(now), &mut tape).unwrap();
        }
        stamps.batch(Batch::stamped(vec![i], vec![now]), &mut tape).unwrap();
        stamps.signal(Signal::Flush, &mut tape).unwrap();
    }
    assert!(!tape.take().iter().any(|seen| matches!(seen, Seen::Idle(_))));
}

/// tW20: where a generator makes the time of a stream, the idleness of what is above is none of its own:
/// it tells its own, by its own records.
#[test]
fn a_generator_below_an_idle_source_tells_its_own_state() {
    let (stage, mut tape) = (Stage::new(ResolvedMode::Streaming), Tape::new());
    let mut stamps = Timestamps::new(by_time(), &stage.context).unwrap();
    let mut say = |signal| {
        stamps.signal(signal, &mut tape).unwrap();
        tape.take()
    };
    assert_eq!(say(Signal::Stream(Control::Idle)), []);
    assert_eq!(say(Signal::Stream(Control::Active)), []);
    assert_eq!(say(Signal::Flush), []);
    let later = Timestamp::from_millis(1_000 + 100);
    assert_eq!(say(Signal::ProcessingTime(later)), [Seen::Idle(true)]);
    assert_eq!(say(Signal::Stream(Control::Active)), [], "nothing has come to it");
    let batch = Batch::stamped(vec![1], vec![later]);
    stamps.batch(batch, &mut tape).unwrap();
    assert_eq!(tape.take(), [Seen::Idle(false), Seen::Record(1), Seen::Watermark(1_099)]);

    let (mut without, mut tape) =
        (Timestamps::new(WatermarkStrategy::none(), &stage.context).unwrap(), Tape::<i64>::new());
    without.signal(Signal::Stream(Control::Idle), &mut tape).unwrap();
    assert_eq!(tape.take(), [Seen::Idle(true)], "without a generator it is the stream's own");
}

/// tW22, FLIP-182: a source ahead of its group reads no further until the group has caught up, and is
/// not idle meanwhile; reports go on, barriers and flags pass, in backlog as ever.
#[test]
fn a_source_ahead_of_its_group_reads_no_further() {
    let (source, splits) = tens();
    let mut subtask = Subtask::new(ResolvedMode::Mixed, &*source, &splits, aligned());
    subtask.driver.mail(TaskMail::AlignTo(Some(Timestamp(45)))).unwrap();
    subtask.run();
    let last = |seen: &[Seen<i64>]| {
        seen.iter().rev().find_map(|seen| match seen {
            Seen::Record(value) => Some(*value),
            _ => None,
        })
    };
    // The watermark of 50 is the first above the limit.
    let seen = subtask.tape.take();
    assert_eq!((seen[0].clone(), last(&seen)), (Seen::Backlog(true), Some(50)));
    for _ in 0..10 {
        subtask.advance(60);
    }
    assert_eq!(subtask.reports(), [AlignmentState::At(Timestamp(49))]);
    let barrier = Barrier { id: CheckpointId(7), kind: BarrierKind::ExactlyOnce };
    subtask.mail(TaskMail::Trigger(barrier));
    subtask.mail(TaskMail::Backlog(false));
    let passed = [Seen::Barrier(7), Seen::Backlog(false), Seen::Watermark(49)];
    assert_eq!(subtask.tape.take(), passed, "neither records nor idleness");
    subtask.mail(TaskMail::AlignTo(Some(Timestamp(90))));
    assert_eq!(last(&subtask.tape.take()), Some(100));
    subtask.mail(TaskMail::AlignTo(None));
    assert_eq!(last(&subtask.tape.take()), Some(1_000));
    // With nothing to read it is idle in time, and says so to its group; then it has ended.
    subtask.advance(100);
    subtask.advance(50);
    assert_eq!(subtask.idleness(), [true]);
    subtask.mail(TaskMail::NoMoreSplits);
    let reports = subtask.reports();
    assert_eq!(reports[reports.len() - 2..], [AlignmentState::Idle, AlignmentState::Ended]);
}

/// tW22: a subtask without a split says nothing of a watermark, and then that it is idle.
#[test]
fn an_aligned_source_without_a_split_holds_nobody_back() {
    let mut subtask = Subtask::new(ResolvedMode::Streaming, &*nothing(), &[], aligned());
    subtask.run();
    subtask.advance(50);
    assert_eq!(subtask.reports(), []);
    subtask.advance(50);
    subtask.advance(50);
    assert_eq!(subtask.reports(), [AlignmentState::Idle]);
}

/// A subtask that stands still says so once.
#[test]
fn reports_come_every_interval_and_only_news() {
    let (source, splits) = endless();
    let mut subtask = Subtask::new(ResolvedMode::Streaming, &*source, &splits, aligned());
    subtask.driver.mail(TaskMail::AlignTo(Some(Timestamp(0)))).unwrap();
    subtask.run();
    let reports: Vec<usize> = (0..4)
        .map(|_| {
            subtask.advance(50);
            subtask.reports().len()
        })
        .collect();
    assert_eq!(reports, [1, 0, 0, 0]);
}

/// Nothing but a source can be held back.
#[test]
fn alignment_without_a_source_is_refused_by_name() {
    let stage = Stage::new(ResolvedMode::Streaming);
    let Err(error) = Timestamps::new(aligned(), &stage.context) else { panic!("it was taken") };
    assert!(matches!(error, TaskError::User { .. }));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "watermark alignment is for sources: give the strategy to the source itself");
}
