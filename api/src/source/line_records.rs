//! [`LineRecords`]: lines to records of any type, while the lines lie in the reader's buffer.
//!
//! Made by [`TextSource::flat_map`]; read by [`super::reader`]. A line is lent to the user's function, so it
//! costs no allocation and no copy of its own. Left out on purpose: rows of several lines; those are a
//! format's affair.

use std::marker::PhantomData;
use std::sync::Arc;

use super::bad_record::Defect;
use super::files::Cut;
use super::line_reader::LineReader;
use super::lines::{TextSource, text};
use super::reader::{FileReader, Format, Row, Rows};
use super::split::FileSplit;
use crate::{Boundedness, ReaderContext, Result, Source, SourceReader, SplitEnumerator, options};

/// Takes the records of a line, one by one. Handed to functions of [`TextSource::flat_map`].
#[derive(Debug)]
pub struct LineCollector<'a, T> {
    records: &'a mut Vec<T>,
}

impl<T> LineCollector<'_, T> {
    /// Adds a record.
    #[inline]
    pub fn collect(&mut self, record: T) {
        self.records.push(record);
    }
}

impl<T> Extend<T> for LineCollector<'_, T> {
    #[inline]
    fn extend<I: IntoIterator<Item = T>>(&mut self, records: I) {
        self.records.extend(records);
    }
}

/// The records that a function finds in the lines of files; made by [`TextSource::flat_map`].
pub struct LineRecords<T, F> {
    text: TextSource,
    function: Arc<F>,
    records: PhantomData<fn() -> T>,
}

impl<T, F> Clone for LineRecords<T, F> {
    fn clone(&self) -> Self {
        let function = Arc::clone(&self.function);
        Self { text: self.text.clone(), function, records: PhantomData }
    }
}

impl TextSource {
    /// Gives the records that a function finds in each line, in order; options of the source stay.
    ///
    /// As [`DataStream::flat_map`](crate::DataStream::flat_map) behind the source, but the line is lent,
    /// where a stream of lines pays an allocation and a copy for each.
    ///
    /// ```no_run
    /// use slackwater::{TextSource, prelude::*};
    ///
    /// let env = StreamExecutionEnvironment::new();
    /// let words = TextSource::new("books/*.txt")
    ///     .flat_map(|line, out| out.extend(line.split_whitespace().map(str::to_lowercase)));
    /// env.from_source(words, WatermarkStrategy::none(), "words")
    ///     .key_by_ref(|word: &String| word)
    ///     .count()
    ///     .print_debug();
    /// ```
    pub fn flat_map<T, F>(
        self,
        function: F,
    ) -> LineRecords<
        T,
        impl Fn(&str, &mut LineCollector<'_, T>) -> Result<()> + Send + Sync + 'static,
    >
    where
        T: Send + 'static,
        F: Fn(&str, &mut LineCollector<'_, T>) + Send + Sync + 'static,
    {
        self.try_flat_map(move |line: &str, out: &mut LineCollector<'_, T>| {
            function(line, out);
            Ok(())
        })
    }

    /// As [`flat_map`](Self::flat_map), with a function that may fail. A line that it fails for gives no
    /// record, and is a bad record as one is that is not UTF-8: see [`on_bad_record`](Self::on_bad_record).
    ///
    /// ```no_run
    /// use slackwater::{OnBadRecord, TextSource, prelude::*};
    ///
    /// let env = StreamExecutionEnvironment::new();
    /// let numbers = TextSource::new("numbers.txt")
    ///     .on_bad_record(OnBadRecord::SkipAndCount)
    ///     .try_flat_map(|line, out| Ok(out.collect(line.trim().parse::<u64>()?)));
    /// let numbers = env.from_source(numbers, WatermarkStrategy::none(), "numbers");
    /// # let _: DataStream<u64> = numbers;
    /// ```
    pub fn try_flat_map<T, F>(self, function: F) -> LineRecords<T, F>
    where
        T: Send + 'static,
        F: Fn(&str, &mut LineCollector<'_, T>) -> Result<()> + Send + Sync + 'static,
    {
        LineRecords { text: self, function: Arc::new(function), records: PhantomData }
    }
}

impl<T, F> Source for LineRecords<T, F>
where
    T: Send + 'static,
    F: Fn(&str, &mut LineCollector<'_, T>) -> Result<()> + Send + Sync + 'static,
{
    type Item = T;
    type Split = FileSplit;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<FileSplit>>> {
        self.text.files.enumerator(Cut::AtLines, restored)
    }

    fn identity(&self, by: options::CacheSourceIdentity) -> anyhow::Result<Option<String>> {
        Ok(Some(self.text.files.identity(by)?))
    }

    fn reader(
        &self,
        context: &ReaderContext,
    ) -> anyhow::Result<Box<dyn SourceReader<T, FileSplit>>> {
        let policy = self.text.files.on_bad_record.clone();
        Ok(Box::new(FileReader::new(self.clone(), policy, context)))
    }
}

impl<T, F> Format for LineRecords<T, F>
where
    T: Send + 'static,
    F: Fn(&str, &mut LineCollector<'_, T>) -> Result<()> + Send + Sync + 'static,
{
    type Item = T;
    type Rows = LineRows<F>;

    fn open(&self, split: &FileSplit) -> anyhow::Result<LineRows<F>> {
        let reader = LineReader::open(split, self.text.files.buffer_size)?;
        let function = Arc::clone(&self.function);
        Ok(LineRows { reader, replaces: self.text.replaces, function })
    }
}

/// The lines of one split, and what is made of them.
pub(crate) struct LineRows<F> {
    reader: LineReader,
    replaces: bool,
    function: Arc<F>,
}

impl<T, F> Rows<T> for LineRows<F>
where
    F: Fn(&str, &mut LineCollector<'_, T>) -> Result<()> + Send + Sync,
{
    fn next(&mut self, records: &mut Vec<T>) -> anyhow::Result<Option<Row<()>>> {
        let Some(line) = self.reader.next()? else { return Ok(None) };
        let line = match text(line, self.replaces) {
            Ok(line) => line,
            Err(defect) => return Ok(Some(Err(defect))),
        };
        let before = records.len();
        let made = (self.function)(&line, &mut LineCollector { records });
        Ok(Some(made.map_err(|error| {
            records.truncate(before);
            Defect { column: None, reason: format!("{error:#}") }
        })))
    }

    fn position(&self) -> u64 {
        self.reader.position()
    }
}
