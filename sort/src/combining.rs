//! [`CombiningSorter`]: equal keys are folded before they are sorted, and again while merging.
//!
//! A table holds one accumulator a key. Few keys: no sort but of the keys, and no file. Many keys:
//! when the memory refuses, the table is written as a sorted run of partial results, and runs are
//! merged as those of any sort, partial results of one key folded in the order of arrival. So an
//! associative combiner is enough; it need not commute.
//!
//! Where keys hardly repeat within a table, it costs more than it saves: two waits for memory a record,
//! and a third when it is sorted. When the first such table is full, what comes after it is sorted as any
//! records are, each a partial result of its own, and folded where runs are merged.
//!
//! Source: FLIP-327, "Combine records in backlog"; FLIP-140.

mod numbered;

use element::Record;

use crate::buffer::Buffer;
use crate::combined::{CombinedSource, CombinedStream, FoldPartials};
use crate::front::Front;
use crate::lanes;
use crate::merge::Merge;
use crate::passes::reduce;
use crate::record::encoded_len;
use crate::run::Run;
use crate::spiller::Spiller;
use crate::table::{Table, TableKey};
use crate::{KeyBlock, RunDescription, SortError, SortStats, SorterOptions, Ties, durable};

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

/// Keys from which on a table is looked into by the block. With 1,000 keys that costs 5 to 9 ns a record
/// more, with 131,000 it takes 65 to 80 ns in place of 110 to 260.
const FAR: usize = 1 << 14;

/// A table that is full must have saved one record in so many to be worth its cost.
const WORTH: u64 = 4;

/// Folds records by key within a budget, and gives each key once, in key order.
///
/// Costs one look into a table a record, and no allocation where the key is known; beyond the
/// budget, one write and one read of a partial result for each key and run, or for each record where
/// keys hardly repeat.
#[derive(Debug)]
pub struct CombiningSorter<C: Combiner> {
    combiner: C,
    spiller: Spiller,
    table: Table<C::Accumulator>,
    front: Front,
    /// In place of the table, once that has shown that it is not worth its cost.
    plain: Option<Buffer>,
    /// Records, and those that were combined, when memory was last full.
    before: (u64, u64),
    runs: Vec<Run>,
    payload: Vec<u8>,
    /// The key of one record.
    key: Vec<u8>,
    has_failed: bool,
}

