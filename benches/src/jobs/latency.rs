//! J7: the running sum over a history at full speed, then live records at a steady rate.
//!
//! A live record carries the time at which it was due, not the time at which it was sent: a stalled
//! source hides nothing. Live record `j` is due `j / rate` after its reader's first poll of the live
//! part: readers end their parts of the history, and so begin, at different moments.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use slackwater::prelude::*;
use slackwater::{GeneratorSource, HybridSource, JobReport};

use crate::Setting;
use crate::generator::{key, val};
use crate::sinks::{Arrival, Latencies, Timed};

/// The job's size.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// Records of the history.
    pub backlog: u64,
    /// Live records a second, all subtasks together.
    pub rate: u64,
    /// How long live records come.
    pub seconds: u64,
    /// Keys.
    pub keys: u64,
}

/// What one run came to.
#[derive(Clone, Debug)]
pub struct Latency {
    /// The checksum over all outputs.
    pub checksum: u64,
    /// Live records, by when they were due.
    pub arrivals: Vec<Arrival>,
    /// The engine's own account.
    pub report: JobReport,
}

type Input = (u64, (u64, u64));

/// Splits of the live part.
const LIVE_SPLITS: u64 = 64;

impl Live {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn run(self, setting: &Setting) -> Result<Latency> {
        let env = setting.environment();
        let start = Instant::now();
        let latencies = Latencies::since(start);
        env.from_source(
            self.source(start, setting.parallelism),
            WatermarkStrategy::none(),
            "records",
        )
        .key_by_ref(|record: &Input| &record.0)
        .process(|| Summing { sum: ValueState::new("sum") })
        .name("sum")
        .uid("sum")
        .sink_to(latencies.clone());
        let report = env.execute("latency")?;
        let checksum = latencies.total().sum();
        Ok(Latency { checksum, arrivals: latencies.arrivals(), report })
    }

    fn source(self, start: Instant, readers: u32) -> HybridSource<Input> {
        let Self { backlog, rate, seconds, keys } = self;
        let history = GeneratorSource::bounded(backlog, move |i| ((key(i, keys), (0, 0)), None));
        // A source with a rate deals its splits, of which the j-th has every 64th number, in turn.
        let begun: Arc<[OnceLock<u64>]> = (0..readers).map(|_| OnceLock::new()).collect();
        let record = move |j: u64| {
            let reader = (j % LIVE_SPLITS) as usize % begun.len();
            let begun = *begun[reader].get_or_init(|| start.elapsed().as_nanos() as u64);
            let due = (j as f64 * 1e9 / rate as f64) as u64;
            ((key(backlog + j, keys), (begun + due, due)), None)
        };
        let live = GeneratorSource::bounded(rate * seconds, record)
            .records_per_second(rate as f64)
            .splits(LIVE_SPLITS);
        HybridSource::starting_with(history).then(live)
    }
}

/// The latency, in milliseconds, that `share` of the records do not exceed; `None` without records.
#[must_use]
pub fn quantile(arrivals: &[Arrival], share: f64) -> Option<f64> {
    let mut latencies: Vec<u64> = arrivals.iter().map(|arrival| arrival.latency).collect();
    latencies.sort_unstable();
    let place = ((latencies.len() as f64 * share) as usize).min(latencies.len().checked_sub(1)?);
    latencies.get(place).map(|nanoseconds| *nanoseconds as f64 / 1e6)
}

/// Those due before, and from, `seconds` after the switch.
#[must_use]
pub fn split_at(arrivals: &[Arrival], seconds: u64) -> (&[Arrival], &[Arrival]) {
    let first = arrivals.partition_point(|arrival| arrival.due < seconds * 1_000_000_000);
    arrivals.split_at(first)
}

struct Summing {
    sum: ValueState<u64>,
}

impl KeyedProcessFunction<u64, Input, Timed> for Summing {
    fn process(
        &mut self,
        (key, times): Input,
        context: &mut KeyedContext<'_, u64, Timed>,
    ) -> Result<()> {
        let sum = self.sum.update(context, |held| {
            let sum = held.unwrap_or(0) + val(key);
            *held = Some(sum);
            sum
        })?;
        context.collect((key, sum, times));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Store, by_hand};

    #[test]
    fn every_live_record_arrives_once_after_the_history() {
        let live = Live { backlog: 3_000, rate: 100_000, seconds: 0, keys: 50 };
        let none = live.run(&Setting::new(Mode::Mixed, Store::Heap)).unwrap();
        assert_eq!(none.arrivals, []);
        assert_eq!(none.checksum, by_hand::running_sums(3_000, |i| key(i, 50)));
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_latencies() {
        let arrival = |i: u64| Arrival { due: i * 1_000_000_000, latency: (100 - i) * 1_000_000 };
        let arrivals: Vec<Arrival> = (0..100).map(arrival).collect();
        assert_eq!(quantile(&arrivals, 0.5), Some(51.0));
        assert_eq!(quantile(&arrivals, 1.0), Some(100.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(split_at(&arrivals, 5).0.len(), 5);
    }
}
