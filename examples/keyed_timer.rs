//! Keyed state with a timer: a user who has not clicked for 30 seconds is idle.
//!
//! The state is declared once, typed and named: when the user will be idle. Each click moves the timer.
//! As batch all timers of a key fire behind its last record, so only the last click of a user counts.

use slackwater::prelude::*;

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let at = |second: i64| Timestamp::from_millis(second * 1_000);
    let clicks = env.from_timestamped([(7_u64, at(0)), (8, at(5)), (7, at(20)), (7, at(60))]);
    let idle = clicks
        .key_by(|user| *user)
        .with_state(|| ValueState::<Timestamp>::new("idle at"))
        .on_timer(|idle_at, at, out| {
            out.collect_with_key(at);
            Ok(idle_at.clear(out)?)
        })
        .process(|idle_at, _, out| {
            let due = out.timestamp().unwrap_or_default() + 30.secs();
            let before = idle_at.replace(out, due)?;
            out.timers().replace_event(before, due);
            Ok(())
        });
    assert_eq!(idle.execute_and_collect()?.sorted(), [(7, at(90)), (8, at(35))]);
    Ok(())
}
