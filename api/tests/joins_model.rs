//! Joins against a naive model, run as batch, as stream and as backlog-then-stream.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod script;

use proptest::prelude::*;
use runtime::operator::window::{ListBody, WindowClosure, WindowOperator, WindowSettings};
use runtime::testing::Harness;
use script::{Step, WAYS, Way, collect, env_of, play, records, sorted, streaming};
use slackwater::prelude::*;
use slackwater::{CountTrigger, Either, TwoInputBacklog, WindowAssigner, WindowedJoin};
use std::sync::Arc;

type Rec = (u64, i64);
/// Left and right value, and the result's timestamp.
type Pair = (Option<i64>, Option<i64>, i64);

fn ms(n: i64) -> std::time::Duration {
    std::time::Duration::from_millis(n.unsigned_abs())
}

fn start_of(at: i64, size: i64) -> i64 {
    at - at.rem_euclid(size)
}

/// Pairs of records in one tumbling window, and records alone in theirs, as sides ask.
fn window_model(
    left: &[(Rec, i64)],
    right: &[(Rec, i64)],
    size: i64,
    alone: (bool, bool),
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let meets = |a: &(Rec, i64), b: &(Rec, i64)| {
        a.0.0 == b.0.0 && start_of(a.1, size) == start_of(b.1, size)
    };
    let end = |at: i64| start_of(at, size) + size - 1;
    for a in left {
        let met: Vec<_> = right.iter().filter(|b| meets(a, b)).collect();
        pairs.extend(met.iter().map(|b| (Some(a.0.1), Some(b.0.1), end(a.1))));
        if met.is_empty() && alone.0 {
            pairs.push((Some(a.0.1), None, end(a.1)));
        }
    }
    for b in right.iter().filter(|b| alone.1 && !left.iter().any(|a| meets(a, b))) {
        pairs.push((None, Some(b.0.1), end(b.1)));
    }
    pairs.sort();
    pairs
}

fn interval_model(left: &[(Rec, i64)], right: &[(Rec, i64)], lower: i64, upper: i64) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for ((key, a), at) in left {
        for ((other, b), time) in right {
            if key == other && (at + lower..=at + upper).contains(time) {
                pairs.push((Some(*a), Some(*b), *at.max(time)));
            }
        }
    }
    pairs.sort();
    pairs
}

fn at(out: &KeyedContext<'_, u64, Pair>) -> i64 {
    out.timestamp().unwrap_or_default().0
}

