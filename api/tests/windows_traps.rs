//! What window operators of other engines have got wrong, held against this one, record by record.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod script;

use std::sync::Arc;

use runtime::operator::window::{
    AggregateBody, ListBody, SlidingPanes, WindowOperator, WindowSettings,
};
use runtime::testing::Harness;
use script::Values;
use slackwater::prelude::*;
use slackwater::{
    ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger, CountEvictor, CountTrigger,
    DeltaEvictor, DeltaTrigger, EndOfStreamTrigger, EventTimeTrigger, GlobalWindows,
    ProcessWindowFunction, ProcessingTimeTrigger, PurgingTrigger, SessionProcessingTime,
    TimeEvictor, Trigger, TumblingProcessingTime, WindowAssigner,
};

type Rec = (u64, i64);
type Fired = (u64, i64, i64, Vec<i64>);
type Emit = for<'a, 'b> fn(Vec<i64>, Window, &'a mut KeyedContext<'b, u64, Fired>);
type Windows = WindowOperator<u64, Rec, Fired, AggregateBody<Values, Rec, Emit>>;
type WindowHarness = Harness<u64, Rec, Fired, Windows>;

const EMIT: Emit = |values, window, out| {
    let key = *out.key();
    out.collect((key, window.start().0, window.end().0, values));
};

fn ms(n: u64) -> std::time::Duration {
    std::time::Duration::from_millis(n)
}

fn settings(
    assigner: impl WindowAssigner<Rec>,
    trigger: Option<Arc<dyn Trigger<Rec>>>,
    lateness: u64,
) -> WindowSettings<Rec> {
    let trigger = trigger.unwrap_or_else(|| assigner.default_trigger());
    WindowSettings { assigner: Arc::new(assigner), trigger, allowed_lateness: ms(lateness) }
}

fn operator(settings: &WindowSettings<Rec>) -> Windows {
    let body = AggregateBody::new(Arc::new(Values), Arc::new(EMIT));
    WindowOperator::new(settings.clone(), body)
}

fn open(settings: &WindowSettings<Rec>) -> WindowHarness {
    Harness::open(operator(settings), |(key, _)| *key).unwrap()
}

fn sessions(trigger: Option<Arc<dyn Trigger<Rec>>>, lateness: u64) -> WindowHarness {
    open(&settings(SessionEventTime::with_gap(ms(10)), trigger, lateness))
}

fn push(harness: &mut WindowHarness, value: i64, at: i64) {
    harness.push((1, value), Timestamp(at)).unwrap();
}

fn watermark(harness: &mut WindowHarness, at: i64) -> Vec<Fired> {
    harness.watermark(Timestamp(at)).unwrap();
    harness.output()
}

/// tW4: a session that grows behind the watermark fires once, by its record and not by a timer too.
#[test]
fn a_late_merge_behind_the_watermark_fires_once() {
    let mut harness = sessions(None, 100);
    push(&mut harness, 1, 0);
    assert_eq!(watermark(&mut harness, 50), [(1, 0, 10, vec![1])]);
    push(&mut harness, 2, 5);
    assert_eq!(harness.output(), [(1, 0, 15, vec![1, 2])]);
    assert_eq!(watermark(&mut harness, 60), []);
    assert_eq!(watermark(&mut harness, 200), []);
    assert_eq!(harness.timers(), 0);
}

