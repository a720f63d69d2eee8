//! [`CombinedStream`]: each key once, in key order, with its accumulator.
//!
//! From the table, if nothing was spilled; else from a merge of runs of partial results, folded where
//! they meet. [`Partials`] is that fold, for the stream and for the passes before it.

use element::{Record, decode_exact};

use crate::merge::Merge;
use crate::passes::Fold;
use crate::radix::Entry;
use crate::run::RunWriter;
use crate::run_reader::RunReader;
use crate::spiller::Spiller;
use crate::table::Table;
use crate::{Combiner, NO_TIMESTAMP, SortError, SortStats};

/// One key's result; the key is lent until the next is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CombinedRecord<'a, A> {
    /// The key, as given.
    pub key: &'a [u8],
    /// The greatest timestamp of its records.
    pub timestamp: i64,
    /// What was folded.
    pub accumulator: A,
}

#[derive(Debug)]
pub(crate) enum CombinedSource<A> {
    /// The table and its slots in key order: nothing was spilled.
    Memory { table: Table<A>, entries: Vec<Entry>, next: usize },
    /// Runs of partial results. `has_current`: the merge stands at a record that is not folded yet;
    /// `None` before the first.
    Runs { merge: Merge, has_current: Option<bool> },
    /// Nothing any more: drained or failed.
    Ended,
}

/// Keys in order, each once. Made by [`CombiningSorter::finish`](crate::CombiningSorter::finish).
#[derive(Debug)]
pub struct CombinedStream<C: Combiner> {
    combiner: C,
    // Before the spiller: files are closed and deleted first, then the loan ends.
    source: CombinedSource<C::Accumulator>,
    partials: Partials<C::Accumulator>,
    spiller: Spiller,
    /// Keys until the cancel flag is looked at.
    until_check: u32,
}

const CHECK_EVERY: u32 = 1_024;

impl<C: Combiner> CombinedStream<C> {
    pub(crate) fn new(
        combiner: C,
        spiller: Spiller,
        source: CombinedSource<C::Accumulator>,
    ) -> Self {
        Self { combiner, source, partials: Partials::new(), spiller, until_check: 0 }
    }

    /// The next key, or `None` at the end, when memory and files have been given back.
    ///
    /// # Errors
    ///
    /// As [`SortedStream::next`](crate::SortedStream::next); also [`SortError::Decode`] if a partial
    /// result does not decode. A stream that has failed has ended.
    #[expect(clippy::should_implement_trait, reason = "keys are lent, which Iterator cannot")]
    pub fn next(&mut self) -> Result<Option<CombinedRecord<'_, C::Accumulator>>, SortError> {
        if self.until_check == 0 {
            self.until_check = CHECK_EVERY;
            if matches!(self.source, CombinedSource::Ended) {
                return Ok(None);
            }
            self.spiller.check_cancel().inspect_err(|_| self.end())?;
        }
        self.until_check -= 1;
        if let Err(error) = self.step() {
            self.end();
            return Err(error);
        }
        let Some(accumulator) = self.partials.accumulator.take() else {
            self.end();
            self.spiller.check_deletions()?;
            return Ok(None);
        };
        let Partials { key, timestamp, .. } = &self.partials;
        Ok(Some(CombinedRecord { key, timestamp: *timestamp, accumulator }))
    }

    /// The counts of this sort, its merges included.
    #[must_use]
    pub fn stats(&self) -> SortStats {
        let mut stats = self.spiller.stats();
        if let CombinedSource::Runs { merge, .. } = &self.source {
            stats.deep_comparisons += merge.deep_comparisons;
        }
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

    /// Leaves the next key in `partials`; no accumulator there means the end.
    fn step(&mut self) -> Result<(), SortError> {
        match &mut self.source {
            CombinedSource::Memory { table, entries, next } => {
                let taken = entries.get(*next).and_then(|entry| table.take(entry.at));
                *next += 1;
                if let Some(slot) = taken {
                    self.partials.set(table.key_of(&slot), slot.timestamp);
                    self.partials.accumulator = Some(slot.accumulator);
                }
                Ok(())
            }
            CombinedSource::Runs { merge, has_current } => {
                step_runs(merge, has_current, &mut self.partials, &self.combiner, &mut self.spiller)
            }
            CombinedSource::Ended => Ok(()),
        }
    }

    fn end(&mut self) {
        match std::mem::replace(&mut self.source, CombinedSource::Ended) {
            CombinedSource::Runs { merge, .. } => {
                self.spiller.stats.deep_comparisons += merge.deep_comparisons;
            }
            CombinedSource::Memory { .. } => {}
            CombinedSource::Ended => return,
        }
        self.spiller.account.end();
    }
}

