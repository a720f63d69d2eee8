//! What holds for every kind of operator in every mode: its timers, its records' own codec, and that it
//! waits for who reads its output.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slackwater::options::{BacklogStrategy, RuntimeMode};
use slackwater::prelude::*;
use slackwater::{
    CodecError, Collected, CollectionSource, HybridSource, KeyedCoProcessFunction, Schema,
};

const MODES: [&str; 3] = ["stream", "mixed", "batch"];

fn env(mode: &str) -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    let runtime = if mode == "batch" { RuntimeMode::Batch } else { RuntimeMode::Streaming };
    env.set(&options::RUNTIME_MODE, runtime).set(&options::PARALLELISM, Some(2));
    if mode == "mixed" {
        env.set(&options::CHECKPOINT_INTERVAL, Some(10.secs()))
            .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(std::time::Duration::ZERO))
            .set(&options::BACKLOG_STRATEGY, BacklogStrategy::Sort);
    }
    env
}

type Row = (u64, i64);

/// Rows of key and time as history, with nothing live behind them.
fn rows(env: &StreamExecutionEnvironment, rows: impl IntoIterator<Item = Row>) -> DataStream<Row> {
    let history = CollectionSource::new(rows);
    let source =
        HybridSource::starting_with(history).then(CollectionSource::new(Vec::<Row>::new()));
    let by_time =
        WatermarkStrategy::monotonous().with_timestamps(|row: &Row| Timestamp::from_millis(row.1));
    env.from_source(source, by_time, "rows").parallelism(1)
}

/// Sets a timer ten milliseconds behind each record, and emits the timers.
struct Echo;

impl Echo {
    fn set(context: &mut KeyedContext<'_, u64, Row>, at: i64) {
        context.timers().register_event(Timestamp::from_millis(at + 10));
    }

    fn emit(context: &mut KeyedContext<'_, u64, Row>, at: Timestamp) {
        let key = *context.key();
        context.collect((key, at.as_millis()));
    }
}

impl KeyedProcessFunction<u64, Row, Row> for Echo {
    fn process(&mut self, row: Row, context: &mut KeyedContext<'_, u64, Row>) -> Result<()> {
        Self::set(context, row.1);
        Ok(())
    }

    fn on_timer(&mut self, at: Timestamp, context: &mut KeyedContext<'_, u64, Row>) -> Result<()> {
        Self::emit(context, at);
        Ok(())
    }
}

impl KeyedCoProcessFunction<u64, Row, Row, Row> for Echo {
    fn process_left(&mut self, row: Row, context: &mut KeyedContext<'_, u64, Row>) -> Result<()> {
        Self::set(context, row.1);
        Ok(())
    }

    fn process_right(&mut self, row: Row, context: &mut KeyedContext<'_, u64, Row>) -> Result<()> {
        Self::set(context, row.1 + 1_000);
        Ok(())
    }

    fn on_timer(&mut self, at: Timestamp, context: &mut KeyedContext<'_, u64, Row>) -> Result<()> {
        Self::emit(context, at);
        Ok(())
    }
}

fn left() -> impl Iterator<Item = Row> {
    (0..60_i64).map(|i| (i as u64 % 7, i * 5))
}

fn right() -> impl Iterator<Item = Row> {
    (0..40_i64).map(|i| (i as u64 % 5, i * 8))
}

fn echoes(rows: impl Iterator<Item = Row>, later: i64) -> impl Iterator<Item = Row> {
    rows.map(move |(key, at)| (key, at + 10 + later))
}

#[track_caller]
fn agree(kind: &str, run: impl Fn(&StreamExecutionEnvironment) -> Collected<Row>, rows: Vec<Row>) {
    let mut expected = rows;
    expected.sort_unstable();
    assert!(!expected.is_empty());
    for mode in MODES {
        assert_eq!(run(&env(mode)).sorted(), expected, "{kind} in {mode} mode");
    }
}