/// tW5: every trigger with windows that merge: nothing is lost, nothing fails, nothing is left over.
#[test]
fn every_trigger_works_with_merging_windows() {
    let continuous = || ContinuousEventTimeTrigger::of(ms(4));
    let delta = || DeltaTrigger::of(1.5, |a: &Rec, b: &Rec| (b.1 - a.1) as f64);
    let triggers: Vec<(&str, Arc<dyn Trigger<Rec>>, bool)> = vec![
        ("event time", Arc::new(EventTimeTrigger), true),
        ("continuous event time", Arc::new(continuous()), true),
        ("count", Arc::new(CountTrigger::of(3)), true),
        ("delta", Arc::new(delta()), true),
        ("end of stream", Arc::new(EndOfStreamTrigger), false),
        ("processing time", Arc::new(ProcessingTimeTrigger), false),
        ("continuous processing time", Arc::new(ContinuousProcessingTimeTrigger::of(ms(4))), false),
        ("purging event time", Arc::new(PurgingTrigger::of(EventTimeTrigger)), true),
        ("purging continuous", Arc::new(PurgingTrigger::of(continuous())), true),
        ("purging count", Arc::new(PurgingTrigger::of(CountTrigger::of(3))), true),
        ("purging delta", Arc::new(PurgingTrigger::of(delta())), true),
    ];
    for (name, trigger, fires) in triggers {
        let mut harness = sessions(Some(trigger), 20);
        push(&mut harness, 1, 0);
        push(&mut harness, 2, 18);
        let mut fired = watermark(&mut harness, 5);
        push(&mut harness, 4, 9);
        fired.extend(watermark(&mut harness, 27));
        push(&mut harness, 8, 20);
        harness.advance(ms(3)).unwrap();
        fired.extend(watermark(&mut harness, 400));
        assert_eq!(fires, !fired.is_empty(), "{name}: {fired:?}");
        let merged = fired.iter().flat_map(|(_, _, _, values)| values.clone());
        let all: std::collections::BTreeSet<i64> = merged.collect();
        if fires && name != "purging delta" && name != "count" && name != "purging count" {
            assert_eq!(all, [1, 2, 4, 8].into(), "{name}: {fired:?}");
        }
        harness.advance(ms(60_000)).unwrap();
        harness.end().unwrap();
        assert_eq!(harness.timers(), 0, "{name}");
        assert_eq!(harness.late(), [], "{name}");
    }
}

/// tW6: a trigger called at the window's end asks for nothing any more, in windows that end and in
/// the one that does not.
#[test]
fn a_continuous_trigger_sets_no_timer_at_the_end() {
    let trigger = || Some(Arc::new(ContinuousEventTimeTrigger::of(ms(5))) as Arc<dyn Trigger<Rec>>);
    let mut harness = open(&settings(TumblingEventTime::of(ms(10)), trigger(), 0));
    push(&mut harness, 1, 1);
    assert_eq!(watermark(&mut harness, 5), [(1, 0, 10, vec![1])]);
    assert_eq!(watermark(&mut harness, 9), [(1, 0, 10, vec![1])]);
    assert_eq!(harness.timers(), 0);
    let mut harness = open(&settings(GlobalWindows, trigger(), 0));
    push(&mut harness, 1, 1);
    harness.end().unwrap();
    assert_eq!(harness.timers(), 0);
    assert_eq!(harness.output().last().unwrap().3, [1]);
}

/// tW7: a window that is fired while empty is cleaned up all the same.
#[test]
fn firing_an_empty_window_leaves_its_clean_up_in_place() {
    let trigger = Arc::new(PurgingTrigger::of(EventTimeTrigger));
    let mut harness = open(&settings(TumblingEventTime::of(ms(10)), Some(trigger), 20));
    push(&mut harness, 1, 1);
    assert_eq!(watermark(&mut harness, 9), [(1, 0, 10, vec![1])]);
    assert_eq!(harness.timers(), 1, "the clean-up at 29");
    push(&mut harness, 2, 2);
    assert_eq!(harness.output(), [(1, 0, 10, vec![2])]);
    assert_eq!(watermark(&mut harness, 29), []);
    assert_eq!(harness.timers(), 0);
    push(&mut harness, 3, 3);
    assert_eq!((harness.output(), harness.late()), (vec![], vec![(1, 3)]));
    assert_eq!(harness.counts().late, 1);
}

/// Assigns a window far in the past to one value.
struct Misbehaving;

impl WindowAssigner<Rec> for Misbehaving {
    fn assign(&self, value: &Rec, at: Timestamp, windows: &mut Vec<Window>) -> anyhow::Result<()> {
        let start = if value.1 < 0 { Timestamp(at.0 - 1_000) } else { at };
        windows.push(Window::new(start, start + ms(10)));
        Ok(())
    }

    fn default_trigger(&self) -> Arc<dyn Trigger<Rec>> {
        Arc::new(EventTimeTrigger)
    }

    fn is_merging(&self) -> bool {
        true
    }
}

/// tW8: the clean-up of a window stands that it is late from the start, or gone already.
#[test]
fn clean_up_stands_windows_that_are_gone() {
    let mut harness = open(&settings(Misbehaving, None, 0));
    push(&mut harness, 1, 100);
    assert_eq!(watermark(&mut harness, 50), []);
    push(&mut harness, -1, 100);
    assert_eq!(harness.late(), [(1, -1)]);
    push(&mut harness, 2, 105);
    assert_eq!(watermark(&mut harness, 109), [], "the timer of the window that has grown");
    assert_eq!(watermark(&mut harness, 300), [(1, 100, 115, vec![1, 2])]);
    assert_eq!(harness.timers(), 0);
}

