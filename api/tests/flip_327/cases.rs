//! The cases 07 to 10, by their files.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use slackwater::prelude::*;
use slackwater::{ScriptStep, ScriptedSource, TumblingEventTime, options};

use crate::support::{Recorded, Row, json, mixed, script_of};

struct Sum(ValueState<i64>);

impl KeyedProcessFunction<String, Row, Row> for Sum {
    fn process(&mut self, row: Row, context: &mut KeyedContext<'_, String, Row>) -> Result<()> {
        let sum = self.0.update(context, |sum| {
            let sum = sum.get_or_insert(0);
            *sum += row.1;
            *sum
        })?;
        context.collect((row.0, sum));
        Ok(())
    }
}

/// Runs the running sum of a case; every value in backlog if `every`, else the last of each key.
/// A phase begins when all output of the one before it is there.
fn running_sums(lines: &str, every: bool) -> (Vec<Row>, Vec<usize>, JobReport) {
    let outputs = Recorded::new();
    let mut steps = Vec::new();
    let mut ends = Vec::new();
    let (mut expected, mut keys) = (0, std::collections::BTreeSet::new());
    let mut backlog = false;
    let mut records = 0;
    for step in script_of(lines) {
        match step {
            ScriptStep::Backlog(flag) => {
                if !backlog {
                    steps.push(outputs.reaches(expected + records));
                }
                if !backlog || every {
                    expected += records;
                } else {
                    expected += keys.len();
                }
                if records > 0 {
                    ends.push(expected);
                }
                (backlog, records) = (flag, 0);
                keys.clear();
                steps.push(ScriptStep::Backlog(flag));
            }
            ScriptStep::Record(row, at) => {
                keys.insert(row.0.clone());
                records += 1;
                if !backlog && records == 1 {
                    // The first live record waits for all output of the backlog.
                    steps.push(outputs.reaches(expected));
                }
                steps.push(ScriptStep::Record(row, at));
            }
            other => steps.push(other),
        }
    }
    // A first step that waits would hide the flag.
    if matches!(steps.first(), Some(ScriptStep::Await(_))) {
        steps.remove(0);
    }
    let env = mixed();
    env.set(&options::STATE_BACKEND, options::StateBackendKind::Disk);
    let keyed = env
        .from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
        .key_by(|row: &Row| row.0.clone());
    let sums = if every {
        keyed.process(|| Sum(ValueState::new("sum")))
    } else {
        keyed.sum(|row: &Row| row.1)
    };
    let seen = outputs.clone();
    sums.name("sums").for_each(move |row| seen.push(row));
    let report = env.execute("case").unwrap();
    (outputs.all(), ends, report)
}

fn rows_of(value: &Value) -> Vec<Row> {
    let rows = value.as_array().unwrap().iter();
    rows.map(|row| (row[0].as_str().unwrap().to_owned(), row[1].as_i64().unwrap())).collect()
}

/// Sequences by key of one phase's output.
fn by_key(rows: &[Row]) -> BTreeMap<String, Vec<i64>> {
    let mut keys: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (key, value) in rows {
        keys.entry(key.clone()).or_default().push(*value);
    }
    keys
}

/// Compares a backlog or live phase with the case's `per_key`: every value, or the last of each key.
fn check_phase(rows: &[Row], expected: &Value, phase: usize, every: bool) {
    let mut wanted = BTreeMap::new();
    for (key, phases) in expected["per_key"].as_object().unwrap() {
        if let Some(values) = phases.get(phase.to_string()) {
            let mut values: Vec<i64> =
                values.as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).collect();
            if !every {
                values.drain(..values.len() - 1);
            }
            wanted.insert(key.clone(), values);
        }
    }
    assert_eq!(by_key(rows), wanted, "phase {phase}");
}

fn check_state(rows: &[Row], expected: &Value) {
    let last: BTreeMap<String, i64> = rows.iter().cloned().collect();
    for (key, value) in expected["state"].as_object().unwrap() {
        assert_eq!(last[key], value.as_i64().unwrap(), "state of {key}");
    }
}

