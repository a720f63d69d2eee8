//! [`TextSource`]: files to lines.

use std::borrow::Cow;
use std::path::Path;

use super::bad_record::{Defect, OnBadRecord};
use super::files::{Cut, Files};
use super::line_reader::LineReader;
use super::reader::{FileReader, Format, Row, Rows};
use super::split::FileSplit;
use crate::{Boundedness, ByteSize, ReaderContext, Source, SourceReader, SplitEnumerator, options};

/// Lines of files: of one, of all in a directory and its directories, or of those that a glob names.
///
/// Files come in order of path, lines in order of their file at parallelism 1. Big files are cut into
/// splits, so that several readers share one; gzip files (by name: `.gz`) are not. A line ends at LF or
/// CR LF; an empty line is a record; the last line needs no end. A byte order mark at the front of a
/// file is dropped. In directories, names that begin with a dot or an underscore are left out.
///
/// ```no_run
/// use slackwater::{OnBadRecord, TextSource, prelude::*};
///
/// let env = StreamExecutionEnvironment::new();
/// let lines = TextSource::new("logs/**/*.gz").on_bad_record(OnBadRecord::SkipAndCount);
/// let lines = env.from_source(lines, WatermarkStrategy::none(), "logs");
/// # let _: DataStream<String> = lines;
/// ```
#[derive(Clone, Debug)]
pub struct TextSource {
    pub(super) files: Files,
    pub(super) replaces: bool,
}

impl TextSource {
    /// The lines of a file, a directory, or the files of a glob (`*`, `?`, `[a-z]`, `**`).
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { files: Files::new(path.as_ref()), replaces: false }
    }

    /// What to do about a line that is not UTF-8 (by default the job fails).
    #[must_use]
    pub fn on_bad_record(mut self, policy: OnBadRecord) -> Self {
        self.files.on_bad_record = policy;
        self
    }

    /// Reads what is not UTF-8 as U+FFFD, the replacement character: no line is bad then.
    #[must_use]
    pub fn replace_bad_utf8(mut self) -> Self {
        self.replaces = true;
        self
    }

    /// The size of the pieces that big files are cut into (16 MiB).
    #[must_use]
    pub fn split_size(mut self, size: ByteSize) -> Self {
        self.files.split_size = size;
        self
    }

    /// How much is read at once (1 MiB).
    #[must_use]
    pub fn buffer_size(mut self, size: ByteSize) -> Self {
        self.files.buffer_size = size;
        self
    }
}

impl Source for TextSource {
    type Item = String;
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
    ) -> anyhow::Result<Box<dyn SourceReader<String, FileSplit>>> {
        let policy = self.files.on_bad_record.clone();
        Ok(Box::new(FileReader::new(self.clone(), policy, context)))
    }
}

impl Format for TextSource {
    type Item = String;
    type Rows = Lines;

    fn open(&self, split: &FileSplit) -> anyhow::Result<Lines> {
        let reader = LineReader::open(split, self.files.buffer_size)?;
        Ok(Lines { reader, replaces: self.replaces })
    }
}

/// The lines of one split.
pub(crate) struct Lines {
    reader: LineReader,
    replaces: bool,
}

impl Rows<String> for Lines {
    fn next(&mut self, records: &mut Vec<String>) -> anyhow::Result<Option<Row<()>>> {
        let replaces = self.replaces;
        let line = self.reader.next()?.map(|line| text(line, replaces));
        Ok(line.map(|line| line.map(|line| records.push(line.into_owned()))))
    }

    fn position(&self) -> u64 {
        self.reader.position()
    }
}

/// A line as text, or what is wrong with it.
pub(super) fn text(line: &[u8], replaces: bool) -> Row<Cow<'_, str>> {
    match std::str::from_utf8(line) {
        Ok(line) => Ok(Cow::Borrowed(line)),
        Err(_) if replaces => Ok(String::from_utf8_lossy(line)),
        Err(error) => Err(Defect {
            column: Some((error.valid_up_to() + 1).to_string()),
            reason: "the line is not UTF-8".to_owned(),
        }),
    }
}
