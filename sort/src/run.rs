//! [`Run`]: a file of blocks in key order, and [`RunWriter`], which writes one.
//!
//! ```text
//! run := block*        in order, one behind the other; ends where the writer says that it ends
//! ```
//!
//! How many blocks there are is kept in memory by the [`Run`], never taken from the file: the end of
//! a file is not the end of the data. Runs are made durable only where the options say that they may
//! outlive their sort ([`crate::durable`]).

use element::StoreWriter;

use crate::block::{self, HEAD, Identity};
use crate::page;
use crate::record;
use crate::rules::Rules;
use crate::spiller::{OpenFile, RunFile, Spiller};
use crate::{BlockCompression, SortError};

/// A complete run: where it is and what must be found in it.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) file: RunFile,
    pub(crate) sorter: u64,
    pub(crate) number: u64,
    pub(crate) blocks: u64,
    pub(crate) records: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) stored_bytes: u64,
    /// The largest body, as it is in memory.
    pub(crate) largest_block: u64,
    /// The largest body that is packed, as it is in the file.
    pub(crate) largest_packed: u64,
    /// Some of the blocks, in order, the first always.
    pub(crate) index: Vec<BlockStart>,
}

/// Where a block begins, for readers of a part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockStart {
    /// The prefix of the block's first record.
    pub(crate) prefix: u64,
    pub(crate) offset: u64,
    pub(crate) block: u64,
    /// Records in the blocks before it.
    pub(crate) records: u64,
}

/// How far a run has been written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) block: u64,
    /// Records, and their bytes, in the blocks before it.
    pub(crate) records: u64,
    pub(crate) raw: u64,
}

/// Blocks closer together than this share an entry of the index, which so takes a five-hundredth of
/// the run's bytes at most.
const INDEX_EVERY: u64 = 16 << 10;

/// Writes one run. Dropped before [`RunWriter::finish`], it takes its file with it.
#[derive(Debug)]
pub(crate) struct RunWriter {
    // Before the file, so that it is closed when the file is deleted.
    writer: Box<dyn StoreWriter>,
    _open: OpenFile,
    run: Run,
    /// [`HEAD`] free bytes, then records.
    block: Vec<u8>,
    packed: Vec<u8>,
    records: u32,
    block_bytes: usize,
    compression: BlockCompression,
    /// What is in use in the account for `block` and `packed`.
    taken: u64,
}

impl RunWriter {
    pub(crate) fn new(
        file: RunFile,
        writer: Box<dyn StoreWriter>,
        sorter: u64,
        number: u64,
        spiller: &mut Spiller,
    ) -> Self {
        let run = Run {
            file,
            sorter,
            number,
            blocks: 0,
            records: 0,
            raw_bytes: 0,
            stored_bytes: 0,
            largest_block: 0,
            largest_packed: 0,
            index: Vec::new(),
        };
        let compression = spiller.options.compression;
        let mut block_bytes = spiller.options.block_bytes();
        let mut taken = spiller.options.with_packed(block_bytes);
        // Where the memory is not there, each record is a block and is written from where it is.
        if !spiller.account.take_reserved(taken) {
            (block_bytes, taken) = (0, 0);
        }
        let block_bytes = block_bytes as usize;
        let mut block = Vec::with_capacity(HEAD + block_bytes + page::BLOCK);
        block.resize(HEAD, 0);
        let open = OpenFile::count(&spiller.files);
        Self {
            writer,
            _open: open,
            run,
            block,
            packed: Vec::new(),
            records: 0,
            block_bytes,
            compression,
            taken,
        }
    }

    /// Appends one encoded record: the first `length` bytes of `from`.
    #[inline]
    pub(crate) fn append(
        &mut self,
        from: &[u8],
        length: usize,
        spiller: &mut Spiller,
    ) -> Result<(), SortError> {
        if self.block.len() - HEAD + length > self.block_bytes {
            return self.append_to_next(from, length, spiller);
        }
        page::append_from(&mut self.block, from, length);
        self.records += 1;
        Ok(())
    }

    /// Appends a record that the block has no room for.
    #[cold]
    fn append_to_next(
        &mut self,
        from: &[u8],
        length: usize,
        spiller: &mut Spiller,
    ) -> Result<(), SortError> {
        self.flush(spiller)?;
        if length > self.block_bytes {
            return self.write_alone(from.get(..length).unwrap_or_default(), 1, spiller);
        }
        page::append_from(&mut self.block, from, length);
        self.records += 1;
        Ok(())
    }

    /// Says how many records the calls of [`RunWriter::append_all`] until the next flush append. The first of
    /// their blocks says so to the reader.
    pub(crate) fn expect(&mut self, records: u64) {
        self.records = u32::try_from(records).unwrap_or(u32::MAX);
    }

