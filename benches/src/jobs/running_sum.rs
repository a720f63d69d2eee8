//! J1: a running sum per key over a history, then a live part that is empty.
//!
//! `Each` is a keyed process function with value state that emits for every record, in every mode.
//! `Last` is the `final` variant: an aggregate, which may combine; over a history that is sorted or
//! combined, and in batch mode, it gives one output a key (decision D9).

use slackwater::prelude::*;
use slackwater::{CollectionSource, GeneratorSource, HybridSource, JobReport};

use super::Outcome;
use crate::generator::{check, key, skewed_key, val};
use crate::sinks::CheckSum;
use crate::{Mode, Order, Setting};

/// What is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// Each record's running sum.
    Each,
    /// Each key's last sum. In [`Mode::Stream`] it is each record's, for an aggregate is live there.
    Last,
}

/// The job's size.
#[derive(Clone, Copy, Debug)]
pub struct RunningSum {
    /// Records.
    pub records: u64,
    /// Keys.
    pub keys: u64,
    /// How keys are drawn.
    pub order: Order,
    /// What is emitted.
    pub emit: Emit,
}

impl RunningSum {
    /// Uniform keys, an output a record.
    #[must_use]
    pub fn new(records: u64, keys: u64) -> Self {
        Self { records, keys, order: Order::Uniform, emit: Emit::Each }
    }

    /// The function that gives the key of record `i`.
    pub fn key_of(self) -> impl Fn(u64) -> u64 + Copy + Send + Sync + 'static {
        move |i| match self.order {
            Order::Uniform => key(i, self.keys),
            Order::Skewed => skewed_key(i, self.keys),
            Order::Counted => i,
        }
    }

    /// Runs it. The operator is called `sum` in the report.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn run(self, setting: &Setting) -> Result<Outcome> {
        self.run_on(&setting.environment())
    }

    /// As [`run`](Self::run), on an environment that is there.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn run_on(self, env: &StreamExecutionEnvironment) -> Result<Outcome> {
        let total = CheckSum::default();
        let report = self.build(env, &total).map(|()| env.execute("running sum"))??;
        Ok(Outcome { checksum: total.sum(), outputs: total.records(), report })
    }

    /// Puts the job together, to be executed by the caller.
    ///
    /// # Errors
    ///
    /// None so far; the engine checks when it plans.
    pub fn build(self, env: &StreamExecutionEnvironment, total: &CheckSum) -> Result<()> {
        let key_of = self.key_of();
        let record = move |i| {
            let key = key_of(i);
            ((key, val(key)), None)
        };
        let history = GeneratorSource::bounded(self.records, record);
        let live = CollectionSource::new(Vec::<(u64, u64)>::new());
        let source = HybridSource::starting_with(history).then(live);
        let keyed = env
            .from_source(source, WatermarkStrategy::none(), "records")
            .key_by_ref(|record: &(u64, u64)| &record.0);
        let sums = match self.emit {
            Emit::Each => keyed.process(Summing::new),
            Emit::Last => keyed.sum(|record| record.1),
        };
        let sink = total.sink(|(key, sum): &(u64, u64)| check(*key, *sum));
        sums.name("sum").uid("sum").sink_to(sink);
        Ok(())
    }
}

/// Counts of the operator's backlog: keys, reads, writes, bytes spilled, runs; none if it streamed.
#[must_use]
pub fn backlog_counts(report: &JobReport) -> Vec<(&'static str, u64)> {
    let Some(operator) = report.operator("sum") else { return Vec::new() };
    let Some(phase) = operator.phases.first() else { return Vec::new() };
    vec![
        ("backlog records", phase.records),
        ("backlog keys", phase.keys),
        ("state reads", phase.state_reads),
        ("state writes", phase.state_writes),
        ("bytes spilled", phase.bytes_spilled),
        ("runs", phase.runs),
    ]
}

/// Whether a mode gives one output a key when it is asked for the last sums.
#[must_use]
pub fn is_final(mode: Mode, emit: Emit) -> bool {
    emit == Emit::Last && mode != Mode::Stream
}

struct Summing {
    sum: ValueState<u64>,
}

impl Summing {
    fn new() -> Self {
        Self { sum: ValueState::new("sum") }
    }
}

impl KeyedProcessFunction<u64, (u64, u64), (u64, u64)> for Summing {
    fn open(&mut self, states: &mut state::KeyedStateBackend) -> Result<()> {
        Ok(self.sum.bind(states)?)
    }

    #[inline]
    fn process(
        &mut self,
        (key, value): (u64, u64),
        context: &mut KeyedContext<'_, u64, (u64, u64)>,
    ) -> Result<()> {
        let sum = self.sum.update(context, |held| {
            let sum = held.unwrap_or(0) + value;
            *held = Some(sum);
            sum
        })?;
        context.collect((key, sum));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, by_hand};

    #[test]
    fn every_mode_and_store_comes_to_the_sums_of_a_plain_loop() {
        let job = RunningSum::new(5_000, 70);
        let expected = by_hand::running_sums(job.records, job.key_of());
        for store in Store::BUILT_IN {
            for mode in Mode::ALL {
                let outcome = job.run(&Setting::new(mode, *store)).unwrap();
                assert_eq!(outcome.outputs, 5_000, "{mode:?} over {}", store.name());
                assert_eq!(outcome.checksum, expected, "{mode:?} over {}", store.name());
            }
        }
    }

    #[test]
    fn last_sums_are_one_a_key_where_a_history_is_collected() {
        let job = RunningSum { emit: Emit::Last, ..RunningSum::new(5_000, 70) };
        let expected = by_hand::final_sums(job.records, job.key_of());
        for mode in [Mode::Mixed, Mode::Batch] {
            let outcome = job.run(&Setting::new(mode, Store::Heap)).unwrap();
            assert_eq!((outcome.outputs, outcome.checksum), (70, expected), "{mode:?}");
            assert!(is_final(mode, job.emit));
        }
    }

    #[test]
    fn a_mixed_run_reads_and_writes_each_key_at_most_once() {
        let outcome = RunningSum::new(5_000, 70).run(&Setting::new(Mode::Mixed, Store::Disk));
        let counts = backlog_counts(&outcome.unwrap().report);
        let count = |name| counts.iter().find(|count| count.0 == name).map(|count| count.1);
        assert_eq!(count("backlog records"), Some(5_000));
        assert_eq!(count("backlog keys"), Some(70));
        assert!(count("state reads") <= Some(70) && count("state writes") <= Some(70));
    }
}
