//! How the buffer of an [`ExternalSorter`] becomes runs: what of it is written, by whom, and what is kept.
//!
//! ```text
//!   one thread       the upper parts of the buffer, as they are; the rest is kept, and sorted with them
//!                    where a part grows too long: upper parts, sorted, while runs are few; the rest is
//!                    kept for the merge
//!   several          the whole buffer once, then whole lanes
//!   durable, at the end, or after many runs      the whole buffer
//! ```

use std::sync::Arc;

use super::ExternalSorter;
use crate::SortError;
use crate::in_memory::{Held, InMemory};
use crate::lanes::{Lane, Lanes, write_run};
use crate::parted::{PartedRun, PartedRuns};
use crate::parted_reader::PartedReader;
use crate::record;
use crate::run::Run;
use crate::spiller::Spiller;

/// Runs up to which a part of the memory is kept from them; with more, little is saved, and a merge
/// needs the memory for itself.
const KEPT_RUNS: usize = 12;

/// Parted runs at most: each costs a read a part.
const PARTED_RUNS: usize = 64;

/// The share of the memory, one in so many, that one part may take while it is sorted.
const PART_SHARE: u64 = 4;

/// Runs that are a quarter of the memory, so that little is written too much; the others are half of it.
const SHORT_RUNS: usize = 4;

impl ExternalSorter {
    /// The part from which on the buffer is to be written: an upper share of what it holds as long
    /// as runs are few, for then much of the rest may never have to be.
    pub(super) fn first_to_spill(&mut self) -> usize {
        let is_parted = self.runs.is_empty();
        let most = if is_parted { PARTED_RUNS } else { KEPT_RUNS };
        let runs = self.runs.len() + self.parted.runs.len();
        let Spiller { options, .. } = &self.spiller;
        // Lanes begin with the first run, and their buffers have other parts than this one.
        let is_kept = self.buffer.parts() > 1
            && runs < most.min(options.fan_in)
            && !options.durable_runs
            && options.threads < 2;
        if !is_kept {
            self.write_whole();
        }
        if self.merge_bytes.is_none() {
            return 0;
        }
        let share = if runs < SHORT_RUNS { 4 } else { 2 };
        self.buffer.upper(share, self.unspilled)
    }

    /// Whether parts of the buffer may be written as they are.
    fn writes_parts(&self, from: usize) -> bool {
        let most = self.spiller.options.memory() / PART_SHARE;
        self.runs.is_empty()
            && self.merge_bytes.is_some()
            && self.buffer.parts() > 1
            && self.parted.take_in(&self.buffer, from, most)
    }

    /// From here on the buffer is written as a whole.
    pub(super) fn write_whole(&mut self) {
        let merge_bytes = self.merge_bytes.take().unwrap_or(0);
        self.spiller.account.give(merge_bytes);
    }

