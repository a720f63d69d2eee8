//! Cases of caches and sparse partitions, compared with their expected files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use slackwater::prelude::*;
use slackwater::{CachedDataStream, Sink, SinkContext, SinkWriter};

use crate::support::*;

fn file(case: &str, name: &str) -> String {
    let path = format!("{}/tests/cases/{case}/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn json_of(case: &str, name: &str) -> Value {
    serde_json::from_str(&file(case, name)).unwrap()
}

fn sorted(mut rows: Vec<i64>) -> Value {
    rows.sort_unstable();
    json!(rows)
}

fn rows_of(value: &Value) -> Value {
    sorted(value.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect())
}

fn map_of(pairs: impl IntoIterator<Item = (String, i64)>) -> Value {
    json!(pairs.into_iter().collect::<BTreeMap<_, _>>())
}

/// Case 01 (A10): before it is invalidated every job sees the first version; afterwards the next.
#[test]
fn case_01_cache_lifecycle() {
    let input = json_of("01-cache-lifecycle", "input.json");
    let expected = json_of("01-cache-lifecycle", "expected.json");
    let (env, calls) = (env(1, 1), Calls::default());
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("source");
    let (count, source) = (calls.clone(), path.clone());
    let cached = env
        .from_iter(move || {
            let text = std::fs::read_to_string(&source).unwrap();
            text.lines().map(|line| line.parse::<i64>().unwrap()).collect::<Vec<_>>()
        })
        .map(move |n| {
            count.one_more();
            n * 2
        })
        .cache();
    let mut jobs = expected.as_array().unwrap().iter();
    for step in input["steps"].as_array().unwrap() {
        if let Some(version) = step["write"].as_str() {
            let rows = input["versions"][version].as_array().unwrap();
            let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
            std::fs::write(&path, lines.join("\n")).unwrap();
        } else if step["invalidate"] == true {
            cached.invalidate().unwrap();
        } else {
            let job = jobs.next().unwrap();
            assert_eq!(step["job"], job["job"]);
            let rows = match step["job"].as_str().unwrap() {
                "sum" => {
                    let sums = cached.key_by(|_| 0_u8).sum(|n| *n).execute_and_collect().unwrap();
                    sums.iter().map(|(_, sum)| *sum).collect()
                }
                _ => cached.execute_and_collect().unwrap().into_vec(),
            };
            assert_eq!(sorted(rows), rows_of(&job["rows"]));
            assert_eq!(json!(calls.get()), job["map_calls_after"]);
        }
    }
    assert!(jobs.next().is_none());
}

struct Thirds {
    tag: SideTag<i64>,
    calls: Calls,
}

impl KeyedProcessFunction<i64, i64, i64> for Thirds {
    fn process(&mut self, n: i64, context: &mut KeyedContext<'_, i64, i64>) -> Result<()> {
        self.calls.one_more();
        match n % 3 {
            0 => context.side_output(&self.tag, n * 10),
            _ => context.collect(n),
        }
        Ok(())
    }
}

/// Case 02 (A4): a side output alone is kept; united with itself it has each row twice.
#[test]
fn case_02_cache_derived_streams() {
    let input = json_of("02-cache-derived-streams", "input.json");
    let expected = json_of("02-cache-derived-streams", "expected.json");
    let numbers: Vec<i64> =
        input["numbers"].as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect();
    let (env, calls) = (env(2, 1), Calls::default());
    let tag = SideTag::<i64>::new("thirds");
    let (of, count) = (tag.clone(), calls.clone());
    let cached = env
        .from_collection(numbers)
        .key_by(|n| *n)
        .process(move || Thirds { tag: of.clone(), calls: count.clone() })
        .side_output(&tag)
        .cache();
    let jobs = [cached.stream(), cached.union(&cached)];
    for (job, expected) in jobs.into_iter().zip(expected.as_array().unwrap()) {
        let rows = job.execute_and_collect().unwrap().into_vec();
        assert_eq!(sorted(rows), rows_of(&expected["rows"]));
        assert_eq!(json!(calls.get()), expected["calls_after"]);
    }
}

/// Case 03 (A3, A26): one cache under other keys and parallelisms.
#[test]
fn case_03_cache_parallelism() {
    let expected = json_of("03-cache-parallelism", "expected.json");
    let rows: Vec<(String, String, i64)> = file("03-cache-parallelism", "input.csv")
        .lines()
        .skip(1)
        .map(|line| {
            let mut fields = line.split(',');
            let mut field = || fields.next().unwrap().to_owned();
            (field(), field(), field().parse().unwrap())
        })
        .collect();
    let (env, calls) = (env(2, 2), Calls::default());
    let count = calls.clone();
    let cached = env
        .from_collection(rows)
        .partition_custom(|(_, _, v), n| u32::try_from(v.rem_euclid(i64::from(n))).unwrap())
        .map(move |row| {
            count.one_more();
            row
        })
        .parallelism(3)
        .cache();
    let a = cached.key_by(|(k, _, _)| k.clone()).sum(|(_, _, v)| *v).parallelism(2);
    assert_eq!(map_of(a.execute_and_collect().unwrap()), expected["A"]);
    let b = cached.key_by(|(_, g, _)| g.clone()).sum(|(_, _, v)| *v).parallelism(5);
    assert_eq!(map_of(b.execute_and_collect().unwrap()), expected["B"]);
    assert_eq!(json!(cached.count().unwrap()), expected["C"]);
    assert_eq!(json!(calls.get()), expected["map_calls_after_all"]);
}

/// Case 04 (A8): filled by a batch job, read record by record by a streaming one.
#[test]
fn case_04_cache_streaming_mode() {
    let input = json_of("04-cache-streaming-mode", "input.json");
    let expected = json_of("04-cache-streaming-mode", "expected.json");
    let rows: Vec<(String, i64)> = serde_json::from_value(input["rows"].clone()).unwrap();
    let (env, calls) = (env(1, 1), Calls::default());
    let count = calls.clone();
    let cached = env
        .from_collection(rows)
        .map(move |row| {
            count.one_more();
            row
        })
        .cache();
    let sums = |cached: &CachedDataStream<(String, i64)>| {
        cached.key_by(|(key, _)| key.clone()).sum(|(_, n)| *n).execute_and_collect().unwrap()
    };
    assert_eq!(map_of(sums(&cached)), expected["job1_batch"]);
    let mut map_calls = vec![calls.get()];
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming);
    let mut per_key: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (key, sum) in sums(&cached) {
        per_key.entry(key).or_default().push(sum);
    }
    assert_eq!(json!(per_key), expected["job2_streaming_per_key"]);
    map_calls.push(calls.get());
    assert_eq!(json!(map_calls), expected["map_calls"]);
}

