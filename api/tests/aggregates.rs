//! The rolling aggregates of a keyed stream, in batch and in streaming mode.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use slackwater::prelude::*;

type Row = (u64, i64, u64);

/// Key, value and number of each record; values of a key repeat.
fn rows(env: &StreamExecutionEnvironment) -> KeyedStream<u64, Row> {
    env.generate(400, |i| (i % 4, (i as i64 * 37) % 101 - 50, i)).key_by(|row: &Row| row.0)
}

/// The last result of each key.
fn last<V>(results: slackwater::Collected<(u64, V)>) -> Vec<(u64, V)>
where
    V: Clone,
{
    let last: BTreeMap<u64, V> = results.iter().cloned().collect();
    last.into_iter().collect()
}

#[test]
fn every_aggregate_comes_to_what_a_loop_comes_to() {
    let all: Vec<Row> = (0..400_u64).map(|i| (i % 4, (i as i64 * 37) % 101 - 50, i)).collect();
    let expected = |of: &dyn Fn(Vec<Row>) -> i64| -> Vec<(u64, i64)> {
        let of_key = |key| all.iter().copied().filter(|row| row.0 == key).collect();
        (0..4).map(|key| (key, of(of_key(key)))).collect()
    };
    for mode in [options::RuntimeMode::Batch, options::RuntimeMode::Streaming] {
        let env = || {
            let env = StreamExecutionEnvironment::new();
            env.set(&options::RUNTIME_MODE, mode).set(&options::PARALLELISM, Some(1));
            env
        };
        let sum = rows(&env()).sum(|row| row.1).execute_and_collect().unwrap();
        assert_eq!(last(sum), expected(&|rows| rows.iter().map(|row| row.1).sum()));
        let min = rows(&env()).min(|row| row.1).execute_and_collect().unwrap();
        assert_eq!(last(min), expected(&|rows| rows.iter().map(|row| row.1).min().unwrap()));
        let max = rows(&env()).max(|row| row.1).execute_and_collect().unwrap();
        assert_eq!(last(max), expected(&|rows| rows.iter().map(|row| row.1).max().unwrap()));
        let count = rows(&env()).count().execute_and_collect().unwrap();
        assert_eq!(last(count), [(0, 100), (1, 100), (2, 100), (3, 100)]);
        let fold = rows(&env())
            .fold(0_i64, |sum, row| *sum += row.1 * 2, |sum, later| *sum += later)
            .execute_and_collect()
            .unwrap();
        assert_eq!(last(fold), expected(&|rows| rows.iter().map(|row| row.1 * 2).sum()));
        let keyed = |stream: DataStream<Row>| stream.map(|row| (row.0, row.2 as i64));
        // Of equal values the first record counts.
        let first = |better: fn(i64, i64) -> bool| {
            move |rows: Vec<Row>| {
                let pick = |a: Row, b: Row| if better(b.1, a.1) { b } else { a };
                rows.into_iter().reduce(pick).map_or(0, |row| row.2 as i64)
            }
        };
        let least = keyed(rows(&env()).min_by(|row| row.1)).execute_and_collect().unwrap();
        assert_eq!(last(least), expected(&first(|b, a| b < a)));
        let greatest = keyed(rows(&env()).max_by(|row| row.1)).execute_and_collect().unwrap();
        assert_eq!(last(greatest), expected(&first(|b, a| b > a)));
    }
}
