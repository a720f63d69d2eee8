//! Which subtask each record goes to.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use slackwater::GeneratorSource;
use slackwater::options::{self, RuntimeMode};
use slackwater::prelude::*;

/// How many records come to each of four subtasks, by one way from two.
fn spread(way: impl Fn(DataStream<u64>) -> DataStream<u64>) -> Vec<u64> {
    let env = StreamExecutionEnvironment::new();
    // A source with a rate deals the same to each reader; without one, the quicker reads more.
    let source = GeneratorSource::bounded(10_000, |i| (i, None)).records_per_second(1e12);
    let records = env.from_source(source, WatermarkStrategy::none(), "numbers").parallelism(2);
    way(records)
        .map_partition(|records, out| {
            let records: Vec<u64> = records.collect();
            out.collect(records.len() as u64);
            Ok(())
        })
        .parallelism(4)
        .execute_and_collect()
        .unwrap()
        .sorted()
}

#[test]
fn every_partitioner_sends_each_record_where_it_says() {
    assert_eq!(spread(DataStream::global), [0, 0, 0, 10_000]);
    assert_eq!(spread(DataStream::broadcast), [10_000; 4]);
    let custom = |stream: DataStream<u64>| {
        stream.partition_custom(|i, subtasks| u32::try_from(i % 3).unwrap() % subtasks)
    };
    assert_eq!(spread(custom), [0, 3_333, 3_333, 3_334]);
    // Whole batches in turn: all of them, and nobody is left out.
    for way in [DataStream::rebalance, DataStream::rescale, DataStream::shuffle] {
        let counts = spread(way);
        assert_eq!(counts.iter().sum::<u64>(), 10_000);
        assert!(counts.iter().all(|count| *count > 1_000), "{counts:?}");
    }
}

#[test]
fn a_forward_that_cannot_be_is_refused_by_name() {
    let env = StreamExecutionEnvironment::new();
    let forwarded = env.generate(10, |i| i).parallelism(2).forward().map(|i| i).parallelism(3);
    let error = forwarded.execute_and_collect().map(|_| ()).unwrap_err();
    let text = format!("{:#}", slackwater::Error::from(error));
    assert!(text.contains("forward"), "{text}");
}

#[test]
fn a_key_is_asked_for_once_by_its_operator_and_once_by_an_edge_to_several() {
    for (parallelism, expected) in [(1, 10_000), (2, 20_000)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let asking = Arc::clone(&asked);
        let env = StreamExecutionEnvironment::new();
        env.set(&options::RUNTIME_MODE, RuntimeMode::Streaming);
        env.set(&options::PARALLELISM, Some(parallelism));
        let sums = env
            .generate(10_000, |i| i)
            .key_by(move |i: &u64| {
                asking.fetch_add(1, Ordering::Relaxed);
                i % 100
            })
            .process(|| Behind)
            .execute_and_collect()
            .unwrap();
        assert_eq!(sums.sorted().len(), 10_000);
        assert_eq!(asked.load(Ordering::Relaxed), expected, "parallelism {parallelism}");
    }
}

/// Emits each record behind its key.
struct Behind;

impl KeyedProcessFunction<u64, u64, (u64, u64)> for Behind {
    fn process(
        &mut self,
        value: u64,
        context: &mut KeyedContext<'_, u64, (u64, u64)>,
    ) -> Result<()> {
        context.collect_with_key(value);
        Ok(())
    }
}
