//! Whole partitions, and records with their key's state.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use slackwater::prelude::*;

#[test]
fn a_partition_is_sorted_at_the_end_of_its_input_beyond_its_memory() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(2))
        .set(&options::SORTED_INPUTS_MEMORY, slackwater::ByteSize::kib(64));
    let sorted = env
        .generate(30_000, |i| (i * 7_919 % 30_011, i))
        .global()
        .sort_partition(|(value, _)| *value)
        .parallelism(1)
        .execute_and_collect()
        .unwrap();
    assert_eq!(sorted.len(), 30_000);
    assert!(sorted.is_sorted_by_key(|(value, _)| *value));
}

#[test]
fn a_partition_is_mapped_as_a_whole_in_the_order_of_its_coming() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    let sums = env
        .from_collection([5_u64, 3, 9, 1])
        .map_partition(|records, out| {
            let mut previous = None;
            for value in records {
                if let Some(previous) = previous.replace(value) {
                    out.collect((previous, value));
                }
            }
            Ok(())
        })
        .execute_and_collect()
        .unwrap();
    assert_eq!(sums, [(5, 3), (3, 9), (9, 1)]);
}

#[test]
fn a_record_meets_the_state_of_its_key() {
    let env = StreamExecutionEnvironment::new();
    let steps = env
        .from_collection([(1_u64, 5_i64), (2, 7), (1, 9), (1, 9), (2, 4)])
        .key_by(|(key, _)| *key)
        .filter_map_with_state(|last: &mut Option<i64>, (key, value)| {
            let step = last.replace(value).map(|before| value - before);
            step.filter(|step| *step != 0).map(|step| (key, step))
        })
        .execute_and_collect()
        .unwrap();
    assert_eq!(steps.sorted(), [(1, 4), (2, -3)]);
}
