//! [`RunReader`]: one run, record by record, once.
//!
//! Reads a block at a time by position, its successor's head with it, so a block costs one read.
//! Everything that a head says is checked against what the writer counted before memory is taken for
//! it; every block against its checksum. At its end, or dropped, it deletes the file.

use std::ops::Bound;
use std::sync::Arc;

use element::{FileRole, StoreError, StoreReader};

use crate::SortError;
use crate::block::{self, HEAD, Head, Identity};
use crate::record::{self, Layout};
use crate::rules::Rules;
use crate::run::{BlockStart, Run};
use crate::spiller::{OpenFile, Spiller};

/// A part of the order: from a prefix, up to and without another.
pub(crate) type PrefixRange = (Bound<u64>, Bound<u64>);

/// All of the order.
pub(crate) const WHOLE: PrefixRange = (Bound::Unbounded, Bound::Unbounded);

/// Reads a run, or a part of it. Starts before the first record.
#[derive(Debug)]
pub(crate) struct RunReader {
    // Before the run, so that the file is closed when it is deleted.
    open: Option<(Box<dyn StoreReader>, OpenFile)>,
    run: Option<Arc<Run>>,
    /// The part of the run that is read.
    range: PrefixRange,
    name: String,
    rules: Rules,
    offset: u64,
    next_block: u64,
    next_head: [u8; HEAD],
    stored: Vec<u8>,
    raw: Vec<u8>,
    /// Where the current record begins in `raw`.
    at: usize,
    layout: Layout,
    left_in_block: u32,
    left: u64,
    /// What is in use in the account.
    taken: u64,
}

impl RunReader {
    pub(crate) fn open(
        run: Arc<Run>,
        range: PrefixRange,
        spiller: &mut Spiller,
    ) -> Result<Self, SortError> {
        let name = run.file.name.clone();
        let store = &run.file.target.store;
        let reader = store
            .open(FileRole::SortRun, &name)
            .map_err(|error| missing_or_failed(&name, 0, error))?;
        let open = OpenFile::count(&spiller.files);
        let taken = run.largest_block + run.largest_packed;
        // The block bytes were chosen so that this fits; a single long record may go beyond.
        if !spiller.account.take_reserved(taken) {
            spiller.account.take_beyond(taken);
        }
        let start = start_of(&run, range);
        let left = run.records - start.records;
        let mut opened = Self {
            open: Some((reader, open)),
            run: Some(run),
            range,
            name,
            rules: spiller.rules,
            offset: start.offset,
            next_block: start.block,
            next_head: [0; HEAD],
            stored: Vec::new(),
            raw: Vec::new(),
            at: 0,
            layout: Layout::default(),
            left_in_block: 0,
            left,
            taken,
        };
        opened.read_first_head()?;
        Ok(opened)
    }

