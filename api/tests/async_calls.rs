//! A slow function called for several records at a time: order, concurrency, time-outs, failures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Condvar, Mutex};

use slackwater::prelude::*;
use slackwater::{AsyncOrder, AsyncSettings};

fn settings(order: AsyncOrder, concurrency: usize) -> AsyncSettings {
    AsyncSettings { concurrency, timeout: 60.secs(), order }
}

fn env() -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    env
}

/// Calls return only when `wanted` of them are there at once; 0 opens the gate for good.
#[derive(Default)]
struct Gate {
    inside: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    fn meet(&self, wanted: usize) {
        let mut inside = self.inside.lock().unwrap();
        *inside += 1;
        self.changed.notify_all();
        while *inside < wanted {
            inside = self.changed.wait(inside).unwrap();
        }
    }
}

#[test]
fn as_many_calls_as_allowed_are_made_at_once_and_results_keep_their_order() {
    let gate = Arc::new(Gate::default());
    let meeting = Arc::clone(&gate);
    let results = env()
        .from_collection(0..100_u64)
        .map_async(settings(AsyncOrder::Ordered, 4), move |value| {
            // The first four calls wait for one another: they must be made at once.
            meeting.meet(4);
            Ok(value * 2)
        })
        .execute_and_collect()
        .unwrap();
    assert_eq!(results, (0..100).map(|value| value * 2).collect::<Vec<u64>>());
}

#[test]
fn unordered_results_leave_as_they_are_done() {
    let gate = Arc::new(Gate::default());
    let (first, others) = (Arc::clone(&gate), gate);
    let results = env()
        .from_collection(0..3_u64)
        .map_async(settings(AsyncOrder::Unordered, 2), move |value| {
            // The first record's call returns behind the others' calls.
            if value == 0 {
                first.meet(3)
            } else {
                others.meet(0)
            }
            Ok(value)
        })
        .execute_and_collect()
        .unwrap();
    assert_eq!(results.sorted(), [0, 1, 2]);
}

#[test]
fn a_call_that_takes_too_long_gives_a_substitute_or_fails_the_job_by_name() {
    let hang = || {
        let gate = Arc::new(Gate::default());
        move |value: u64| {
            if value == 1 {
                gate.meet(usize::MAX);
            }
            Ok(value)
        }
    };
    let short = AsyncSettings { timeout: 20.millis(), ..settings(AsyncOrder::Ordered, 2) };
    let results = env()
        .from_collection(0..3_u64)
        .map_async_or(short, hang(), |value| Some(value + 100))
        .execute_and_collect()
        .unwrap();
    assert!(results.contains(&101) && results.len() == 3, "{results:?}");
    let error = env().from_collection(0..3_u64).map_async(short, hang()).name("look-up");
    let error = error.execute_and_collect().unwrap_err();
    let text = format!("{:#}", Error::from(error));
    assert!(text.contains("look-up") && text.contains("no result after 20ms"), "{text}");
}

#[test]
fn a_call_that_fails_or_panics_fails_the_job_with_its_record() {
    for panics in [false, true] {
        let error = env()
            .from_collection(0..3_u64)
            .map_async(settings(AsyncOrder::Ordered, 2), move |value| {
                assert!(!(panics && value == 2), "no such harbour");
                anyhow::ensure!(value != 2, "no such harbour");
                Ok(value)
            })
            .execute_and_collect()
            .unwrap_err();
        let text = format!("{:#}", Error::from(error));
        assert!(text.contains("record 3") && text.contains("no such harbour"), "{text}");
    }
}
