//! Timers over backlog, batch and live input.

use element::Timestamp;
use slackwater_runtime::operator::keyed_context::KeyedContext;
use slackwater_runtime::operator::process::{KeyedProcessFunction, Process};

use crate::harness::{Harness, Row, Seen, Setting};

/// What happened: a record or a timer, of which key, with which watermark seen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Record(u32, i64, i64),
    Timer(u32, i64, i64),
    Processing(u32, i64),
}

/// Registers an event-time timer at the record's value; a negative value is a processing-time timer.
/// A timer that fires registers the one at its time plus `again`.
pub(crate) struct Timers {
    pub(crate) again: Option<i64>,
}

impl KeyedProcessFunction<u32, Row, Event> for Timers {
    fn process(
        &mut self,
        row: Row,
        context: &mut KeyedContext<'_, u32, Event>,
    ) -> anyhow::Result<()> {
        let watermark = context.watermark().as_millis();
        context.collect(Event::Record(row.0, row.1, watermark));
        if row.1 >= 0 {
            context.timers().register_event(Timestamp::from_millis(row.1));
        } else {
            context.timers().register_processing(Timestamp::from_millis(-row.1));
        }
        Ok(())
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        context: &mut KeyedContext<'_, u32, Event>,
    ) -> anyhow::Result<()> {
        let (key, watermark) = (*context.key(), context.watermark().as_millis());
        context.collect(Event::Timer(key, at.as_millis(), watermark));
        if let Some(again) = self.again {
            context.timers().register_event(at.saturating_add(again));
        }
        Ok(())
    }

    fn on_processing_timer(
        &mut self,
        at: Timestamp,
        context: &mut KeyedContext<'_, u32, Event>,
    ) -> anyhow::Result<()> {
        let key = *context.key();
        context.collect(Event::Processing(key, at.as_millis()));
        Ok(())
    }
}

type TimerHarness = Harness<Process<Timers, Row>, Event>;

pub(crate) fn timers(setting: Setting, again: Option<i64>) -> TimerHarness {
    Harness::new(setting, Process::new(Timers { again }))
}

const MIN: i64 = i64::MIN;

fn timers_of(events: &[Event]) -> Vec<(u32, i64)> {
    let fired = events.iter().filter_map(|event| match event {
        Event::Timer(key, at, _) => Some((*key, *at)),
        _ => None,
    });
    fired.collect()
}

/// M21, D10, M25: due timers at the end of their key, in order of time, with that key current and the
/// watermark from before the phase; those of other keys behind the drained ones, before the flag.
#[test]
fn due_timers_fire_at_the_end_of_their_key_and_those_of_other_keys_behind() {
    let mut harness = timers(Setting::mixed(), None);
    harness.live(None);
    harness.watermark(1);
    harness.push_at(&[(1, (7, 12)), (1, (8, 11)), (1, (1, 13))]);
    harness.backlog();
    harness.push_at(&[(2, (1, 15)), (3, (1, 10)), (4, (1, 40))]);
    let _before = harness.take();
    harness.live(Some(20));
    let seen = harness.take();
    let at = |event, time| Seen::Record(event, Some(time));
    let expected = [
        at(Event::Record(1, 15, 1), 2),
        at(Event::Record(1, 10, 1), 3),
        at(Event::Record(1, 40, 1), 4),
        at(Event::Timer(1, 10, 1), 10),
        at(Event::Timer(1, 13, 1), 13),
        at(Event::Timer(1, 15, 1), 15),
        at(Event::Timer(8, 11, 1), 11),
        at(Event::Timer(7, 12, 1), 12),
        Seen::Backlog(false),
        Seen::Watermark(20),
    ];
    assert_eq!(seen, expected);
    // M22: the one beyond the watermark fires later, once; behind the switch the watermark is seen.
    harness.watermark(50);
    harness.watermark(60);
    let later = [at(Event::Timer(1, 40, 50), 40), Seen::Watermark(50), Seen::Watermark(60)];
    assert_eq!(harness.take(), later);
}

