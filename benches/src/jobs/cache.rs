//! J4: five jobs over one stream whose records are costly to make, with and without a cache (FLIP-205).
//!
//! Record `i` is `i` after 300 steps of the generator's `mix`. Job `j` sums a value of each record, times
//! `j + 1`, by a thousand keys.

use std::time::{Duration, Instant};

use slackwater::JobReport;
use slackwater::prelude::*;

use crate::by_hand::costly;
use crate::generator::{check, val16};
use crate::sinks::CheckSum;

/// Keys that records are summed by.
pub const KEYS: u64 = 1_000;

/// The jobs' size.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// Records of the stream.
    pub rows: u64,
    /// Steps that each takes.
    pub rounds: u32,
    /// Jobs over it.
    pub jobs: u64,
    /// Whether the first job keeps the stream for the others.
    pub cached: bool,
}

/// What the jobs came to.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// The sum of all jobs' checksums.
    pub checksum: u64,
    /// How long each took.
    pub took: Vec<Duration>,
    /// The engine's own account of each.
    pub reports: Vec<JobReport>,
}

impl Jobs {
    /// Runs them one after the other. The stream is called `rows` in the reports.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn run(self, env: &StreamExecutionEnvironment) -> Result<Outcomes> {
        let Self { rows, rounds, jobs, cached } = self;
        let make = || env.generate(rows, move |i| costly(i, rounds)).name("rows");
        let kept = cached.then(|| make().cache());
        let mut outcomes = Outcomes::default();
        for job in 0..jobs {
            let start = Instant::now();
            let total = CheckSum::default();
            let stream = kept.as_ref().map_or_else(make, |kept| kept.stream());
            stream
                .map(move |x| (key_of(x), val16(x) * (job + 1)))
                .key_by_ref(|pair: &(u64, u64)| &pair.0)
                .sum(|pair| pair.1)
                .sink_to(total.sink(|(key, sum): &(u64, u64)| check(*key, *sum)));
            outcomes.reports.push(env.execute("sums")?);
            outcomes.checksum = outcomes.checksum.wrapping_add(total.sum());
            outcomes.took.push(start.elapsed());
        }
        Ok(outcomes)
    }

    /// The jobs' checksum by a plain loop; the records made once, as with a cache.
    #[must_use]
    pub fn by_hand(self) -> u64 {
        let rows = crate::by_hand::costly_rows(self.rows, self.rounds);
        let mut total = 0_u64;
        for job in 0..self.jobs {
            let mut sums = vec![0_u64; KEYS as usize];
            let mut seen = vec![false; KEYS as usize];
            for x in &rows {
                let place = key_of(*x) as usize;
                sums[place] += val16(*x) * (job + 1);
                seen[place] = true;
            }
            for (key, sum) in (0..).zip(&sums).filter(|(key, _)| seen[*key as usize]) {
                total = total.wrapping_add(check(key, *sum));
            }
        }
        total
    }
}

fn key_of(x: u64) -> u64 {
    ((x >> 32) * KEYS) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Setting, Store};

    #[test]
    fn jobs_over_a_cache_come_to_the_same_and_read_it() {
        for cached in [false, true] {
            let jobs = Jobs { rows: 3_000, rounds: 3, jobs: 3, cached };
            let env = Setting::new(Mode::Batch, Store::Heap).environment();
            let outcomes = jobs.run(&env).unwrap();
            assert_eq!(outcomes.checksum, jobs.by_hand(), "cached: {cached}");
            let is_hit = |report: &JobReport| report.cache("rows").is_some_and(|c| c.is_hit());
            let hits: Vec<bool> = outcomes.reports.iter().map(is_hit).collect();
            assert_eq!(hits, [false, cached, cached]);
        }
    }
}
