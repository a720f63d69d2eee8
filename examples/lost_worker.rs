//! A worker is lost with a part of a cache: the next job runs without it, and makes it anew.
//!
//! Run: `cargo run --example lost_worker`

use slackwater::CacheOutcome;
use slackwater::prelude::*;

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::WORKERS, 2).set(&options::PARALLELISM, Some(4));
    let squares = env.generate(1_000, |i| i * i).name("squares").cache();
    let expected: u64 = (0..1_000).map(|i| i * i).sum();
    let sum = || squares.key_by(|_| 0_u8).sum(|n| *n).execute_and_collect();
    assert_eq!(sum()?[..], [(0, expected)]);

    let cluster = env.cluster()?;
    let lost = cluster.workers()[0];
    cluster.kill(lost)?;
    println!("worker {lost} is gone, and with it the cache: {:?}", env.datasets());
    assert!(!squares.is_cached());

    let again = sum()?;
    assert_eq!(again[..], [(0, expected)]);
    let outcome = again.report().cache("squares").map(|cache| cache.outcome.clone());
    println!("the next job: {outcome:?}");
    assert!(matches!(outcome, Some(CacheOutcome::Recomputed { .. })));
    assert!(sum()?.report().cache("squares").is_some_and(|cache| cache.is_hit()));
    Ok(env.close()?)
}