    /// Writes the buffer from a part on as a run, or has all of it written, if it holds records. A failed
    /// spill drops everything.
    pub(super) fn spill(&mut self, from: usize) -> Result<(), SortError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Some(lanes) = &mut self.lanes {
            let written = lanes.exchange(&mut self.buffer, &mut self.spiller);
            let run = written.map_err(|error| self.fail(error))?;
            self.runs.extend(run);
            return Ok(());
        }
        if self.writes_parts(from) {
            let written = PartedRun::write(&mut self.buffer, from, &mut self.spiller);
            let run = written.map_err(|error| self.fail(error))?;
            self.buffer.clear_from(from, &mut self.spiller.account);
            self.unspilled = self.unspilled.min(from);
            self.parted.add(run, self.buffer.parts());
            self.reserve_for_part();
            return Ok(());
        }
        let first = self.runs.len();
        self.sort_parted()?;
        let written = write_run(&mut self.buffer, from, &mut self.spiller);
        let run = written.map_err(|error| self.fail(error))?;
        self.buffer.clear_from(from, &mut self.spiller.account);
        self.unspilled = self.unspilled.min(from);
        self.runs.push(run);
        for run in first..self.runs.len() {
            let block = self.runs.get(run).map_or(0, |run| run.largest_block + run.largest_packed);
            self.reserve_for(block);
        }
        self.open_lanes();
        Ok(())
    }

    /// Makes one sorted run of the parted ones, if there are any: their records came before all others.
    fn sort_parted(&mut self) -> Result<(), SortError> {
        if self.parted.runs.is_empty() {
            return Ok(());
        }
        let run = self.write_parted().map_err(|error| self.fail(error))?;
        self.spiller.stats.passes += 1;
        self.runs.push(run);
        Ok(())
    }

    fn write_parted(&mut self) -> Result<Run, SortError> {
        let Self { spiller, buffer, .. } = self;
        let parted = std::mem::take(&mut self.parted);
        let reserved = parted.reserved;
        let held = Arc::new(Held { buffer: buffer.empty_like(), _account: None });
        let reader = PartedReader::open(Arc::new(parted), spiller)?;
        let mut memory = InMemory::parted(held, 0..buffer.parts(), reader);
        let (rules, cancel) = (spiller.rules, spiller.cancel().cloned());
        let mut writer = spiller.create_run()?;
        while memory.advance(&rules, cancel.as_ref())? {
            let bytes = memory.bytes();
            writer.append(bytes, record::length(bytes), spiller)?;
        }
        spiller.stats.deep_comparisons += memory.deep_comparisons();
        let run = spiller.seal_run(writer)?;
        drop(memory);
        spiller.account.give(reserved);
        Ok(run)
    }

    /// Whether the input ends with parted runs, which are sorted part by part, `ways` of them at once. The
    /// memory for that is in use in the account then; for one of them at least, if there is less.
    pub(super) fn can_sort_parts(&mut self, ways: usize) -> Result<bool, SortError> {
        while !self.parted.runs.is_empty() {
            self.buffer.release_spare(&mut self.spiller.account);
            let needs = self.parted.needs(&self.buffer) * ways as u64;
            let more = needs.saturating_sub(self.parted.reserved);
            if self.spiller.account.take_reserved(more) {
                self.parted.reserved += more;
                break;
            }
            if self.buffer.is_empty() {
                self.reserve_for_part();
                break;
            }
            let from = self.first_to_spill();
            self.spill(from)?;
        }
        let is_parted = !self.parted.runs.is_empty();
        self.spiller.stats.passes += u64::from(is_parted);
        Ok(is_parted)
    }

    /// Takes memory to sort the longest part when it is drained, up to its share; pages that are free make
    /// way.
    fn reserve_for_part(&mut self) {
        let Spiller { account, options, .. } = &mut self.spiller;
        let needs = self.parted.needs(&self.buffer).min(options.memory() / PART_SHARE);
        while self.parted.reserved < needs {
            if account.take(needs - self.parted.reserved) {
                self.parted.reserved = needs;
            } else if !self.buffer.release_page(account) {
                break;
            }
        }
    }

    /// Takes memory for a merge's block of a run, and with the first one for that of the memory; pages that
    /// are free make way.
    fn reserve_for(&mut self, block: u64) {
        let Some(merge_bytes) = &mut self.merge_bytes else { return };
        let Spiller { account, options, .. } = &mut self.spiller;
        let first = if *merge_bytes == 0 { options.block_bytes() } else { 0 };
        let bytes = block + first;
        // Beside the block that the next run is written by: without one it is written record by record.
        while !account.take(bytes) {
            if !self.buffer.release_page(account) {
                account.take_beyond(bytes);
                break;
            }
        }
        *merge_bytes += bytes;
    }

    /// Cuts the memory into lanes, if there is more than one thread. The first run is not written by
    /// one, so that what fits into the whole memory is never written.
    fn open_lanes(&mut self) {
        if self.spiller.options.threads < 2 {
            return;
        }
        self.buffer.release(&mut self.spiller.account);
        self.spiller.account.trim();
        match Lanes::new(&self.spiller) {
            Some((lanes, Lane { buffer, spiller })) => {
                self.lanes = Some(lanes);
                (self.buffer, self.spiller) = (buffer, spiller);
            }
            None => self.spiller.options.threads = 1,
        }
    }

    /// Waits for the runs that are being written.
    pub(super) fn wait(&mut self) -> Result<(), SortError> {
        let Some(lanes) = &mut self.lanes else { return Ok(()) };
        let runs = lanes.wait(&mut self.spiller).map_err(|error| self.fail(error))?;
        self.runs.extend(runs);
        Ok(())
    }

    /// Drops everything.
    #[cold]
    fn fail(&mut self, error: SortError) -> SortError {
        self.has_failed = true;
        self.lanes = None;
        self.runs.clear();
        self.parted = PartedRuns::default();
        self.buffer.release(&mut self.spiller.account);
        // What a run's writer had is not in use either.
        self.spiller.account.end();
        error
    }
}
