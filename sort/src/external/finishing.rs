//! How an [`ExternalSorter`] ends its input: from memory, from parts, or by a merge.

use std::sync::Arc;

use super::ExternalSorter;
use crate::in_memory::{Held, InMemory};
use crate::kept::Kept;
use crate::merge::Merge;
use crate::passes::{Pass, reduce};
use crate::stream::Source;
use crate::{SortError, SortedStream, ranges};

impl ExternalSorter {
    /// Ends the input.
    ///
    /// Out: all records by (key, timestamp, arrival). With more runs than the fan-in, intermediate
    /// merges happen here; otherwise nothing is read before the stream's first record.
    ///
    /// # Errors
    ///
    /// [`SortError`] if runs cannot be written or merged, or the sorter is cancelled.
    pub fn finish(self) -> Result<SortedStream, SortError> {
        let given = self.given();
        let stream = self.finish_whole()?;
        check_found(given, stream.records())?;
        Ok(stream)
    }

    fn finish_whole(mut self) -> Result<SortedStream, SortError> {
        self.settle_last()?;
        if self.can_sort_parts(1)? {
            let parted = std::mem::take(&mut self.parted);
            let mut streams = ranges::of_parted(self.buffer, parted, self.spiller, 1)?;
            return streams.pop().ok_or(SortError::Failed);
        }
        if let Some(merge_bytes) = self.merge_bytes
            && !self.runs.is_empty()
        {
            return self.finish_kept(merge_bytes);
        }
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
        let given = self.given();
        self.settle_last()?;
        let streams = if self.can_sort_parts(ways.max(1))? {
            let parted = std::mem::take(&mut self.parted);
            ranges::of_parted(self.buffer, parted, self.spiller, ways)?
        } else if self.sort_or_reduce()? {
            ranges::of_buffer(self.buffer, self.spiller, ways)?
        } else {
            ranges::of_runs(self.runs, self.spiller, ways)?
        };
        check_found(given, streams.iter().map(SortedStream::records).sum())?;
        Ok(streams)
    }

    /// Records that are to be handed out.
    fn given(&self) -> u64 {
        self.spiller.stats.records + self.resumed
    }

    /// Before the end: all records are in the buffer, if the sorter can be used.
    fn settle_last(&mut self) -> Result<(), SortError> {
        self.check_usable()?;
        self.spiller.check_cancel()?;
        self.settle()
    }

    /// The parts that were never spilled come first, from memory alone; then runs and the rest of the
    /// memory, merged.
    fn finish_kept(mut self, merge_bytes: u64) -> Result<SortedStream, SortError> {
        self.spiller.stats.passes += 1;
        self.buffer.seal();
        self.buffer.release_spare(&mut self.spiller.account);
        self.spiller.account.give(merge_bytes);
        let parts = self.buffer.parts();
        let first = self.unspilled.min(parts);
        let records = (first..parts).map(|part| self.buffer.len(part) as u64).sum();
        let held = Arc::new(Held { buffer: self.buffer, _account: None });
        let rest = InMemory::parts(Arc::clone(&held), first..parts);
        let spiller = &mut self.spiller;
        let block_bytes = spiller.options.block_bytes();
        let kept = Kept::new(rest, spiller.rules, spiller.options.cancel.clone(), block_bytes);
        let merge = Merge::open_with(self.runs, kept, records, spiller)?;
        let memory = Source::Memory(InMemory::parts(held, 0..first));
        Ok(SortedStream::new(self.spiller, memory).with_then(merge))
    }

    /// Seals the buffer and answers true, or, if there are runs, brings them down to what one merge
    /// can read.
    fn sort_or_reduce(&mut self) -> Result<bool, SortError> {
        if self.runs.is_empty() {
            self.buffer.seal();
            return Ok(true);
        }
        self.write_whole();
        self.spill(0)?;
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
}

/// No record is lost in silence, whatever else is wrong.
fn check_found(given: u64, found: u64) -> Result<(), SortError> {
    if given == found { Ok(()) } else { Err(SortError::Lost { given, found }) }
}
