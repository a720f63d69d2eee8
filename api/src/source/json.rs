//! [`JsonSource`]: JSON lines to records.

use std::marker::PhantomData;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::bad_record::{Defect, OnBadRecord};
use super::files::{Cut, Files};
use super::line_reader::LineReader;
use super::reader::{FileReader, Format, Row, Rows};
use super::split::FileSplit;
use crate::{Boundedness, ByteSize, ReaderContext, Source, SourceReader, SplitEnumerator, options};

/// Records of files with one JSON value a line: of one, of all in a directory and its directories, or
/// of those that a glob names; plain or gzip (by name: `.gz`).
///
/// Order, line ends and splits are those of [`TextSource`](crate::TextSource). Lines of white space are
/// no records. Numbers are read as the field's type says and never by way of a float: an integer that
/// does not fit its field, or is written with a fraction, makes the line a bad record. A field that needs
/// all digits of a fraction is a [`Decimal`](crate::Decimal).
pub struct JsonSource<T> {
    files: Files,
    records: PhantomData<fn() -> T>,
}

impl<T> Clone for JsonSource<T> {
    fn clone(&self) -> Self {
        Self { files: self.files.clone(), records: PhantomData }
    }
}

impl<T: DeserializeOwned + Send + 'static> JsonSource<T> {
    /// The records of a file, a directory, or the files of a glob (`*`, `?`, `[a-z]`, `**`).
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { files: Files::new(path.as_ref()), records: PhantomData }
    }

    /// What to do about a line that is no record (by default the job fails).
    #[must_use]
    pub fn on_bad_record(mut self, policy: OnBadRecord) -> Self {
        self.files.on_bad_record = policy;
        self
    }

    /// The size of the pieces that big files are cut into (16 MiB).
    #[must_use]
    pub fn split_size(mut self, size: ByteSize) -> Self {
        self.files.split_size = size;
        self
    }
}

impl<T: DeserializeOwned + Send + 'static> Source for JsonSource<T> {
    type Item = T;
    type Split = FileSplit;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<FileSplit>>> {
        self.files.enumerator(Cut::AtLines, restored)
    }

    fn identity(&self, by: options::CacheSourceIdentity) -> anyhow::Result<Option<String>> {
        Ok(Some(self.files.identity(by)?))
    }

    fn reader(
        &self,
        context: &ReaderContext,
    ) -> anyhow::Result<Box<dyn SourceReader<T, FileSplit>>> {
        let policy = self.files.on_bad_record.clone();
        Ok(Box::new(FileReader::new(self.clone(), policy, context)))
    }
}

impl<T: DeserializeOwned + Send + 'static> Format for JsonSource<T> {
    type Item = T;
    type Rows = JsonLines<T>;

    fn open(&self, split: &FileSplit) -> anyhow::Result<JsonLines<T>> {
        let reader = LineReader::open(split, self.files.buffer_size)?;
        Ok(JsonLines { reader, records: PhantomData })
    }
}

/// The records of one split.
pub(crate) struct JsonLines<T> {
    reader: LineReader,
    records: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Rows<T> for JsonLines<T> {
    fn next(&mut self, records: &mut Vec<T>) -> anyhow::Result<Option<Row<()>>> {
        while let Some(line) = self.reader.next()? {
            if !line.trim_ascii().is_empty() {
                let row = serde_json::from_slice(line).map_err(|error| defect(&error));
                return Ok(Some(row.map(|record| records.push(record))));
            }
        }
        Ok(None)
    }

    fn position(&self) -> u64 {
        self.reader.position()
    }
}

/// The reader knows the line: the parser, which has seen this line only, would call it the first.
fn defect(error: &serde_json::Error) -> Defect {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    Defect { column: (error.column() > 0).then(|| error.column().to_string()), reason }
}
