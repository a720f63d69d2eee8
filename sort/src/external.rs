//! [`ExternalSorter`]: byte-string records in, in any order.
//!
//! Fills the [`Buffer`] by way of a [`Stage`]; when the memory refuses, writes a run; at the end hands out
//! the sorted buffer, if nothing was spilled, or the sorted parts, or merges the runs. A buffer of many parts
//! writes the upper ones alone, as they are: each part is sorted once, with what the memory holds of it
//! ([`spilling`], [`finishing`]). On one thread, unless the options ask for more: then runs behind the first
//! are written by [`Lanes`] while the next records come.

mod finishing;
mod spilling;

use crate::buffer::Buffer;
use crate::lanes::Lanes;
use crate::parted::PartedRuns;
use crate::run::Run;
use crate::spiller::Spiller;
use crate::stage::{self, Begun, Stage};
use crate::{RunDescription, SortError, SortStats, SorterOptions, durable, record};

/// Sorts records by (key bytes, timestamp, arrival) within a budget.
///
/// In: records in any order; already sorted or reversed input is recognised. Costs one copy of each
/// record in memory; beyond the budget, one write and one read of each record for each pass of a
/// merge. Where prefixes are spread evenly, as hashes are, nothing is merged up to some tens of times the
/// budget. The prefix of a key (its first eight bytes) decides alone wherever it differs.
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
    /// Parts that were written as they were; none while there is a run.
    parted: PartedRuns,
    /// Once there is a run, if there is more than one thread.
    lanes: Option<Lanes>,
    /// Parts of the buffer, from the first on, of which no run has records.
    unspilled: usize,
    /// Bytes in use in the account for the blocks of a merge of the runs and of memory; none if the
    /// memory is to be written as a whole.
    merge_bytes: Option<u64>,
    /// The latest records; they are in no page yet, but in the counts.
    stage: Stage,
    /// Records of the runs that an earlier sorter sealed.
    resumed: u64,
    has_failed: bool,
}

impl ExternalSorter {
    /// A sorter without records; takes nothing from the budget before the first.
    #[must_use]
    pub fn new(options: SorterOptions) -> Self {
        Self {
            buffer: Buffer::of(&options),
            stage: Stage::new(options.cut().bits > 0),
            spiller: Spiller::new(options),
            runs: Vec::new(),
            parted: PartedRuns::default(),
            lanes: None,
            unspilled: usize::MAX,
            merge_bytes: Some(0),
            resumed: 0,
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
        if self.buffer.parts() > 1 && bytes <= stage::BYTES {
            self.stage.push(prefix, timestamp, key, payload);
        } else {
            self.settle()?;
            if !self.buffer.has_room(prefix, bytes) {
                self.make_room(prefix, bytes)?;
            }
            self.buffer.push(prefix, timestamp, key, payload);
        }
        self.count(key.len() + payload.len())
    }

    /// Adds a record whose key and payload the caller appends to memory of the sorter: the key first,
    /// and behind bytes that are not its own.
    ///
    /// For as long as the call, a long record is in memory beyond the budget.
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
        let rules = self.spiller.rules;
        self.push_prefixed(timestamp, write_key, |key| rules.prefix(key), write_payload)
    }

    /// As [`ExternalSorter::push_with`], where the caller finds the prefix of the key's bytes for less than
    /// by the function of the options ([`SorterOptions::with_prefix`]): it must be the same.
    ///
    /// # Errors
    ///
    /// As [`ExternalSorter::push`].
    ///
    /// # Panics
    ///
    /// As [`ExternalSorter::push_with`].
    #[inline]
    pub fn push_with_prefix(
        &mut self,
        timestamp: i64,
        write_key: impl FnOnce(&mut Vec<u8>),
        prefix: impl FnOnce(&[u8]) -> u64,
        write_payload: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SortError> {
        let rules = self.spiller.rules;
        let prefix = |key: &[u8]| {
            let prefix = rules.directed(prefix(key));
            debug_assert_eq!(prefix, rules.prefix(key), "the prefix by the options");
            prefix
        };
        self.push_prefixed(timestamp, write_key, prefix, write_payload)
    }

    // A call a record, with what the closures hold in memory, costs a sixth of it.
    #[inline(always)]
    fn push_prefixed(
        &mut self,
        timestamp: i64,
        write_key: impl FnOnce(&mut Vec<u8>),
        prefix: impl FnOnce(&[u8]) -> u64,
        write_payload: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SortError> {
        let begun = self.stage.begin(timestamp);
        write_key(&mut self.stage.bytes);
        let payload_at = self.stage.bytes.len();
        write_payload(&mut self.stage.bytes);
        let end = self.stage.bytes.len();
        if payload_at < begun.key_at || end < payload_at {
            self.has_failed = true;
            panic!("a record's writer took bytes of other records");
        }
        if !record::is_narrow(payload_at - begun.key_at, end - payload_at) {
            return self.push_wide(begun, payload_at - begun.key_at, timestamp);
        }
        let key = self.stage.bytes.get(begun.key_at..payload_at).unwrap_or_default();
        self.stage.complete(begun, payload_at, prefix(key));
        self.count(end - begun.key_at)
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
        sorter.resumed = sorter.runs.iter().map(|run| run.records).sum();
        sorter.merge_bytes = None;
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
        self.write_whole();
        self.settle()?;
        self.spill(0)?;
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

    #[cold]
    fn make_room(&mut self, prefix: u64, bytes: usize) -> Result<(), SortError> {
        self.check_usable()?;
        self.spiller.check_cancel()?;
        if self.grow(prefix, bytes) {
            return Ok(());
        }
        let from = self.first_to_spill();
        self.spill(from)?;
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

    /// Counts a record of so many bytes; the stage is emptied when it is full.
    #[inline]
    fn count(&mut self, bytes: usize) -> Result<(), SortError> {
        self.spiller.stats.records += 1;
        self.spiller.stats.bytes_in += bytes as u64;
        if self.stage.is_full() { self.settle() } else { Ok(()) }
    }

    /// Adds a record that the stage's form has no room for.
    #[cold]
    fn push_wide(&mut self, begun: Begun, key: usize, timestamp: i64) -> Result<(), SortError> {
        let parts = self.stage.take_out(begun);
        let (key, payload) = parts.split_at(key);
        self.push(key, timestamp, payload)
    }

    /// Moves the staged records to their pages.
    fn settle(&mut self) -> Result<(), SortError> {
        if self.stage.is_empty() {
            return Ok(());
        }
        let mut stage = std::mem::take(&mut self.stage);
        let settled = self.settle_all(&stage);
        stage.clear();
        self.stage = stage;
        settled
    }

    fn settle_all(&mut self, stage: &Stage) -> Result<(), SortError> {
        let (bytes, mut rest) = (stage.bytes.as_slice(), stage.records.as_slice());
        let mut start = 0;
        // Bytes are missing only where a writer took them away and then panicked.
        if rest.last().is_some_and(|last| last.end > bytes.len()) {
            return Err(SortError::Failed);
        }
        loop {
            let (pushed, left) = rest.split_at(self.buffer.push_staged(bytes, start, rest));
            start = pushed.last().map_or(start, |last| last.end);
            let Some(next) = left.first() else { return Ok(()) };
            self.make_room(next.prefix, next.end - start)?;
            rest = left;
        }
    }
}
