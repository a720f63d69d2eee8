//! [`LineReader`]: text to lines, through one buffer.

use std::io::{self, Read};

use super::files::FileError;
use super::split::{FileSplit, Text, open};
use crate::ByteSize;

/// Cuts text into lines. Costs one copy of each byte out of the file, and a search for line ends.
///
/// A line ends at LF; a CR just before it goes too. The last line counts without a line end. Holds the
/// buffer, or the longest line if it is longer.
pub(super) struct LineReader {
    text: Text,
    path: String,
    /// Bytes `begin..end` are read and not yet given out; the first `scanned` of them hold no LF.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    scanned: usize,
    /// The offset of `begin` in the decompressed text.
    offset: u64,
    is_done: bool,
}

impl LineReader {
    /// Reads a settled split.
    pub(super) fn open(split: &FileSplit, buffer: ByteSize) -> Result<Self, FileError> {
        let (text, offset) = open(split.path(), split.start(), split.end())?;
        let buffer = vec![0; usize::try_from(buffer.0).unwrap_or(usize::MAX).max(1)];
        let path = split.path().to_owned();
        Ok(Self { text, path, buffer, begin: 0, end: 0, scanned: 0, offset, is_done: false })
    }

    /// Where the next line begins.
    pub(super) fn position(&self) -> u64 {
        self.offset
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, FileError> {
        loop {
            let from = self.begin + self.scanned;
            let ahead = self.buffer.get(from..self.end).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', ahead) {
                let line = self.take(self.scanned + at, 1);
                return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
            }
            self.scanned = self.end - self.begin;
            if self.is_done {
                let rest = self.scanned;
                return Ok((rest > 0).then(|| self.take(rest, 0)));
            }
            self.fill()?;
        }
    }

    /// Gives out `len` bytes and drops `skip` behind them.
    fn take(&mut self, len: usize, skip: usize) -> &[u8] {
        let line = self.begin..self.begin + len;
        self.begin += len + skip;
        self.scanned = 0;
        self.offset += (len + skip) as u64;
        self.buffer.get(line).unwrap_or_default()
    }

    fn fill(&mut self) -> Result<(), FileError> {
        if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end * 2, 0);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        match self.text.read(room) {
            Ok(0) => self.is_done = true,
            Ok(read) => self.end += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => {
                let (path, offset) = (self.path.clone(), self.offset);
                return Err(FileError::Read { path, offset, source });
            }
        }
        Ok(())
    }
}
