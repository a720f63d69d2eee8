//! Cases of odd keys, key order and skew by whole programs: in memory, spilled, and in streaming mode.
//!
//! The sorter by itself is held to the same files in its own tests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use slackwater::prelude::*;
use slackwater::{ByteSize, CollectionSource, EndOfStreamWindows, HybridSource, OrderedF64};

fn case(name: &str, file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name).join(file);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// An environment whose sorters have `memory` bytes.
fn env(parallelism: u32, memory: u64) -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(parallelism))
        .set(&options::SORTED_INPUTS_MEMORY, ByteSize(memory));
    env
}

/// A name that the case gives to a float.
fn name(key: OrderedF64) -> String {
    match key.get() {
        nan if nan.is_nan() => "NaN".to_owned(),
        0.0 => "0.0".to_owned(),
        infinite if infinite.is_infinite() => infinite.to_string(),
        finite => format!("{finite:?}"),
    }
}

/// Case 14: sums by key are the same in memory, spilled, and live at parallelism 4; sorted by key they
/// come as the case has them, with every NaN behind infinity.
#[test]
fn case_14_odd_keys() {
    let expected = case("14-odd-keys", "expected.json")["preferred"].clone();
    let rows: Vec<(f64, i64)> = case("14-odd-keys", "input.json")
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let bits = u64::from_str_radix(row[0].as_str().unwrap(), 16).unwrap();
            (f64::from_bits(bits), row[1].as_i64().unwrap())
        })
        .collect();
    for (parallelism, memory, live) in
        [(1, 1 << 20, false), (1, 64, false), (4, 64, false), (4, 1 << 20, true)]
    {
        let env = env(parallelism, memory);
        if live {
            env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming);
        }
        let sums = env
            .from_collection(rows.clone())
            .key_by(|(key, _)| OrderedF64::new(*key))
            .sum(|(_, value)| *value)
            .execute_and_collect()
            .unwrap();
        // Live, each record gives a sum: the last one of a key is the greatest.
        let mut last = BTreeMap::new();
        for (key, sum) in sums {
            let known = last.entry(key).or_insert(sum);
            assert!(live || *known == sum, "{key} comes once");
            *known = sum.max(*known);
        }
        let found: Vec<Value> = last.iter().map(|(key, sum)| json!([name(*key), sum])).collect();
        assert_eq!(json!(found), expected, "parallelism {parallelism}, {memory} bytes");

        let sorted = env
            .from_collection(rows.clone())
            .global()
            .sort_partition(|(key, _)| OrderedF64::new(*key))
            .parallelism(1)
            .execute_and_collect()
            .unwrap();
        let mut in_order: Vec<(String, i64)> = Vec::new();
        for (key, value) in sorted {
            let name = name(OrderedF64::new(key));
            match in_order.last_mut() {
                Some(last) if last.0 == name => last.1 += value,
                _ => in_order.push((name, value)),
            }
        }
        assert_eq!(json!(in_order), expected, "sorted with {memory} bytes");
    }
}

fn pairs<V: serde::de::DeserializeOwned>(rows: &Value) -> Vec<(String, V)> {
    serde_json::from_value(rows.clone()).unwrap()
}

/// Case 15: each key once and in order of its bytes, whatever the memory; and the join by whole keys.
#[test]
fn case_15_key_order_vs_bytes() {
    let input = case("15-key-order-vs-bytes", "input.json");
    let expected = case("15-key-order-vs-bytes", "expected.json");
    let (left, right) = (pairs::<i64>(&input["left"]), pairs::<String>(&input["right"]));
    for (parallelism, memory) in [(1, 1 << 20), (1, 128), (3, 128)] {
        let env = env(parallelism, memory);
        let sums = env
            .from_collection(left.clone())
            .key_by_ref(|(key, _)| key)
            .sum(|(_, value)| *value)
            .global()
            .sort_partition(|(key, _)| key.clone())
            .parallelism(1);
        let sums = sums.execute_and_collect().unwrap().into_vec();
        assert_eq!(json!(sums), expected["sorted_sums"], "{memory} bytes");

        let right = env.from_collection(right.clone()).key_by_ref(|(key, _)| key);
        let joined = env
            .from_collection(left.clone())
            .key_by_ref(|(key, _)| key)
            .join(right)
            .window(EndOfStreamWindows)
            .inner(|(key, left), (_, right), out| {
                out.collect((key.clone(), *left, right.clone()));
            });
        let mut joined = joined.execute_and_collect().unwrap().into_vec();
        joined.sort();
        assert_eq!(json!(joined), expected["join"], "{memory} bytes");
    }
}

