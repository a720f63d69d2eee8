//! An interactive session over one cached stream (FLIP-205, "Motivation"): read and clean once, then
//! look at it from several sides.
//!
//! Run: `cargo run --example cached_session`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slackwater::prelude::*;

/// A line such as `ann,17`, if it is one.
fn parse(line: &str) -> Option<(String, u64)> {
    let (user, amount) = line.split_once(',')?;
    Some((user.trim().to_lowercase(), amount.trim().parse().ok()?))
}

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::new();
    let cleaned = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&cleaned);
    let clean = env
        .from_collection(["ann,17", "Bob, 4", "broken", "ann,3", "cid,9", "bob,8", ",,"])
        .filter_map(move |line| {
            count.fetch_add(1, Ordering::Relaxed);
            parse(line)
        })
        .name("clean")
        .cache();
    assert_eq!(cleaned.load(Ordering::Relaxed), 0, "nothing has run");

    // A sample. It computes the whole stream once, and keeps it.
    let sample = clean.take(2)?;
    println!("sample: {:?}", &sample[..]);
    assert_eq!(sample.len(), 2);

    // From here on nothing is read or cleaned again.
    println!("rows: {}", clean.count()?);
    let totals = clean.key_by(|(user, _)| user.clone()).sum(|(_, n)| *n).execute_and_collect()?;
    println!("totals: {:?}", totals.top(3));
    assert_eq!(totals.top(1), [("ann".to_owned(), 20)]);
    assert!(totals.report().cache("clean").is_some_and(|cache| cache.is_hit()));
    let large = clean.filter(|(_, n)| *n > 8).execute_and_collect()?.sorted();
    assert_eq!(large, [("ann".to_owned(), 17), ("cid".to_owned(), 9)]);
    assert_eq!(cleaned.load(Ordering::Relaxed), 7, "each line once");

    for kept in env.datasets() {
        println!("kept: {}, {} rows, {} bytes", kept.name, kept.rows, kept.bytes);
    }
    clean.invalidate()?;
    assert!(env.datasets().is_empty());
    Ok(env.close()?)
}
