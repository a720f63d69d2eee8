//! [`ChangeCaptureSource`]: a table's rows as they stand, then every change of them from its log.
//!
//! ```text
//!   chunk  low ---- rows are read ---- high        a position of the log on either side
//!   log    ..|..c1........c2...........|..c3..c4..
//!             '- merged into the rows -'  '- sent from the log
//! ```
//!
//! Chunks are read in parallel, each between two positions. Changes above `low` and up to `high` are
//! merged into the chunk's rows before these are sent; of the log, each reader sends the changes of
//! its own chunks above their `high`. So of every key first one row and then each later change is
//! sent, by one subtask: nothing is lost, doubled or overtaken.
//!
//! In backlog from the first chunk until the log begins, which is when all chunks are read (K9).
//! Left out on purpose: changes of the table's schema, and tables that are added later.
//!
//! Source: FLIP-309; A. Andreakis and I. Papapanagiotou, "DBLog" (2020), for the watermarks.

mod chunk;
mod enumerator;
mod log;
mod reader;
mod split;

pub use split::KeyRange;

use std::fmt::Debug;
use std::sync::Arc;

use crate::{Boundedness, ReaderContext, Record, Source, SourceReader, SplitEnumerator, Timestamp};
use enumerator::Enumerator;
use reader::Reader;
use split::CaptureSplit;

/// What a row is known by.
type RowOf<C> = <C as CapturedTable>::Row;
type KeyOf<C> = <C as CapturedTable>::Key;
type PositionOf<C> = <C as CapturedTable>::Position;

/// The item of a [`ChangeCaptureSource`] over `C`.
pub type ChangeOf<C> = Change<KeyOf<C>, RowOf<C>, PositionOf<C>>;

/// What reads the log of a [`CapturedTable`] `C`.
pub type LogReaderOf<C> = Box<dyn LogReader<KeyOf<C>, RowOf<C>, PositionOf<C>>>;

/// A table whose changes are logged. Implemented by users; shared by the readers of all subtasks,
/// and called on the task's thread but for `chunk_bounds`, which the JobMaster's calls once a job.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no table whose changes can be captured",
    note = "implement `CapturedTable`: chunks of rows, and a log with positions"
)]
pub trait CapturedTable: Send + Sync + 'static {
    /// What a row is known by; a change of it is a delete and an upsert.
    type Key: Record + Ord + Clone + Debug;
    /// A row, whole.
    type Row: Record + Clone;
    /// A place in the log. No two entries have the same one.
    type Position: Record + Ord + Clone + Debug;

    /// The keys at which one chunk ends and the next begins, ascending; none makes one chunk. A
    /// reader holds one chunk's rows in memory.
    ///
    /// # Errors
    ///
    /// What cannot be asked of the table, by name; the job then fails.
    fn chunk_bounds(&self) -> anyhow::Result<Vec<Self::Key>>;

    /// The log's newest position: a read that begins afterwards sees every change up to it.
    ///
    /// # Errors
    ///
    /// What cannot be asked of the log, by name; the task then fails.
    fn position(&self) -> anyhow::Result<Self::Position>;

    /// The rows with keys in `range`, in any order. Changes made while they are read may show or not.
    ///
    /// # Errors
    ///
    /// What cannot be read, by name; the task then fails.
    fn read_chunk(
        &self,
        range: &KeyRange<Self::Key>,
    ) -> anyhow::Result<RowReader<Self::Key, Self::Row>>;

    /// Opens the log behind `after`: the first entry is the one that follows it.
    ///
    /// # Errors
    ///
    /// What cannot be read, by name, such as a position that the log has no more; the task then fails.
    fn read_log(&self, after: &Self::Position) -> anyhow::Result<LogReaderOf<Self>>;

    /// Whether the log ends by itself. Most do not.
    fn boundedness(&self) -> Boundedness {
        Boundedness::Unbounded
    }
}

/// The rows of a chunk, read one by one. Used on the task's thread; each call may take as long as a
/// read of a row does.
pub type RowReader<K, R> = Box<dyn Iterator<Item = anyhow::Result<(K, R)>> + Send>;