/// tS12: the timers of each kind of operator fire in each mode, once, for the same keys and times.
#[test]
fn timers_of_every_kind_of_operator_fire_in_every_mode() {
    agree(
        "process",
        |env| rows(env, left()).key_by(|row| row.0).process(|| Echo).execute_and_collect().unwrap(),
        echoes(left(), 0).collect(),
    );
    agree(
        "co-process",
        |env| {
            let other = rows(env, right()).key_by(|row| row.0);
            let both = rows(env, left()).key_by(|row| row.0).connect(other);
            both.process(|| Echo).execute_and_collect().unwrap()
        },
        echoes(left(), 0).chain(echoes(right(), 1_000)).collect(),
    );
    agree(
        "window",
        |env| {
            let windows = rows(env, left()).key_by(|row| row.0);
            let windows =
                windows.window(TumblingEventTime::of(std::time::Duration::from_millis(5)));
            windows
                .apply(|rows, _, out| rows.into_iter().for_each(|row| out.collect(row)))
                .execute_and_collect()
                .unwrap()
        },
        left().collect(),
    );
    agree(
        "session window",
        |env| {
            let sessions = rows(env, left()).key_by(|row| row.0);
            let sessions =
                sessions.window(SessionEventTime::with_gap(std::time::Duration::from_millis(3)));
            sessions
                .apply(|rows, _, out| rows.into_iter().for_each(|row| out.collect(row)))
                .execute_and_collect()
                .unwrap()
        },
        left().collect(),
    );
    let joined = left().flat_map(|(key, at)| {
        let mates = right().filter(move |row| row.0 == key && row.1 / 40 == at / 40);
        mates.map(move |row| (key, at * 10_000 + row.1))
    });
    agree(
        "window join",
        |env| {
            let other = rows(env, right()).key_by(|row| row.0);
            rows(env, left())
                .key_by(|row| row.0)
                .join(other)
                .window(TumblingEventTime::of(std::time::Duration::from_millis(40)))
                .inner(|a, b, out| out.collect((a.0, a.1 * 10_000 + b.1)))
                .execute_and_collect()
                .unwrap()
        },
        joined.collect(),
    );
}

/// A number whose own codec writes it upside down and counts how often it does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turned(u64);

static WRITTEN: AtomicU64 = AtomicU64::new(0);

impl Record for Turned {
    fn encode(&self, out: &mut Vec<u8>) {
        WRITTEN.fetch_add(1, Ordering::Relaxed);
        (!self.0).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(Self(!u64::decode(input)?))
    }

    fn schema() -> Schema {
        u64::schema()
    }

    fn from_value(value: element::Value) -> Result<Self, element::SchemaError> {
        Ok(Self(!u64::from_value(value)?))
    }
}

/// tS7: records and state go through the type's own codec in each mode, batch mode included.
#[test]
fn every_mode_uses_the_codec_of_the_type() {
    for mode in MODES {
        let before = WRITTEN.load(Ordering::Relaxed);
        let greatest = rows(&env(mode), left())
            .map(|(key, at)| (key, Turned(at as u64)))
            .key_by(|row| row.0)
            .with_state(|| ValueState::<Turned>::new("greatest"))
            .process(|state, row, context| {
                let held = state.get(context)?;
                let greatest = held.map_or(row.1.clone(), |held| held.max(row.1));
                state.set(context, greatest.clone())?;
                context.collect(greatest);
                Ok(())
            })
            .execute_and_collect()
            .unwrap();
        let mut expected: Vec<Turned> = left().map(|row| Turned(row.1 as u64)).collect();
        expected.sort();
        assert_eq!(greatest.sorted(), expected, "{mode}");
        assert!(WRITTEN.load(Ordering::Relaxed) > before || mode == "stream", "{mode}");
    }
}

/// tF16: an operator that has much to say, also in a sorted drain, is never further ahead of a slow reader
/// than what one batch of its input makes and channels hold.
#[test]
fn emission_stops_while_the_output_is_full() {
    const ROWS: u64 = 10_000;
    const EACH: u64 = 20;
    // Batch mode writes to disk between stages: there nobody waits.
    for mode in ["stream", "mixed"] {
        let (said, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (saying, heard, ahead) = (Arc::clone(&said), AtomicU64::new(0), Arc::clone(&most));
        let env = env(mode);
        rows(&env, (0..ROWS).map(|i| (i % 50, i as i64)))
            .key_by(|row| row.0)
            .with_state(|| ValueState::<u64>::new("none"))
            .process(move |_, row: Row, context| {
                for _ in 0..EACH {
                    saying.fetch_add(1, Ordering::AcqRel);
                    context.collect(row);
                }
                Ok(())
            })
            .parallelism(1)
            .rebalance()
            .map(|row| row)
            .parallelism(2)
            .for_each(move |row| {
                let heard = heard.fetch_add(1, Ordering::AcqRel) + 1;
                ahead.fetch_max(
                    said.load(Ordering::Acquire).saturating_sub(heard),
                    Ordering::AcqRel,
                );
                // Slower than any operator.
                std::hint::black_box((0..200).fold(row.0, |x, i| x.wrapping_mul(31) ^ i));
            });
        env.execute("slow").unwrap();
        let most = most.load(Ordering::Acquire);
        assert!(most < ROWS * EACH / 2, "{mode}: {most} records ahead of {}", ROWS * EACH);
    }
}
