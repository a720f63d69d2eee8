//! [`ExternalSorter`]: byte-string records in, in any order.
//!
//! Fills the [`Buffer`]; when the memory refuses, sorts it and writes a run; at the end either hands
//! out the sorted buffer, if nothing was spilled, or merges the runs. On one thread, unless the options
//! ask for more: then runs behind the first are written by [`Lanes`] while the next records come.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::draft::{self, Drafted};
use crate::in_memory::{Held, InMemory};
use crate::lanes::{Lane, Lanes, write_run};
use crate::merge::Merge;
use crate::passes::{Pass, reduce};
use crate::run::Run;
use crate::spiller::Spiller;
use crate::stream::Source;
use crate::{
    RunDescription, SortError, SortStats, SortedStream, SorterOptions, durable, ranges, record,
};

/// A longer record does not leave its memory behind in the sorter.
const SCRATCH: usize = 1 << 10;

/// Sorts records by (key bytes, timestamp, arrival) within a budget.
///
/// In: records in any order; already sorted or reversed input is recognised. Costs one copy of each
/// record in memory; beyond the budget, one write and one read of each record for each pass of a
/// merge. The prefix of a key (its first eight bytes) decides alone wherever it differs.
///
/// After an error the sorter holds no records and no files; every later call answers
/// [`SortError::Failed`].
///
/// ```
/// use std::sync::Arc;
/// use element::{ByteSize, MemoryBudget, MemoryStore};
/// use slackwater_sort::{ExternalSorter, SorterOptions, SpillTarget};
///
/// # fn main() -> Result<(), slackwater_sort::SortError> {
/// let budget = MemoryBudget::new(ByteSize::mib(64));
/// let spill = SpillTarget::new(Arc::new(MemoryStore::new()), "example");
/// let mut sorter = ExternalSorter::new(SorterOptions::new(budget, spill));
/// sorter.push(b"b", 0, b"first")?;
/// sorter.push(b"a", 0, b"second")?;
/// let mut sorted = sorter.finish()?;
/// while let Some(record) = sorted.next()? {
///     println!("{:?} {:?}", record.key, record.payload);
/// }
/// # Ok(())
/// # }
/// ```
///
/// Source: FLIP-327, "Sort the backlog"; FLIP-140.
#[derive(Debug)]
pub struct ExternalSorter {
    spiller: Spiller,
    buffer: Buffer,
    runs: Vec<Run>,
    /// Once there is a run, if there is more than one thread.
    lanes: Option<Lanes>,
    /// The key that [`ExternalSorter::push_with`] is given, until it says where the record goes; all of
    /// a record that is not written in place. Nothing between two calls but capacity up to [`SCRATCH`].
    scratch: Vec<u8>,
    /// Whether the last payload was short, so that the next one is written in place.
    is_short: bool,
    has_failed: bool,
}

