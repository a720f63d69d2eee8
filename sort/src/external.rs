//! [`ExternalSorter`]: byte-string records in, in any order.
//!
//! Fills the [`Buffer`]; when the memory refuses, sorts it and writes a run; at the end either hands
//! out the sorted buffer, if nothing was spilled, or merges the runs. Single-threaded: a task has a
//! sorter of its own, and tasks are what runs side by side.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::merge::Merge;
use crate::passes::{Pass, reduce};
use crate::run::Run;
use crate::spiller::Spiller;
use crate::stream::{Held, Source};
use crate::window::Window;
use crate::{SortError, SortStats, SortedStream, SorterOptions, ranges, record};

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
    /// The room that [`ExternalSorter::push_with`] sees to before it knows a record's length: the
    /// longest so far, at most a quarter of a page.
    usual_record: usize,
    page_bytes: usize,
    has_failed: bool,
}

impl ExternalSorter {
    /// A sorter without records; takes nothing from the budget before the first.
    #[must_use]
    pub fn new(options: SorterOptions) -> Self {
        let page_bytes = usize::try_from(options.page_bytes()).unwrap_or(usize::MAX);
        Self {
            spiller: Spiller::new(options),
            buffer: Buffer::new(page_bytes),
            runs: Vec::new(),
            usual_record: page_bytes.min(64),
            page_bytes,
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
        if !self.buffer.has_room(bytes) {
            self.make_room(bytes)?;
        }
        self.spiller.stats.records += 1;
        self.spiller.stats.bytes_in += (key.len() + payload.len()) as u64;
        let prefix = self.spiller.rules.prefix(key);
        self.buffer.push(prefix, timestamp, key, payload);
        Ok(())
    }

    /// Adds a record whose key and payload the caller appends to the sorter's own page.
    ///
    /// # Errors
    ///
    /// As [`ExternalSorter::push`].
    ///
    /// # Panics
    ///
    /// If a closure takes bytes away from the vector that it is to append to.
    #[inline]
    pub fn push_with(
        &mut self,
        timestamp: i64,
        write_key: impl FnOnce(&mut Vec<u8>),
        write_payload: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SortError> {
        // Room for a usual record; a longer one grows the page, and is moved out of it below.
        if !self.buffer.has_room(self.usual_record) {
            self.make_room(self.usual_record)?;
        }
        let page = self.buffer.page();
        let (start, capacity) = (page.len(), page.capacity());
        record::append_head(page, timestamp, 0, 0);
        let key_at = page.len();
        write_key(page);
        let payload_at = page.len();
        write_payload(page);
        let end = page.len();
        assert!(key_at <= payload_at && payload_at <= end, "a closure took bytes of other records");
        let (key, payload) = (payload_at - key_at, end - payload_at);
        if page.capacity() > capacity || !record::is_narrow(key, payload) {
            return self.move_out(start, capacity, timestamp, key_at - start, key);
        }
        record::set_lengths(page, start, timestamp, key, payload);
        let prefix = self.spiller.rules.prefix(&page[key_at..payload_at]);
        self.spiller.stats.records += 1;
        self.spiller.stats.bytes_in += (key + payload) as u64;
        self.buffer.record_written(prefix, start);
        Ok(())
    }

    /// The counts so far.
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
            let count = self.buffer.len();
            let held = Held { buffer: self.buffer, _account: None };
            let source = Source::memory(Arc::new(held), 0..count);
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
    /// merge's.
    ///
    /// # Errors
    ///
    /// As [`ExternalSorter::finish`].
    pub fn finish_ranges(mut self, ways: usize) -> Result<Vec<SortedStream>, SortError> {
        if self.sort_or_reduce()? {
            return Ok(ranges::of_buffer(self.buffer, self.spiller, ways));
        }
        ranges::of_runs(self.runs, self.spiller, ways)
    }

    /// Sorts the buffer and answers true, or, if there are runs, brings them down to what one merge
    /// can read.
    fn sort_or_reduce(&mut self) -> Result<bool, SortError> {
        self.check_usable()?;
        self.spiller.check_cancel()?;
        if self.runs.is_empty() {
            let deep = self.buffer.sort(&self.spiller.rules, self.spiller.cancel())?;
            self.spiller.stats.deep_comparisons += deep;
            return Ok(true);
        }
        self.spill()?;
        self.buffer.release(&mut self.spiller.account);
        let runs = std::mem::take(&mut self.runs);
        self.runs = reduce(runs, &mut self.spiller, &mut Pass)?;
        self.spiller.stats.passes += 1;
        Ok(false)
    }

    #[cold]
    fn make_room(&mut self, bytes: usize) -> Result<(), SortError> {
        self.check_usable()?;
        self.spiller.check_cancel()?;
        if self.buffer.grow(bytes, &mut self.spiller.account) {
            return Ok(());
        }
        self.spill()?;
        if !self.buffer.grow(bytes, &mut self.spiller.account) {
            self.buffer.grow_beyond(bytes, &mut self.spiller.account);
        }
        Ok(())
    }

    fn check_usable(&self) -> Result<(), SortError> {
        if self.has_failed { Err(SortError::Failed) } else { Ok(()) }
    }

    /// A record outgrew its page, or needs the wide form: it goes in again as a whole.
    #[cold]
    fn move_out(
        &mut self,
        start: usize,
        capacity: usize,
        timestamp: i64,
        key_at: usize,
        key: usize,
    ) -> Result<(), SortError> {
        let tail = self.buffer.take_tail(start, capacity);
        self.usual_record = self.usual_record.max(tail.len()).min(self.page_bytes.div_ceil(4));
        let (key, payload) = tail.get(key_at..).unwrap_or_default().split_at(key);
        self.push(key, timestamp, payload)
    }

    /// Writes the buffer as a run, if it holds records. A failed spill drops everything.
    fn spill(&mut self) -> Result<(), SortError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        match self.write_run() {
            Ok(run) => {
                self.runs.push(run);
                self.spiller.stats.runs += 1;
                self.buffer.clear(&mut self.spiller.account);
                Ok(())
            }
            Err(error) => {
                self.has_failed = true;
                self.runs.clear();
                self.buffer.release(&mut self.spiller.account);
                self.spiller.account.trim();
                Err(error)
            }
        }
    }

    fn write_run(&mut self) -> Result<Run, SortError> {
        let deep = self.buffer.sort(&self.spiller.rules, self.spiller.cancel())?;
        self.spiller.stats.deep_comparisons += deep;
        let mut writer = self.spiller.create_run()?;
        let mut window = Window::new();
        let mut next = 0;
        while next < self.buffer.len() {
            next = window.fill(&self.buffer, next, self.buffer.len(), &self.spiller.rules);
            while let Some(at) = window.step() {
                let bytes = self.buffer.bytes_at(at);
                let end = record::parse(bytes).unwrap_or_default().end;
                writer.append(bytes.get(..end).unwrap_or_default(), &mut self.spiller)?;
            }
        }
        self.spiller.stats.deep_comparisons += window.deep;
        self.spiller.seal_run(writer)
    }
}
