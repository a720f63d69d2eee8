//! J6: records of 100 bytes from two subtasks to two others, by key, without state.
//!
//! `Pipelined` runs in streaming mode over channels, `Blocking` in batch mode through files.

use slackwater::prelude::*;

use super::Outcome;
use crate::generator::{exchange_check, exchange_key, exchange_record};
use crate::sinks::CheckSum;

/// How records are dealt to the consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By the hash of the number in front: a keyed exchange, no keyed operator behind it.
    Key,
    /// In turn, batch by batch.
    Turn,
}

/// Runs the exchange of `records` on an environment.
///
/// # Errors
///
/// What the engine says.
pub fn run(env: &StreamExecutionEnvironment, records: u64, by: By) -> Result<Outcome> {
    let total = CheckSum::default();
    let made = env.generate(records, exchange_record);
    let dealt = match by {
        By::Turn => made.rebalance(),
        By::Key => made.partition_custom(|record, consumers| {
            let hash = element::hash_key_bytes(&exchange_key(record).to_be_bytes());
            element::MaxParallelism::DEFAULT.subtask_of(hash, consumers).0
        }),
    };
    dealt.sink_to(total.sink(exchange_check));
    let report = env.execute("exchange")?;
    Ok(Outcome { checksum: total.sum(), outputs: total.records(), report })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Setting, Store, by_hand};

    #[test]
    fn no_record_is_lost_or_changed_on_either_way() {
        let expected = by_hand::exchange_checks(10_000);
        for mode in [Mode::Stream, Mode::Batch] {
            for by in [By::Key, By::Turn] {
                let env = Setting::new(mode, Store::Heap).environment();
                let outcome = run(&env, 10_000, by).unwrap();
                assert_eq!(outcome.outputs, 10_000, "{mode:?} by {by:?}");
                assert_eq!(outcome.checksum, expected, "{mode:?} by {by:?}");
            }
        }
    }
}
