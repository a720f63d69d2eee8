//! What a program is shown: `inspect`, the report and the options as text, and results of windows kept.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slackwater::Count;
use slackwater::prelude::*;

#[test]
fn inspect_shows_each_record_and_changes_none() {
    let env = StreamExecutionEnvironment::new();
    let seen = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&seen);
    let numbers = env
        .generate(100, |i| i)
        .inspect(move |n| {
            sum.fetch_add(*n, Ordering::Relaxed);
        })
        .execute_and_collect()
        .unwrap();
    assert!(numbers.report().operator("inspect").is_some());
    assert_eq!(numbers.sorted(), (0..100).collect::<Vec<_>>());
    assert_eq!(seen.load(Ordering::Relaxed), 4_950);
}

#[test]
fn results_of_windows_can_be_kept_and_the_report_says_so_in_words() {
    let env = StreamExecutionEnvironment::new();
    let at = |second: i64| Timestamp::from_millis(second * 1_000);
    let minutes = env
        .from_timestamped([(1_u64, at(5)), (1, at(6)), (2, at(70))])
        .key_by(|n| *n)
        .window(TumblingEventTime::of(1.mins()))
        .aggregate(Count)
        .name("minutes")
        .cache();
    let made = minutes.execute_and_collect().unwrap();
    assert_eq!(made.len(), 2);
    let text = made.report().to_string();
    assert!(text.starts_with("job `collect`, batch mode: "), "{text}");
    assert!(text.contains("\n  minutes: 3 records"), "{text}");
    assert!(text.contains("\n  cache `minutes` was made: 2 rows, "), "{text}");
    assert!(!text.ends_with('\n'), "{text}");
    let read = minutes.inspect(|_| ()).execute_and_collect().unwrap();
    let text = read.report().to_string();
    assert!(text.contains("\n  cache `minutes` was read: 2 rows, "), "{text}");
}

#[test]
fn options_are_described_as_a_file_would_spell_them() {
    let text = options::describe();
    for line in [
        "default: 128mb\n    Memory of each sorted input.",
        "default: 10min\n    Time after which a checkpoint",
        "default: unset\n    Time between checkpoints;",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("000ns"));
}
