//! Whole jobs over a captured table, in every mode.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{CapturedTable, ChangeCaptureSource, KeyRange, LogPoll, LogReader, RowReader};

use crate::sim::check;
use crate::table::{Entry, Item, Table};

/// The changes that the last operator of a job has seen, each key's in order.
fn run(env: &StreamExecutionEnvironment, table: &Table) -> Vec<Item> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let source = ChangeCaptureSource::new(table.clone());
    env.from_source(source, WatermarkStrategy::none(), "table")
        .key_by(|change| change.key)
        .process(|| Keep(ListState::new("changes")))
        .for_each(move |change| sink.lock().unwrap().push(change));
    env.execute("captured").unwrap();
    std::mem::take(&mut seen.lock().unwrap())
}

/// Passes changes on and keeps them, so that its backlog is sorted.
struct Keep(ListState<u64>);

impl KeyedProcessFunction<u32, Item, Item> for Keep {
    fn process(&mut self, change: Item, context: &mut KeyedContext<'_, u32, Item>) -> Result<()> {
        self.0.add(context, change.position)?;
        context.collect(change);
        Ok(())
    }
}

/// K9: at any parallelism, sorted or not, each key's changes reach its operator once and in order.
#[test]
fn a_keyed_operator_sees_each_change_once_and_in_order() {
    for (seed, parallelism) in [(1, 1), (2, 3), (3, 4)] {
        for mixed in [false, true] {
            let env = StreamExecutionEnvironment::new();
            env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
                .set(&options::PARALLELISM, Some(parallelism));
            if mixed {
                env.set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
                    .set(&options::BACKLOG_STRATEGY, options::BacklogStrategy::Sort);
            }
            let table = Table::new(seed, 500, 2_000, &[100, 150, 200, 300, 450]);
            check(&table, &run(&env, &table));
        }
    }
}

/// A log that is no log: its second entry lies at the first one's place.
struct Broken {
    bounds: Vec<u32>,
}

impl CapturedTable for Broken {
    type Key = u32;
    type Row = i64;
    type Position = u64;

    fn chunk_bounds(&self) -> Result<Vec<u32>> {
        Ok(self.bounds.clone())
    }

    fn position(&self) -> Result<u64> {
        Ok(7)
    }

    fn read_chunk(&self, _: &KeyRange<u32>) -> Result<RowReader<u32, i64>> {
        Ok(Box::new(std::iter::empty()))
    }

    fn read_log(&self, _: &u64) -> Result<Box<dyn LogReader<u32, i64, u64>>> {
        Ok(Box::new(Twice))
    }
}

struct Twice;

impl LogReader<u32, i64, u64> for Twice {
    fn poll(&mut self) -> Result<LogPoll<u32, i64, u64>> {
        let entry = Entry { position: 8, key: 1, row: None };
        Ok(LogPoll::Entries(vec![entry.clone(), entry]))
    }
}

fn error_of(bounds: &[u32]) -> String {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    let source = ChangeCaptureSource::new(Broken { bounds: bounds.to_vec() });
    env.from_source(source, WatermarkStrategy::none(), "broken").for_each(|_| {});
    format!("{:#}", Error::from(env.execute("broken").unwrap_err()))
}

#[test]
fn what_is_out_of_order_is_refused_by_name() {
    let error = error_of(&[]);
    assert!(error.contains("log entry at 8 comes behind the one at 8"), "{error}");
    let error = error_of(&[5, 5]);
    assert!(error.contains("bound 1 of the chunks, 5, does not lie above"), "{error}");
}
