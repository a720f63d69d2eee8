//! A windowed join: the ships and the tides of each hour, with ships for which no tide was measured.
//!
//! Both streams are keyed by the harbour; streams of different key types do not join.

use slackwater::prelude::*;

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let at = |minute: i64| Timestamp::from_millis(minute * 60_000);
    let ships = [((1_u32, "cog"), at(5)), ((1, "hulk"), at(70)), ((2, "barge"), at(20))];
    let tides = [((1_u32, 310_u32), at(50)), ((1, 290), at(55)), ((2, 120), at(80))];
    let ships = env.from_timestamped(ships.map(|((port, ship), at)| ((port, ship.to_owned()), at)));
    let joined = ships
        .key_by(|(port, _)| *port)
        .join(env.from_timestamped(tides).key_by(|(port, _)| *port))
        .window(TumblingEventTime::of(60.mins()))
        .left_outer(|(_, ship), tide, out| out.collect((ship.clone(), tide.map(|tide| tide.1))))
        .execute_and_collect()?;
    let (cog, hulk, barge) = ("cog".to_owned(), "hulk".to_owned(), "barge".to_owned());
    let expected = [(barge, None), (cog.clone(), Some(290)), (cog, Some(310)), (hulk, None)];
    assert_eq!(joined.sorted(), expected);
    Ok(())
}