impl ExternalSorter {
    /// A sorter without records; takes nothing from the budget before the first.
    #[must_use]
    pub fn new(options: SorterOptions) -> Self {
        Self {
            buffer: Buffer::of(&options),
            spiller: Spiller::new(options),
            runs: Vec::new(),
            lanes: None,
            scratch: Vec::new(),
            is_short: true,
            has_failed: false,
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// [`SortError`] if a run had to be written and could not, if the sorter is cancelled, or if the
    /// record has 4 GiB.
    #[inline]
    pub fn push(&mut self, key: &[u8], timestamp: i64, payload: &[u8]) -> Result<(), SortError> {
        let bytes = record::encoded_len(timestamp, key.len(), payload.len())?;
        let prefix = self.spiller.rules.prefix(key);
        if !self.buffer.has_room(prefix, bytes) {
            self.make_room(prefix, bytes)?;
        }
        self.spiller.stats.records += 1;
        self.spiller.stats.bytes_in += (key.len() + payload.len()) as u64;
        self.buffer.push(prefix, timestamp, key, payload);
        Ok(())
    }

    /// Adds a record whose key and payload the caller appends to memory of the sorter: the key first.
    ///
    /// Short payloads are written where they stay. The first long one behind a short one may, for as
    /// long as the call, take memory beyond the budget: that of a page and of the record.
    ///
    /// # Errors
    ///
    /// As [`ExternalSorter::push`].
    ///
    /// # Panics
    ///
    /// If a closure takes bytes away from the vector that it is to append to; the sorter has then
    /// failed.
    #[inline]
    pub fn push_with(
        &mut self,
        timestamp: i64,
        write_key: impl FnOnce(&mut Vec<u8>),
        write_payload: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SortError> {
        self.scratch.clear();
        write_key(&mut self.scratch);
        let key = self.scratch.len();
        let prefix = self.spiller.rules.prefix(&self.scratch);
        if self.is_short && key <= SCRATCH && self.buffer.has_room(prefix, draft::room_for(key)) {
            let failed = &mut self.has_failed;
            return match self.buffer.draft(prefix, timestamp, &self.scratch, failed, write_payload)
            {
                Drafted::Done(payload) => {
                    self.spiller.stats.records += 1;
                    self.spiller.stats.bytes_in += (key + payload) as u64;
                    Ok(())
                }
                Drafted::TooLong(payload) => {
                    self.scratch.extend_from_slice(&payload);
                    self.push_scratch(key, timestamp)
                }
                Drafted::Damaged => panic!("a payload's writer took bytes of other records"),
            };
        }
        write_payload(&mut self.scratch);
        assert!(key <= self.scratch.len(), "a payload's writer took bytes of the key");
        self.push_scratch(key, timestamp)
    }

    /// A sorter that goes on with runs that an earlier one sealed, as if their records had been pushed
    /// to it first, in that order. Options that make an order must be those of the earlier one.
    ///
    /// The runs are found in the options' store. Their files stay where they are, whatever becomes of
    /// the sorter ([`RunDescription::delete`]). Here names and lengths are checked, a block's checksum
    /// when it is read; [`ExternalSorter::verify`] reads all of them ahead.
    ///
    /// # Errors
    ///
    /// [`SortError::Missing`] or [`SortError::Damaged`] for the first run that is not as described.
    pub fn resume(options: SorterOptions, sealed: Vec<RunDescription>) -> Result<Self, SortError> {
        let mut sorter = Self::new(options);
        sorter.runs = durable::adopt(sealed, &sorter.spiller)?;
        Ok(sorter)
    }

    /// Writes all records that are held, and describes the durable runs that no earlier call has
    /// described, in order of arrival; together, all calls describe all records pushed.
    ///
    /// From here on these runs' files belong to the caller, who records the descriptions and deletes the
    /// files when nothing needs them ([`RunDescription::delete`]). The sorter goes on, and reads them.
    /// Costs one run, one sync and one open file at a time.
    ///
    /// # Errors
    ///
    /// [`SortError::NotDurable`] without [`SorterOptions::with_durable_runs`]; otherwise as
    /// [`ExternalSorter::push`].
    pub fn seal(&mut self) -> Result<Vec<RunDescription>, SortError> {
        self.check_usable()?;
        if !self.spiller.options.durable_runs {
            return Err(SortError::NotDurable);
        }
        self.spill()?;
        self.wait()?;
        Ok(durable::describe(&mut self.runs))
    }

    /// Reads the sealed runs, and holds every block against its checksum. Gives their records' number.
    ///
    /// # Errors
    ///
    /// [`SortError::Damaged`] or [`SortError::Missing`] for the first that does not read back.
    pub fn verify(&mut self) -> Result<u64, SortError> {
        durable::verify(&self.runs, &mut self.spiller)
    }

    /// The counts so far; runs that other threads are still writing are not in them.
    #[must_use]
    pub fn stats(&self) -> SortStats {
        self.spiller.stats()
    }

    /// Ends the input.
    ///
    /// Out: all records by (key, timestamp, arrival). With more runs than the fan-in, intermediate
    /// merges happen here; otherwise nothing is read before the stream's first record.
    ///
    /// # Errors
    ///
    /// [`SortError`] if runs cannot be written or merged, or the sorter is cancelled.
    pub fn finish(mut self) -> Result<SortedStream, SortError> {
        if self.sort_or_reduce()? {
            let parts = 0..self.buffer.parts();
            let held = Held { buffer: self.buffer, _account: None };
            let source = Source::Memory(InMemory::parts(Arc::new(held), parts));
            return Ok(SortedStream::new(self.spiller, source));
        }
        let merge = Merge::open(self.runs, &mut self.spiller)?;
        self.spiller.account.trim();
        Ok(SortedStream::new(self.spiller, Source::Runs(merge)))
    }

    /// Ends the input, as [`ExternalSorter::finish`], in parts that can be drained side by side.
    ///
    /// Out: at most `ways` streams, one behind the other in the order; no key is in two of them.
    /// They are of about equal size where prefixes are many. Together they open no more files than
    /// the fan-in, so many runs make fewer parts. A stream's counts are the sort's and its own
    /// merge's. Each knows how many records it has ([`SortedStream::records`]). Reads one block a run
    /// and part, to find where the part begins.
    ///
    /// # Errors
    ///
    /// As [`ExternalSorter::finish`].
    pub fn finish_ranges(mut self, ways: usize) -> Result<Vec<SortedStream>, SortError> {
        if self.sort_or_reduce()? {
            return ranges::of_buffer(self.buffer, self.spiller, ways);
        }
        ranges::of_runs(self.runs, self.spiller, ways)
    }

    /// Seals the buffer and answers true, or, if there are runs, brings them down to what one merge
    /// can read.
    fn sort_or_reduce(&mut self) -> Result<bool, SortError> {
        self.check_usable()?;
        self.spiller.check_cancel()?;
        if self.runs.is_empty() {
            self.buffer.seal();
            return Ok(true);
        }
        self.spill()?;
        self.wait()?;
        self.buffer.release(&mut self.spiller.account);
        if let Some(lanes) = self.lanes.take() {
            lanes.end(&mut self.spiller);
        }
        let runs = std::mem::take(&mut self.runs);
        self.runs = reduce(runs, &mut self.spiller, &mut Pass)?;
        self.spiller.stats.passes += 1;
        Ok(false)
    }

    #[cold]
    fn make_room(&mut self, prefix: u64, bytes: usize) -> Result<(), SortError> {
        self.check_usable()?;
        self.spiller.check_cancel()?;
        if self.grow(prefix, bytes) {
            return Ok(());
        }
        self.spill()?;
        if !self.grow(prefix, bytes) {
            self.buffer.grow_beyond(prefix, bytes, &mut self.spiller.account);
        }
        Ok(())
    }

    fn grow(&mut self, prefix: u64, bytes: usize) -> bool {
        let Spiller { rules, account, .. } = &mut self.spiller;
        self.buffer.grow(prefix, bytes, rules, account)
    }

    fn check_usable(&self) -> Result<(), SortError> {
        if self.has_failed { Err(SortError::Failed) } else { Ok(()) }
    }

    /// Adds a record that lies in the scratch memory, the first `key` bytes of which are its key.
    #[cold]
    fn push_scratch(&mut self, key: usize, timestamp: i64) -> Result<(), SortError> {
        let scratch = std::mem::take(&mut self.scratch);
        let (key, payload) = scratch.split_at(key);
        self.is_short = payload.len() <= draft::SHORT_PAYLOAD;
        let pushed = self.push(key, timestamp, payload);
        if scratch.capacity() <= SCRATCH {
            self.scratch = scratch;
        }
        pushed
    }

    /// Writes the buffer as a run, or has it written, if it holds records. A failed spill drops
    /// everything.
    fn spill(&mut self) -> Result<(), SortError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Some(lanes) = &mut self.lanes {
            let written = lanes.exchange(&mut self.buffer, &mut self.spiller);
            let run = written.map_err(|error| self.fail(error))?;
            self.runs.extend(run);
            return Ok(());
        }
        let written = write_run(&mut self.buffer, &mut self.spiller);
        let run = written.map_err(|error| self.fail(error))?;
        self.runs.push(run);
        self.buffer.clear(&mut self.spiller.account);
        self.open_lanes();
        Ok(())
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
    fn wait(&mut self) -> Result<(), SortError> {
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
