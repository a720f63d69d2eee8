//! [`FileSplit`]: a piece of a file that one reader reads, with the position reached.
//!
//! ```text
//!   bytes   0          start                 end
//!           | a l\n b|b \n c c c \n d d d \n d|d d \n e
//!                      ^ c and both d: the rows that begin in [start, end)
//! ```
//!
//! A row belongs to the split in which its first byte lies, so splits may be cut at any byte.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;

use super::files::FileError;
use crate::Record;

/// A file's text, decompressed.
pub(crate) type Text = Box<dyn Read + Send>;

/// The byte order mark, as UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A piece of a file: the rows that begin from one byte up to another.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub struct FileSplit {
    path: String,
    start: u64,
    end: Option<u64>,
    /// Whether a row begins at `start`; otherwise the first one begins behind the next line end.
    exact: bool,
}

impl FileSplit {
    /// A whole file, gzip or not.
    #[must_use]
    pub fn whole(path: &str) -> Self {
        Self { path: path.to_owned(), start: 0, end: None, exact: true }
    }

    /// The rows of an uncompressed file that begin from byte `start` up to `end`, not including it.
    #[must_use]
    pub fn part(path: &str, start: u64, end: u64) -> Self {
        Self { path: path.to_owned(), start, end: Some(end), exact: start == 0 }
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where the next row begins, or the first one is looked for.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The end of the text; `None` for the end of the file.
    pub(crate) fn end(&self) -> Option<u64> {
        self.end
    }

    /// Moves both ends to where lines begin.
    pub(crate) fn settle(&mut self) -> Result<(), FileError> {
        if let Some(end) = self.end {
            self.end = Some(line_start(&self.path, end)?);
        }
        if !self.exact {
            self.start = line_start(&self.path, self.start)?;
            self.exact = true;
        }
        Ok(())
    }

    /// The row at `position` is the next one.
    pub(crate) fn advance(&mut self, position: u64) {
        self.start = position;
    }
}

/// Whether a file is compressed, by its name.
pub(crate) fn is_gzip(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    lower.ends_with(".gz") || lower.ends_with(".gzip")
}

/// The text of a file from `from` up to `to`, offsets into the decompressed text. A byte order mark at
/// the front of the file is left out; also returns the offset of the first byte that is not.
///
/// A gzip file may have several members; it is decompressed from the front.
pub(crate) fn open(path: &str, from: u64, to: Option<u64>) -> Result<(Text, u64), FileError> {
    let opened = |source| FileError::Open { path: path.into(), source };
    let read = |source| FileError::Read { path: path.to_owned(), offset: from, source };
    let mut file = File::open(path).map_err(opened)?;
    let mut text: Text = if is_gzip(path) {
        let mut text = MultiGzDecoder::new(BufReader::with_capacity(256 << 10, file));
        io::copy(&mut (&mut text).take(from), &mut io::sink()).map_err(read)?;
        Box::new(text)
    } else {
        file.seek(SeekFrom::Start(from)).map_err(opened)?;
        Box::new(file)
    };
    let mut begin = from;
    if from == 0 {
        let mut front = Vec::new();
        (&mut text).take(MARK.len() as u64).read_to_end(&mut front).map_err(read)?;
        if front == MARK {
            begin = MARK.len() as u64;
        } else {
            text = Box::new(io::Cursor::new(front).chain(text));
        }
    }
    Ok(match to {
        Some(to) => (Box::new(text.take(to.saturating_sub(begin))), begin),
        None => (text, begin),
    })
}

/// Where the first line begins at or behind an offset of an uncompressed file: the offset itself if a
/// line end is just before it.
fn line_start(path: &str, offset: u64) -> Result<u64, FileError> {
    let Some(mut at) = offset.checked_sub(1) else { return Ok(0) };
    let failed = |source| FileError::Open { path: path.into(), source };
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(at)).map_err(failed)?;
    let mut chunk = vec![0; 16 << 10];
    loop {
        let read = match file.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => {
                return Err(FileError::Read { path: path.to_owned(), offset: at, source });
            }
        };
        let text = chunk.get(..read).unwrap_or_default();
        if let Some(end) = memchr::memchr(b'\n', text) {
            return Ok(at + end as u64 + 1);
        }
        at += read as u64;
        if read == 0 {
            return Ok(at.max(offset));
        }
    }
}