fn input() -> impl Strategy<Value = Vec<(Rec, i64)>> {
    prop::collection::vec(((0..3_u64, -50..50_i64), -60..60_i64), 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    /// M7, M28: joins by window and by interval are what the model says, in every mode and with both
    /// rules for two inputs.
    #[test]
    fn joins_agree_with_the_model_in_every_mode(
        left in input(),
        right in input(),
        size in 1..40_i64,
        lower in -20..20_i64,
        width in 0..20_i64,
    ) {
        for way in WAYS {
            for rule in [TwoInputBacklog::UntilOneLive, TwoInputBacklog::UntilAllLive] {
                if rule == TwoInputBacklog::UntilAllLive && way != Way::Mixed {
                    continue;
                }
                check(way, rule, &left, &right, size, (lower, lower + width));
            }
        }
    }
}

fn check(
    way: Way,
    rule: TwoInputBacklog,
    left: &[(Rec, i64)],
    right: &[(Rec, i64)],
    size: i64,
    (lower, upper): (i64, i64),
) {
    let env = env_of(way);
    let lefts = records(&env, way, left, None);
    let rights = records(&env, way, right, None);
    let windowed = || -> WindowedJoin<u64, Rec, Rec> {
        let (lefts, rights) = (lefts.clone(), rights.clone());
        let joined = lefts.key_by(|(key, _)| *key).join(rights.key_by(|(key, _)| *key));
        joined.window(TumblingEventTime::of(ms(size))).backlog(rule)
    };
    let inner = windowed().inner(|a, b, out| out.collect((Some(a.1), Some(b.1), at(out))));
    let outer_left =
        windowed().left_outer(|a, b, out| out.collect((Some(a.1), b.map(|b| b.1), at(out))));
    let outer_right =
        windowed().right_outer(|a, b, out| out.collect((a.map(|a| a.1), Some(b.1), at(out))));
    let full =
        windowed().full_outer(|a, b, out| out.collect((a.map(|a| a.1), b.map(|b| b.1), at(out))));
    let offset = |n: i64| {
        if n < 0 { TimeOffset::before(ms(n)) } else { TimeOffset::after(ms(n)) }
    };
    let near = lefts
        .clone()
        .key_by(|(key, _)| *key)
        .interval_join(rights.clone().key_by(|(key, _)| *key))
        .between(offset(lower), offset(upper))
        .backlog(rule)
        .process(|a, b, out| out.collect((Some(a.1), Some(b.1), at(out))));
    let inner = collect(inner.into_stream());
    let (outer_left, outer_right) =
        (collect(outer_left.into_stream()), collect(outer_right.into_stream()));
    let (full, near) = (collect(full.into_stream()), collect(near.into_stream()));
    env.execute("joins").unwrap();
    let model = |alone| window_model(left, right, size, alone);
    assert_eq!(sorted(&inner), model((false, false)), "inner, {way:?}, {rule:?}");
    assert_eq!(sorted(&outer_left), model((true, false)), "left, {way:?}, {rule:?}");
    assert_eq!(sorted(&outer_right), model((false, true)), "right, {way:?}, {rule:?}");
    assert_eq!(sorted(&full), model((true, true)), "full, {way:?}, {rule:?}");
    let expected = interval_model(left, right, lower, upper);
    assert_eq!(sorted(&near), expected, "interval, {way:?}, {rule:?}");
}

/// tW14: trigger and allowed lateness, set on a join, reach its window. tS17: the values of a group
/// are the function's own.
#[test]
fn options_of_a_join_reach_its_window() {
    let steps = |side: i64| {
        let record = move |value: i64, at: i64| Step::Record((1_u64, side * value), at);
        vec![record(1, 1), Step::Watermark(50), record(2, 2), Step::Watermark(60)]
    };
    let env = streaming();
    let joined = |env: &StreamExecutionEnvironment| {
        let left = play(env, steps(1)).key_by(|(key, _)| *key);
        left.join(play(env, steps(10)).key_by(|(key, _)| *key))
            .window(TumblingEventTime::of(ms(10)))
    };
    let kept = joined(&env).allowed_lateness(ms(1_000)).co_group(
        |lefts, rights, _, out: &mut KeyedContext<'_, u64, (Vec<i64>, Vec<i64>)>| {
            let values = |records: Vec<Rec>| {
                let mut values: Vec<i64> = records.into_iter().map(|(_, value)| value).collect();
                values.sort_unstable();
                values
            };
            out.collect((values(lefts), values(rights)));
        },
    );
    let (kept, late) = kept.with_late_output();
    let (kept, late) = (collect(kept), collect(late));
    let counted = joined(&env)
        .allowed_lateness(ms(1_000))
        .trigger(CountTrigger::of(4))
        .inner(|a, b, out| out.collect((a.1, b.1)));
    let counted = collect(counted.into_stream());
    env.execute("options").unwrap();
    let last = sorted(&kept).into_iter().max_by_key(|(a, b)| a.len() + b.len());
    assert_eq!(last, Some((vec![1, 2], vec![10, 20])));
    assert_eq!(late.lock().unwrap().len(), 0);
    assert_eq!(
        sorted(&counted),
        [(1, 10), (1, 20), (2, 10), (2, 20)],
        "with the fourth record only"
    );
}

/// tW13: a window join goes on from a snapshot with the records of both sides.
#[test]
fn a_window_join_restores_both_of_its_sides() {
    type Both = Either<Rec, Rec>;
    let operator = || {
        let windows = TumblingEventTime::of(ms(10));
        let trigger = WindowAssigner::<Both>::default_trigger(&windows);
        let settings = WindowSettings {
            assigner: Arc::new(windows),
            trigger,
            allowed_lateness: std::time::Duration::ZERO,
        };
        let list = |records: Vec<Both>, _: Window, out: &mut KeyedContext<'_, u64, Both>| {
            records.into_iter().for_each(|record| out.collect(record));
            Ok(())
        };
        let body = ListBody::new(WindowClosure(Arc::new(list)), None);
        WindowOperator::<u64, Both, Both, _>::new(settings, body)
    };
    let key = |value: &Both| match value {
        Either::Left((key, _)) | Either::Right((key, _)) => *key,
    };
    let mut harness = Harness::open(operator(), key).unwrap();
    harness.push(Either::Left((1, 1)), Timestamp(1)).unwrap();
    harness.push(Either::Right((1, 2)), Timestamp(2)).unwrap();
    let stored = harness.snapshot().unwrap();
    let mut harness = Harness::restore(operator(), key, stored).unwrap();
    harness.push(Either::Left((1, 3)), Timestamp(3)).unwrap();
    harness.watermark(Timestamp(9)).unwrap();
    assert_eq!(
        harness.output(),
        [Either::Left((1, 1)), Either::Right((1, 2)), Either::Left((1, 3))]
    );
}
