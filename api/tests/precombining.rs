//! In batch mode and over a backlog aggregates combine where records are made, before anything moves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{BacklogEmission, ByteSize, ScriptStep, ScriptedSource};

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

fn mixed() -> StreamExecutionEnvironment {
    let env = env(options::RuntimeMode::Streaming, 1);
    env.set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO));
    env
}

/// Records that come to the summing operator of two backlogs with live records behind each, and the
/// sums in order; live records and the second backlog wait for what comes of those before.
fn two_backlogs(
    env: &StreamExecutionEnvironment,
    emission: BacklogEmission,
) -> (u64, Vec<(u64, u64)>) {
    let sums = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sums);
    let until = move |key: u64, sum: u64| {
        let sums = Arc::clone(&sums);
        ScriptStep::until(move || sums.lock().unwrap().contains(&(key, sum)))
    };
    let mut steps = Vec::new();
    for round in 0..2 {
        steps.push(ScriptStep::Backlog(true));
        steps.extend((0..30_000).map(|i| ScriptStep::at(i, (i as u64 % 3, 1_u64))));
        steps.push(ScriptStep::Backlog(false));
        steps.push(until(0, 10_001 * round + 10_000));
        steps.push(ScriptStep::at(40_000, (0, 1)));
        steps.push(until(0, 10_001 * round + 10_001));
    }
    let out = Arc::clone(&seen);
    let source = ScriptedSource::new(steps);
    env.from_source(source, WatermarkStrategy::none(), "script")
        .key_by(|pair: &(u64, u64)| pair.0)
        .backlog_emission(emission)
        .sum(|pair| pair.1)
        .name("sum")
        .for_each(move |pair| out.lock().unwrap().push(pair));
    let report = env.execute("two backlogs").unwrap();
    let sums = seen.lock().unwrap().clone();
    (report.operator("sum").unwrap().records_in, sums)
}

/// What a producer has combined leaves it before the end of the backlog does, in each phase; live
/// records, and the beginning of a backlog, which may be a short one, pass it one by one.
#[test]
fn a_producer_combines_each_backlog_and_no_live_record() {
    let (moved, mut sums) = two_backlogs(&mixed(), BacklogEmission::LastOfKey);
    assert!((8..20_000).contains(&moved), "{moved} of 60,002 records");
    let second = sums.split_off(4);
    assert_eq!(sums.pop(), Some((0, 10_001)), "the live record, behind the backlog");
    sums.sort_unstable();
    assert_eq!(sums, [(0, 10_000), (1, 10_000), (2, 10_000)]);
    assert_eq!(second.last(), Some(&(0, 20_002)));
    assert_eq!(second.len(), 4);
}

/// Where each record is to give a result no producer combines.
#[test]
fn no_producer_combines_where_each_record_of_a_backlog_gives_a_result() {
    assert_eq!(two_backlogs(&mixed(), BacklogEmission::EveryUpdate).0, 60_002);
    let stream = mixed();
    stream.set(&options::BACKLOG_STRATEGY, options::BacklogStrategy::Stream);
    let (moved, sums) = two_backlogs(&stream, BacklogEmission::LastOfKey);
    assert_eq!((moved, sums.len()), (60_002, 60_002));
}

/// A sum that does not fit its type is an error of its own that names the operator, wherever it is
/// added up, and no number.
#[test]
fn a_sum_that_overflows_fails_the_job_and_names_the_operator() {
    for env in
        [mixed(), env(options::RuntimeMode::Batch, 2), env(options::RuntimeMode::Streaming, 2)]
    {
        let failed = env
            .from_collection([200_u8, 50, 6])
            .key_by(|_| 0_u8)
            .sum(|n| *n)
            .name("bytes")
            .execute_and_collect();
        let error = slackwater::Error::from(failed.map(|_| ()).unwrap_err());
        let text = format!("{error:#}");
        assert!(text.contains("the sum of a key does not fit `u8`"), "{text}");
        assert!(text.contains("bytes") && !text.contains("panic"), "{text}");
    }
    let float = env(options::RuntimeMode::Batch, 1)
        .from_collection([f64::MAX, f64::MAX])
        .key_by(|_| 0_u8)
        .sum(|n| *n)
        .execute_and_collect()
        .unwrap();
    assert_eq!(float.iter().next(), Some(&(0, f64::INFINITY)));
}

/// explain() says where producers combine.
#[test]
fn the_plan_says_that_producers_combine() {
    let plan = |env: StreamExecutionEnvironment| {
        let counts = env.generate(10, |i| i).key_by(|i| i % 2).count();
        counts.for_each(|_| {});
        env.explain().unwrap()
    };
    let says = "its producers combine first";
    assert!(plan(env(options::RuntimeMode::Batch, 2)).contains(says));
    assert!(plan(mixed()).contains(says));
    assert!(!plan(env(options::RuntimeMode::Streaming, 2)).contains(says));
}