    /// Appends encoded records that lie one behind the other: all to one block, if they fit into any.
    pub(crate) fn append_all(
        &mut self,
        records: &[u8],
        spiller: &mut Spiller,
    ) -> Result<(), SortError> {
        if self.block.len() - HEAD + records.len() > self.block_bytes {
            self.flush(spiller)?;
            if records.len() > self.block_bytes {
                let expected = self.records;
                return self.write_alone(records, expected, spiller);
            }
        }
        self.block.extend_from_slice(records);
        Ok(())
    }

    /// How far the blocks reach that are written.
    pub(crate) fn place(&self) -> Place {
        let Run { stored_bytes: offset, blocks: block, records, raw_bytes: raw, .. } = self.run;
        Place { offset, block, records, raw }
    }

    /// Appends one record by its parts.
    pub(crate) fn append_parts(
        &mut self,
        timestamp: i64,
        key: &[u8],
        payload: &[u8],
        spiller: &mut Spiller,
    ) -> Result<(), SortError> {
        let bytes = record::encoded_len(timestamp, key.len(), payload.len())?;
        if self.block.len() - HEAD + bytes > self.block_bytes {
            self.make_room(bytes, spiller)?;
        }
        record::append(&mut self.block, timestamp, key, payload);
        self.records += 1;
        Ok(())
    }

    #[cold]
    fn make_room(&mut self, bytes: usize, spiller: &mut Spiller) -> Result<(), SortError> {
        self.flush(spiller)?;
        let needed = spiller.options.with_packed(bytes as u64);
        if needed > self.taken {
            spiller.account.take_beyond(needed - self.taken);
            self.taken = needed;
        }
        Ok(())
    }

    /// Writes what is longer than a block from where it is, without a copy.
    fn write_alone(
        &mut self,
        bytes: &[u8],
        records: u32,
        spiller: &Spiller,
    ) -> Result<(), SortError> {
        spiller.check_cancel()?;
        self.index(bytes, &spiller.rules);
        let head = block::head_of(bytes, records, self.identity());
        self.writer.write(&head)?;
        self.writer.write(bytes)?;
        self.records = records;
        self.count(bytes.len() as u64, (HEAD + bytes.len()) as u64);
        Ok(())
    }

    /// Notes where the block that begins with this record will lie, unless one nearby is noted.
    fn index(&mut self, first: &[u8], rules: &Rules) {
        let offset = self.run.stored_bytes;
        if self.run.index.last().is_some_and(|last| offset - last.offset < INDEX_EVERY) {
            return;
        }
        let layout = record::parse(first).unwrap_or_default();
        let key = first.get(layout.key_at..layout.payload_at).unwrap_or_default();
        let Run { blocks: block, records, .. } = self.run;
        self.run.index.push(BlockStart { prefix: rules.prefix(key), offset, block, records });
    }

    fn identity(&self) -> Identity {
        Identity { sorter: self.run.sorter, run: self.run.number, block: self.run.blocks }
    }

    /// Counts the block that was written, of `self.records` records.
    fn count(&mut self, raw: u64, stored: u64) {
        self.run.stored_bytes += stored;
        self.run.raw_bytes += raw;
        self.run.largest_block = self.run.largest_block.max(raw);
        if stored < raw + HEAD as u64 {
            self.run.largest_packed = self.run.largest_packed.max(stored - HEAD as u64);
        }
        self.run.records += u64::from(self.records);
        self.run.blocks += 1;
        self.records = 0;
    }

    /// Writes the open block, if it has records.
    pub(crate) fn flush(&mut self, spiller: &mut Spiller) -> Result<(), SortError> {
        if self.block.len() == HEAD {
            return Ok(());
        }
        spiller.check_cancel()?;
        let block = std::mem::take(&mut self.block);
        self.index(block.get(HEAD..).unwrap_or_default(), &spiller.rules);
        self.block = block;
        let identity = self.identity();
        let raw = (self.block.len() - HEAD) as u64;
        let (block, packed) = (&mut self.block, &mut self.packed);
        let bytes = block::seal(block, packed, self.records, self.compression, identity);
        self.writer.write(bytes)?;
        let stored = bytes.len() as u64;
        self.block.truncate(HEAD);
        self.count(raw, stored);
        Ok(())
    }

    /// Writes what is left, and makes bytes and name durable.
    pub(crate) fn sync(&mut self, spiller: &mut Spiller) -> Result<(), SortError> {
        self.flush(spiller)?;
        Ok(self.writer.sync()?)
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self, spiller: &mut Spiller) -> Result<Run, SortError> {
        let written = self.flush(spiller);
        spiller.account.give(self.taken);
        written.map(|()| self.run)
    }
}
