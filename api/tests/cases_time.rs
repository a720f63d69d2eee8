//! Cases of windows, late records and joins, compared with their expected files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod script;

use runtime::operator::interval_join::{Interval, IntervalJoin, JoinCall};
use runtime::testing::Harness;
use script::{Step, Values, WAYS, Way, collect, env_of, play, records, sorted, streaming};
use serde_json::{Value, json};
use slackwater::prelude::*;
use slackwater::{Either, WindowedStream};
use std::sync::Arc;

type Rec = (String, i64);
type Fired = (String, i64, i64, Vec<i64>);

/// The function of the case's interval join.
type CaseJoin = JoinCall<String, (String, String), (String, i64), (String, i64, i64)>;

fn folder(case: &str) -> String {
    format!("{}/tests/cases/{case}", env!("CARGO_MANIFEST_DIR"))
}

fn expected(case: &str) -> Value {
    let text = std::fs::read_to_string(format!("{}/expected.json", folder(case))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn lines(case: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(format!("{}/input.jsonl", folder(case))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn record(line: &Value) -> (Rec, i64) {
    let key = line["k"].as_str().unwrap().to_owned();
    ((key, line["v"].as_i64().unwrap()), line["t"].as_i64().unwrap())
}

fn script(case: &str) -> Vec<Step<Rec>> {
    let step = |line: &Value| match line["wm"].as_i64() {
        Some(watermark) => Step::Watermark(watermark),
        None => {
            let (record, at) = record(line);
            Step::Record(record, at)
        }
    };
    lines(case).iter().map(step).collect()
}

fn ms(n: u64) -> std::time::Duration {
    std::time::Duration::from_millis(n)
}

fn listed(windows: WindowedStream<String, Rec>) -> (DataStream<Fired>, DataStream<Rec>) {
    windows
        .aggregate_with(Values, |values, window, out| {
            let key = out.key().clone();
            out.collect((key, window.start().0, window.end().0, values));
        })
        .with_late_output()
}

fn as_json<T: serde::Serialize>(fired: &[T]) -> Value {
    serde_json::to_value(fired).unwrap()
}

/// Case 24: tumbling and sliding windows below zero, in every mode.
#[test]
fn windows_below_zero_are_as_case_24_expects() {
    let expected = expected("24-window-alignment");
    let input: Vec<(Rec, i64)> = lines("24-window-alignment").iter().map(record).collect();
    for way in WAYS {
        let env = env_of(way);
        let stream = records(&env, way, &input, None);
        let keyed = stream.clone().key_by_ref(|(key, _)| key);
        let (tumbling, _) = listed(keyed.window(TumblingEventTime::of(ms(10))));
        let keyed = stream.key_by_ref(|(key, _)| key);
        let (sliding, _) = listed(keyed.window(SlidingEventTime::of(ms(15), ms(5))));
        let (tumbling, sliding) = (collect(tumbling), collect(sliding));
        env.execute("case 24").unwrap();
        let found =
            json!({"tumbling": as_json(&sorted(&tumbling)), "sliding": as_json(&sorted(&sliding))});
        assert_eq!(found, expected, "{way:?}");
    }
}

/// Case 25: sessions that merge, that touch, and that are over.
#[test]
fn sessions_merge_and_end_as_case_25_expects() {
    let env = streaming();
    let stream = play(&env, script("25-session-merge")).key_by_ref(|(key, _)| key);
    let (fired, late) = listed(stream.window(SessionEventTime::with_gap(ms(10))));
    let (fired, late) = (collect(fired.name("sessions")), collect(late));
    let report = env.execute("case 25").unwrap();
    let late: Vec<i64> = sorted(&late).into_iter().map(|(_, value)| value).collect();
    let found = json!({"windows": as_json(&sorted(&fired)), "late": late});
    assert_eq!(found, expected("25-session-merge"));
    assert_eq!(report.operator("sessions").unwrap().late, late.len() as u64);
}

/// Case 26: late for one sliding window and in time for the next. By panes and window by window.
#[test]
fn late_records_count_in_open_windows_only_as_case_26_expects() {
    for lists in [false, true] {
        let env = streaming();
        let stream = play(&env, script("26-late-records")).key_by_ref(|(key, _)| key);
        let windows = stream.window(SlidingEventTime::of(ms(20), ms(10)));
        let result = if lists {
            windows.apply(|records, window, out| {
                let sum: i64 = records.iter().map(|(_, value)| value).sum();
                let key = out.key().clone();
                out.collect((key, window.start().0, window.end().0, sum));
            })
        } else {
            windows.reduce_with(
                |(key, a), (_, b)| (key, a + b),
                |(key, sum), window, out| {
                    out.collect((key, window.start().0, window.end().0, sum));
                },
            )
        };
        let (fired, late) = result.with_late_output();
        let (fired, late) = (collect(fired), collect(late));
        env.execute("case 26").unwrap();
        let late: Vec<i64> = sorted(&late).into_iter().map(|(_, value)| value).collect();
        let found = json!({"windows": as_json(&sorted(&fired)), "late": late});
        assert_eq!(found, expected("26-late-records"), "lists: {lists}");
    }
}

type Side = (String, Value);

/// The pairs that an interval join gives for the case's script, in its order.
fn joined(interval: Interval) -> Value {
    type Both = Either<(String, String), (String, i64)>;
    let call: Arc<CaseJoin> = Arc::new(|(_, left), (_, right), context| {
        let at = context.timestamp().unwrap_or_default().0;
        context.collect((left.clone(), *right, at));
        Ok(())
    });
    let key = |value: &Both| match value {
        Either::Left((key, _)) | Either::Right((key, _)) => key.clone(),
    };
    let mut harness = Harness::open(IntervalJoin::new(interval, call), key).unwrap();
    for line in lines("27-stream-joins") {
        if let Some(watermark) = line["wm"].as_i64() {
            harness.watermark(Timestamp(watermark)).unwrap();
            continue;
        }
        let (key, value): Side = (line["k"].as_str().unwrap().to_owned(), line["v"].clone());
        let at = Timestamp(line["t"].as_i64().unwrap());
        let value = match line["side"].as_str() {
            Some("L") => Either::Left((key, value.as_str().unwrap().to_owned())),
            _ => Either::Right((key, value.as_i64().unwrap())),
        };
        harness.push(value, at).unwrap();
    }
    let mut pairs = harness.output();
    pairs.sort();
    harness.end().unwrap();
    assert_eq!(harness.timers(), 0, "nothing waits behind the end of time");
    as_json(&pairs)
}

/// Case 27: both ends, excluded ends, equal times, and records behind the watermark.
#[test]
fn interval_joins_keep_their_bounds_as_case_27_expects() {
    let at = |lower, upper| joined(Interval { lower, upper });
    let found = json!({
        "closed": at(-2, 3),
        "lower_excluded": at(-1, 3),
        "upper_excluded": at(-2, 2),
        "both_excluded": at(-1, 2),
    });
    assert_eq!(found, expected("27-stream-joins"));
}

/// The records of one side of case 27 but for its late ones, and for one that comes with the first
/// watermark: those depend on how two inputs interleave.
fn in_time(side: &str) -> Vec<((String, String), i64)> {
    let lines = lines("27-stream-joins");
    let of_side = lines.iter().filter(|line| line["side"] == side);
    let of_side = of_side.filter(|line| line["v"] != json!(6) && line["v"] != json!(8));
    let pair = |line: &Value| {
        let key = line["k"].as_str().unwrap().to_owned();
        ((key, line["v"].to_string()), line["t"].as_i64().unwrap())
    };
    of_side.map(pair).collect()
}

/// Pairs through the api, with each bound included or not. Seen from the other side, the bounds change
/// places and signs.
fn joined_by_a_program(way: Way, excluded: [bool; 2], is_mirrored: bool) -> Value {
    let env = env_of(way);
    let [left, right] =
        ["L", "R"].map(|side| records(&env, way, &in_time(side), None).key_by_ref(|(key, _)| key));
    let (join, [no_lower, no_upper], lower, upper) = if is_mirrored {
        (right.interval_join(left), [excluded[1], excluded[0]], ms(3), ms(2))
    } else {
        (left.interval_join(right), excluded, ms(2), ms(3))
    };
    // One is said before the bounds and one behind them: that makes no difference.
    let join = if no_lower { join.lower_bound_exclusive() } else { join };
    let join = join.between(TimeOffset::before(lower), upper);
    let join = if no_upper { join.upper_bound_exclusive() } else { join };
    let pairs = join.process(move |(_, first), (_, second), out| {
        let at = out.timestamp().unwrap_or_default().0;
        let (left, right) = if is_mirrored { (second, first) } else { (first, second) };
        out.collect((left.clone(), right.clone(), at));
    });
    let pairs = collect(pairs.into_stream());
    env.execute("case 27").unwrap();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let pairs = sorted(&pairs).into_iter();
    pairs.map(|(left, right, at)| json!([value(&left), value(&right), at])).collect()
}

/// Case 27 through the api.
#[test]
fn an_interval_join_of_streams_keeps_its_bounds_in_every_mode() {
    let expected = expected("27-stream-joins");
    let variants = [
        ("closed", [false, false]),
        ("lower_excluded", [true, false]),
        ("upper_excluded", [false, true]),
        ("both_excluded", [true, true]),
    ];
    for way in WAYS {
        for (variant, excluded) in variants {
            for is_mirrored in [false, true] {
                let found = joined_by_a_program(way, excluded, is_mirrored);
                assert_eq!(found, expected[variant], "{way:?}, {variant}, mirrored: {is_mirrored}");
            }
        }
    }
}
