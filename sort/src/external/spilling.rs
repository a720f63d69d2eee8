//! How the buffer of an [`ExternalSorter`] becomes runs: what of it is written, by whom, and what is kept.
//!
//! ```text
//!   one thread       the upper parts of the buffer, while runs are few; the rest is kept for the merge
//!   several          the whole buffer once, then whole lanes
//!   durable, at the end, or after many runs      the whole buffer
//! ```

use super::ExternalSorter;
use crate::SortError;
use crate::lanes::{Lane, Lanes, write_run};
use crate::run::Run;
use crate::spiller::Spiller;

/// Runs up to which a part of the memory is kept from them; with more, little is saved, and a merge
/// needs the memory for itself.
const KEPT_RUNS: usize = 12;

/// Runs that are a quarter of the memory, so that little is written too much; the others are half of it.
const SHORT_RUNS: usize = 4;

impl ExternalSorter {
    /// The part from which on the buffer is to be written: an upper share of what it holds as long
    /// as runs are few, for then much of the rest may never have to be.
    pub(super) fn first_to_spill(&mut self) -> usize {
        let most = KEPT_RUNS.min(self.spiller.options.fan_in);
        let Spiller { options, .. } = &self.spiller;
        // Lanes begin with the first run, and their buffers have other parts than this one.
        let is_kept = self.buffer.parts() > 1
            && self.runs.len() < most
            && !options.durable_runs
            && options.threads < 2;
        if !is_kept {
            self.write_whole();
        }
        if self.merge_bytes.is_none() {
            return 0;
        }
        let share = if self.runs.len() < SHORT_RUNS { 4 } else { 2 };
        self.buffer.upper(share, self.unspilled)
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
        let written = write_run(&mut self.buffer, from, &mut self.spiller);
        let run = written.map_err(|error| self.fail(error))?;
        self.buffer.clear_from(from, &mut self.spiller.account);
        self.unspilled = self.unspilled.min(from);
        self.reserve_for(&run);
        self.runs.push(run);
        self.open_lanes();
        Ok(())
    }

    /// Takes memory for a merge's block of the run, and with the first one for that of the memory;
    /// pages that are free make way.
    fn reserve_for(&mut self, run: &Run) {
        let Some(merge_bytes) = &mut self.merge_bytes else { return };
        let Spiller { account, options, .. } = &mut self.spiller;
        let first = if *merge_bytes == 0 { options.block_bytes() } else { 0 };
        let bytes = run.largest_block + run.largest_packed + first;
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
        self.buffer.release(&mut self.spiller.account);
        // What a run's writer had is not in use either.
        self.spiller.account.end();
        error
    }
}
