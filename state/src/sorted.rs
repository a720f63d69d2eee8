//! Sorted input over a store: reads in step with the input, writes as a bulk load.
//!
//! ```text
//!   input, by (hash, key) ----> current key ----> evicted key ----> BulkLoad ... ingested at the end
//!                                   ^
//!   store, by (hash, key) ---- Cursor: portions, each read once, skipped where no input falls
//! ```
//!
//! The [`Cursor`] reads the store in portions that grow while they are used and shrink where the
//! input leaves gaps, so dense input reads the store as a stream and sparse input as look-ups. Where
//! the store ends, or is empty, nothing is read any more.
//!
//! Left out on purpose: keys before the current one. They are on their way into the load.

use std::ops::{ControlFlow, Range};

use crate::store::{BulkLoad, ByteStore, WriteBatch};
use crate::{StateCounters, StoreFailure};

/// The fewest and most entries, and the most bytes, of one portion.
const PORTION: Range<usize> = 16..4_096;
const PORTION_BYTES: usize = 1 << 20;
/// Bytes handed to the bulk load at once.
const LOAD_BYTES: usize = 256 << 10;

/// What is under way while input is sorted.
#[derive(Debug)]
pub(crate) struct SortedPhase {
    pub(crate) cursor: Cursor,
    /// None if the store takes sorted batches of writes instead.
    load: Option<Box<dyn BulkLoad>>,
    pending: WriteBatch,
}

impl SortedPhase {
    pub(crate) fn begin(load: Option<Box<dyn BulkLoad>>) -> Self {
        Self { cursor: Cursor::default(), load, pending: WriteBatch::new() }
    }

    /// Takes what `add` puts into the pending batch: keys that are greater than all before.
    pub(crate) fn append(
        &mut self,
        add: impl FnOnce(&mut WriteBatch),
        store: &mut dyn ByteStore,
        counters: &mut StateCounters,
    ) -> Result<(), StoreFailure> {
        let start = self.pending.len();
        add(&mut self.pending);
        self.pending.sort_from(start);
        counters.store_writes += (self.pending.len() - start) as u64;
        if self.pending.bytes() >= LOAD_BYTES { self.hand_over(store, counters) } else { Ok(()) }
    }

    fn hand_over(
        &mut self,
        store: &mut dyn ByteStore,
        counters: &mut StateCounters,
    ) -> Result<(), StoreFailure> {
        if let Some(load) = &mut self.load {
            counters.ingested_entries += self.pending.len() as u64;
            let next = self.pending.empty_of_its_size();
            return load.write(std::mem::replace(&mut self.pending, next));
        }
        store.write(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    /// Makes everything visible.
    pub(crate) fn finish(
        mut self,
        store: &mut dyn ByteStore,
        counters: &mut StateCounters,
    ) -> Result<(), StoreFailure> {
        if !self.pending.is_empty() {
            self.hand_over(store, counters)?;
        }
        self.load.map_or(Ok(()), BulkLoad::finish)
    }
}

/// The store's entries, read forward.
#[derive(Debug)]
pub(crate) struct Cursor {
    bytes: Vec<u8>,
    /// Key and value of the entries of this portion that are not passed yet, in order.
    entries: Vec<(Range<usize>, Range<usize>)>,
    /// Entries of the portion before this one are passed.
    passed: usize,
    /// The entries of the current key.
    current: Range<usize>,
    /// Hash and key that were looked for last.
    prefix: Vec<u8>,
    /// Where the next portion begins; `None` behind the store's end.
    resume: Option<Vec<u8>>,
    portion: usize,
    /// Whether any entry of this portion was asked for.
    used: bool,
}

impl Default for Cursor {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            passed: 0,
            current: 0..0,
            prefix: Vec::new(),
            resume: Some(Vec::new()),
            portion: PORTION.start,
            used: true,
        }
    }
}

impl Cursor {
    fn key(&self, index: usize) -> &[u8] {
        self.entries.get(index).map_or(&[], |(key, _)| &self.bytes[key.clone()])
    }

