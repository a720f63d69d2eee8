//! Reads the blocks of some subpartitions, front to back in the file.
//!
//! Runs are read by rising offset, which is the order of emission and the order the disk likes
//! (FLIP-148, "IO scheduling"). A mapped file is read where it lies; otherwise a reader at work has
//! one buffer, and one that has not begun or has ended has none.

use std::sync::Arc;

use std::io::ErrorKind;

use super::block::{self, EVERY, HEADER, Header, Place};
use super::data::DataFile;
use super::index::{Index, Run};
use super::storage_error;
use crate::{Damage, PartitionIdentity, ResultPartitionReader, ShuffleError};

/// Bytes read ahead by position, at most, and read from a map between two looks at its length.
const AHEAD: usize = 256 << 10;

pub(super) struct FileReader {
    partition: PartitionIdentity,
    identity: u32,
    file: Arc<DataFile>,
    data_length: u64,
    /// By offset.
    runs: std::vec::IntoIter<Run>,
    /// What is left of the run being read.
    run: Run,
    /// The next number of a block: of each subpartition from `first` on, then of those for all.
    numbers: Vec<u32>,
    first: u32,
    /// Blocks not read yet.
    blocks_left: u64,
    blocks: u64,
    /// The header at the front of the next run, and where that is, once it was read ahead from a map.
    ahead: Option<(u64, Header)>,
    /// Bytes read from a map since its length was looked at.
    since_check: usize,
    /// Bytes read ahead of a file that is not mapped: `buffer[used..]` is the front of `run`.
    buffer: Vec<u8>,
    used: usize,
    scratch: Vec<u8>,
}

impl FileReader {
    pub(super) fn new(
        partition: PartitionIdentity,
        file: Arc<DataFile>,
        index: Index,
    ) -> Result<Self, ShuffleError> {
        let ours = |run: &&Run| run.subpartition != EVERY;
        let first = index.runs.iter().filter(ours).map(|run| run.subpartition).min().unwrap_or(0);
        let last = index.runs.iter().filter(ours).map(|run| run.subpartition).max().unwrap_or(0);
        let reader = Self {
            partition,
            identity: super::index::identity_checksum(&partition),
            file,
            data_length: index.data_length,
            runs: index.runs.into_iter(),
            run: Run { subpartition: first, offset: 0, length: 0 },
            numbers: vec![0; (last - first) as usize + 2],
            first,
            blocks_left: index.blocks,
            blocks: index.blocks,
            ahead: None,
            since_check: 0,
            buffer: Vec::new(),
            used: 0,
            scratch: Vec::new(),
        };
        reader.check_length()?;
        Ok(reader)
    }

    fn corrupt(&self, damage: Damage, expected: u64, found: u64) -> ShuffleError {
        ShuffleError::Corrupt { partition: self.partition, damage, expected, found }
    }

    /// A file that was cut is found out before a page behind its end is touched.
    fn check_length(&self) -> Result<(), ShuffleError> {
        let found = self.file.length().map_err(|source| storage_error(&self.partition, source))?;
        if found == self.data_length {
            Ok(())
        } else {
            Err(self.corrupt(Damage::Length, self.data_length, found))
        }
    }

    /// Moves to the next run that has a byte; false behind the last.
    fn advance(&mut self) -> bool {
        while self.run.length == 0 {
            let Some(run) = self.runs.next() else {
                return false;
            };
            self.run = run;
            self.buffer.clear();
            self.used = 0;
        }
        true
    }

    /// The place of the next block of the run, which is counted.
    fn place(&mut self) -> Place {
        let subpartition = self.run.subpartition;
        let slot = match subpartition {
            EVERY => self.numbers.len() - 1,
            other => (other - self.first) as usize,
        };
        let number = self.numbers.get_mut(slot).map_or(0, |next| {
            *next += 1;
            *next - 1
        });
        Place { identity: self.identity, subpartition, number }
    }