/// tW9: contents that were purged leave the session there, for late records to join.
#[test]
fn a_late_element_joins_its_old_session_after_a_purge() {
    let trigger = Arc::new(PurgingTrigger::of(EventTimeTrigger));
    let mut harness = sessions(Some(trigger), 100);
    push(&mut harness, 1, 0);
    push(&mut harness, 2, 5);
    assert_eq!(watermark(&mut harness, 14), [(1, 0, 15, vec![1, 2])]);
    push(&mut harness, 4, 12);
    assert_eq!(harness.output(), [], "the session goes on to 22");
    assert_eq!(watermark(&mut harness, 21), [(1, 0, 22, vec![4])]);
    push(&mut harness, 8, 3);
    assert_eq!(harness.output(), [(1, 0, 22, vec![8])]);
    harness.end().unwrap();
    assert_eq!((harness.output(), harness.timers()), (vec![], 0));
}

/// tW10, tK2: sessions that merge around a snapshot: the set of sessions is in it, contents have moved
/// with them, and what was merged is nowhere else.
#[test]
fn sessions_merge_across_a_snapshot_and_leave_nothing_behind() {
    let settings = settings(SessionEventTime::with_gap(ms(10)), None, 0);
    let mut harness = open(&settings);
    push(&mut harness, 1, 0);
    push(&mut harness, 2, 18);
    push(&mut harness, 4, 5);
    let mut harness =
        Harness::restore(operator(&settings), |(key, _)| *key, harness.snapshot().unwrap())
            .unwrap();
    push(&mut harness, 8, 12);
    let mut harness =
        Harness::restore(operator(&settings), |(key, _)| *key, harness.snapshot().unwrap())
            .unwrap();
    assert_eq!(harness.timers(), 1);
    assert_eq!(watermark(&mut harness, 100), [(1, 0, 28, vec![1, 2, 4, 8])]);
    // The namespaces of the windows before the merge hold nothing that would come out again.
    for (value, at) in [(16, 200), (32, 218)] {
        push(&mut harness, value, at);
    }
    assert_eq!(watermark(&mut harness, 300), [(1, 200, 210, vec![16]), (1, 218, 228, vec![32])]);
    assert_eq!(harness.timers(), 0);
}

/// tK11: a restored operator knows its watermark: it emits what it would have, and what was late is.
#[test]
fn a_restored_window_operator_emits_what_it_would_have() {
    let settings = settings(TumblingEventTime::of(ms(10)), None, 0);
    let script = [(4, 12), (8, 3), (16, 25)];
    let run = |restores: bool| {
        let mut harness = open(&settings);
        push(&mut harness, 1, 1);
        push(&mut harness, 2, 11);
        let mut fired = watermark(&mut harness, 9);
        if restores {
            let stored = harness.snapshot().unwrap();
            harness = Harness::restore(operator(&settings), |(key, _)| *key, stored).unwrap();
        }
        for (value, at) in script {
            push(&mut harness, value, at);
        }
        for at in [10, 19, 40] {
            fired.extend(watermark(&mut harness, at));
        }
        (fired, harness.late(), harness.timers())
    };
    assert_eq!(run(true), run(false));
    assert_eq!(run(true).1, [(1, 8)]);
}

