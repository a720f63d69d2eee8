//! B2: the job by which FLIP-331 was judged: a co-group at the end of input over two sides that each have
//! every key once, with a function that emits a constant for each group.

use slackwater::prelude::*;

use super::Outcome;
use crate::generator::mix;
use crate::sinks::CheckSum;

/// Runs it over `groups` records a side. The checksum is the number of groups.
///
/// # Errors
///
/// What the engine says.
pub fn run(env: &StreamExecutionEnvironment, groups: u64) -> Result<Outcome> {
    let total = CheckSum::default();
    // `mix` maps numbers one to one, so keys are distinct and come in no order.
    let side = |value: u64| env.generate(groups, move |i| (mix(i), value)).key_by_ref(|r| &r.0);
    side(0)
        .connect(side(1))
        .co_group(|_: Vec<(u64, u64)>, _: Vec<(u64, u64)>, context| {
            context.collect(1_u64);
            Ok(())
        })
        .name("groups")
        .sink_to(total.sink(|one: &u64| *one));
    let report = env.execute("FLIP-331's job")?;
    Ok(Outcome { checksum: total.sum(), outputs: total.records(), report })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Setting, Store};

    #[test]
    fn both_modes_give_one_constant_a_group() {
        for mode in [Mode::Stream, Mode::Batch] {
            let outcome = run(&Setting::new(mode, Store::Heap).environment(), 3_000).unwrap();
            assert_eq!((outcome.checksum, outcome.outputs), (3_000, 3_000), "{mode:?}");
        }
    }
}
