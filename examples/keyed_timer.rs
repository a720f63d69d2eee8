//! Keyed state with a timer: a user who has not clicked for 30 seconds is idle.
//!
//! The state is declared once, typed and named; a timer that is no longer wanted is taken back.

use slackwater::prelude::*;

struct Idle {
    last: ValueState<Timestamp>,
}

impl KeyedProcessFunction<u64, (u64, String), (u64, Timestamp)> for Idle {
    fn process(
        &mut self,
        _: (u64, String),
        context: &mut KeyedContext<'_, u64, (u64, Timestamp)>,
    ) -> Result<()> {
        let now = context.timestamp().unwrap_or_default();
        if let Some(before) = self.last.replace(context, now)? {
            context.timers().delete_event(before + 30.secs());
        }
        context.timers().register_event(now + 30.secs());
        Ok(())
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        context: &mut KeyedContext<'_, u64, (u64, Timestamp)>,
    ) -> Result<()> {
        let user = *context.key();
        context.collect((user, at));
        Ok(self.last.clear(context)?)
    }
}

fn main() -> Result<()> {
    let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
    let click = |user: u64, page: &str, seconds| ((user, page.to_owned()), at(seconds));
    let env = StreamExecutionEnvironment::from_env()?;
    let alerts = env
        .from_timestamped([
            click(7, "tides", 0),
            click(8, "moon", 5),
            click(7, "charts", 20),
            click(7, "tides", 60),
        ])
        .key_by(|(user, _)| *user)
        .process(|| Idle { last: ValueState::new("last click") })
        .execute_and_collect()?;
    for (user, at) in alerts.iter() {
        println!("user {user} has been idle since 30 seconds before {at}");
    }
    // As batch: all timers of a key fire behind its last record, so only the last click counts.
    assert_eq!(alerts.sorted(), [(7, at(90)), (8, at(35))]);
    Ok(())
}
