//! State in memory through the whole operator path: two words a key, changed by each record.
//!
//! The keyed function counts and sums, and emits for every record; there is no backlog. What it is held
//! against, [`crate::by_hand::folds`], does the same work in one loop: generates, encodes the key, hashes
//! its bytes, looks up, folds, and checks.

use slackwater::GeneratorSource;
use slackwater::prelude::*;

use super::Outcome;
use crate::generator::{check, key, val};
use crate::sinks::CheckSum;
use crate::{Mode, Setting, Store};

/// What state holds for a key: the records so far, and the sum of their values.
pub type Folded = (u64, u64);

/// What a record adds to its key's state.
#[inline]
#[must_use]
pub fn fold(held: Folded, value: u64) -> Folded {
    (held.0 + 1, held.1 + value)
}

/// The one word that an output carries of a state.
#[inline]
#[must_use]
pub fn mixed((count, sum): Folded) -> u64 {
    sum.rotate_left(20) ^ count
}

/// The job's size.
#[derive(Clone, Copy, Debug)]
pub struct KeyedFold {
    /// Records.
    pub records: u64,
    /// Keys, drawn uniformly.
    pub keys: u64,
}

impl KeyedFold {
    /// Runs it over state in memory.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn run(self, parallelism: u32) -> Result<Outcome> {
        let setting =
            Setting { parallelism, checkpoints: None, ..Setting::new(Mode::Stream, Store::Heap) };
        let env = setting.environment();
        let total = CheckSum::default();
        let record = move |i| {
            let key = key(i, self.keys);
            ((key, val(key)), None)
        };
        let source = GeneratorSource::bounded(self.records, record);
        env.from_source(source, WatermarkStrategy::none(), "records")
            .key_by_ref(|record: &(u64, u64)| &record.0)
            .process(Folding::new)
            .name("fold")
            .uid("fold")
            .sink_to(total.sink(|(key, folded): &(u64, u64)| check(*key, *folded)));
        let report = env.execute("keyed fold")?;
        Ok(Outcome { checksum: total.sum(), outputs: total.records(), report })
    }
}

struct Folding {
    state: ValueState<Folded>,
}

impl Folding {
    fn new() -> Self {
        Self { state: ValueState::new("folded") }
    }
}

impl KeyedProcessFunction<u64, (u64, u64), (u64, u64)> for Folding {
    fn open(&mut self, states: &mut state::KeyedStateBackend) -> Result<()> {
        Ok(self.state.bind(states)?)
    }

    #[inline]
    fn process(
        &mut self,
        (key, value): (u64, u64),
        context: &mut KeyedContext<'_, u64, (u64, u64)>,
    ) -> Result<()> {
        let folded = self.state.update(context, |held| {
            let folded = fold(held.unwrap_or_default(), value);
            *held = Some(folded);
            folded
        })?;
        context.collect((key, mixed(folded)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_hand;

    #[test]
    fn the_job_comes_to_the_folds_of_a_plain_loop() {
        let job = KeyedFold { records: 5_000, keys: 70 };
        let expected = by_hand::folds(job.records, job.keys);
        for parallelism in [1, 2] {
            let outcome = job.run(parallelism).unwrap();
            assert_eq!((outcome.outputs, outcome.checksum), (5_000, expected), "{parallelism}");
        }
    }
}
