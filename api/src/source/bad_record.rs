//! [`BadRecord`]: a piece of input that is no record, and what is done about it.

use std::fmt;

use crate::{Record, SideTag};

/// How much of a bad record's text an error message shows, in characters.
const SHOWN: usize = 200;

/// A piece of a file that could not be read as a record: where it stands, what it says, what is wrong.
///
/// The typed error behind [`JobError`](crate::JobError) where bad records fail the job, and the record
/// of the side output where they are put aside.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// The file's path.
    pub file: String,
    /// The line on which it begins, from 1; lines of the decompressed text.
    pub line: u64,
    /// The column that is wrong, where one is: of CSV its name, or its number from 1 where columns
    /// have no names; of JSON and text the byte of the line, from 1.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// The whole text, without its line end; what is no UTF-8 in it is replaced by U+FFFD.
    pub text: String,
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, line {}", self.file, self.line)?;
        if let Some(column) = &self.column {
            write!(f, ", column {column}")?;
        }
        let (shown, rest) = match self.text.char_indices().nth(SHOWN) {
            Some((end, _)) => (self.text.get(..end).unwrap_or_default(), "..."),
            None => (self.text.as_str(), ""),
        };
        write!(f, ": {}; the text is `{shown}{rest}`", self.reason)
    }
}

impl std::error::Error for BadRecord {}

/// What a source does about a piece of input that is no record.
#[derive(Clone, Debug, Default)]
pub enum OnBadRecord {
    /// The job fails, with the [`BadRecord`] as the cause.
    #[default]
    Fail,
    /// It is left out and counted: [`OperatorReport::skipped`](crate::OperatorReport::skipped).
    SkipAndCount,
    /// It goes to a side output of the source. Where nobody listens to the tag it is counted as
    /// skipped.
    SideOutput(SideTag<BadRecord>),
}

/// What a format finds wrong with a row; the reader adds where the row stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Defect {
    pub(crate) column: Option<String>,
    pub(crate) reason: String,
}