/// Case 07; M10, M12 to M15.
#[test]
fn case_07_sorted_keyed_backlog_then_live_on_the_same_state() {
    let expected = json(include_str!("../cases/07-backlog-then-live/expected.json"));
    for every in [true, false] {
        let input = include_str!("../cases/07-backlog-then-live/input.jsonl");
        let (rows, ends, report) = running_sums(input, every);
        let (backlog, live) = rows.split_at(ends[0]);
        check_phase(backlog, &expected, 1, every);
        assert_eq!(live, rows_of(&expected["live"]));
        check_state(&rows, &expected);
        let phase = &report.operator("sums").unwrap().phases[0];
        let most = expected["max_backend_writes_during_backlog"].as_u64().unwrap();
        assert!(phase.state_writes <= most, "{phase:?}");
    }
}

/// Case 08; D7, M29, tB3.
#[test]
fn case_08_backlog_flip_flop() {
    let expected = json(include_str!("../cases/08-backlog-flip-flop/expected.json"));
    for every in [true, false] {
        let input = include_str!("../cases/08-backlog-flip-flop/input.jsonl");
        let (rows, ends, _) = running_sums(input, every);
        check_phase(&rows[..ends[0]], &expected, 1, every);
        assert_eq!(rows[ends[0]..ends[1]], rows_of(&expected["phase2"]));
        check_phase(&rows[ends[1]..ends[2]], &expected, 3, every);
        assert_eq!(rows[ends[2]..], rows_of(&expected["phase4"]));
        check_state(&rows, &expected);
    }
}

/// Key, start, end and values of a window.
type WindowRow = (String, i64, i64, Vec<i64>);

/// Windows of `size` over a case: `(key, start, end, values)` in order, and what was late.
fn windows(lines: &str, size: u64) -> (Vec<WindowRow>, Vec<i64>) {
    let env = mixed();
    let (windows, lates) = (Recorded::new(), Recorded::new());
    let source = ScriptedSource::new(script_of(lines));
    let result = env
        .from_source(source, WatermarkStrategy::none(), "script")
        .key_by(|row: &Row| row.0.clone())
        .window(TumblingEventTime::of(Duration::from_millis(size)))
        .apply(|rows: Vec<Row>, window, out| {
            let mut values: Vec<i64> = rows.iter().map(|row| row.1).collect();
            values.sort_unstable();
            let (start, end) = (window.start().as_millis(), window.end().as_millis());
            out.collect((rows[0].0.clone(), start, end, values));
        });
    let (fired, dropped) = result.with_late_output();
    let (seen, seen_late) = (windows.clone(), lates.clone());
    fired.for_each(move |window| seen.push(window));
    dropped.for_each(move |row| seen_late.push(row.1));
    env.execute("windows").unwrap();
    let (mut windows, mut lates) = (windows.all(), lates.all());
    windows.sort();
    lates.sort_unstable();
    (windows, lates)
}

fn lates_of(expected: &Value) -> Vec<i64> {
    expected["late"].as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).collect()
}

/// Case 09; D12, M18, M19, M21, M22, M26, M36.
#[test]
fn case_09_a_window_begun_in_the_backlog_and_finished_live() {
    let expected = json(include_str!("../cases/09-backlog-straddling-window/expected.json"));
    let input = include_str!("../cases/09-backlog-straddling-window/input.jsonl");
    let (fired, late) = windows(input, 10);
    let fired: Vec<Value> = fired.into_iter().map(|window| serde_json::json!(window)).collect();
    assert_eq!(Value::Array(fired), expected["windows"]);
    assert_eq!(late, lates_of(&expected));
}

/// Case 10; M18.
#[test]
fn case_10_the_bounded_half_of_a_hybrid_source_ends() {
    let expected = json(include_str!("../cases/10-backlog-final-watermark/expected.json"));
    let input = include_str!("../cases/10-backlog-final-watermark/input.jsonl");
    let (fired, late) = windows(input, 20);
    let sums: Vec<Value> = fired
        .into_iter()
        .map(|(key, start, end, values)| {
            serde_json::json!([key, start, end, values.iter().sum::<i64>()])
        })
        .collect();
    assert_eq!(Value::Array(sums), expected["windows"]);
    assert_eq!(late, lates_of(&expected));
}
