//! Sliding windows by panes against windows one by one: random histories with late records and pauses,
//! watermarks that stand and leap, and a restore at any moment.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod script;

use std::sync::Arc;

use proptest::prelude::*;
use runtime::operator::window::{AggregateBody, SlidingPanes, WindowOperator, WindowSettings};
use runtime::testing::Harness;
use script::Values;
use slackwater::WindowAssigner;
use slackwater::prelude::*;

type Rec = (u64, i64);
type Fired = (u64, i64, i64, Vec<i64>);
type Emit = for<'a, 'b> fn(Vec<i64>, Window, &'a mut KeyedContext<'b, u64, Fired>);
type Panes = SlidingPanes<Values, Rec, Emit>;
type Windows = WindowOperator<u64, Rec, Fired, AggregateBody<Values, Rec, Emit>>;

const EMIT: Emit = |values, window, out| {
    let key = *out.key();
    out.collect((key, window.start().0, window.end().0, values));
};

#[derive(Clone, Debug)]
enum Step {
    /// A record of a key, so far from the watermark.
    Record(u64, i64),
    /// The watermark moves on.
    Watermark(i64),
    Restore,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..3_u64, -70..40_i64).prop_map(|(key, by)| Step::Record(key, by)),
        6 => (1..15_i64).prop_map(Step::Watermark),
        1 => (100..400_i64).prop_map(Step::Watermark),
        2 => Just(Step::Restore),
    ];
    prop::collection::vec(step, 1..120)
}

fn panes(assigner: SlidingEventTime) -> Panes {
    let aligned = WindowAssigner::<Rec>::aligned(&assigner).unwrap();
    SlidingPanes::new(Arc::new(Values), Arc::new(assigner), aligned, Arc::new(EMIT))
}

fn windows(assigner: SlidingEventTime) -> Windows {
    let trigger = WindowAssigner::<Rec>::default_trigger(&assigner);
    let assigner = Arc::new(assigner);
    let allowed_lateness = std::time::Duration::ZERO;
    let settings = WindowSettings { assigner, trigger, allowed_lateness };
    WindowOperator::new(settings, AggregateBody::new(Arc::new(Values), Arc::new(EMIT)))
}

/// What a history gives: results by watermark, late records, and the timers that are left.
macro_rules! run {
    ($make:expr, $steps:expr) => {{
        let mut harness = Harness::open($make, |(key, _): &Rec| *key).unwrap();
        let (mut now, mut fired) = (-50, Vec::new());
        harness.watermark(Timestamp(now)).unwrap();
        for (value, step) in (1..).zip($steps) {
            match *step {
                Step::Record(key, by) => harness.push((key, value), Timestamp(now + by)).unwrap(),
                Step::Watermark(by) => {
                    now += by;
                    harness.watermark(Timestamp(now)).unwrap();
                    fired.push(harness.output());
                }
                Step::Restore => {
                    fired.push(harness.output());
                    fired.push(Vec::new());
                    let late = harness.late();
                    fired.extend(
                        late.into_iter().map(|(key, value)| vec![(key, 0, 0, vec![value])]),
                    );
                    let stored = harness.snapshot().unwrap();
                    harness = Harness::restore($make, |(key, _): &Rec| *key, stored).unwrap();
                }
            }
        }
        harness.watermark(Timestamp(now + 10_000)).unwrap();
        fired.push(harness.output());
        fired.iter_mut().for_each(|rows| rows.sort());
        (fired, harness.late(), harness.timers())
    }};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn panes_give_what_windows_one_by_one_do_in_any_history(
        steps in steps(),
        size in 1..60_i64,
        slide in 1..20_i64,
    ) {
        let millis = |n: i64| std::time::Duration::from_millis(n.unsigned_abs());
        let assigner = SlidingEventTime::of(millis(size + slide), millis(slide));
        let by_pane = run!(panes(assigner), &steps);
        let by_window = run!(windows(assigner), &steps);
        prop_assert_eq!(by_pane.2, 0);
        prop_assert_eq!(by_pane, by_window);
    }
}
