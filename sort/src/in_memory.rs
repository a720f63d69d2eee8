//! [`InMemory`]: a buffer, or a share of one, read in order.
//!
//! Sorts a part of the buffer when it gets there, so that the records are read while they are in the
//! cache. What runs have of a part, written as it was ([`crate::parted`]), is read back then, and sorted
//! with it. Several threads may each read a share of one buffer: some of its parts, or, where it is of
//! one part, a range of that part's entries.

use std::ops::Range;
use std::sync::Arc;

use crate::account::Account;
use crate::buffer::Buffer;
use crate::parted_reader::PartedReader;
use crate::radix::Entry;
use crate::rules::Rules;
use crate::window::Window;
use crate::{CancelFlag, SortError};

/// A sealed buffer, and its loan where several streams share both.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) buffer: Buffer,
    pub(crate) _account: Option<Account>,
}

/// Starts before the first record.
#[derive(Debug)]
pub(crate) struct InMemory {
    /// The parted runs of which it reads parts, too.
    parted: Option<PartedReader>,
    /// Where the parts come from.
    whole: Arc<Held>,
    /// What is being read: the whole, or one part with what runs have of it.
    held: Arc<Held>,
    /// Parts that are not sorted yet.
    parts: Range<usize>,
    /// The sorted part; shared only if `parts` is empty from the start.
    entries: Arc<Vec<Entry>>,
    /// Room to sort in.
    aside: Vec<Entry>,
    /// Entries that the window has not taken yet.
    left: Range<usize>,
    window: Box<Window>,
    /// Where the current record lies.
    at: u64,
    deep: u64,
}

impl InMemory {
    /// Some parts of a buffer.
    pub(crate) fn parts(held: Arc<Held>, parts: Range<usize>) -> Self {
        Self {
            parted: None,
            whole: Arc::clone(&held),
            held,
            parts,
            entries: Arc::default(),
            aside: Vec::new(),
            left: 0..0,
            window: Box::new(Window::new()),
            at: 0,
            deep: 0,
        }
    }

    /// Some parts of a buffer, each with what the runs have of it.
    pub(crate) fn parted(held: Arc<Held>, parts: Range<usize>, runs: PartedReader) -> Self {
        Self { parted: Some(runs), ..Self::parts(held, parts) }
    }

    /// A range of the entries of a part that is sorted.
    pub(crate) fn range(held: Arc<Held>, entries: Arc<Vec<Entry>>, left: Range<usize>) -> Self {
        Self { entries, left, ..Self::parts(held, 0..0) }
    }

    /// How many records there are, before the first is taken.
    pub(crate) fn records(&self) -> u64 {
        let parts = self.parts.clone().map(|part| self.records_of(part));
        parts.sum::<u64>() + self.left.len() as u64
    }

    fn records_of(&self, part: usize) -> u64 {
        self.written(part) + self.whole.buffer.len(part) as u64
    }

    /// Records of a part in runs.
    fn written(&self, part: usize) -> u64 {
        self.parted.as_ref().map_or(0, |runs| runs.records(part))
    }

    /// Goes to the next record; false at the end.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        rules: &Rules,
        cancel: Option<&CancelFlag>,
    ) -> Result<bool, Box<SortError>> {
        while !self.step() {
            if !self.refill(rules, cancel)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes to the next record, if it has been read ahead.
    #[inline]
    pub(crate) fn step(&mut self) -> bool {
        match self.window.step() {
            Some(at) => {
                self.at = at;
                true
            }
            None => false,
        }
    }

    /// The bytes from the current record's first on.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.held.buffer.bytes_at(self.at)
    }

    /// Whole keys that were looked at.
    pub(crate) fn deep_comparisons(&self) -> u64 {
        self.deep + self.window.deep
    }

    #[cold]
    fn refill(
        &mut self,
        rules: &Rules,
        cancel: Option<&CancelFlag>,
    ) -> Result<bool, Box<SortError>> {
        while self.left.is_empty() {
            let Some(part) = self.parts.next() else { return Ok(false) };
            let place = self.load(part)?;
            let (buffer, entries) = (&self.held.buffer, Arc::make_mut(&mut self.entries));
            self.deep += buffer.sort_part(place, entries, &mut self.aside, rules, cancel)?;
            self.left = 0..entries.len();
        }
        let (buffer, Range { start, end }) = (&self.held.buffer, self.left.clone());
        self.left.start = self.window.fill(buffer, &self.entries, start, end, rules);
        Ok(true)
    }

    /// Has a part to be read in `held`; gives the number that it has there.
    fn load(&mut self, part: usize) -> Result<usize, SortError> {
        let is_written = self.written(part) > 0;
        let last = std::mem::replace(&mut self.held, Arc::clone(&self.whole));
        let Some(runs) = self.parted.as_mut().filter(|_| is_written) else { return Ok(part) };
        let spare = Arc::into_inner(last).map(|last| last.buffer);
        let buffer = runs.load(part, &self.whole.buffer, spare)?;
        self.held = Arc::new(Held { buffer, _account: None });
        Ok(0)
    }
}
