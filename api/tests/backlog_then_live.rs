//! Backlog, then stream: the main promise of FLIP-327 through the public api.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{CollectionSource, GeneratorSource, HybridSource};

fn mixed_env() -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
        .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(200)))
        .set(&options::PARALLELISM, Some(2));
    env
}

#[test]
fn a_running_sum_goes_on_live_over_the_state_of_its_backlog() {
    for backend in [options::StateBackendKind::Heap, options::StateBackendKind::Disk] {
        let env = mixed_env();
        env.set(&options::STATE_BACKEND, backend);
        let history = GeneratorSource::bounded(20_000, |i| ((i % 100, 1_u64), None));
        let live = CollectionSource::new((0..100_u64).map(|key| (key, 1_u64)));
        let outputs = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&outputs);
        env.from_source(
            HybridSource::starting_with(history).then(live),
            WatermarkStrategy::none(),
            "numbers",
        )
        // With several readers the first live records may come while another is still in backlog.
        .parallelism(1)
        .key_by(|(key, _)| *key)
        .sum(|(_, n)| *n)
        .name("sum")
        .for_each(move |pair| seen.lock().unwrap().push(pair));
        let report = env.execute("sums").unwrap();
        let outputs = outputs.lock().unwrap();
        assert_eq!(outputs.len(), 200, "one output a key for the backlog, one a live record");
        for key in 0..100 {
            let of_key: Vec<u64> =
                outputs.iter().filter(|(k, _)| *k == key).map(|(_, sum)| *sum).collect();
            assert_eq!(of_key, [200, 201], "key {key}");
        }
        let sum = report.operator("sum").unwrap();
        let phases = &sum.phases;
        assert_eq!(phases[0].records, 20_000);
        // The producer has combined all but the beginning of its history; live records come as they are.
        assert!((200..10_100).contains(&sum.records_in), "{sum:?}");
        assert_eq!(phases[0].keys, 100);
        assert_eq!(phases[0].treatment, "combine");
        assert!(phases[0].state_reads <= 100 && phases[0].state_writes <= 100, "{phases:?}");
    }
}

#[test]
fn word_count_runs_as_batch_over_plain_and_compressed_exchanges() {
    for compression in [options::Compression::None, options::Compression::Lz4] {
        count_words(compression);
    }
}

fn count_words(compression: options::Compression) {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::SHUFFLE_COMPRESSION, compression);
    env.set(&options::PARALLELISM, Some(3));
    let counts = env
        .from_collection(["a b a", "c a", "b"])
        .flat_map(|line: &str, out| line.split(' ').for_each(|word| out.collect(word.to_owned())))
        .key_by(String::clone)
        .count()
        .execute_and_collect()
        .unwrap();
    assert_eq!(counts.sorted(), [("a".into(), 3), ("b".into(), 2), ("c".into(), 1)]);
}
