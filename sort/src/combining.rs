//! [`CombiningSorter`]: equal keys are folded before they are sorted, and again while merging.
//!
//! A table holds one accumulator a key. Few keys: no sort but of the keys, and no file. Many keys:
//! when the memory refuses, the table is written as a sorted run of partial results, and runs are
//! merged as those of any sort, partial results of one key folded in the order of arrival. So an
//! associative combiner is enough; it need not commute.
//!
//! Source: FLIP-327, "Combine records in backlog"; FLIP-140.

use element::Record;

use crate::combined::{CombinedSource, CombinedStream, FoldPartials};
use crate::merge::Merge;
use crate::passes::reduce;
use crate::run::Run;
use crate::spiller::Spiller;
use crate::table::Table;
use crate::{RunDescription, SortError, SortStats, SorterOptions, Ties, durable};

/// Folds two partial results of one key. Implemented by whoever aggregates; called by the sorter, on
/// its thread.
pub trait Combiner: Send {
    /// A partial result, which can rest in a file.
    type Accumulator: Record;

    /// Folds `other`, which comes from later records, into `into`.
    fn merge(&self, into: &mut Self::Accumulator, other: Self::Accumulator);
}

/// Records between two looks at the cancel flag.
const CHECK_EVERY: u64 = 1 << 14;

/// Folds records by key within a budget, and gives each key once, in key order.
///
/// Costs one look into a table a record, and no allocation where the key is known; beyond the
/// budget, one write and one read of a partial result for each key and run.
#[derive(Debug)]
pub struct CombiningSorter<C: Combiner> {
    combiner: C,
    spiller: Spiller,
    table: Table<C::Accumulator>,
    runs: Vec<Run>,
    payload: Vec<u8>,
    has_failed: bool,
}

impl<C: Combiner> CombiningSorter<C> {
    /// A sorter without records. The options' [`Ties`] are of no meaning here.
    pub fn new(combiner: C, options: SorterOptions) -> Self {
        Self {
            combiner,
            spiller: Spiller::new(options.with_ties(Ties::Arrival)),
            table: Table::new(),
            runs: Vec::new(),
            payload: Vec::new(),
            has_failed: false,
        }
    }

    /// Folds one record.
    ///
    /// `hash` must be a function of `key`, well spread over 64 bits. `fold` gets the accumulator of
    /// the key, to be changed in place (what it answers is not looked at), or `None`, and answers
    /// the first accumulator of the key; `None` to `None` leaves the key out. A key gets the
    /// greatest timestamp of its records.
    ///
    /// # Errors
    ///
    /// [`SortError`] if a run had to be written and could not, or the sorter is cancelled.
    #[inline]
    pub fn update(
        &mut self,
        hash: u64,
        key: &[u8],
        timestamp: i64,
        fold: impl FnOnce(Option<&mut C::Accumulator>) -> Option<C::Accumulator>,
    ) -> Result<(), SortError> {
        if self.spiller.stats.records.is_multiple_of(CHECK_EVERY) {
            self.check()?;
        }
        self.spiller.stats.records += 1;
        self.spiller.stats.bytes_in += key.len() as u64;
        let Some(slot) = self.table.find_mut(hash, key) else {
            return match fold(None) {
                Some(first) => self.insert(hash, key, timestamp, first),
                None => Ok(()),
            };
        };
        self.spiller.stats.combined += 1;
        slot.timestamp = slot.timestamp.max(timestamp);
        let before = slot.accumulator.estimated_bytes();
        fold(Some(&mut slot.accumulator));
        let after = slot.accumulator.estimated_bytes();
        if before == after { Ok(()) } else { self.resized(before, after) }
    }

    /// A sorter that goes on with runs that an earlier one sealed, as
    /// [`ExternalSorter::resume`](crate::ExternalSorter::resume): their partial results come first.
    ///
    /// # Errors
    ///
    /// [`SortError::Missing`] or [`SortError::Damaged`] for the first run that is not as described.
    pub fn resume(
        combiner: C,
        options: SorterOptions,
        sealed: Vec<RunDescription>,
    ) -> Result<Self, SortError> {
        let mut sorter = Self::new(combiner, options);
        sorter.runs = durable::adopt(sealed, &sorter.spiller)?;
        Ok(sorter)
    }