fn step_runs<C: Combiner>(
    merge: &mut Merge,
    has_current: &mut Option<bool>,
    partials: &mut Partials<C::Accumulator>,
    combiner: &C,
    spiller: &mut Spiller,
) -> Result<(), SortError> {
    let current = match has_current {
        None => merge.advance()?,
        Some(true) => merge.current(),
        Some(false) => None,
    };
    let Some(first) = current else {
        *has_current = Some(false);
        return Ok(());
    };
    partials.begin(first)?;
    loop {
        match merge.advance()? {
            Some(record) if record.key() == partials.key => {
                partials.fold_in(record, combiner)?;
                spiller.stats.combined += 1;
            }
            next => {
                *has_current = Some(next.is_some());
                return Ok(());
            }
        }
    }
}

/// The key that is being folded while partial results come in key order.
#[derive(Debug)]
pub(crate) struct Partials<A> {
    key: Vec<u8>,
    timestamp: i64,
    accumulator: Option<A>,
}

impl<A: Record> Partials<A> {
    pub(crate) fn new() -> Self {
        Self { key: Vec::new(), timestamp: NO_TIMESTAMP, accumulator: None }
    }

    fn set(&mut self, key: &[u8], timestamp: i64) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.timestamp = timestamp;
    }

    fn begin(&mut self, record: &RunReader) -> Result<(), SortError> {
        self.set(record.key(), record.timestamp());
        self.accumulator = Some(decode_exact(record.payload())?);
        Ok(())
    }

    fn fold_in<C: Combiner<Accumulator = A>>(
        &mut self,
        record: &RunReader,
        combiner: &C,
    ) -> Result<(), SortError> {
        let other = decode_exact(record.payload())?;
        self.timestamp = self.timestamp.max(record.timestamp());
        match &mut self.accumulator {
            Some(into) => combiner.merge(into, other),
            none => *none = Some(other),
        }
        Ok(())
    }
}

/// The fold of a pass between runs.
pub(crate) struct FoldPartials<'a, C: Combiner> {
    combiner: &'a C,
    partials: Partials<C::Accumulator>,
    payload: Vec<u8>,
}

impl<'a, C: Combiner> FoldPartials<'a, C> {
    pub(crate) fn new(combiner: &'a C) -> Self {
        Self { combiner, partials: Partials::new(), payload: Vec::new() }
    }
}

impl<C: Combiner> Fold for FoldPartials<'_, C> {
    fn add(
        &mut self,
        record: &RunReader,
        out: &mut RunWriter,
        spiller: &mut Spiller,
    ) -> Result<(), SortError> {
        if self.partials.accumulator.is_some() && record.key() == self.partials.key {
            spiller.stats.combined += 1;
            return self.partials.fold_in(record, self.combiner);
        }
        self.finish(out, spiller)?;
        self.partials.begin(record)
    }

    fn finish(&mut self, out: &mut RunWriter, spiller: &mut Spiller) -> Result<(), SortError> {
        let Some(accumulator) = self.partials.accumulator.take() else { return Ok(()) };
        self.payload.clear();
        accumulator.encode(&mut self.payload);
        out.append_parts(self.partials.timestamp, &self.partials.key, &self.payload, spiller)
    }
}