/// Case 16: a key that has nine rows of ten stays in order of time through many runs and merge passes.
#[test]
fn case_16_sort_skew_fan_in() {
    let input = case("16-sort-skew-fan-in", "input.json");
    let number = |name: &str| input[name].as_u64().unwrap();
    let mut x = number("seed");
    let mut draw = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x >> 33
    };
    let mut rows = Vec::new();
    for t in 0..number("rows") {
        let (a, b) = (draw(), draw());
        let key = if a % 10 == 0 { format!("k{}", a / 10 % 37) } else { "hot".to_owned() };
        rows.push((key, t, b % 1_000));
    }
    let env = env(1, number("sort_memory"));
    env.set(&options::SORT_FAN_IN, u32::try_from(number("merge_width")).unwrap());
    let sorted = env
        .from_collection(rows)
        .global()
        .sort_partition(|(key, t, _)| (key.clone(), *t))
        .parallelism(1)
        .execute_and_collect()
        .unwrap();
    let mut found: Vec<(String, u64, u64, u64)> = Vec::new();
    for (key, _, value) in sorted {
        if found.last().is_none_or(|last| last.0 != key) {
            found.push((key, 0, 0, 7));
        }
        let last = found.last_mut().unwrap();
        *last = (
            std::mem::take(&mut last.0),
            last.1 + 1,
            last.2 + value,
            (last.3 * 31 + value) % 1_000_003,
        );
    }
    assert_eq!(json!(found), case("16-sort-skew-fan-in", "expected.json"));
}

struct Sum(ValueState<u64>);

impl KeyedProcessFunction<String, u64, (String, u64)> for Sum {
    fn process(
        &mut self,
        n: u64,
        context: &mut KeyedContext<'_, String, (String, u64)>,
    ) -> Result<()> {
        let sum = self.0.update(context, |sum| *sum.insert(sum.unwrap_or(0) + n))?;
        let key = context.key().clone();
        context.collect((key, sum));
        Ok(())
    }
}

/// A budget that holds no record at all still sorts and combines, in batch mode and in a backlog.
#[test]
fn any_sort_memory_gives_the_same_sums() {
    for (memory, backlog, combines) in [
        (0, false, true),
        (0, true, true),
        (1, false, false),
        (1, true, false),
        (64, false, false),
        (64, true, true),
        (4_000, true, false),
    ] {
        let env = env(2, memory);
        if backlog {
            env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
                .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
                .set(&options::BACKLOG_STRATEGY, options::BacklogStrategy::Sort);
        }
        let numbers = |range: std::ops::Range<u64>| {
            CollectionSource::stamped(range.map(|n| (n, Timestamp(n as i64))))
        };
        let source = HybridSource::starting_with(numbers(0..200)).then(numbers(200..202));
        let keyed = env
            .from_source(source, WatermarkStrategy::none(), "numbers")
            .key_by(|n: &u64| format!("k{}", n % 7));
        let sums = if combines {
            keyed.sum(|n| *n)
        } else {
            keyed.process(|| Sum(ValueState::new("sum")))
        };
        let mut last = BTreeMap::new();
        for (key, sum) in sums.execute_and_collect().unwrap() {
            let known = last.entry(key).or_insert(sum);
            *known = sum.max(*known);
        }
        let sum = |key: u64| (0..=201).filter(|n| n % 7 == key).sum::<u64>();
        let wanted: BTreeMap<_, _> = (0..7).map(|key| (format!("k{key}"), sum(key))).collect();
        assert_eq!(last, wanted, "{memory} bytes, backlog: {backlog}");
    }
}
