//! Session windows: visits to a harbour are one if less than 10 minutes lie between them.

use slackwater::Count;
use slackwater::prelude::*;

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let at = |minute: i64| Timestamp::from_millis(minute * 60_000);
    let visits = [("cog", 0), ("hulk", 3), ("cog", 9), ("cog", 30), ("hulk", 12), ("cog", 31)];
    let sessions = env
        .from_timestamped(visits.map(|(ship, minute)| (ship.to_owned(), at(minute))))
        .key_by(String::clone)
        .window(SessionEventTime::with_gap(10.mins()))
        .aggregate_with(Count, |visits, window, out| {
            let ship = out.key().clone();
            out.collect((ship, window.start().as_millis() / 60_000, visits));
        })
        .execute_and_collect()?;
    let of = |ship: &str, start, visits| (ship.to_owned(), start, visits);
    assert_eq!(sessions.sorted(), [of("cog", 0, 2), of("cog", 30, 2), of("hulk", 3, 2)]);
    Ok(())
}
