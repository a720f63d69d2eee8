//! The whole of a partition at once: the three largest ships of each subtask, then of all.

use slackwater::prelude::*;

/// The three greatest of what comes.
fn three(ships: &mut dyn Iterator<Item = u64>, out: &mut Collector<'_, u64>) -> Result<()> {
    let mut ships: Vec<u64> = ships.collect();
    ships.sort_unstable_by(|a, b| b.cmp(a));
    out.extend(ships.into_iter().take(3));
    Ok(())
}

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let tonnes = env.generate(10_000, |i| i * 7_919 % 10_007).rebalance();
    let largest = tonnes.map_partition(three).global().map_partition(three).parallelism(1);
    let largest = largest.execute_and_collect()?;
    println!("{:?}", &largest[..]);
    assert_eq!(largest.sorted().len(), 3);
    Ok(())
}
