//! [`Run`]: a file of blocks in key order, and [`RunWriter`], which writes one.
//!
//! ```text
//! run := block*        in order, one behind the other; ends where the writer says that it ends
//! ```
//!
//! How many blocks there are is kept in memory by the [`Run`], never taken from the file: the end of
//! a file is not the end of the data. Runs are not made durable, for they do not outlive their sort.

use element::StoreWriter;

use crate::block::{self, HEAD, Identity};
use crate::record;
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
    /// The largest body, as it is in memory: what a reader must hold.
    pub(crate) largest_block: u64,
}

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
        };
        let compression = spiller.options.compression;
        let mut block_bytes = spiller.options.block_bytes();
        let forms = if compression == BlockCompression::None { 1 } else { 2 };
        let mut taken = block_bytes * forms;
        // Where the memory is not there, a block is one record.
        if !spiller.account.take(taken) {
            (block_bytes, taken) = (0, 0);
        }
        let block_bytes = block_bytes as usize;
        let mut block = Vec::with_capacity(HEAD + block_bytes);
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

    /// Appends one encoded record.
    #[inline]
    pub(crate) fn append(&mut self, record: &[u8], spiller: &mut Spiller) -> Result<(), SortError> {
        if self.block.len() - HEAD + record.len() > self.block_bytes {
            self.make_room(record.len(), spiller)?;
        }
        self.block.extend_from_slice(record);
        self.records += 1;
        Ok(())
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
        let forms = if self.compression == BlockCompression::None { 1 } else { 2 };
        let needed = bytes as u64 * forms;
        if needed > self.taken {
            spiller.account.take_beyond(needed - self.taken);
            self.taken = needed;
        }
        Ok(())
    }

    fn flush(&mut self, spiller: &mut Spiller) -> Result<(), SortError> {
        if self.records == 0 {
            return Ok(());
        }
        spiller.check_cancel()?;
        let identity =
            Identity { sorter: self.run.sorter, run: self.run.number, block: self.run.blocks };
        let body = (self.block.len() - HEAD) as u64;
        let bytes = block::seal(
            &mut self.block,
            &mut self.packed,
            self.records,
            self.compression,
            identity,
        );
        self.writer.write(bytes)?;
        self.run.stored_bytes += bytes.len() as u64;
        self.run.raw_bytes += body;
        self.run.largest_block = self.run.largest_block.max(body);
        self.run.records += u64::from(self.records);
        self.run.blocks += 1;
        self.records = 0;
        self.block.truncate(HEAD);
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self, spiller: &mut Spiller) -> Result<Run, SortError> {
        let written = self.flush(spiller);
        spiller.account.give(self.taken);
        written.map(|()| self.run)
    }
}
