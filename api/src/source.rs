//! Sources over files and sockets (lines of text, what a function finds in lines, CSV with typed rows, JSON
//! lines, TCP lines), and over tables whose changes are logged.
//!
//! ```text
//!   Files        a file, a directory or a glob -> FileSplits          (on the JobMaster's thread)
//!   FileReader   FileSplit -> rows of a Format -> batches, bad rows by OnBadRecord  (on the task's)
//! ```
//!
//! A position is a byte offset of the decompressed text at which a row begins, so that a restored
//! reader goes on with the first row that was not read. Left out on purpose: watching directories for
//! files that come later.

mod bad_record;
mod change_capture;
mod csv;
mod files;
mod glob;
mod json;
mod line_reader;
mod line_records;
mod lines;
mod reader;
mod reads;
mod split;
mod tcp;

pub use bad_record::{BadRecord, OnBadRecord};
pub use change_capture::{
    CaptureError, CapturedTable, Change, ChangeCaptureSource, ChangeKind, ChangeOf, KeyRange,
    LogEntry, LogPoll, LogReader, LogReaderOf, RowReader,
};
pub use csv::CsvSource;
pub use files::FileError;
pub use json::JsonSource;
pub use line_records::{LineCollector, LineRecords};
pub use lines::TextSource;
pub use split::FileSplit;
pub use tcp::{TcpError, TcpSource};
