//! Caches and the mode of the job: made in batch alone, read in every mode (decision D1).

use slackwater::CacheOutcome;
use slackwater::options::{BatchShuffleMode, CacheOutsideBatch, RuntimeMode};
use slackwater::prelude::*;

use crate::support::*;

/// A7, tC13, D1: refused, naming stream and option.
#[test]
fn a_job_that_cannot_make_its_cache_is_refused_by_name() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 10, &calls).cache();
    env.set(&options::RUNTIME_MODE, RuntimeMode::Streaming);
    let error = slackwater::Error::from(cached.execute_and_collect().unwrap_err());
    let text = format!("{error:#}");
    assert!(text.contains("doubled") && text.contains("execution.runtime-mode"), "{text}");
    env.set(&options::RUNTIME_MODE, RuntimeMode::Batch)
        .set(&options::BATCH_SHUFFLE_MODE, BatchShuffleMode::AllExchangesPipelined);
    let error = slackwater::Error::from(cached.execute_and_collect().unwrap_err());
    let text = format!("{error:#}");
    assert!(text.contains("doubled") && text.contains("execution.batch-shuffle-mode"), "{text}");
    assert_eq!(calls.get(), 0);
}

/// A8, D1: what a batch job made a streaming job reads.
#[test]
fn a_streaming_job_reads_what_a_batch_job_made() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 3_000, &calls).cache();
    cached.count().unwrap();
    env.set(&options::RUNTIME_MODE, RuntimeMode::Streaming);
    let read = cached.execute_and_collect().unwrap();
    assert_eq!(outcome(&read, "doubled"), CacheOutcome::Hit);
    assert_eq!(read.sorted(), doubles(3_000));
    assert_eq!(calls.get(), 3_000);
}

/// A9, tC1: without one it is computed and not kept, where the options say so.
#[test]
fn a_streaming_job_without_the_cache_computes_and_keeps_nothing() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 100, &calls).cache();
    env.set(&options::RUNTIME_MODE, RuntimeMode::Streaming)
        .set(&options::CACHE_OUTSIDE_BATCH, CacheOutsideBatch::Recompute);
    for runs in 1..=2 {
        let read = cached.execute_and_collect().unwrap();
        assert_eq!(outcome(&read, "doubled"), CacheOutcome::Uncached);
        assert_eq!(read.sorted(), doubles(100));
        assert_eq!(calls.get(), runs * 100);
        assert!(env.datasets().is_empty());
    }
}

/// tF17: the exchange of batch jobs has no say in streaming.
#[test]
fn a_blocking_exchange_is_for_batch_jobs_alone() {
    let (env, calls) = (env(2, 1), Calls::default());
    env.set(&options::RUNTIME_MODE, RuntimeMode::Streaming)
        .set(&options::BATCH_SHUFFLE_MODE, BatchShuffleMode::AllExchangesBlocking);
    doubled(&env, 10, &calls).key_by(|n| *n).count().for_each(|_| {});
    let plan = env.explain().unwrap();
    assert!(!plan.contains("blocking:") && plan.contains("pipelined"), "{plan}");
}