/// Sliding windows by panes: late for one window and in time for the next, across a snapshot, with
/// panes that are empty and a pause between.
#[test]
fn panes_give_what_windows_one_by_one_do() {
    let assigner = SlidingEventTime::of(ms(25), ms(10));
    let aligned = WindowAssigner::<Rec>::aligned(&assigner).unwrap();
    let panes = || {
        let assigner = Arc::new(assigner);
        SlidingPanes::<Values, Rec, Emit>::new(Arc::new(Values), assigner, aligned, Arc::new(EMIT))
    };
    let one_by_one = settings(assigner, None, 0);
    for restores in [false, true] {
        let mut by_pane = Harness::open(panes(), |(key, _): &Rec| *key).unwrap();
        let mut by_window = open(&one_by_one);
        let mut fired = 0;
        // Records, and watermarks as records of value 0.
        let script = [
            (1, 3),
            (2, 14),
            (0, 15),
            (4, 12),
            (8, 16),
            (0, 24),
            (16, 22),
            (32, 7),
            (64, 31),
            (0, 38),
            (128, 90),
            (0, 300),
            (256, 1_000),
            (512, 1_002),
            (0, 1_003),
            (1_024, 1_001),
            (0, 1_020),
            (2_048, 1_004),
            (0, 5_000),
        ];
        for (value, at) in script {
            if value == 0 {
                by_pane.watermark(Timestamp(at)).unwrap();
                let expected = watermark(&mut by_window, at);
                fired += expected.len();
                assert_eq!(by_pane.output(), expected, "at {at}, restores: {restores}");
            } else {
                by_pane.push((1, value), Timestamp(at)).unwrap();
                push(&mut by_window, value, at);
            }
            assert_eq!(by_pane.late(), by_window.late());
            if restores {
                let stored = by_pane.snapshot().unwrap();
                by_pane = Harness::restore(panes(), |(key, _)| *key, stored).unwrap();
            }
        }
        assert!(fired > 10, "{fired}");
        assert_eq!(by_pane.timers(), 0);
    }
}

/// tW26: processing-time timers that were due while the job was down fire at once.
#[test]
fn restored_processing_time_windows_in_the_past_fire_at_once() {
    let settings = settings(TumblingProcessingTime::of(ms(10)), None, 0);
    let mut harness = open(&settings);
    harness.push((1, 1), None).unwrap();
    harness.advance(ms(5)).unwrap();
    harness.push((1, 2), None).unwrap();
    let stored = harness.snapshot().unwrap();
    let mut harness =
        Harness::restore(operator(&settings), |(key, _)| *key, stored.clone()).unwrap();
    harness.advance(ms(4)).unwrap();
    assert_eq!(harness.output(), [(1, 0, 10, vec![1, 2])]);
    let later = stored.resumed_at(Timestamp(1_000));
    let mut harness = Harness::restore(operator(&settings), |(key, _)| *key, later).unwrap();
    harness.advance(ms(0)).unwrap();
    assert_eq!(harness.output(), [(1, 0, 10, vec![1, 2])]);
    assert_eq!(harness.timers(), 0);
}

#[test]
fn processing_time_sessions_end_a_gap_after_their_last_record() {
    let mut harness = open(&settings(SessionProcessingTime::with_gap(ms(10)), None, 0));
    harness.push((1, 1), None).unwrap();
    harness.advance(ms(6)).unwrap();
    harness.push((1, 2), None).unwrap();
    harness.advance(ms(9)).unwrap();
    assert_eq!(harness.output(), [(1, 0, 16, vec![1, 2])]);
    assert_eq!(harness.timers(), 0);
}

/// tW25: the watermark t says that nothing at or before t follows; a record just behind it is in time.
#[test]
fn a_record_one_behind_the_watermark_is_in_time_and_one_at_it_is_late() {
    let mut harness = open(&settings(TumblingEventTime::of(ms(10)), None, 0));
    assert_eq!(watermark(&mut harness, 9), []);
    push(&mut harness, 1, 10);
    push(&mut harness, 2, 9);
    assert_eq!(harness.late(), [(1, 2)]);
    assert_eq!(watermark(&mut harness, 19), [(1, 10, 20, vec![1])]);
}

struct Opened {
    opened: bool,
}

impl ProcessWindowFunction<u64, Rec, i64> for Opened {
    fn open(&mut self, _: &mut state::KeyedStateBackend) -> anyhow::Result<()> {
        self.opened = true;
        Ok(())
    }

    fn process(
        &mut self,
        records: Vec<Rec>,
        _: Window,
        context: &mut KeyedContext<'_, u64, i64>,
    ) -> anyhow::Result<()> {
        anyhow::ensure!(self.opened, "not opened");
        context.collect(records.iter().map(|(_, value)| value).sum());
        Ok(())
    }
}

/// tS16: the user's function is opened inside of the window operator.
#[test]
fn a_window_function_is_opened_before_its_first_window() {
    let settings = settings(TumblingEventTime::of(ms(10)), None, 0);
    let body = ListBody::new(Opened { opened: false }, None);
    let operator = WindowOperator::<u64, Rec, i64, _>::new(settings, body);
    let mut harness = Harness::open(operator, |(key, _)| *key).unwrap();
    harness.push((1, 4), Timestamp(1)).unwrap();
    harness.push((1, 5), Timestamp(2)).unwrap();
    harness.end().unwrap();
    assert_eq!(harness.stamped_output(), [(9, Some(Timestamp(9)))]);
}