    /// Whether the store has nothing from the current key on: no later one need be looked for.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.resume.is_none() && self.passed >= self.entries.len()
    }

    /// Moves to the entries that begin with `prefix`, which must not lie before the last one.
    pub(crate) fn seek(
        &mut self,
        prefix: &[u8],
        store: &dyn ByteStore,
        counters: &mut StateCounters,
    ) -> Result<(), StoreFailure> {
        if self.prefix == prefix {
            return Ok(());
        }
        prefix.clone_into(&mut self.prefix);
        loop {
            self.pass(prefix);
            let behind_run = self.run_end(prefix);
            if behind_run < self.entries.len() || self.resume.is_none() {
                self.current = self.passed..behind_run;
                self.used |= !self.current.is_empty();
                return Ok(());
            }
            self.refill(prefix, store, counters)?;
        }
    }

    /// Passes the entries before `prefix`.
    fn pass(&mut self, prefix: &[u8]) {
        // The next entry is mostly the one: gallop from here, do not search the whole portion.
        let mut step = 1;
        while self.passed + step <= self.entries.len() && self.key(self.passed + step - 1) < prefix
        {
            self.passed += step;
            step *= 2;
        }
        let end = (self.passed + step).min(self.entries.len());
        let tail = self.entries.get(self.passed..end).unwrap_or_default();
        self.passed += tail.partition_point(|(key, _)| &self.bytes[key.clone()] < prefix);
    }

    fn run_end(&self, prefix: &[u8]) -> usize {
        let mut end = self.passed;
        while end < self.entries.len() && self.key(end).starts_with(prefix) {
            end += 1;
        }
        end
    }

    /// Reads the next portion behind the entries that are not passed.
    fn refill(
        &mut self,
        prefix: &[u8],
        store: &dyn ByteStore,
        counters: &mut StateCounters,
    ) -> Result<(), StoreFailure> {
        self.drop_passed();
        let resume = self.resume.take().unwrap_or_default();
        let from = if self.entries.is_empty() { resume.as_slice().max(prefix) } else { &resume };
        self.portion = if self.used { self.portion * 2 } else { PORTION.start };
        self.portion = self.portion.clamp(PORTION.start, PORTION.end);
        self.used = false;
        counters.store_range_reads += 1;
        let (limit, room) = (self.entries.len() + self.portion, self.bytes.len() + PORTION_BYTES);
        let (bytes, entries) = (&mut self.bytes, &mut self.entries);
        let mut more = false;
        store.scan(from, None, &mut |key, value| {
            let start = bytes.len();
            bytes.extend_from_slice(key);
            let key_end = bytes.len();
            bytes.extend_from_slice(value);
            entries.push((start..key_end, key_end..bytes.len()));
            more = entries.len() >= limit || bytes.len() >= room;
            if more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if more {
            // Right behind the last key.
            let mut resume = self.key(self.entries.len() - 1).to_vec();
            resume.push(0);
            self.resume = Some(resume);
        }
        Ok(())
    }

    fn drop_passed(&mut self) {
        if self.passed == self.entries.len() {
            self.bytes.clear();
            self.entries.clear();
        } else {
            // Only a key whose entries straddle two portions is kept.
            let start = self.entries.get(self.passed).map_or(0, |(key, _)| key.start);
            self.bytes.drain(..start);
            self.entries.drain(..self.passed);
            for (key, value) in &mut self.entries {
                *key = key.start - start..key.end - start;
                *value = value.start - start..value.end - start;
            }
        }
        self.passed = 0;
        self.current = 0..0;
    }

    /// The value of an entry of the current key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let current = self.entries.get(self.current.clone())?;
        let found = current.binary_search_by(|(at, _)| self.bytes[at.clone()].cmp(key)).ok()?;
        current.get(found).map(|(_, value)| &self.bytes[value.clone()])
    }

    /// The entries of the current key that begin with `prefix`.
    pub(crate) fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (key, value) in self.entries.get(self.current.clone()).unwrap_or_default() {
            if self.bytes[key.clone()].starts_with(prefix) {
                visit(&self.bytes[key.clone()], &self.bytes[value.clone()]);
            }
        }
    }
}