impl<C: Combiner> CombiningSorter<C> {
    /// A sorter without records. The options' [`Ties`] are of no meaning here.
    pub fn new(combiner: C, options: SorterOptions) -> Self {
        Self {
            combiner,
            spiller: Spiller::new(options.with_ties(Ties::Arrival)),
            table: Table::new(),
            front: Front::default(),
            plain: None,
            before: (0, 0),
            runs: Vec::new(),
            payload: Vec::new(),
            key: Vec::new(),
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
        self.update_key(&TableKey::new(hash, key), timestamp, fold)
    }

    #[inline]
    fn update_key(
        &mut self,
        key: &TableKey<'_>,
        timestamp: i64,
        fold: impl FnOnce(Option<&mut C::Accumulator>) -> Option<C::Accumulator>,
    ) -> Result<(), SortError> {
        self.count(key.bytes.len())?;
        if self.plain.is_some() {
            return fold(None).map_or(Ok(()), |first| self.push(key.bytes, timestamp, &first));
        }
        match self.table.find(key) {
            Some(bucket) => self.fold_into(bucket, timestamp, fold),
            None => match fold(None) {
                Some(first) => self.insert(key, timestamp, first),
                None => Ok(()),
            },
        }
    }

    /// Folds the records of a block, in order: `records` gives a timestamp and a value for each of its
    /// keys, and `fold` folds a value as that of [`update`](Self::update) does.
    ///
    /// Where the table is larger than the caches, all keys are looked up before the first is folded: so the
    /// slots of many keys are fetched from memory at once, where one by one each would be waited for.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update), upon the first record that fails.
    #[inline]
    pub fn update_block<V>(
        &mut self,
        block: &mut KeyBlock,
        records: impl Iterator<Item = (i64, V)>,
        mut fold: impl FnMut(Option<&mut C::Accumulator>, V) -> Option<C::Accumulator>,
    ) -> Result<(), SortError> {
        if self.plain.is_none() && self.table.len() >= FAR {
            block.find_in(&self.table);
        }
        let moves = self.table.moves();
        for (place, (timestamp, value)) in block.places().iter().zip(records) {
            let fold = |partial: Option<&mut C::Accumulator>| fold(partial, value);
            match place.bucket {
                Some(bucket) if self.table.moves() == moves => {
                    self.count(place.len)?;
                    self.fold_into(bucket, timestamp, fold)?;
                }
                // Not there when the block began, or elsewhere since.
                _ => self.update_key(&block.key(place), timestamp, fold)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, key_len: usize) -> Result<(), SortError> {
        if self.spiller.stats.records.is_multiple_of(CHECK_EVERY) {
            self.check()?;
        }
        self.spiller.stats.records += 1;
        self.spiller.stats.bytes_in += key_len as u64;
        Ok(())
    }

    #[inline]
    fn fold_into(
        &mut self,
        bucket: usize,
        timestamp: i64,
        fold: impl FnOnce(Option<&mut C::Accumulator>) -> Option<C::Accumulator>,
    ) -> Result<(), SortError> {
        let Some(slot) = self.table.slot_mut(bucket) else { return Ok(()) };
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
        self.front.release(&mut self.spiller.account);
        if self.runs.is_empty() && self.plain.is_none() {
            let (entries, deep) = self.table.sorted(&self.spiller.rules, self.spiller.cancel())?;
            self.spiller.stats.deep_comparisons += deep;
            let source = CombinedSource::Memory { table: self.table, entries, next: 0 };
            return Ok(CombinedStream::new(self.combiner, self.spiller, source));
        }
        self.spill()?;
        self.table.release(&mut self.spiller.account);
        if let Some(mut buffer) = self.plain.take() {
            buffer.release(&mut self.spiller.account);
        }
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
        key: &TableKey<'_>,
        timestamp: i64,
        accumulator: C::Accumulator,
    ) -> Result<(), SortError> {
        if self.has_failed {
            return Err(SortError::Failed);
        }
        let key_len = key.bytes.len();
        encoded_len(timestamp, key_len, 0)?;
        let heap = accumulator.estimated_bytes().saturating_sub(size_of::<C::Accumulator>()) as u64;
        let account = &mut self.spiller.account;
        if !self.table.grow(key_len, heap, account) && !self.grow_alone(key_len, heap) {
            self.spill()?;
            if !self.was_worth_it() {
                self.table.release(&mut self.spiller.account);
                self.front.release(&mut self.spiller.account);
                self.plain = Some(Buffer::of(&self.spiller.options));
                return self.push(key.bytes, timestamp, &accumulator);
            }
            let account = &mut self.spiller.account;
            if !self.table.grow(key_len, heap, account) {
                self.table.grow_beyond(key_len, heap, account);
            }
        }
        self.table.insert(key, timestamp, accumulator);
        Ok(())
    }

    /// Makes room in the table, which is worth more than what stands in front of it.
    #[cold]
    fn grow_alone(&mut self, key: usize, heap: u64) -> bool {
        let account = &mut self.spiller.account;
        self.front.release(account) && self.table.grow(key, heap, account)
    }

    /// Whether a table that has filled the memory has combined enough.
    fn was_worth_it(&mut self) -> bool {
        let stats = &self.spiller.stats;
        let (records, combined) = (stats.records - self.before.0, stats.combined - self.before.1);
        self.before = (stats.records, stats.combined);
        combined.saturating_mul(WORTH) >= records
    }

    /// Adds a partial result as a record of its own.
    fn push(
        &mut self,
        key: &[u8],
        timestamp: i64,
        partial: &C::Accumulator,
    ) -> Result<(), SortError> {
        self.payload.clear();
        partial.encode(&mut self.payload);
        let bytes = encoded_len(timestamp, key.len(), self.payload.len())?;
        let prefix = self.spiller.rules.prefix(key);
        if !self.plain.as_ref().is_some_and(|buffer| buffer.has_room(prefix, bytes)) {
            self.make_room(prefix, bytes)?;
        }
        if let Some(buffer) = &mut self.plain {
            buffer.push(prefix, timestamp, key, &self.payload);
        }
        Ok(())
    }

    #[cold]
    fn make_room(&mut self, prefix: u64, bytes: usize) -> Result<(), SortError> {
        self.check()?;
        if self.grow(prefix, bytes) {
            return Ok(());
        }
        self.spill()?;
        if !self.grow(prefix, bytes)
            && let Some(buffer) = &mut self.plain
        {
            buffer.grow_beyond(prefix, bytes, &mut self.spiller.account);
        }
        Ok(())
    }

    fn grow(&mut self, prefix: u64, bytes: usize) -> bool {
        let Spiller { rules, account, .. } = &mut self.spiller;
        self.plain.as_mut().is_some_and(|buffer| buffer.grow(prefix, bytes, rules, account))
    }

    #[cold]
    fn resized(&mut self, before: usize, after: usize) -> Result<(), SortError> {
        let account = &mut self.spiller.account;
        let granted = self.table.resized(before, after, account);
        if granted || (self.front.release(account) && account.take(0)) {
            Ok(())
        } else {
            self.spill()
        }
    }

    /// Writes what is held as a run. A failed spill drops everything.
    #[cold]
    fn spill(&mut self) -> Result<(), SortError> {
        if self.plain.as_ref().map_or(self.table.is_empty(), Buffer::is_empty) {
            return Ok(());
        }
        let written = match &mut self.plain {
            Some(buffer) => lanes::write_run(buffer, 0, &mut self.spiller),
            None => self.write_table(),
        };
        match written {
            Ok(run) => {
                self.runs.push(run);
                match &mut self.plain {
                    Some(buffer) => buffer.clear_from(0, &mut self.spiller.account),
                    None => self.table.clear(&mut self.spiller.account),
                }
                Ok(())
            }
            Err(error) => {
                self.has_failed = true;
                self.runs.clear();
                self.table.release(&mut self.spiller.account);
                self.front.release(&mut self.spiller.account);
                self.plain.take().into_iter().for_each(|mut buffer| {
                    buffer.release(&mut self.spiller.account);
                });
                // What the run's writer had is not in use either.
                self.spiller.account.end();
                Err(error)
            }
        }
    }

    fn write_table(&mut self) -> Result<Run, SortError> {
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