#[test]
fn evictors_leave_records_out() {
    let fired = |evictor: Arc<dyn slackwater::Evictor<Rec>>, trigger: Arc<dyn Trigger<Rec>>| {
        let settings = settings(GlobalWindows, Some(trigger), 0);
        let list = |records: Vec<Rec>, _: Window, out: &mut KeyedContext<'_, u64, Vec<i64>>| {
            out.collect(records.into_iter().map(|(_, value)| value).collect());
            Ok(())
        };
        let body =
            ListBody::new(runtime::operator::window::WindowClosure(Arc::new(list)), Some(evictor));
        let operator = WindowOperator::<u64, Rec, Vec<i64>, _>::new(settings, body);
        let mut harness = Harness::open(operator, |(key, _)| *key).unwrap();
        for (value, at) in [(1, 10), (2, 20), (3, 25), (9, 26), (10, 40), (11, 41)] {
            harness.push((1, value), Timestamp(at)).unwrap();
        }
        harness.output()
    };
    let every_second = || Arc::new(CountTrigger::of(2));
    let last_three = Arc::new(CountEvictor::of(3));
    assert_eq!(fired(last_three, every_second()), [vec![1, 2], vec![2, 3, 9], vec![9, 10, 11]]);
    let recent = Arc::new(TimeEvictor::of(ms(10)));
    assert_eq!(fired(recent, every_second()), [vec![2], vec![2, 3, 9], vec![10, 11]]);
    let near = Arc::new(DeltaEvictor::of(3.0, |a: &Rec, b: &Rec| (a.1 - b.1).abs() as f64));
    assert_eq!(fired(near, every_second()), [vec![1, 2], vec![9], vec![9, 10, 11]]);
}

#[test]
fn a_record_without_a_timestamp_is_refused_by_name() {
    let mut harness = open(&settings(TumblingEventTime::of(ms(10)), None, 0));
    let error = harness.push((1, 1), None).unwrap_err();
    let text = runtime::report::chain_of(&error);
    assert!(text.contains("assign timestamps first"), "{text}");
}

#[test]
fn windows_that_make_no_sense_are_refused_when_they_are_opened() {
    let size = settings(TumblingEventTime::of(ms(0)), None, 0);
    let offset = settings(TumblingEventTime::of(ms(10)).offset(ms(10)), None, 0);
    let gap = settings(SessionEventTime::with_gap(ms(0)), None, 0);
    for (settings, what) in [(size, "size"), (offset, "offset"), (gap, "gap")] {
        let error = Harness::open(operator(&settings), |(key, _): &Rec| *key).err().unwrap();
        let text = runtime::report::chain_of(&error);
        assert!(text.contains(what), "{text}");
    }
}

/// tW11: taking a hundred thousand timers of one key back ends soon; with a search for each it would not.
#[test]
fn many_timers_of_a_key_are_deleted_one_by_one() {
    use state::{TimerKind, TimerService};
    let mut timers = TimerService::new();
    let hash = element::KeyHash(7);
    for at in 0..100_000 {
        timers.register(TimerKind::EventTime, Timestamp(at), hash, b"key", b"");
    }
    for at in (0..100_000).rev() {
        assert!(timers.delete(TimerKind::EventTime, Timestamp(at), hash, b"key", b""));
    }
    assert!(timers.is_empty());
}

/// E1: a window of the whole stream comes out once a key, at the end of the input and not before,
/// whether there are watermarks or not.
#[test]
fn an_end_of_stream_window_emits_once_a_key_at_the_end() {
    for watermarks in [false, true] {
        let mut harness = open(&settings(slackwater::EndOfStreamWindows, None, 0));
        for value in 1..4 {
            push(&mut harness, value, value * 10);
            harness.push((2, value), None).unwrap();
            if watermarks {
                assert_eq!(watermark(&mut harness, 1_000 * value), []);
            }
        }
        assert_eq!(harness.output(), []);
        harness.end().unwrap();
        let mut fired: Vec<_> = harness.output();
        fired.sort();
        let of_key = |key| (key, i64::MIN, i64::MAX, vec![1, 2, 3]);
        assert_eq!(fired, [of_key(1), of_key(2)]);
        assert_eq!(harness.timers(), 0);
    }
}
