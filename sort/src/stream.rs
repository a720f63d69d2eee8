//! [`SortedStream`]: the sorted records, pulled one at a time.
//!
//! From memory or from a merge of runs, and the reader cannot tell. Bounded work a step: a record,
//! and at times a block. Dropped at any point, it gives back memory and files.

use crate::in_memory::InMemory;
use crate::merge::Merge;
use crate::run_reader::RunReader;
use crate::spiller::Spiller;
use crate::{Groups, SortError, SortStats, record};

/// One record of a sorted stream, lent until the next is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortedRecord<'a> {
    /// The key, as pushed.
    pub key: &'a [u8],
    /// The timestamp, as pushed.
    pub timestamp: i64,
    /// The payload, as pushed.
    pub payload: &'a [u8],
}

/// Where sorted records come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A buffer or a share of it: nothing was spilled.
    Memory(InMemory),
    /// Runs, merged while they are read.
    Runs(Merge),
    /// Nothing any more: drained or failed.
    Ended,
}

impl Source {
    /// How many records there are, before the first is taken.
    fn records(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.records(),
            Self::Runs(merge) => merge.records(),
            Self::Ended => 0,
        }
    }

    fn deep_comparisons(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.deep_comparisons(),
            Self::Runs(merge) => merge.all_deep_comparisons(),
            Self::Ended => 0,
        }
    }
}

/// Records ordered by key, then timestamp, then arrival. Made by
/// [`ExternalSorter::finish`](crate::ExternalSorter::finish).
#[derive(Debug)]
pub struct SortedStream {
    // Before the spiller: files are closed and deleted first, then the loan ends.
    source: Source,
    /// What comes behind the source.
    then: Option<Merge>,
    spiller: Spiller,
    /// Records until the cancel flag is looked at.
    until_check: u32,
    records: u64,
}

const CHECK_EVERY: u32 = 1_024;

impl SortedStream {
    pub(crate) fn new(spiller: Spiller, source: Source) -> Self {
        let records = source.records();
        Self { source, then: None, spiller, until_check: 0, records }
    }

    /// How many records this stream has in all, those that it has given among them.
    ///
    /// Of several parts of one order ([`ExternalSorter::finish_ranges`](crate::ExternalSorter::finish_ranges)),
    /// it says where each begins.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The records of `source`, then those of `then`, which begin behind them.
    pub(crate) fn with_then(self, then: Merge) -> Self {
        Self { records: self.records + then.records(), then: Some(then), ..self }
    }

    /// The next record, or `None` at the end, when memory and files have been given back.
    ///
    /// Costs no copy. A stream that has failed has ended.
    ///
    /// # Errors
    ///
    /// [`SortError`] if a run is damaged, missing or unreadable, or the sort is cancelled; at the
    /// end, [`SortError::Store`] once if a file could not be deleted. Records before an error are
    /// right; none is left out in front of it.
    // A lending iterator cannot be a std Iterator.
    #[expect(clippy::should_implement_trait, reason = "records are lent, which Iterator cannot")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<SortedRecord<'_>>, SortError> {
        if self.advance()? { Ok(self.current()) } else { Ok(None) }
    }

    /// Hands up to `most` records to `each`, and says how many; fewer only at the end. Costs less a
    /// record than [`SortedStream::next`].
    ///
    /// # Errors
    ///
    /// As [`SortedStream::next`], and whatever `each` answers; the record behind that comes next.
    #[inline]
    pub fn hand_over<E: From<SortError>>(
        &mut self,
        most: usize,
        mut each: impl FnMut(SortedRecord<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut handed = 0;
        while handed < most && self.advance().map_err(|error| *error)? {
            // There is one call of `each`, so that it is a part of the loop.
            loop {
                handed += 1;
                if let Some(record) = self.current() {
                    each(record)?;
                }
                if handed == most || !self.step() {
                    break;
                }
            }
        }
        Ok(handed)
    }

    /// Goes to the next record if that is at hand, in memory.
    #[inline]
    fn step(&mut self) -> bool {
        let Source::Memory(memory) = &mut self.source else { return false };
        let steps = self.until_check > 0 && memory.step();
        self.until_check -= u32::from(steps);
        steps
    }

    /// Hands all records that are left to `each`: the push style.
    ///
    /// # Errors
    ///
    /// As [`SortedStream::next`], and whatever `each` answers.
    pub fn for_each<E: From<SortError>>(
        mut self,
        each: impl FnMut(SortedRecord<'_>) -> Result<(), E>,
    ) -> Result<SortStats, E> {
        self.hand_over(usize::MAX, each)?;
        Ok(self.stats())
    }

    /// The same records, key by key.
    #[must_use]
    pub fn groups(self) -> Groups {
        Groups::new(self)
    }

    /// The counts of this sort, its merges included.
    #[must_use]
    pub fn stats(&self) -> SortStats {
        let mut stats = self.spiller.stats();
        stats.deep_comparisons += self.source.deep_comparisons();
        stats
    }

    /// Ends the stream wherever it is.
    ///
    /// # Errors
    ///
    /// [`SortError::Store`] if a file could not be deleted.
    pub fn close(mut self) -> Result<SortStats, SortError> {
        self.end();
        self.spiller.check_deletions()?;
        Ok(self.stats())
    }

    /// Goes to the next record; false at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool, Box<SortError>> {
        if self.until_check == 0 {
            self.check_cancel()?;
        }
        self.until_check -= 1;
        let step = match &mut self.source {
            Source::Memory(memory) => memory.advance(&self.spiller.rules, self.spiller.cancel()),
            Source::Runs(merge) => merge.advance().map(|record| record.is_some()),
            Source::Ended => return Ok(false),
        };
        match step {
            Ok(true) => Ok(true),
            Ok(false) if self.then.is_some() => self.go_on(),
            ended => self.finish(ended),
        }
    }

    /// At the end, or behind an error, all is given back.
    #[cold]
    fn finish(&mut self, ended: Result<bool, Box<SortError>>) -> Result<bool, Box<SortError>> {
        self.end();
        ended?;
        self.spiller.check_deletions()?;
        Ok(false)
    }

    /// The record that [`SortedStream::advance`] went to.
    // Always: a record has five words, which go by way of memory to a call.
    #[inline(always)]
    pub(crate) fn current(&self) -> Option<SortedRecord<'_>> {
        record::split(match &self.source {
            Source::Memory(memory) => memory.bytes(),
            Source::Runs(merge) => merge.current().map_or(&[][..], RunReader::bytes),
            Source::Ended => &[],
        })
    }

    /// From the source to what comes behind it.
    #[cold]
    fn go_on(&mut self) -> Result<bool, Box<SortError>> {
        self.spiller.stats.deep_comparisons += self.source.deep_comparisons();
        self.source = self.then.take().map_or(Source::Ended, Source::Runs);
        self.until_check = self.until_check.max(1);
        self.advance()
    }

    #[cold]
    fn check_cancel(&mut self) -> Result<(), SortError> {
        self.until_check = CHECK_EVERY;
        if matches!(self.source, Source::Ended) {
            return Ok(());
        }
        self.spiller.check_cancel().inspect_err(|_| self.end())
    }

    fn end(&mut self) {
        if matches!(self.source, Source::Ended) {
            return;
        }
        self.spiller.stats.deep_comparisons += self.source.deep_comparisons();
        self.source = Source::Ended;
        self.then = None;
        self.spiller.account.end();
    }
}
