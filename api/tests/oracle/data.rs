//! Random input: records of a few sources, in phases of backlog and live.

#[cfg(feature = "sim")]
use std::sync::atomic::{AtomicU64, Ordering};

use slackwater::{ScriptStep, ScriptedSource};

pub(crate) type Row = (u32, i64);

/// How far a record may be behind the greatest timestamp before it in its script.
pub(crate) const DISORDER: i64 = 50;

/// A small generator (splitmix64): the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x51ac_c0a7)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The records of one source: scripts for its subtasks, and where the flag changes.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) sources: Vec<Vec<Vec<ScriptStep<Row>>>>,
    pub(crate) records: u64,
}

impl Data {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let sources = 1 + rng.below(2);
        let keys = rng.pick(&[1, 3, 20, 200]);
        let mut records = 0;
        let sources = (0..sources)
            .map(|_| {
                let parts = 1 + rng.below(3);
                (0..parts).map(|part| script(rng, part, keys, &mut records)).collect()
            })
            .collect();
        Self { sources, records }
    }

    /// Few records, in batches that end anywhere: each look at a pause counts, and the last one ends it.
    #[cfg(feature = "sim")]
    pub(crate) fn small(rng: &mut Rng) -> Self {
        let sources = 1 + rng.below(3);
        let keys = rng.pick(&[1, 3, 20]);
        let mut records = 0;
        let sources = (0..sources)
            .map(|_| {
                let parts = 1 + rng.below(3);
                (0..parts)
                    .map(|part| {
                        let steps = script_of(rng, part, keys, &[0, 1, 5, 30], &mut records);
                        with_pauses(rng, steps)
                    })
                    .collect()
            })
            .collect();
        Self { sources, records }
    }

    pub(crate) fn parts(&self, at: usize) -> usize {
        self.sources[at % self.sources.len()].len()
    }

    pub(crate) fn source(&self, at: usize) -> ScriptedSource<Row> {
        ScriptedSource::parts(self.sources[at % self.sources.len()].clone())
    }
}

/// One script. Values are positive, so that sums only grow; flags change in the first part alone.
fn script(rng: &mut Rng, part: u64, keys: u64, records: &mut u64) -> Vec<ScriptStep<Row>> {
    script_of(rng, part, keys, &[0, 1, 40, 600], records)
}

/// As [`script`], with phases of these lengths.
fn script_of(
    rng: &mut Rng,
    part: u64,
    keys: u64,
    lengths: &[u64],
    records: &mut u64,
) -> Vec<ScriptStep<Row>> {
    let mut steps = Vec::new();
    let mut now = 0;
    let phases = rng.below(5);
    let mut backlog = rng.one_in(2);
    for phase in 0..=phases {
        if part == 0 && (phase > 0 || !rng.one_in(4)) {
            backlog = !backlog;
            steps.push(ScriptStep::Backlog(backlog));
        }
        for _ in 0..rng.pick(lengths) {
            now += i64::try_from(rng.below(4)).unwrap();
            let at = now - i64::try_from(rng.below(DISORDER as u64)).unwrap();
            let key = u32::try_from(rng.below(keys)).unwrap();
            let value = 1 + i64::try_from(rng.below(9)).unwrap();
            steps.push(ScriptStep::at(at, (key, value)));
            *records += 1;
        }
    }
    steps
}

/// Pauses between some of the steps, but not before the first: a flag there holds from the start.
#[cfg(feature = "sim")]
fn with_pauses(rng: &mut Rng, steps: Vec<ScriptStep<Row>>) -> Vec<ScriptStep<Row>> {
    let often = rng.pick(&[2, 6, 30]);
    let mut paused = Vec::new();
    for step in steps {
        if !paused.is_empty() && rng.one_in(often) {
            let (looks, last) = (AtomicU64::new(0), 1 + rng.below(3));
            paused.push(ScriptStep::until(move || {
                looks.fetch_add(1, Ordering::Relaxed) % last == last - 1
            }));
        }
        paused.push(step);
    }
    paused
}
