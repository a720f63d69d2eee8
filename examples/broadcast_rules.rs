//! Broadcast state: readings are held against limits that come as a stream of their own, and of which
//! every subtask has all.
//!
//! As batch the limits come first; in a streaming job a reading meets those known by then.

use slackwater::prelude::*;
use slackwater::{
    BroadcastState, KeyedBroadcastContext, KeyedBroadcastProcessFunction, KeyedReadOnlyContext,
};

type Reading = (String, i64);

/// Tells how often a place has been above its limit.
struct Above {
    limits: BroadcastState<String, i64>,
    times: ValueState<u32>,
}

impl KeyedBroadcastProcessFunction<String, Reading, Reading, (String, u32)> for Above {
    fn process(
        &mut self,
        (place, level): Reading,
        context: &mut KeyedReadOnlyContext<'_, '_, String, (String, u32)>,
    ) -> Result<()> {
        if self.limits.get(context, &place)?.is_some_and(|limit| level > limit) {
            let times = self.times.get(context)?.unwrap_or(0) + 1;
            self.times.set(context, times)?;
            context.collect((place, times));
        }
        Ok(())
    }

    fn process_broadcast(
        &mut self,
        (place, limit): Reading,
        context: &mut KeyedBroadcastContext<'_, String, (String, u32)>,
    ) -> Result<()> {
        Ok(self.limits.put(context, &place, limit)?)
    }
}

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let of = |rows: &[(&str, i64)]| -> Vec<Reading> {
        rows.iter().map(|(place, level)| ((*place).to_owned(), *level)).collect()
    };
    let limits = env.from_collection(of(&[("quay", 300), ("lock", 150)])).broadcast_state();
    let readings = of(&[("quay", 310), ("lock", 149), ("quay", 295), ("quay", 320), ("pier", 999)]);
    let above = env
        .from_collection(readings)
        .key_by(|(place, _)| place.clone())
        .connect(limits)
        .process(|| Above {
            limits: BroadcastState::new("limits"),
            times: ValueState::new("times"),
        })
        .execute_and_collect()?;
    assert_eq!(above.sorted(), [("quay".to_owned(), 1), ("quay".to_owned(), 2)]);
    Ok(())
}
