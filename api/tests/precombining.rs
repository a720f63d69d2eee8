//! In batch mode aggregates combine where records are made, before anything moves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use slackwater::ByteSize;
use slackwater::prelude::*;

fn env(mode: options::RuntimeMode, subtasks: u32) -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, mode).set(&options::PARALLELISM, Some(subtasks));
    env
}

/// Records that come to the counting operator of `records` over `keys`, and whether the counts are
/// right. Each of the producers is a source of one subtask, so that none is without records.
fn moved(env: &StreamExecutionEnvironment, producers: u64, records: u64, keys: u64) -> u64 {
    let source = || env.generate(records / producers, |i| i).parallelism(1);
    let counts = (1..producers)
        .fold(source(), |all, _| all.union(source()))
        .key_by(move |i: &u64| i % keys)
        .count()
        .name("count")
        .execute_and_collect()
        .unwrap();
    if env.config().get(&options::RUNTIME_MODE).unwrap() == options::RuntimeMode::Batch {
        assert_eq!(counts.len() as u64, keys.min(records));
        assert_eq!(counts.iter().map(|pair| pair.1).sum::<u64>(), records);
    }
    counts.report().operator("count").unwrap().records_in
}

/// A key moves once from each producer, however many records it has, also where the tables spill; in
/// streaming mode each record moves, for each gives a result.
#[test]
fn a_key_moves_once_from_each_producer_in_batch_mode() {
    let batch = env(options::RuntimeMode::Batch, 4);
    assert_eq!(moved(&batch, 4, 40_000, 100), 400);
    let small = env(options::RuntimeMode::Batch, 2);
    small.set(&options::SORTED_INPUTS_MEMORY, ByteSize::kib(64));
    assert_eq!(moved(&small, 2, 60_000, 5_000), 10_000);
    assert_eq!(moved(&env(options::RuntimeMode::Streaming, 4), 4, 4_000, 100), 4_000);
}

/// Where keys hardly repeat, the table is given up after a while: the rest moves as it is.
#[test]
fn producers_stop_combining_what_hardly_combines() {
    let one = env(options::RuntimeMode::Batch, 1);
    assert_eq!(moved(&one, 1, 200_000, 200_000), 200_000);
}

/// An associative function that is not commutative sees the records of a key in their order, and
/// the greatest timestamp of a key stays with its result.
#[test]
fn combined_records_keep_their_order_and_the_greatest_timestamp() {
    let env = env(options::RuntimeMode::Batch, 1);
    let rows = (0..1_000_u64).map(|i| ((i % 3, i.to_string()), Timestamp::from_millis(i as i64)));
    let joined = env
        .from_timestamped(rows)
        .key_by(|row| row.0)
        .reduce(|a, b| (a.0, format!("{},{}", a.1, b.1)))
        .key_by(|row| row.0)
        .with_state(|| ())
        .process(|(), row, out| {
            let at = out.timestamp().map(Timestamp::as_millis);
            out.collect((row.0, row.1, at));
            Ok(())
        })
        .execute_and_collect()
        .unwrap()
        .sorted();
    for (key, text, at) in joined {
        let expected: Vec<String> =
            (0..1_000).filter(|i| i % 3 == key).map(|i| i.to_string()).collect();
        assert_eq!(text, expected.join(","));
        assert_eq!(at, Some(if key == 0 { 999 } else { 996 + key as i64 }));
    }
}

/// Functions of the user's that fail there fail the job, and not the process.
#[test]
fn a_key_function_that_panics_at_a_producer_fails_the_job() {
    let env = env(options::RuntimeMode::Batch, 2);
    let failed = env
        .generate(100, |i| i)
        .key_by(|i: &u64| {
            assert!(*i != 50, "no key for 50");
            *i
        })
        .count()
        .execute_and_collect();
    let error = slackwater::Error::from(failed.map(|_| ()).unwrap_err());
    assert!(format!("{error:#}").contains("no key for 50"), "{error:#}");
}
