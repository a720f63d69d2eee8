//! A cached data set in two jobs (FLIP-205): the first one computes and keeps it, the second one reads.

use slackwater::prelude::*;

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let squares = env.generate(1_000, |i| (i % 10, i * i)).name("squares").cache();
    let sums = squares.key_by(|(digit, _)| *digit).sum(|(_, square)| *square);
    assert_eq!(sums.execute_and_collect()?.len(), 10);
    let large = squares.filter(|(_, square)| *square > 990_000).execute_and_collect()?;
    assert_eq!(large.len(), 5);
    assert!(large.report().cache("squares").is_some_and(|cache| cache.is_hit()));
    Ok(env.close()?)
}
