//! [`FileReader`]: splits to batches of records, whatever the format, with bad rows by policy.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};

use element::{BATCH_RECORDS, Batch};

use super::bad_record::{BadRecord, Defect, OnBadRecord};
use super::files::FileError;
use super::split::{FileSplit, Text, open};
use crate::{ReaderContext, ReaderPoll, SourceReader};

/// One row of a file.
pub(crate) type Row<T> = Result<T, Defect>;

/// How the text of a file becomes records.
pub(crate) trait Format: Send + Sync + 'static {
    /// A record.
    type Item: Send + 'static;
    /// A split as it is read.
    type Rows: Rows<Self::Item>;

    /// Opens a settled split.
    fn open(&self, split: &FileSplit) -> anyhow::Result<Self::Rows>;
}

/// The rows of one split, in order.
pub(crate) trait Rows<T>: Send {
    /// Appends the records of the next row; `None` where there is none. A row that is no record appends
    /// nothing, and leaves the reader behind it.
    fn next(&mut self, records: &mut Vec<T>) -> anyhow::Result<Option<Row<()>>>;

    /// Where the next row begins, line ends apart.
    fn position(&self) -> u64;
}

/// Reads splits one after the other.
pub(crate) struct FileReader<F: Format> {
    format: F,
    policy: OnBadRecord,
    context: ReaderContext,
    splits: VecDeque<FileSplit>,
    /// The first of `splits`, once it is open.
    rows: Option<F::Rows>,
    locator: Option<Locator>,
    /// Room for a batch: more than a full one where a row gives several records.
    room: usize,
}

impl<F: Format> FileReader<F> {
    pub(crate) fn new(format: F, policy: OnBadRecord, context: &ReaderContext) -> Self {
        let context = context.clone();
        let (splits, room) = (VecDeque::new(), BATCH_RECORDS);
        Self { format, policy, context, splits, rows: None, locator: None, room }
    }

    fn read(&mut self, batch: &mut Vec<F::Item>) -> anyhow::Result<()> {
        let Some(split) = self.splits.front_mut() else { return Ok(()) };
        if self.rows.is_none() {
            split.settle()?;
            self.rows = Some(self.format.open(split)?);
        }
        let Some(rows) = &mut self.rows else { return Ok(()) };
        // Rows that give none count, too: a poll is a bounded piece of work.
        for _ in 0..BATCH_RECORDS {
            if batch.len() >= BATCH_RECORDS {
                break;
            }
            let begin = rows.position();
            match rows.next(batch)? {
                Some(Ok(())) => {}
                Some(Err(defect)) => {
                    let place = locate(&mut self.locator, split.path(), begin, rows.position())?;
                    put_aside(place.record(split.path(), defect), &self.policy, &self.context)?;
                }
                None => {
                    self.rows = None;
                    self.splits.pop_front();
                    return Ok(());
                }
            }
        }
        split.advance(rows.position());
        Ok(())
    }
}

/// Does about a bad record what the policy says.
pub(super) fn put_aside(
    record: BadRecord,
    policy: &OnBadRecord,
    context: &ReaderContext,
) -> Result<(), BadRecord> {
    match policy {
        OnBadRecord::Fail => return Err(record),
        OnBadRecord::SkipAndCount => context.metrics.skipped(1),
        OnBadRecord::SideOutput(tag) => context.sides.emit(tag, record, None),
    }
    Ok(())
}

impl<F: Format> SourceReader<F::Item, FileSplit> for FileReader<F> {
    fn add_split(&mut self, split: FileSplit) {
        self.splits.push_back(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<F::Item>> {
        if self.splits.is_empty() {
            return Ok(ReaderPoll::NeedSplit);
        }
        let mut batch = Vec::with_capacity(self.room);
        self.read(&mut batch)?;
        self.room = batch.capacity().min(2 * BATCH_RECORDS);
        Ok(ReaderPoll::Batch(Batch::unstamped(batch)))
    }

    fn snapshot(&mut self) -> Vec<FileSplit> {
        self.splits.iter().cloned().collect()
    }
}

/// Where a bad row stands.
struct Place {
    line: u64,
    text: String,
}

impl Place {
    fn record(self, path: &str, defect: Defect) -> BadRecord {
        let Defect { column, reason } = defect;
        BadRecord { file: path.to_owned(), line: self.line, column, reason, text: self.text }
    }
}

/// Counts the lines of a file up to its bad rows. One goes once through the file at most, and only if
/// there is a bad row: good rows do not pay for line numbers.
struct Locator {
    path: String,
    text: BufReader<Text>,
    at: u64,
    /// Line ends before `at`.
    lines: u64,
}

fn locate(
    locator: &mut Option<Locator>,
    path: &str,
    begin: u64,
    end: u64,
) -> Result<Place, FileError> {
    let fits = |locator: &Locator| locator.path == path && locator.at <= begin;
    if !locator.as_ref().is_some_and(fits) {
        let (text, at) = open(path, 0, None)?;
        let text = BufReader::with_capacity(256 << 10, text);
        *locator = Some(Locator { path: path.to_owned(), text, at, lines: 0 });
    }
    let Some(locator) = locator else { return Ok(Place { line: 0, text: String::new() }) };
    locator.go(begin, end).map_err(|source| FileError::Read {
        path: path.to_owned(),
        offset: begin,
        source,
    })
}

impl Locator {
    fn go(&mut self, begin: u64, end: u64) -> std::io::Result<Place> {
        while self.at < begin {
            let chunk = self.text.fill_buf()?;
            let wanted = usize::try_from(begin - self.at).unwrap_or(usize::MAX);
            let chunk = chunk.get(..wanted).unwrap_or(chunk);
            let taken = chunk.len();
            if taken == 0 {
                break;
            }
            self.lines += line_ends(chunk);
            self.at += taken as u64;
            self.text.consume(taken);
        }
        let mut row = Vec::new();
        (&mut self.text).take(end.saturating_sub(self.at)).read_to_end(&mut row)?;
        let blank = row.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let (before, text) = row.split_at_checked(blank).unwrap_or_default();
        let line = self.lines + line_ends(before) + 1;
        self.lines += line_ends(&row);
        self.at = end;
        let text = String::from_utf8_lossy(text);
        Ok(Place { line, text: text.trim_end_matches(['\r', '\n']).to_owned() })
    }
}

fn line_ends(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