    /// Makes the next `length` bytes of the run stand at `buffer[used..]`.
    fn read_ahead(&mut self, length: usize) -> Result<(), ShuffleError> {
        let have = self.buffer.len() - self.used;
        if have >= length {
            return Ok(());
        }
        self.buffer.drain(..self.used);
        self.used = 0;
        let left = usize::try_from(self.run.length).unwrap_or(usize::MAX);
        self.buffer.resize(length.max(AHEAD).min(left), 0);
        let into = self.buffer.get_mut(have..).unwrap_or_default();
        match self.file.read_at(self.run.offset + have as u64, into) {
            Ok(()) => Ok(()),
            Err(error) if error.source.kind() == ErrorKind::UnexpectedEof => {
                self.check_length()?;
                Err(storage_error(&self.partition, error))
            }
            Err(error) => Err(storage_error(&self.partition, error)),
        }
    }

    /// The header of the next block, and its stored length, which the run has room for.
    fn header(&mut self) -> Result<(Header, usize), ShuffleError> {
        let mut header = [0; HEADER];
        if self.run.length < HEADER as u64 {
            return Err(self.corrupt(Damage::Block, HEADER as u64, self.run.length));
        }
        if self.file.is_mapped() {
            if self.since_check >= AHEAD {
                self.since_check = 0;
                self.check_length()?;
            }
            match self.ahead.take() {
                Some((offset, ahead)) if offset == self.run.offset => header = ahead,
                _ => self
                    .file
                    .read_at(self.run.offset, &mut header)
                    .map_err(|source| storage_error(&self.partition, source))?,
            }
        } else {
            self.read_ahead(HEADER)?;
            let bytes = self.buffer.get(self.used..).and_then(|bytes| bytes.first_chunk());
            header = bytes.copied().unwrap_or_default();
        }
        let stored = block::stored_length(&header);
        let whole = (HEADER + stored) as u64;
        if whole > self.run.length {
            return Err(self.corrupt(Damage::Block, self.run.length, whole));
        }
        Ok((header, stored))
    }

    /// Reads the header of the next run of a map while the processor waits for the bytes of this one:
    /// runs lie far apart. Not where the length is to be looked at before.
    fn look_ahead(&mut self) {
        if self.run.length > 0 || self.since_check >= AHEAD {
            return;
        }
        self.ahead = self.runs.as_slice().first().and_then(|run| {
            let header = self.file.mapped(run.offset, HEADER)?.first_chunk()?;
            Some((run.offset, *header))
        });
    }

    /// Behind the last run: all blocks must have been met.
    fn end(&mut self) -> Result<(), ShuffleError> {
        self.buffer = Vec::new();
        self.scratch = Vec::new();
        match self.blocks_left {
            0 => Ok(()),
            left => Err(self.corrupt(Damage::Blocks, self.blocks, self.blocks - left)),
        }
    }
}

impl ResultPartitionReader for FileReader {
    fn next(&mut self) -> Result<Option<&[u8]>, ShuffleError> {
        if !self.advance() {
            self.end()?;
            return Ok(None);
        }
        let (header, stored) = self.header()?;
        let left = self.blocks_left.checked_sub(1);
        let too_many = self.corrupt(Damage::Blocks, self.blocks, self.blocks + 1);
        self.blocks_left = left.ok_or(too_many)?;
        let place = self.place();
        let whole = HEADER + stored;
        let offset = self.run.offset;
        if !self.file.is_mapped() {
            self.read_ahead(whole)?;
        }
        let short = self.corrupt(Damage::Length, self.data_length, offset);
        self.run.offset += whole as u64;
        self.run.length -= whole as u64;
        self.since_check += whole;
        self.look_ahead();
        let bytes = if self.file.is_mapped() {
            self.file.mapped(offset + HEADER as u64, stored)
        } else {
            let start = self.used + HEADER;
            self.used += whole;
            self.buffer.get(start..start + stored)
        };
        let bytes = bytes.ok_or(short)?;
        block::open(&self.partition, place, &header, bytes, &mut self.scratch).map(Some)
    }
}
