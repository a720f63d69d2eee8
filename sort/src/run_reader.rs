//! [`RunReader`]: one run, record by record, once.
//!
//! Reads a block at a time by position, its successor's head with it, so a block costs one read.
//! Everything that a head says is checked against what the writer counted before memory is taken for
//! it; every block against its checksum. At its end, or dropped, it deletes the file.
//!
//! A reader of a part of a run begins at a record and ends before another, both known by their places
//! ([`RunReader::open_from`], [`RunReader::end_before`]): a step costs the same as in a whole run.
//!
//! Records that were never written ([`crate::kept`]) are read alike, but for file and checksum.

use std::sync::Arc;

use element::{FileRole, StoreError, StoreReader};

use crate::SortError;
use crate::block::{self, HEAD, Head, Identity};
use crate::kept::Kept;
use crate::record::{self, Layout};
use crate::rules::Rules;
use crate::run::{BlockStart, Run};
use crate::spiller::{OpenFile, Spiller};

/// Reads a run, or a part of it. Starts before the first record.
#[derive(Debug)]
pub(crate) struct RunReader {
    // Before the run, so that the file is closed when it is deleted.
    open: Option<(Box<dyn StoreReader>, OpenFile)>,
    run: Option<Arc<Run>>,
    /// Where blocks come from if there is no run.
    kept: Option<Kept>,
    name: String,
    rules: Rules,
    offset: u64,
    next_block: u64,
    next_head: [u8; HEAD],
    stored: Vec<u8>,
    raw: Vec<u8>,
    /// Where the current record begins in `raw`; the next one, while `layout` is empty.
    at: usize,
    layout: Layout,
    /// Records of the current block that are still to come; never more than `left`.
    left_in_block: u64,
    /// Records that are still to come.
    left: u64,
    /// Records of the run in the blocks that are not read yet.
    left_in_run: u64,
    /// What is in use in the account.
    taken: u64,
}

impl RunReader {
    /// Reads all of a run.
    pub(crate) fn open(run: Arc<Run>, spiller: &mut Spiller) -> Result<Self, SortError> {
        Self::open_at(run, FIRST, spiller)
    }

    /// Reads a run from the first record on whose prefix is not below `from`. Reads the block in which
    /// that is.
    pub(crate) fn open_from(
        run: Arc<Run>,
        from: u64,
        spiller: &mut Spiller,
    ) -> Result<Self, SortError> {
        let start = start_of(&run, from);
        let mut opened = Self::open_at(run, start, spiller)?;
        opened.skip_below(from)?;
        Ok(opened)
    }

    fn open_at(run: Arc<Run>, start: BlockStart, spiller: &mut Spiller) -> Result<Self, SortError> {
        let name = run.file.name.clone();
        let store = &run.file.target.store;
        let reader = store
            .open(FileRole::SortRun, &name)
            .map_err(|error| missing_or_failed(&name, 0, error))?;
        let open = OpenFile::count(&spiller.files);
        let taken = run.largest_block + run.largest_packed;
        let blank = Self::blank(run.records - start.records, taken, spiller);
        let mut opened = Self {
            open: Some((reader, open)),
            run: Some(run),
            name,
            offset: start.offset,
            next_block: start.block,
            ..blank
        };
        opened.read_first_head()?;
        Ok(opened)
    }

    /// Reads `records` records of memory, without a file. One block of them is taken from the account.
    pub(crate) fn of_memory(kept: Kept, records: u64, spiller: &mut Spiller) -> Self {
        let taken = spiller.options.block_bytes();
        Self { kept: Some(kept), ..Self::blank(records, taken, spiller) }
    }

    /// One that is to read `left` records from wherever they are, and takes so many bytes to do it.
    fn blank(left: u64, taken: u64, spiller: &mut Spiller) -> Self {
        // The block bytes were chosen so that this fits; a single long record may go beyond.
        if !spiller.account.take_reserved(taken) {
            spiller.account.take_beyond(taken);
        }
        Self {
            open: None,
            run: None,
            kept: None,
            name: String::new(),
            rules: spiller.rules,
            offset: 0,
            next_block: 0,
            next_head: [0; HEAD],
            stored: Vec::new(),
            raw: Vec::new(),
            at: 0,
            layout: Layout::default(),
            left_in_block: 0,
            left,
            left_in_run: left,
            taken,
        }
    }

    /// Records that are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Ends this part of the run where `next`, a reader of the same run that has not begun, begins.
    pub(crate) fn end_before(&mut self, next: &Self) {
        self.left = self.left.saturating_sub(next.left);
        self.left_in_block = self.left_in_block.min(self.left);
    }

    /// Whole keys that were looked at to put records of memory in order.
    pub(crate) fn deep_comparisons(&self) -> u64 {
        self.kept.as_ref().map_or(0, Kept::deep_comparisons)
    }

    /// Goes to the next record; false at the end, when the file is gone unless others read it.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool, Box<SortError>> {
        if self.left_in_block == 0 {
            if self.left == 0 {
                self.close();
                return Ok(false);
            }
            self.read_block()?;
        } else {
            self.at += self.layout.end;
        }
        self.layout = self.layout_at(self.at)?;
        self.left_in_block -= 1;
        self.left -= 1;
        Ok(true)
    }

    #[inline]
    fn layout_at(&self, at: usize) -> Result<Layout, Box<SortError>> {
        match record::parse(self.raw.get(at..).unwrap_or_default()) {
            Some(layout) => Ok(layout),
            None => Err(self.cut()),
        }
    }

    #[cold]
    fn cut(&self) -> Box<SortError> {
        Box::new(self.damaged("a record does not end within its block"))
    }

    /// Goes to just before the first record whose prefix is not below `from`.
    fn skip_below(&mut self, from: u64) -> Result<(), SortError> {
        while self.left > 0 {
            if self.left_in_block == 0 {
                self.read_block()?;
            }
            let layout = self.layout_at(self.at)?;
            let key = self.raw.get(self.at + layout.key_at..self.at + layout.payload_at);
            if self.rules.prefix(key.unwrap_or_default()) >= from {
                break;
            }
            self.at += layout.end;
            self.left_in_block -= 1;
            self.left -= 1;
        }
        Ok(())
    }

    /// The bytes from the current record's first on.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.raw.get(self.at..).unwrap_or_default()
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
        if let Some(kept) = &mut self.kept {
            self.left_in_block = kept.fill(&mut self.raw)?;
            (self.at, self.layout) = (0, Layout::default());
            return Ok(());
        }
        let Some(run) = &self.run else {
            return Err(self.damaged("the run is closed"));
        };
        let head = Head::parse(&self.next_head);
        if u64::from(head.raw) > run.largest_block
            || u64::from(head.stored) > run.largest_block
            || u64::from(head.records) > self.left_in_run
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
        self.left_in_run -= u64::from(head.records);
        self.left_in_block = u64::from(head.records).min(self.left);
        (self.at, self.layout) = (0, Layout::default());
        Ok(())
    }

    fn damaged(&self, what: &'static str) -> SortError {
        SortError::Damaged { run: self.name.clone(), block: self.next_block, what, source: None }
    }
}

/// Where a run begins.
const FIRST: BlockStart = BlockStart { prefix: 0, offset: 0, block: 0, records: 0 };

/// The last block known to begin before the part of the order, for the part may begin within it.
fn start_of(run: &Run, from: u64) -> BlockStart {
    let before = run.index.partition_point(|start| start.prefix < from);
    before.checked_sub(1).and_then(|index| run.index.get(index)).copied().unwrap_or(FIRST)
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
