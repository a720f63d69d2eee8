//! Aligned sources in whole jobs (FLIP-182): nobody waits for one that has nothing to say.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{GeneratorSource, HybridSource, ScriptStep, ScriptedSource};

const RECORDS: u64 = 20_000;

fn aligned<T: 'static>() -> WatermarkStrategy<T> {
    let millis = Duration::from_millis;
    WatermarkStrategy::monotonous().with_idleness(millis(5)).with_watermark_alignment(
        "pace",
        millis(100),
        millis(1),
    )
}

/// tW22: three aligned sources: a long one with more readers than splits, one that ends early, and one
/// that is idle until the long one has been read; and a crash in the middle, after which all begin anew.
#[test]
fn aligned_sources_stay_alive_idle_finished_and_restarted() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(2))
        .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(5)))
        .set(&options::RESTART_DELAY, Duration::ZERO);
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let stamped = |i: u64| (i, Some(Timestamp::from_millis(i as i64)));
    let long = GeneratorSource::bounded(RECORDS, stamped).splits(1);
    let short = GeneratorSource::bounded(200, move |i| (RECORDS + i, stamped(i).1)).splits(2);
    let read = Arc::clone(&seen);
    let all_read = move || read.lock().unwrap().len() as u64 >= RECORDS + 200;
    let idle = ScriptedSource::new([ScriptStep::until(all_read), ScriptStep::at(3, u64::MAX)]);
    let crashed = Arc::new(AtomicBool::new(false));
    let (fuse, sink) = (Arc::clone(&crashed), Arc::clone(&seen));
    env.from_source(long, aligned(), "long")
        .union(env.from_source(short, aligned(), "short"))
        .union(env.from_source(idle, aligned(), "idle"))
        .map(move |value| {
            assert!(value != RECORDS / 2 || fuse.swap(true, Ordering::SeqCst), "the crash");
            value
        })
        .for_each(move |value| {
            sink.lock().unwrap().insert(value);
        });
    let report = env.execute("aligned").unwrap();
    assert_eq!(seen.lock().unwrap().len() as u64, RECORDS + 201);
    assert_eq!(report.recovered.len(), 1);
}

/// In a stream that is no source nothing can be held back: the job says so.
#[test]
fn alignment_elsewhere_than_at_a_source_is_refused() {
    let env = StreamExecutionEnvironment::new();
    env.from_collection([1_u64, 2]).assign_timestamps_and_watermarks(aligned()).for_each(|_| {});
    let error = format!("{:#}", Error::from(env.execute("refused").unwrap_err()));
    assert!(error.contains("watermark alignment is for sources"), "{error}");
}

/// tW22: of two readers of a hybrid source one is ahead and the other has finished its part, and waits
/// for the first: it holds it back no longer, though nobody is ever called idle. Both stood still for
/// ever.
#[test]
fn a_reader_that_waits_for_others_does_not_hold_them_back() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(2));
    let looks = AtomicU64::new(0);
    // Long enough for the limit to come: it is looked at once a millisecond, and not while held back.
    let held = ScriptStep::until(move || looks.fetch_add(1, Ordering::SeqCst) > 50);
    let history = ScriptedSource::parts([
        vec![ScriptStep::at(0, 1_u64)],
        vec![ScriptStep::at(5_000, 2), held, ScriptStep::at(5_001, 3)],
    ]);
    let live =
        ScriptedSource::parts([vec![ScriptStep::at(6_000, 4)], vec![ScriptStep::at(6_000, 5)]]);
    let pace = WatermarkStrategy::monotonous().with_watermark_alignment(
        "pace",
        Duration::from_millis(100),
        Duration::from_millis(1),
    );
    let source = HybridSource::starting_with(history).then(live);
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let sink = Arc::clone(&seen);
    env.from_source(source, pace, "both").for_each(move |value| {
        sink.lock().unwrap().insert(value);
    });
    let job = env.submit("waits").unwrap();
    let begun = std::time::Instant::now();
    while !job.is_finished() {
        assert!(begun.elapsed().as_secs() < 30, "{:?} and no more", seen.lock().unwrap());
        std::thread::yield_now();
    }
    job.wait().unwrap();
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from([1, 2, 3, 4, 5]));
}
