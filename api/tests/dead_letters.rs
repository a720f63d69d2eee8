//! Records whose function fails: the job fails, they are counted, or they are put aside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU64, Ordering};

use slackwater::prelude::*;
use slackwater::store::{ByteStore, MemoryByteStore, StoreContext, StoreFailure};
use slackwater::store::{StoreSnapshot, Visit, WriteBatch};
use slackwater::{DeadLetter, JobError};

fn numbers(env: &StreamExecutionEnvironment) -> DataStream<String> {
    env.from_collection(["1", "two", "3", "", "5"].map(str::to_owned))
}

fn parse(text: String) -> Result<u64> {
    assert!(!text.is_empty(), "nothing to parse");
    Ok(text.parse()?)
}

/// By default the first failure fails the job, by operator and position.
#[test]
fn a_failing_record_fails_the_job_unless_told_otherwise() {
    let env = StreamExecutionEnvironment::new();
    let failed = numbers(&env).try_map(parse).name("parse").execute_and_collect();
    let error: JobError = failed.map(|_| ()).unwrap_err();
    let text = format!("{:#}", slackwater::Error::from(error));
    assert!(text.contains("`parse`") && text.contains("record 2"), "{text}");
}

/// Errors and panics alike go to the dead letters, with operator, subtask, position and reason; the
/// other records are not touched, and nothing is counted as skipped.
#[test]
fn failing_records_go_to_the_dead_letters_with_operator_and_position() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    let (parsed, dead) =
        numbers(&env).skip_failures().try_map(parse).name("parse").uid("parse").with_dead_letters();
    let all = parsed
        .map(|number| (number, None))
        .union(dead.map(|letter| (0, Some(letter))))
        .execute_and_collect()
        .unwrap();
    let good: Vec<u64> = all.iter().filter(|row| row.1.is_none()).map(|row| row.0).collect();
    assert_eq!(good, [1, 3, 5]);
    let letters: Vec<DeadLetter<String>> = all.iter().filter_map(|row| row.1.clone()).collect();
    let places: Vec<_> = letters
        .iter()
        .map(|letter| (letter.record.as_str(), letter.operator.as_str(), letter.position))
        .collect();
    assert_eq!(places, [("two", "parse", 2), ("", "parse", 4)]);
    assert!(letters[0].error.contains("invalid digit"), "{letters:?}");
    assert!(letters[1].error.contains("nothing to parse"), "{letters:?}");
    let skipped: u64 = all.report().operators.iter().map(|operator| operator.skipped).sum();
    assert_eq!(skipped, 0);
}

/// Where nobody listens they are counted.
#[test]
fn failing_records_are_counted_where_nobody_listens() {
    let env = StreamExecutionEnvironment::new();
    let parsed = numbers(&env).skip_failures().try_map(parse).name("parse").into_stream();
    let parsed = parsed.execute_and_collect().unwrap();
    assert_eq!(parsed.len(), 3);
    assert_eq!(parsed.report().operator("parse").unwrap().skipped, 2);
}

/// Fails for every third record of a key, before it counts it.
struct Third {
    count: ValueState<u64>,
}

impl KeyedProcessFunction<u64, u64, (u64, u64)> for Third {
    fn process(
        &mut self,
        value: u64,
        context: &mut KeyedContext<'_, u64, (u64, u64)>,
    ) -> Result<()> {
        let count = self.count.get(context)?.unwrap_or(0) + 1;
        if value.is_multiple_of(3) {
            return Err(slackwater::Error::msg("every third"));
        }
        self.count.set(context, count)?;
        let key = *context.key();
        context.collect((key, count));
        Ok(())
    }
}

/// A keyed function goes on with its state; letters travel as bytes too, also over a sorted input.
#[test]
fn a_keyed_function_goes_on_behind_a_failing_record() {
    for mode in [options::RuntimeMode::Streaming, options::RuntimeMode::Batch] {
        let env = StreamExecutionEnvironment::new();
        env.set(&options::PARALLELISM, Some(2)).set(&options::RUNTIME_MODE, mode);
        let (counted, dead) = env
            .generate(90, |i| i)
            .key_by(|i: &u64| i % 2)
            .skip_failures()
            .process(|| Third { count: ValueState::new("count") })
            .with_dead_letters();
        let good = counted.map(|pair| (pair.0, pair.1, 0));
        let bad = dead.rebalance().map(|letter| (letter.record % 2, 0, letter.record));
        let all = good.union(bad).execute_and_collect().unwrap();
        for key in 0..2 {
            let greatest = all.iter().filter(|row| row.0 == key).map(|row| row.1).max();
            assert_eq!(greatest, Some(30), "{mode:?}");
            let bad = all.iter().filter(|row| row.0 == key && row.1 == 0).count();
            assert_eq!(bad, 15);
        }
    }
}

/// State in memory whose disk is gone at its 40th read.
#[derive(Debug, Default)]
struct Failing {
    inner: MemoryByteStore,
    reads: AtomicU64,
}

impl ByteStore for Failing {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFailure> {
        if self.reads.fetch_add(1, Ordering::SeqCst) >= 40 {
            return Err(StoreFailure::new("get", std::io::Error::other("the disk is gone")));
        }
        self.inner.get(key)
    }

    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        self.inner.scan(from, to, visit)
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        self.inner.write(batch)
    }

    fn snapshot(&mut self) -> Result<Box<dyn StoreSnapshot>, StoreFailure> {
        self.inner.snapshot()
    }
}

/// Says in words of its own that it cannot count.
struct Counting(ValueState<u64>);

impl KeyedProcessFunction<u64, u64, u64> for Counting {
    fn process(&mut self, _: u64, context: &mut KeyedContext<'_, u64, u64>) -> Result<()> {
        let count = self.0.get(context).map_err(|error| Error::from(error).context("no count"))?;
        self.0.set(context, count.unwrap_or(0) + 1)?;
        context.collect(count.unwrap_or(0) + 1);
        Ok(())
    }
}

/// A store that cannot be read is no fault of a record: the job fails. Its errors come to the engine
/// through the function's own, and were taken for the record's; every record from there on was put aside
/// in a job that succeeded.
#[test]
fn a_store_that_fails_is_no_dead_letter() {
    let env = StreamExecutionEnvironment::builder()
        .state_store(|_: &StoreContext| Ok(Box::new(Failing::default()) as Box<dyn ByteStore>))
        .set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(1))
        .build();
    let counted = env
        .generate(100, |i| i)
        .key_by(|i: &u64| *i)
        .skip_failures()
        .process(|| Counting(ValueState::new("count")))
        .name("counting")
        .into_stream();
    let error = counted.execute_and_collect().map(|all| all.len()).unwrap_err();
    let text = format!("{:#}", Error::from(error));
    assert!(text.contains("`counting`") && text.contains("no count"), "{text}");
    assert!(text.contains("the disk is gone"), "{text}");
}
