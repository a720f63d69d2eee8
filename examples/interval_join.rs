//! An interval join: each payment with the order it pays, if it comes from 5 minutes before the order
//! to 30 minutes after it.
//!
//! Orders and payments are keyed by the same type; streams of different key types do not join.

use slackwater::prelude::*;

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let at = |minute: i64| Timestamp::from_millis(minute * 60_000);
    let orders = [((1_u64, 40_u32), at(0)), ((2, 900), at(10)), ((3, 20), at(20))];
    let payments =
        [((1_u64, 40_u32), at(29)), ((2, 900), at(41)), ((3, 15), at(15)), ((3, 5), at(21))];
    let paid = env
        .from_timestamped(orders)
        .key_by(|(order, _)| *order)
        .interval_join(env.from_timestamped(payments).key_by(|(order, _)| *order))
        .between(TimeOffset::before(5.mins()), 30.mins())
        .process(|(order, price), (_, euros), out| out.collect((*order, *price, *euros)))
        .execute_and_collect()?;
    // Order 2 was paid a minute too late; order 3 in two parts, one of them in advance.
    assert_eq!(paid.sorted(), [(1, 40, 40), (3, 20, 5), (3, 20, 15)]);
    Ok(())
}
