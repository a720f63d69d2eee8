//! A job whose timers do not fit into the memory that they are given.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use slackwater::options::{RuntimeMode, StateBackendKind};
use slackwater::prelude::*;
use slackwater::store::{ByteStore, StoreContext, StoreFailure};

const KEYS: u64 = 500;

/// Ten timers for each key, of which every third is taken back; what fired, in order.
fn fired(env: &StreamExecutionEnvironment) -> Result<Vec<(u64, Timestamp)>> {
    let at = |i: u64| Timestamp::from_millis(i as i64);
    env.set(&options::RUNTIME_MODE, RuntimeMode::Streaming).set(&options::PARALLELISM, Some(2));
    let fired = env
        .from_timestamped((0..KEYS).map(move |key| (key, at(key))).collect::<Vec<_>>())
        .key_by(|key| *key)
        .with_state(|| ValueState::<u64>::new("fired"))
        .on_timer(|count, at, out| {
            count.update(out, |count| *count = Some(count.unwrap_or(0) + 1))?;
            out.collect_with_key(at);
            Ok(())
        })
        .process(move |_, key, out| {
            let times = (0..10).map(|i| at(1_000 + (key * 7 + i * 131) % 977));
            times.clone().for_each(|time| out.timers().register_event(time));
            times.step_by(3).for_each(|time| {
                out.timers().delete_event(time);
            });
            Ok(())
        })
        .execute_and_collect()?;
    Ok(fired.sorted())
}

#[test]
fn timers_that_do_not_fit_into_memory_fire_as_all_others() {
    let all = fired(&StreamExecutionEnvironment::new()).unwrap();
    assert_eq!(all.len() as u64, KEYS * 6);
    for kind in [StateBackendKind::Heap, StateBackendKind::Disk] {
        let env = StreamExecutionEnvironment::builder()
            .set(&options::STATE_BACKEND, kind)
            .set(&options::STATE_TIMERS_IN_MEMORY, 50)
            .build();
        assert_eq!(fired(&env).unwrap(), all, "{kind:?}");
    }
}

#[test]
fn a_store_of_timers_that_cannot_be_opened_fails_the_job_by_the_operators_name() {
    let open = |context: &StoreContext| -> Result<Box<dyn ByteStore>, StoreFailure> {
        if context.directory.to_string_lossy().contains("timers-") {
            return Err(StoreFailure::new("open", "no room for timers"));
        }
        Ok(Box::new(slackwater::store::MemoryByteStore::new()))
    };
    let env = StreamExecutionEnvironment::builder()
        .state_store(open)
        .set(&options::STATE_TIMERS_IN_MEMORY, 50)
        .build();
    let error = format!("{:#}", fired(&env).map(|fired| fired.len()).unwrap_err());
    assert!(error.contains("no room for timers"), "{error}");
}
