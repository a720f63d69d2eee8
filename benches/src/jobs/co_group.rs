//! J2: two inputs grouped by key when both have ended, one output a key (FLIP-331).

use slackwater::prelude::*;

use super::Outcome;
use crate::generator::{RIGHT, check, co_group, key, mix, val16};
use crate::sinks::CheckSum;

type Side = (u64, u64);

/// Runs the co-group of `records_each` a side. The operator is called `groups` in the report.
///
/// # Errors
///
/// What the engine says.
pub fn run(env: &StreamExecutionEnvironment, records_each: u64, keys: u64) -> Result<Outcome> {
    let total = CheckSum::default();
    let side = |base: u64| {
        env.generate(records_each, move |i| (key(i + base, keys), val16(mix(i + base))))
            .key_by_ref(|record: &Side| &record.0)
    };
    side(0)
        .connect(side(RIGHT))
        .co_group(|left: Vec<Side>, right: Vec<Side>, context| {
            let sums = co_group(count_and_sum(&left), count_and_sum(&right));
            let key = *context.key();
            context.collect((key, sums));
            Ok(())
        })
        .name("groups")
        .sink_to(total.sink(|(key, sums): &Side| check(*key, *sums)));
    let report = env.execute("co-group")?;
    Ok(Outcome { checksum: total.sum(), outputs: total.records(), report })
}

fn count_and_sum(side: &[Side]) -> (u64, u64) {
    (side.len() as u64, side.iter().map(|record| record.1).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Setting, Store, by_hand};

    #[test]
    fn every_mode_groups_as_two_sorted_lists_do() {
        let expected = by_hand::co_groups(4_000, 300);
        for mode in [Mode::Stream, Mode::Batch] {
            let env = Setting::new(mode, Store::Heap).environment();
            let outcome = run(&env, 4_000, 300).unwrap();
            assert_eq!((outcome.outputs, outcome.checksum), (300, expected), "{mode:?}");
        }
    }
}
