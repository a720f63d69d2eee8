//! Case 12, by its files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use slackwater::prelude::*;
use slackwater::{
    Boundedness, CapturedTable, Change, ChangeCaptureSource, ChangeKind, ChangeOf, KeyRange,
    LogEntry, LogPoll, LogReader, RowReader,
};

struct Chunk {
    range: KeyRange<i64>,
    rows: Vec<(i64, i64)>,
}

/// A table that shows what the case says: rows as they were read between two given positions.
struct Told {
    chunks: Vec<Chunk>,
    events: Vec<LogEntry<i64, i64, i64>>,
    /// The positions that it tells, in order: low and high of each chunk.
    positions: Mutex<Vec<i64>>,
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

impl Told {
    fn new(input: &Value) -> Self {
        let chunks = input["chunks"].as_array().unwrap();
        let mut bounds: Vec<Option<i64>> = chunks.iter().map(|c| Some(int(&c["lo"]))).collect();
        bounds[0] = None;
        bounds.push(None);
        let made = chunks.iter().zip(bounds.windows(2)).map(|(chunk, bounds)| Chunk {
            range: KeyRange { from: bounds[0], to: bounds[1] },
            rows: pairs(&chunk["rows"]),
        });
        let mut events: Vec<_> = input["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| LogEntry {
                position: int(&event[0]),
                key: int(&event[2]),
                row: (event[1] != "d").then(|| int(&event[3])),
            })
            .collect();
        events.sort_by_key(|event| event.position);
        let positions = chunks.iter().flat_map(|c| [int(&c["low"]), int(&c["high"])]);
        let mut positions: Vec<i64> = positions.collect();
        positions.reverse();
        Self { chunks: made.collect(), events, positions: Mutex::new(positions) }
    }
}

fn pairs(value: &Value) -> Vec<(i64, i64)> {
    value.as_array().unwrap().iter().map(|row| (int(&row[0]), int(&row[1]))).collect()
}

impl CapturedTable for Told {
    type Key = i64;
    type Row = i64;
    type Position = i64;

    fn chunk_bounds(&self) -> Result<Vec<i64>> {
        Ok(self.chunks.iter().filter_map(|chunk| chunk.range.from).collect())
    }

    fn position(&self) -> Result<i64> {
        Ok(self.positions.lock().unwrap().pop().unwrap())
    }

    fn read_chunk(&self, range: &KeyRange<i64>) -> Result<RowReader<i64, i64>> {
        let chunk = self.chunks.iter().find(|chunk| chunk.range == *range).unwrap();
        Ok(Box::new(chunk.rows.clone().into_iter().map(Ok)))
    }

    fn read_log(&self, after: &i64) -> Result<Box<dyn LogReader<i64, i64, i64>>> {
        let left = self.events.iter().filter(|event| event.position > *after).cloned();
        Ok(Box::new(Rest(left.collect())))
    }

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }
}

struct Rest(Vec<LogEntry<i64, i64, i64>>);

impl LogReader<i64, i64, i64> for Rest {
    fn poll(&mut self) -> Result<LogPoll<i64, i64, i64>> {
        let entries = std::mem::take(&mut self.0);
        Ok(if entries.is_empty() { LogPoll::End } else { LogPoll::Entries(entries) })
    }
}

/// How much each change adds to the sum over the table.
struct Delta(ValueState<i64>);

impl KeyedProcessFunction<i64, ChangeOf<Told>, i64> for Delta {
    fn process(
        &mut self,
        change: ChangeOf<Told>,
        context: &mut KeyedContext<'_, i64, i64>,
    ) -> Result<()> {
        let before = self.0.get(context)?.unwrap_or(0);
        let now = match change.kind.into_row() {
            Some(row) => {
                self.0.set(context, row)?;
                row
            }
            None => {
                self.0.clear(context)?;
                0
            }
        };
        context.collect(now - before);
        Ok(())
    }
}

fn check(input: &str, expected: &str) {
    let (input, expected): (Value, Value) =
        (serde_json::from_str(input).unwrap(), serde_json::from_str(expected).unwrap());
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(1))
        .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
        .set(&options::BACKLOG_STRATEGY, options::BacklogStrategy::Sort);
    let source = ChangeCaptureSource::new(Told::new(&input));
    let changes = env.from_source(source, WatermarkStrategy::none(), "table");
    let (seen, sum) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
    let (sink, total) = (Arc::clone(&seen), Arc::clone(&sum));
    changes.clone().for_each(move |change| sink.lock().unwrap().push(change));
    changes
        .key_by(|change| change.key)
        .process(|| Delta(ValueState::new("row")))
        .name("deltas")
        .for_each(move |delta| *total.lock().unwrap() += delta);
    let report = env.execute("case 12").unwrap();

    let (mut snapshot, mut live, mut last) = (Vec::new(), Vec::new(), BTreeMap::new());
    for Change { key, kind, position } in seen.lock().unwrap().drain(..) {
        match &kind {
            ChangeKind::Read(row) => snapshot.push((key, *row)),
            ChangeKind::Upsert(row) => live.push(json!([position, "u", key, row])),
            ChangeKind::Delete => live.push(json!([position, "d", key, null])),
        }
        match kind.into_row() {
            Some(row) => last.insert(key, row),
            None => last.remove(&key),
        };
    }
    // K9: the snapshot is the backlog, all of it and nothing else.
    let phases = &report.operator("deltas").unwrap().phases;
    assert_eq!(phases.iter().map(|phase| phase.records).sum::<u64>(), snapshot.len() as u64);
    snapshot.sort_unstable();
    assert_eq!(snapshot, pairs(&expected["snapshot"]));
    assert_eq!(Value::Array(live), expected["live"]);
    assert_eq!(last.into_iter().collect::<Vec<_>>(), pairs(&expected["final"]));
    let expected: i64 = pairs(&expected["final"]).into_iter().map(|(_, row)| row).sum();
    assert_eq!(*sum.lock().unwrap(), expected);
}

/// Case 12; K9.
#[test]
fn case_12_row_read_by_the_snapshot_and_again_from_the_log() {
    check(
        include_str!("../cases/12-snapshot-log-handover/input.json"),
        include_str!("../cases/12-snapshot-log-handover/expected.json"),
    );
}

/// The same over two chunks that were read at different positions of the log.
#[test]
fn each_chunk_has_positions_of_its_own() {
    check(
        r#"{"chunks": [
              {"lo": 1, "hi": 4, "low": 10, "high": 20, "rows": [[1, 1], [4, 4]]},
              {"lo": 5, "hi": 9, "low": 30, "high": 40, "rows": [[5, 5], [7, 7]]}],
            "events": [[15, "u", 1, 2], [18, "d", 7, null], [25, "u", 4, 5], [29, "u", 7, 7],
              [35, "u", 5, 6], [36, "u", 1, 3], [45, "d", 5, null]]}"#,
        r#"{"snapshot": [[1, 2], [4, 4], [5, 6], [7, 7]],
            "live": [[25, "u", 4, 5], [36, "u", 1, 3], [45, "d", 5, null]],
            "final": [[1, 3], [4, 5], [7, 7]]}"#,
    );
}
