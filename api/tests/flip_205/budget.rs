//! A budget for all caches of an environment (`execution.cache.max-bytes`).

use std::time::Duration;

use slackwater::options::CacheOverBudget;
use slackwater::prelude::*;
use slackwater::{ByteSize, CacheOutcome, CachedDataStream, JobError, ManualClock};

use crate::support::*;

/// Caches of this environment may take so many bytes; jobs take the time that they say they do.
fn budgeted(bytes: u64) -> (StreamExecutionEnvironment, ManualClock) {
    let clock = ManualClock::default();
    let env = StreamExecutionEnvironment::builder()
        .clock(clock.clone())
        .set(&options::PARALLELISM, Some(1))
        .set(&options::HEARTBEAT_TIMEOUT, Duration::from_secs(1 << 40))
        .set(&options::CACHE_MAX_BYTES, Some(ByteSize(bytes)))
        .build();
    (env, clock)
}

/// Rows of 8 bytes that take so many seconds to make.
fn costly(
    (env, clock): &(StreamExecutionEnvironment, ManualClock),
    name: &str,
    rows: u64,
    seconds: u64,
) -> CachedDataStream<u64> {
    let clock = clock.clone();
    let rows = env.generate(rows, |i| i).map(move |i| {
        if i == 0 {
            clock.advance(Duration::from_secs(seconds));
        }
        i
    });
    rows.name(name).cache()
}

/// The budget evicts what costs least for its bytes; what is pinned stays.
#[test]
fn a_budget_evicts_unless_pinned() {
    let (env, calls) = (env(1, 1), Calls::default());
    env.set(&options::CACHE_MAX_BYTES, Some(ByteSize(20_000)));
    let first = doubled(&env, 2_000, &calls).name("first").cache();
    let second = doubled(&env, 2_000, &calls).name("second").cache();
    first.pin();
    first.count().unwrap();
    second.count().unwrap();
    assert!(first.is_cached() && !second.is_cached(), "{:?}", env.datasets());
    let again = second.execute_and_collect().unwrap();
    assert_recomputed(&again, "second", "evicted");
}

#[test]
fn what_is_cheap_to_make_again_goes_first_whenever_it_was_used() {
    let env = budgeted(20_000);
    let [cheap, dear, fair] =
        [("cheap", 1), ("dear", 100), ("fair", 10)].map(|(name, s)| costly(&env, name, 1_000, s));
    for cache in [&dear, &cheap, &fair] {
        assert_eq!(cache.count().unwrap(), 1_000);
    }
    assert_eq!([&cheap, &dear, &fair].map(CachedDataStream::is_cached), [false, true, true]);
    for _ in 0..2 {
        let rows = cheap.execute_and_collect().unwrap();
        assert_recomputed(&rows, "cheap", "evicted: all caches took");
        assert!(!cheap.is_cached() && fair.is_cached(), "it is still the cheapest");
    }
    dear.invalidate().unwrap();
    cheap.count().unwrap();
    let rows = cheap.execute_and_collect().unwrap();
    assert_eq!(outcome(&rows, "cheap"), CacheOutcome::Hit, "there is room");
}

#[test]
fn what_is_cheap_is_measured_by_the_byte() {
    let env = budgeted(20_000);
    let (big, small) = (costly(&env, "big", 2_000, 20), costly(&env, "small", 1_000, 15));
    small.count().unwrap();
    big.count().unwrap();
    assert!(small.is_cached() && !big.is_cached(), "{:?}", env.0.datasets());
}

/// A job whose cache finds no room fails by name where that is asked for, and keeps nothing.
#[test]
fn a_cache_without_room_is_an_error_where_that_is_asked_for() {
    let env = budgeted(12_000);
    env.0.set(&options::CACHE_OVER_BUDGET, CacheOverBudget::Error);
    let (big, first) = (costly(&env, "big", 2_000, 1), costly(&env, "first", 1_000, 1));
    let second = costly(&env, "second", 1_000, 2);
    let error = big.count().unwrap_err();
    assert!(matches!(error, JobError::CacheOverBudget { room: 12_000, .. }), "{error}");
    assert!(error.to_string().contains("`big`"), "{error}");
    assert!(env.0.datasets().is_empty());
    first.count().unwrap();
    first.pin();
    let error = second.count().unwrap_err();
    assert!(matches!(error, JobError::CacheOverBudget { .. }), "what is pinned leaves no room");
    assert!(first.is_cached() && !second.is_cached());
    first.unpin();
    second.count().unwrap();
    assert!(second.is_cached() && !first.is_cached(), "evicted for it");
    assert!(big.count().is_err(), "a second time");
}
