//! Brings the number of runs down to the fan-in, in the fewest passes and with the least work.
//!
//! `r` runs need `p = ceil(log_f r)` merges of fan-in `f`, the last of which is the stream. Before
//! it, each pass merges just as many neighbours as bring the count down to the next power of `f`:
//! with 130 runs and a fan-in of 128, three runs are merged and 127 are left alone. Neighbours only,
//! so that runs stay in order of arrival.

use std::collections::VecDeque;

use crate::SortError;
use crate::merge::Merge;
use crate::run::{Run, RunWriter};
use crate::run_reader::RunReader;
use crate::spiller::Spiller;

/// Blocks of this many bytes are never worth another pass: where the memory is as small as that, a
/// merge goes beyond it by one record a run.
const SHORT: u64 = 4 << 10;

/// What is done to records on their way from runs to a run.
pub(crate) trait Fold {
    /// Takes the next record, in order; writes to `out` what is complete.
    fn add(
        &mut self,
        record: &RunReader,
        out: &mut RunWriter,
        spiller: &mut Spiller,
    ) -> Result<(), SortError>;

    /// Writes what is left.
    fn finish(&mut self, out: &mut RunWriter, spiller: &mut Spiller) -> Result<(), SortError>;
}

/// Records pass as they are.
pub(crate) struct Pass;

impl Fold for Pass {
    #[inline]
    fn add(
        &mut self,
        record: &RunReader,
        out: &mut RunWriter,
        spiller: &mut Spiller,
    ) -> Result<(), SortError> {
        let bytes = record.record();
        out.append(bytes, bytes.len(), spiller)
    }

    fn finish(&mut self, _: &mut RunWriter, _: &mut Spiller) -> Result<(), SortError> {
        Ok(())
    }
}

/// Merges neighbours until at most `fan_in` runs are left.
pub(crate) fn reduce(
    runs: Vec<Run>,
    spiller: &mut Spiller,
    fold: &mut impl Fold,
) -> Result<Vec<Run>, SortError> {
    let mut runs = runs;
    loop {
        let width = width_of(&runs, spiller);
        if runs.len() <= width {
            break;
        }
        runs = one_pass(runs.into(), width, spiller, fold)?;
        spiller.stats.passes += 1;
    }
    Ok(runs)
}

/// How many runs can be merged at once: the fan-in, or fewer where single records are so long that
/// the largest blocks of so many runs do not fit into the memory; two at least.
fn width_of(runs: &[Run], spiller: &Spiller) -> usize {
    let fan_in = spiller.options.fan_in.max(2);
    let usual = spiller.options.with_packed(spiller.options.block_bytes()).max(SHORT);
    let mut blocks: Vec<u64> =
        runs.iter().map(|run| run.largest_block + run.largest_packed).collect();
    blocks.sort_unstable_by(|a, b| b.cmp(a));
    // Without records longer than a block there is nothing to add up.
    if blocks.first().is_none_or(|largest| *largest <= usual) {
        return fan_in;
    }
    let mut left = spiller.options.memory().saturating_sub(usual);
    let fits = |block: &&u64| {
        let is_there = **block <= left;
        left = left.saturating_sub(**block);
        is_there
    };
    let fitting = blocks.iter().take_while(fits).count();
    // If all fit, the fan-in alone decides.
    if fitting == runs.len() { fan_in } else { fitting.clamp(2, fan_in) }
}

/// The greatest power of `fan_in` below `runs`: what one pass must leave.
fn target_of(runs: usize, fan_in: usize) -> usize {
    let mut target = fan_in;
    while target.saturating_mul(fan_in) < runs {
        target *= fan_in;
    }
    target
}

fn one_pass(
    mut runs: VecDeque<Run>,
    fan_in: usize,
    spiller: &mut Spiller,
    fold: &mut impl Fold,
) -> Result<Vec<Run>, SortError> {
    let mut excess = runs.len() - target_of(runs.len(), fan_in);
    let mut left = Vec::new();
    while excess > 0 {
        let width = fan_in.min(excess + 1).min(runs.len());
        excess -= width - 1;
        let merged: Vec<Run> = runs.drain(..width).collect();
        left.push(merge_into_one(merged, spiller, fold)?);
    }
    left.extend(runs);
    Ok(left)
}

fn merge_into_one(
    runs: Vec<Run>,
    spiller: &mut Spiller,
    fold: &mut impl Fold,
) -> Result<Run, SortError> {
    let mut out = spiller.create_run()?;
    let mut merge = Merge::open(runs, spiller)?;
    while let Some(record) = merge.advance()? {
        fold.add(record, &mut out, spiller)?;
    }
    fold.finish(&mut out, spiller)?;
    let loans = merge.take_loans();
    spiller.account.give(loans);
    spiller.stats.deep_comparisons += merge.deep_comparisons;
    spiller.seal_run(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_leaves_the_next_lower_power_of_the_fan_in() {
        for (runs, fan_in, target) in [
            (5, 4, 4),
            (16, 4, 4),
            (17, 4, 16),
            (64, 4, 16),
            (65, 4, 64),
            (130, 128, 128),
            (3, 2, 2),
        ] {
            assert_eq!(target_of(runs, fan_in), target, "{runs} runs");
        }
    }
}