    /// Writes all partial results that are held, and describes the durable runs that no earlier call
    /// has described, as [`ExternalSorter::seal`](crate::ExternalSorter::seal).
    ///
    /// # Errors
    ///
    /// [`SortError::NotDurable`] without [`SorterOptions::with_durable_runs`]; otherwise as
    /// [`CombiningSorter::update`].
    pub fn seal(&mut self) -> Result<Vec<RunDescription>, SortError> {
        self.check()?;
        if !self.spiller.options.durable_runs {
            return Err(SortError::NotDurable);
        }
        self.spill()?;
        Ok(durable::describe(&mut self.runs))
    }

    /// Reads the sealed runs, and holds every block against its checksum. Gives the number of partial
    /// results in them.
    ///
    /// # Errors
    ///
    /// [`SortError::Damaged`] or [`SortError::Missing`] for the first that does not read back.
    pub fn verify(&mut self) -> Result<u64, SortError> {
        durable::verify(&self.runs, &mut self.spiller)
    }

    /// The counts so far.
    #[must_use]
    pub fn stats(&self) -> SortStats {
        self.spiller.stats()
    }

    /// Ends the input.
    ///
    /// Out: each key once, in key order. With more runs than the fan-in, intermediate merges happen
    /// here, and fold what meets.
    ///
    /// # Errors
    ///
    /// [`SortError`] if runs cannot be written or merged, or the sorter is cancelled.
    pub fn finish(mut self) -> Result<CombinedStream<C>, SortError> {
        self.check()?;
        if self.runs.is_empty() {
            let (entries, deep) = self.table.sorted(&self.spiller.rules, self.spiller.cancel())?;
            self.spiller.stats.deep_comparisons += deep;
            let source = CombinedSource::Memory { table: self.table, entries, next: 0 };
            return Ok(CombinedStream::new(self.combiner, self.spiller, source));
        }
        self.spill()?;
        self.table.release(&mut self.spiller.account);
        let mut fold = FoldPartials::new(&self.combiner);
        let runs = reduce(self.runs, &mut self.spiller, &mut fold)?;
        self.spiller.stats.passes += 1;
        let merge = Merge::open(runs, &mut self.spiller)?;
        self.spiller.account.trim();
        let source = CombinedSource::Runs { merge, has_current: None };
        Ok(CombinedStream::new(self.combiner, self.spiller, source))
    }

    #[cold]
    fn check(&self) -> Result<(), SortError> {
        if self.has_failed {
            return Err(SortError::Failed);
        }
        self.spiller.check_cancel()
    }

    fn insert(
        &mut self,
        hash: u64,
        key: &[u8],
        timestamp: i64,
        accumulator: C::Accumulator,
    ) -> Result<(), SortError> {
        if self.has_failed {
            return Err(SortError::Failed);
        }
        crate::record::encoded_len(timestamp, key.len(), 0)?;
        let heap = accumulator.estimated_bytes().saturating_sub(size_of::<C::Accumulator>()) as u64;
        let account = &mut self.spiller.account;
        if !self.table.grow(key.len(), heap, account) {
            self.spill()?;
            let account = &mut self.spiller.account;
            if !self.table.grow(key.len(), heap, account) {
                self.table.grow_beyond(key.len(), heap, account);
            }
        }
        self.table.insert(hash, key, timestamp, accumulator);
        Ok(())
    }

    #[cold]
    fn resized(&mut self, before: usize, after: usize) -> Result<(), SortError> {
        if self.table.resized(before, after, &mut self.spiller.account) {
            Ok(())
        } else {
            self.spill()
        }
    }

    /// Writes the table as a run, if it holds keys. A failed spill drops everything.
    #[cold]
    fn spill(&mut self) -> Result<(), SortError> {
        if self.table.is_empty() {
            return Ok(());
        }
        match self.write_run() {
            Ok(run) => {
                self.runs.push(run);
                self.table.clear(&mut self.spiller.account);
                Ok(())
            }
            Err(error) => {
                self.has_failed = true;
                self.runs.clear();
                self.table.release(&mut self.spiller.account);
                // What the run's writer had is not in use either.
                self.spiller.account.end();
                Err(error)
            }
        }
    }

    fn write_run(&mut self) -> Result<Run, SortError> {
        let (entries, deep) = self.table.sorted(&self.spiller.rules, self.spiller.cancel())?;
        self.spiller.stats.deep_comparisons += deep;
        let mut writer = self.spiller.create_run()?;
        for entry in entries {
            let Some(slot) = self.table.slot(entry.at) else { continue };
            self.payload.clear();
            slot.accumulator.encode(&mut self.payload);
            let key = self.table.key_of(slot);
            writer.append_parts(slot.timestamp, key, &self.payload, &mut self.spiller)?;
        }
        self.spiller.seal_spilled(writer)
    }
}