    /// Goes to the next record; false at the end, when the file is gone unless others read it.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool, SortError> {
        if self.range == WHOLE { self.step() } else { self.step_in_range() }
    }

    #[cold]
    fn step_in_range(&mut self) -> Result<bool, SortError> {
        while self.step()? {
            let prefix = self.prefix();
            match self.range {
                (Bound::Included(from), _) if prefix < from => {}
                (_, Bound::Excluded(until)) if prefix >= until => {
                    self.close();
                    self.left_in_block = 0;
                    self.left = 0;
                    return Ok(false);
                }
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    #[inline]
    fn step(&mut self) -> Result<bool, SortError> {
        if self.left_in_block == 0 {
            if self.left == 0 {
                self.close();
                return Ok(false);
            }
            self.read_block()?;
        } else {
            self.at += self.layout.end;
        }
        let bytes = self.raw.get(self.at..).unwrap_or_default();
        match record::parse(bytes) {
            Some(layout) => self.layout = layout,
            None => return Err(self.damaged("a record does not end within its block")),
        }
        self.left_in_block -= 1;
        self.left -= 1;
        Ok(true)
    }

    /// The current record's bytes, as in a page.
    #[inline]
    pub(crate) fn record(&self) -> &[u8] {
        self.raw.get(self.at..self.at + self.layout.end).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        let Layout { key_at, payload_at, .. } = self.layout;
        self.raw.get(self.at + key_at..self.at + payload_at).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn payload(&self) -> &[u8] {
        let Layout { payload_at, end, .. } = self.layout;
        self.raw.get(self.at + payload_at..self.at + end).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn timestamp(&self) -> i64 {
        self.layout.timestamp
    }

    #[inline]
    pub(crate) fn prefix(&self) -> u64 {
        self.rules.prefix(self.key())
    }

    #[inline]
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Bytes that were taken from the account for it, once: the caller gives them back.
    pub(crate) fn take_loan(&mut self) -> u64 {
        std::mem::take(&mut self.taken)
    }

    fn close(&mut self) {
        self.open = None;
        self.run = None;
        self.raw = Vec::new();
        self.stored = Vec::new();
        (self.at, self.layout) = (0, Layout::default());
    }

    fn read_first_head(&mut self) -> Result<(), SortError> {
        let mut head = [0; HEAD];
        self.read_at(self.offset, &mut head)?;
        self.next_head = head;
        self.offset += HEAD as u64;
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), SortError> {
        let Some((reader, _)) = &self.open else {
            return Err(self.damaged("the run is closed"));
        };
        reader
            .read_at(offset, into)
            .map_err(|error| missing_or_failed(&self.name, self.next_block, error))
    }

    #[cold]
    fn read_block(&mut self) -> Result<(), SortError> {
        let Some(run) = &self.run else {
            return Err(self.damaged("the run is closed"));
        };
        let head = Head::parse(&self.next_head);
        if u64::from(head.raw) > run.largest_block
            || u64::from(head.stored) > run.largest_block
            || u64::from(head.records) > self.left
            || head.records == 0
        {
            return Err(self.damaged("the block is longer than what was written"));
        }
        let identity = Identity { sorter: run.sorter, run: run.number, block: self.next_block };
        let is_last = self.next_block + 1 == run.blocks;
        let wanted = head.stored as usize + if is_last { 0 } else { HEAD };
        // A raw block is read to where it stays; a packed one is unpacked from beside it.
        let free = if head.is_raw() { &mut self.raw } else { &mut self.stored };
        let mut stored = std::mem::take(free);
        stored.resize(wanted, 0);
        self.read_at(self.offset, &mut stored)?;
        if let Some((_, next)) = stored.split_at_checked(head.stored as usize)
            && let Some(next) = next.first_chunk()
        {
            self.next_head = *next;
        }
        block::open(&head, &mut stored, &mut self.raw, identity)
            .map_err(|what| self.damaged(what))?;
        if !head.is_raw() {
            self.stored = stored;
        }
        self.offset += wanted as u64;
        self.next_block += 1;
        self.left_in_block = head.records;
        self.at = 0;
        Ok(())
    }

    fn damaged(&self, what: &'static str) -> SortError {
        SortError::Damaged { run: self.name.clone(), block: self.next_block, what, source: None }
    }
}

/// The last block known to begin before the range, for the range may begin within it.
fn start_of(run: &Run, range: PrefixRange) -> BlockStart {
    let first = BlockStart { prefix: 0, offset: 0, block: 0, records: 0 };
    let (Bound::Included(from), _) = range else { return first };
    let before = run.index.partition_point(|start| start.prefix < from);
    before.checked_sub(1).and_then(|index| run.index.get(index)).copied().unwrap_or(first)
}

pub(crate) fn missing_or_failed(name: &str, block: u64, error: StoreError) -> SortError {
    let run = name.to_owned();
    match error.source.kind() {
        std::io::ErrorKind::NotFound => SortError::Missing { run, source: error },
        std::io::ErrorKind::UnexpectedEof => {
            let what = "the file ends before the run does";
            SortError::Damaged { run, block, what, source: Some(error) }
        }
        _ => SortError::Store(error),
    }
}
