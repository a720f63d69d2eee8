//! Restart strategies by the clock, and what a failure behind a blocking result runs again.
//!
//! Time is moved by hand, and only once the job says that a failure has been taken in: then the next
//! attempt is due at one moment, and is made at that moment.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use slackwater::options::{RestartStrategy, RuntimeMode};
use slackwater::prelude::*;
use slackwater::{Clock, JobError, ManualClock};

use crate::support::*;

/// A job that fails so often, over a clock that stands still, and when it was tried.
struct Failing {
    env: StreamExecutionEnvironment,
    clock: ManualClock,
    tries: Arc<Mutex<Vec<u64>>>,
    failures: usize,
}

impl Failing {
    fn new(strategy: RestartStrategy, failures: usize) -> Self {
        let clock = ManualClock::default();
        let env = StreamExecutionEnvironment::builder()
            .clock(clock.clone())
            .set(&options::PARALLELISM, Some(1))
            .set(&options::RESTART_STRATEGY, Some(strategy))
            .set(&options::RESTART_DELAY, 10.secs())
            .build();
        Self { env, clock, tries: Arc::default(), failures }
    }

    /// Tries at these times, in seconds, and how the job ends.
    #[track_caller]
    fn is_tried_at(&self, times: &[u64]) -> Result<(), JobError> {
        let (tries, clock, failures) = (Arc::clone(&self.tries), self.clock.clone(), self.failures);
        let failing = self.env.from_collection([1_u64]).try_map(move |n| {
            let mut tries = tries.lock().unwrap();
            tries.push(clock.monotonic().as_secs());
            if tries.len() > failures { Ok(n) } else { Err(slackwater::Error::msg("not yet")) }
        });
        failing.for_each(|_| {});
        let job = self.env.submit("failing").unwrap();
        let progress = job.progress();
        for (i, at) in (0_u64..).zip(&times[1..]) {
            until("a failure is taken in", || progress.restarts() == i + 1);
            let left = Duration::from_secs(*at) - self.clock.monotonic();
            self.clock.advance(left - Duration::from_millis(1));
            assert_eq!(progress.attempts(), i + 1, "not before {at} s");
            self.clock.advance(Duration::from_millis(1));
            until("it is tried again", || progress.attempts() == i + 2);
        }
        let result = job.wait();
        assert_eq!(*self.tries.lock().unwrap(), times);
        result.map(drop)
    }
}

/// Waits for something that comes by itself; the limit is there for tests that hang.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn without_a_strategy_a_job_is_tried_once() {
    let error = Failing::new(RestartStrategy::None, 1).is_tried_at(&[0]).unwrap_err();
    assert_eq!(error.to_string(), "job `failing` failed after 1 attempt");
}

#[test]
fn a_fixed_delay_is_waited_for_and_its_attempts_are_counted() {
    let failing = Failing::new(RestartStrategy::FixedDelay, 2);
    failing.env.set(&options::RESTART_ATTEMPTS, 2);
    failing.is_tried_at(&[0, 10, 20]).unwrap();
    let failing = Failing::new(RestartStrategy::FixedDelay, 3);
    failing.env.set(&options::RESTART_ATTEMPTS, 2);
    let error = failing.is_tried_at(&[0, 10, 20]).unwrap_err();
    assert_eq!(error.to_string(), "job `failing` failed after 3 attempts");
}

#[test]
fn an_exponential_delay_doubles_up_to_its_greatest() {
    let failing = Failing::new(RestartStrategy::ExponentialDelay, 5);
    failing
        .env
        .set(&options::RESTART_INITIAL_BACKOFF, 1.secs())
        .set(&options::RESTART_MAX_BACKOFF, 5.secs());
    failing.is_tried_at(&[0, 1, 3, 7, 12, 17]).unwrap();
}

#[test]
fn a_failure_rate_counts_the_failures_of_an_interval_alone() {
    let rated = |failures, delay: Duration| {
        let failing = Failing::new(RestartStrategy::FailureRate, failures);
        failing
            .env
            .set(&options::RESTART_MAX_FAILURES, 2)
            .set(&options::RESTART_FAILURE_INTERVAL, 60.secs())
            .set(&options::RESTART_DELAY, delay);
        failing
    };
    // Never more than two in a minute.
    rated(5, 40.secs()).is_tried_at(&[0, 40, 80, 120, 160, 200]).unwrap();
    let error = rated(5, 20.secs()).is_tried_at(&[0, 20, 40]).unwrap_err();
    assert_eq!(error.to_string(), "job `failing` failed after 3 attempts");
}

/// E9, T7: what emits only at its end has a blocking output; a failure behind it reads that again, and
/// nothing above it runs again. In streaming mode as in batch mode.
#[test]
fn a_failure_behind_a_result_at_the_end_reads_it_again() {
    for mode in [RuntimeMode::Streaming, RuntimeMode::Batch] {
        let (env, calls, tries) = (env(2, 1), Calls::default(), Calls::default());
        env.set(&options::RUNTIME_MODE, mode)
            .set(&options::RESTART_STRATEGY, Some(RestartStrategy::FixedDelay));
        let count = tries.clone();
        let sorted = doubled(&env, 300, &calls)
            .sort_partition(|n| u64::MAX - n)
            .global()
            .try_map(move |n| match count.one_more() {
                1 | 3 => Err(slackwater::Error::msg("twice")),
                _ => Ok(n),
            })
            .parallelism(1)
            .execute_and_collect()
            .unwrap();
        let report = sorted.report().clone();
        assert_eq!(report.recovered.len(), 2, "{mode:?}: {:?}", report.recovered);
        assert_eq!(sorted.sorted(), doubles(300));
        assert_eq!(calls.get(), 300, "{mode:?}: nothing above runs again");
    }
}

/// tS19: stages with sorters, over blocking edges, come through one slot; tasks that must run together
/// are refused by number.
#[test]
fn fewer_slots_than_stages_are_enough_unless_they_run_together() {
    let (env, calls) = (env(3, 1), Calls::default());
    env.set(&options::TASK_SLOTS, Some(1));
    let stages = || {
        let counts = doubled(&env, 900, &calls).key_by(|n| n % 30).count();
        counts.key_by(|(_, count)| *count).count().key_by(|(_, n)| *n).count().rebalance()
    };
    assert_eq!(stages().execute_and_collect().unwrap().sorted(), [(15, 1)]);
    assert_eq!(calls.get(), 900);
    env.set(&options::BATCH_SHUFFLE_MODE, options::BatchShuffleMode::AllExchangesPipelined);
    let error = stages().execute_and_collect().unwrap_err();
    assert!(
        matches!(error, JobError::TooFewSlots { needed: 3, available: 1, .. }),
        "{error}: {error:?}"
    );
}