/// Reads the log of a table. Implemented by users; one a chunk and one a subtask, on the task's
/// thread.
pub trait LogReader<K, R, P>: Send {
    /// The next entries; never blocks for long.
    ///
    /// # Errors
    ///
    /// What cannot be read, by name and position; the task then fails.
    fn poll(&mut self) -> anyhow::Result<LogPoll<K, R, P>>;
}

/// What a log reader's poll gives.
#[derive(Clone, Debug)]
pub enum LogPoll<K, R, P> {
    /// Entries in order of position; about a thousand at most, so that barriers are not held up.
    Entries(Vec<LogEntry<K, R, P>>),
    /// Nothing for now: every entry up to `read_to` has been given. Ask again at `again`, or at the
    /// next call from outside if there is no such time.
    Nothing {
        /// The position up to which there is nothing more.
        read_to: P,
        /// When to look again.
        again: Option<Timestamp>,
    },
    /// The log has ended: every entry has been given.
    End,
}

/// One change, as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry<K, R, P> {
    /// Its place in the log.
    pub position: P,
    /// The row's key.
    pub key: K,
    /// The row behind the change; none if it is deleted.
    pub row: Option<R>,
}

/// A row of the snapshot, or a change from the log.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub struct Change<K, R, P> {
    /// The row's key.
    pub key: K,
    /// What has happened to it.
    pub kind: ChangeKind<R>,
    /// A change's place in the log; of a row of the snapshot the position as of which it stands.
    pub position: P,
}

/// What has happened to a row.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind<R> {
    /// It stands so in the snapshot.
    Read(R),
    /// It was inserted, or updated to this.
    Upsert(R),
    /// It was deleted.
    Delete,
}

impl<R> ChangeKind<R> {
    /// The row behind the change; none if it was deleted.
    #[must_use]
    pub fn into_row(self) -> Option<R> {
        match self {
            Self::Read(row) | Self::Upsert(row) => Some(row),
            Self::Delete => None,
        }
    }
}

/// A table or a log that breaks its contract.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureError {
    /// Chunks cannot be cut there.
    #[error("bound {place} of the chunks, {bound}, does not lie above the one before it")]
    BoundsOutOfOrder {
        /// Which bound, from 0.
        place: usize,
        /// Its key.
        bound: String,
    },
    /// An entry would be lost or sent twice.
    #[error("log entry at {position} comes behind the one at {before}")]
    EntriesOutOfOrder {
        /// The entry's position.
        position: String,
        /// The position before.
        before: String,
    },
}

/// Reads a [`CapturedTable`]: first its rows, in backlog, then its log.
///
/// Out: [`Change`]s; of every key at most one [`Read`](ChangeKind::Read) and then each later change,
/// in order of the log, all by one subtask. Without timestamps: a watermark strategy finds them.
/// Every subtask with chunks opens the log for itself; parallelism 1 opens it once.
/// Exactly once over checkpoints in either part; the chunks and the log may be restored at another
/// parallelism. A checkpoint holds a position for each chunk, and rows that were read and not sent.
pub struct ChangeCaptureSource<C> {
    table: Arc<C>,
}

impl<C: CapturedTable> ChangeCaptureSource<C> {
    /// Reads `table`.
    pub fn new(table: C) -> Self {
        Self { table: Arc::new(table) }
    }
}

impl<C: CapturedTable> Source for ChangeCaptureSource<C> {
    type Item = ChangeOf<C>;
    type Split = CaptureSplit<KeyOf<C>, RowOf<C>, PositionOf<C>>;

    fn boundedness(&self) -> Boundedness {
        self.table.boundedness()
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<Self::Split>>> {
        Ok(Box::new(match restored {
            Some(stored) => Enumerator::<KeyOf<C>>::restored(stored)?,
            None => Enumerator::over(self.table.chunk_bounds()?)?,
        }))
    }

    fn reader(
        &self,
        _: &ReaderContext,
    ) -> anyhow::Result<Box<dyn SourceReader<Self::Item, Self::Split>>> {
        Ok(Box::new(Reader::over(Arc::clone(&self.table))))
    }
}
