//! An interval join: each payment with the order it pays, if it comes from 5 minutes before the order
//! to 30 minutes after it.
//!
//! Orders and payments are keyed by the same type; streams of different key types do not join.

use slackwater::prelude::*;

fn main() -> Result<()> {
    let at = |minute: i64| Timestamp::from_millis(minute * 60_000);
    let env = StreamExecutionEnvironment::from_env()?;
    let orders = [(1_u64, "rope"), (2, "anchor"), (3, "chart")];
    let payments = [(1_u64, 40_u32), (2, 900), (3, 15), (3, 5)];
    let orders = env.from_timestamped(orders.into_iter().zip([at(0), at(10), at(20)]));
    let payments = env.from_timestamped(payments.into_iter().zip([at(29), at(41), at(15), at(21)]));
    let paid = orders
        .map(|(id, what)| (id, what.to_owned()))
        .key_by(|(id, _)| *id)
        .interval_join(payments.key_by(|(id, _)| *id))
        .between(TimeOffset::before(5.mins()), 30.mins())
        .process(|(id, what), (_, euros), out| out.collect((*id, what.clone(), *euros)))
        .execute_and_collect()?;
    for (id, what, euros) in paid.iter() {
        println!("order {id}, {what}: {euros} euros");
    }
    // The anchor was paid a minute too late; the chart in two parts, one of them in advance.
    let chart = |euros| (3, "chart".to_owned(), euros);
    assert_eq!(paid.sorted(), [(1, "rope".to_owned(), 40), chart(5), chart(15)]);
    Ok(())
}