/// Case 05 (A16, A19): one of four parts is removed between two jobs.
#[test]
fn case_05_cache_lost() {
    let expected = json_of("05-cache-lost", "expected.json");
    let rows: Vec<(String, i64)> = file("05-cache-lost", "input.csv")
        .lines()
        .skip(1)
        .map(|line| {
            let (key, value) = line.split_once(',').unwrap();
            (key.to_owned(), value.parse().unwrap())
        })
        .collect();
    let (env, calls) = (env(4, 2), Calls::default());
    let count = calls.clone();
    let cached = env
        .from_collection(rows)
        .partition_custom(|(_, v), n| u32::try_from(v.rem_euclid(i64::from(n))).unwrap())
        .map(move |row| {
            count.one_more();
            row
        })
        .cache();
    let sums = || {
        let sums = cached.key_by(|(key, _)| key.clone()).sum(|(_, v)| *v);
        map_of(sums.execute_and_collect().unwrap())
    };
    sums();
    let mut map_calls = vec![calls.get()];
    remove(&env, &cached, 2);
    assert_eq!(sums(), expected["job2"]);
    map_calls.push(calls.get());
    assert_eq!(sums(), expected["job3"]);
    map_calls.push(calls.get());
    assert_eq!(json!(map_calls), expected["map_calls_after"]);
}

/// Collects pairs, and counts the subtasks that have come to their end.
#[derive(Clone, Default)]
struct Ends {
    rows: Arc<Mutex<Vec<(String, i64)>>>,
    ended: Calls,
}

impl Sink<(String, i64)> for Ends {
    fn writer(&self, _: &SinkContext, _: &[Vec<u8>]) -> Result<Box<dyn SinkWriter<(String, i64)>>> {
        Ok(Box::new(self.clone()))
    }
}

impl SinkWriter<(String, i64)> for Ends {
    fn write(&mut self, row: (String, i64), _: Option<Timestamp>) -> Result<()> {
        self.rows.lock().unwrap().push(row);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.ended.one_more();
        Ok(())
    }
}

/// Case 18: two thousand partitions for seven rows, and for none. All consumers finish.
#[test]
fn case_18_sparse_partitions() {
    let input = json_of("18-sparse-partitions", "input.json");
    let expected = json_of("18-sparse-partitions", "expected.json");
    let rows: Vec<(String, i64)> = serde_json::from_value(input["rows"].clone()).unwrap();
    let partitions = u32::try_from(input["partitions"].as_u64().unwrap()).unwrap();
    let mut finished = Vec::new();
    for (rows, run) in [(rows, "run1"), (Vec::new(), "run2_empty_source")] {
        let env = env(4, 1);
        env.set(&options::TASK_SLOTS, Some(8));
        let ends = Ends::default();
        env.from_collection(rows)
            .key_by(|(key, _)| key.clone())
            .sum(|(_, n)| *n)
            .parallelism(partitions)
            .sink_to(ends.clone())
            .parallelism(partitions);
        env.execute(run).unwrap();
        assert_eq!(map_of(std::mem::take(&mut *ends.rows.lock().unwrap())), expected[run]);
        finished.push(ends.ended.get());
    }
    assert_eq!(json!(finished), expected["consumers_finished"]);
}
