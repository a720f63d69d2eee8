//! [`CsvRows`]: the rows of one split, cut by the csv crate, made records by [`super::row`].

use std::io::Read;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use csv::{ByteRecord, ReaderBuilder};
use serde::de::DeserializeOwned;

use super::row::{Layout, RowError};
use super::{Dialect, Header};
use crate::source::bad_record::Defect;
use crate::source::files::FileError;
use crate::source::reader::{Row, Rows};
use crate::source::split::{FileSplit, Text, open};

/// The rows of one split.
pub(crate) struct CsvRows<T> {
    path: String,
    reader: csv::Reader<EndMark>,
    /// The offset of the reader's first byte.
    base: u64,
    record: ByteRecord,
    layout: Layout,
    dialect: Dialect,
    ended: Arc<AtomicBool>,
    records: PhantomData<fn() -> T>,
}

/// Text that remembers that its end was met.
struct EndMark {
    text: Text,
    ended: Arc<AtomicBool>,
}

impl Read for EndMark {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.text.read(buffer)?;
        if read == 0 {
            self.ended.store(true, Ordering::Relaxed);
        }
        Ok(read)
    }
}

impl Dialect {
    fn builder(&self, buffer: usize) -> ReaderBuilder {
        let mut builder = ReaderBuilder::new();
        builder
            .has_headers(false)
            .flexible(true)
            .delimiter(self.delimiter)
            .trim(self.trim)
            .buffer_capacity(buffer);
        builder
    }

    /// Names of the columns of a file, and where its first row begins.
    fn header(&self, path: &str) -> anyhow::Result<(Option<ByteRecord>, u64)> {
        match &self.header {
            Header::Named(names) => Ok((Some(names.clone()), 0)),
            Header::None => Ok((None, 0)),
            Header::FirstRow => {
                let (text, base) = open(path, 0, None)?;
                let mut reader = self.builder(8 << 10).from_reader(text);
                let mut names = ByteRecord::new();
                reader.read_byte_record(&mut names).map_err(|error| failed(path, base, error))?;
                Ok((Some(names), base + reader.position().byte()))
            }
        }
    }
}

fn failed(path: &str, offset: u64, error: csv::Error) -> FileError {
    let source = match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    };
    FileError::Read { path: path.to_owned(), offset, source }
}

impl<T> CsvRows<T> {
    pub(super) fn open(split: &FileSplit, dialect: Dialect, buffer: usize) -> anyhow::Result<Self> {
        let path = split.path().to_owned();
        let (names, first) = dialect.header(&path)?;
        let (text, base) = open(&path, split.start().max(first), split.end())?;
        let ended = Arc::new(AtomicBool::new(false));
        let text = EndMark { text, ended: Arc::clone(&ended) };
        Ok(Self {
            reader: dialect.builder(buffer).from_reader(text),
            base,
            record: ByteRecord::new(),
            layout: Layout::new(names, dialect.nulls.clone()),
            path,
            dialect,
            ended,
            records: PhantomData,
        })
    }

    /// Whether the row that has just been read ends only because the file does: a quote was opened and
    /// not closed, and what follows it is in its cell. Costs nothing but for a last row without line end.
    fn is_unclosed(&self, begin: u64) -> anyhow::Result<bool> {
        if !self.ended.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let (text, _) = open(&self.path, begin, Some(self.at()))?;
        let more: &[u8] = b"\nx\n";
        let mut reader = self.dialect.builder(8 << 10).from_reader(text.chain(more));
        let mut rows = 0;
        let mut record = ByteRecord::new();
        while reader.read_byte_record(&mut record)? {
            rows += 1;
        }
        Ok(rows == 1)
    }

    fn at(&self) -> u64 {
        self.base + self.reader.position().byte()
    }
}

impl<T: DeserializeOwned> Rows<T> for CsvRows<T> {
    fn next(&mut self, records: &mut Vec<T>) -> anyhow::Result<Option<Row<()>>> {
        let begin = self.at();
        let read = self.reader.read_byte_record(&mut self.record);
        if !read.map_err(|error| failed(&self.path, begin, error))? {
            return Ok(None);
        }
        let row = self.layout.row::<T>(&self.record);
        if self.is_unclosed(begin)? {
            let reason = "a quote is opened and not closed".to_owned();
            return Ok(Some(Err(Defect { column: None, reason })));
        }
        Ok(Some(row.map(|record| records.push(record)).map_err(RowError::into_defect)))
    }

    fn position(&self) -> u64 {
        self.at()
    }
}