/// M23, tS10: a timer that a firing one registers fires if it is due, also when it registers itself.
#[test]
fn a_timer_registered_by_a_firing_one_fires_if_due_and_never_for_ever() {
    let mut harness = timers(Setting::mixed(), Some(10));
    harness.backlog();
    harness.push_at(&[(1, (1, 5))]);
    harness.live(Some(30));
    assert_eq!(timers_of(&harness.take_records()), [(1, 5), (1, 15), (1, 25)]);
    harness.watermark(35);
    assert_eq!(timers_of(&harness.take_records()), [(1, 35)]);

    for setting in [Setting::mixed(), Setting::streaming(), Setting::batch()] {
        let mut itself = timers(setting, Some(0));
        itself.backlog();
        itself.push_at(&[(1, (1, 5))]);
        itself.live(Some(30));
        itself.watermark(40);
        itself.end();
        let fired = timers_of(&itself.take_records());
        assert!(!fired.is_empty() && fired.len() < 100, "{}", fired.len());
    }
}

/// M24, tB4, tS9: processing-time timers of a phase fire at the end of their key, by their own
/// callback and without a timestamp; one that is due in the middle of the drain waits for its turn.
#[test]
fn processing_timers_fire_at_the_end_of_their_key() {
    let mut harness = timers(Setting::mixed(), None);
    harness.backlog();
    harness.push_at(&[(1, (1, -900)), (2, (1, -5_000)), (3, (1, -950))]);
    harness.clock_to(1_100);
    assert!(harness.take_records().is_empty());
    harness.live(None);
    let seen = harness.take();
    assert_eq!(
        seen[3..5],
        [
            Seen::Record(Event::Processing(1, 900), None),
            Seen::Record(Event::Processing(1, 950), None),
        ]
    );
    harness.clock_to(5_000);
    assert_eq!(harness.take_records(), [Event::Processing(1, 5_000)]);
}

/// A processing-time timer registered live for a key that is in no phase fires behind the drain.
#[test]
fn a_processing_timer_of_another_key_fires_behind_the_drain() {
    let mut harness = timers(Setting::mixed(), None);
    harness.live(None);
    harness.push_at(&[(1, (9, -1_500))]);
    harness.backlog();
    harness.push_at(&[(1, (1, -9_000))]);
    let _before = harness.take();
    harness.clock_to(2_000);
    assert!(harness.take_records().is_empty(), "nothing fires while records are collected");
    harness.live(None);
    harness.run_timers();
    assert_eq!(
        harness.take_records(),
        [Event::Record(1, -9_000, MIN), Event::Processing(9, 1_500)]
    );
}

/// T6, T12, tS11: in batch mode timers fire once a key, in order of time, the watermark at its end;
/// within the key it is at its beginning; what they register is dropped and counted.
#[test]
fn in_batch_mode_timers_fire_key_by_key_with_the_watermark_at_its_end() {
    let mut harness = timers(Setting::batch(), Some(1));
    harness.push_at(&[(1, (1, 30)), (2, (1, 20)), (3, (1, 20)), (4, (2, 25)), (5, (2, -9_000))]);
    harness.end();
    let events = harness.take_records();
    let of_one = events.iter().filter(|event| {
        matches!(event, Event::Record(1, ..) | Event::Timer(1, ..) | Event::Processing(1, ..))
    });
    let expected = [
        Event::Record(1, 30, MIN),
        Event::Record(1, 20, MIN),
        Event::Record(1, 20, MIN),
        Event::Timer(1, 20, i64::MAX),
        Event::Timer(1, 30, i64::MAX),
    ];
    assert!(of_one.eq(&expected), "{events:?}");
    assert!(events.contains(&Event::Processing(2, 9_000)));
    assert_eq!(timers_of(&events).len(), 3);
}

/// tB5: many timers of keys outside of the phase cost the phase nothing: each of them fires once.
#[test]
fn many_timers_of_other_keys_do_not_slow_the_drain() {
    let mut harness = timers(Setting::mixed(), None);
    harness.live(None);
    for chunk in 0..100 {
        let rows: Vec<(i64, Row)> =
            (0..1_000).map(|i| (1, (chunk * 1_000 + i + 10_000, 50))).collect();
        harness.push_at(&rows);
    }
    harness.backlog();
    let rows: Vec<(i64, Row)> = (0..1_000).map(|key| (2, (key, 900))).collect();
    harness.push_at(&rows);
    let _before = harness.take();
    let begun = std::time::Instant::now();
    harness.live(Some(20));
    assert_eq!(harness.take_records().len(), 1_000);
    assert!(begun.elapsed().as_secs() < 5, "quadratic: {:?}", begun.elapsed());
}
