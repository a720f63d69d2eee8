//! Sources: splits, the enumerator that hands them out, and the readers that read them (FLIP-27).
//!
//! ```text
//!   JobMaster's thread                         source tasks, one reader each
//!   SplitEnumerator  -- splits, no more, backlog flag, events -->  SourceReader
//!                    <-- split requests, events ----------------
//! ```
//!
//! The enumerator says whether the source is in backlog (FLIP-309); a reader gets the flag with its
//! deployment, before any split, and sends it as its first element. On a checkpoint the enumerator
//! stores what it has not handed out, each reader the splits it has not finished, with positions.

pub mod alignment;
pub mod cached;
pub mod collection;
mod erased;
pub mod generator;
pub mod hybrid;
pub mod iterator;
pub mod scripted;
mod sides;
mod static_splits;

pub use erased::{AnyEnumerator, AnyReader, EnumeratorOrders, ErasedSource, TypedSource};
pub use sides::SourceSides;
pub(crate) use sides::WithSides;
pub use static_splits::StaticSplits;

use element::option_table::CacheSourceIdentity;
use element::{Batch, Record, SubtaskIndex, Timestamp};

/// Whether a source ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundedness {
    /// It ends.
    Bounded,
    /// It does not.
    Unbounded,
}

/// A source of records. Implemented by users and by the built-in sources; shared by all subtasks.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no source",
    note = "use a source of the prelude, or implement `Source`; for a collection see `from_collection`"
)]
pub trait Source: Send + Sync + 'static {
    /// What it yields.
    type Item: Send + 'static;
    /// A part of it that one reader reads, with the position reached.
    type Split: Record + Clone;

    /// Whether it ends by itself.
    fn boundedness(&self) -> Boundedness;

    /// Makes the enumerator; from what [`SplitEnumerator::snapshot`] stored, if the job is restored.
    ///
    /// # Errors
    ///
    /// What cannot be opened, by name.
    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<Self::Split>>>;

    /// What tells its contents from others, for caches that outlive the program: of files their paths,
    /// sizes and modification times, or hashes of their bytes. `None`: nothing but the program itself.
    ///
    /// # Errors
    ///
    /// What cannot be looked at, by name.
    fn identity(&self, _by: CacheSourceIdentity) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    /// Makes the reader of one subtask.
    ///
    /// # Errors
    ///
    /// What cannot be opened, by name.
    fn reader(
        &self,
        context: &ReaderContext,
    ) -> anyhow::Result<Box<dyn SourceReader<Self::Item, Self::Split>>>;
}

/// What a reader may know of itself.
#[derive(Clone, Debug)]
pub struct ReaderContext {
    /// Which subtask it reads for.
    pub subtask: SubtaskIndex,
    /// Of how many.
    pub parallelism: u32,
    /// The clock.
    pub clock: std::sync::Arc<dyn element::Clock>,
    /// Counters of its operator.
    pub metrics: std::sync::Arc<crate::metrics::OperatorMetrics>,
    /// Side outputs of its operator.
    pub sides: SourceSides,
}

/// Hands out splits. One a source and attempt, on the JobMaster's thread; never blocks for long.
pub trait SplitEnumerator<S>: Send {
    /// Called once, before any reader is there. The place to say that a backlog begins.
    ///
    /// # Errors
    ///
    /// What cannot be listed, by name; the job then fails.
    fn start(&mut self, _context: &mut EnumeratorContext<S>) -> anyhow::Result<()> {
        Ok(())
    }

    /// A reader wants a split: assign one, or say that there are no more, now or later.
    ///
    /// # Errors
    ///
    /// What went wrong; the job then fails.
    fn split_requested(
        &mut self,
        reader: SubtaskIndex,
        context: &mut EnumeratorContext<S>,
    ) -> anyhow::Result<()>;

    /// A reader says something of its own.
    ///
    /// # Errors
    ///
    /// What went wrong; the job then fails.
    fn reader_event(
        &mut self,
        _reader: SubtaskIndex,
        _event: &[u8],
        _context: &mut EnumeratorContext<S>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    /// What it has not handed out yet, for a checkpoint.
    ///
    /// # Errors
    ///
    /// What went wrong; the checkpoint is then declined.
    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>>;

    /// Where a source that follows this one is to begin, in bytes that both understand; asked for when
    /// all splits have been read ([`hybrid::HybridSource::then_from`]). By default it says nothing.
    ///
    /// # Errors
    ///
    /// What cannot be found out, by name; the job then fails.
    fn end_position(&mut self) -> anyhow::Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

/// What an enumerator orders; carried out when its call returns.
pub struct EnumeratorContext<S> {
    parallelism: u32,
    orders: Vec<Order<S>>,
}

/// One order of an enumerator.
#[derive(Debug)]
pub(crate) enum Order<S> {
    Assign(SubtaskIndex, S),
    NoMoreSplits(SubtaskIndex),
    Backlog(bool),
    Event(SubtaskIndex, Vec<u8>),
}

impl<S> EnumeratorContext<S> {
    /// A context for `parallelism` readers.
    #[must_use]
    pub fn new(parallelism: u32) -> Self {
        Self { parallelism, orders: Vec::new() }
    }

    /// How many readers there are.
    #[must_use]
    pub fn parallelism(&self) -> u32 {
        self.parallelism
    }

    /// Gives a split to a reader.
    pub fn assign(&mut self, reader: SubtaskIndex, split: S) {
        self.orders.push(Order::Assign(reader, split));
    }

    /// Tells a reader that it will get no more splits; it ends when it has read those it has.
    pub fn no_more_splits(&mut self, reader: SubtaskIndex) {
        self.orders.push(Order::NoMoreSplits(reader));
    }

    /// Says whether what follows is backlog. The last word counts; a source that says nothing is
    /// not in backlog.
    pub fn set_is_processing_backlog(&mut self, is_backlog: bool) {
        self.orders.push(Order::Backlog(is_backlog));
    }

    /// Says something to a reader.
    pub fn send_event(&mut self, reader: SubtaskIndex, event: Vec<u8>) {
        self.orders.push(Order::Event(reader, event));
    }

    pub(crate) fn take(&mut self) -> Vec<Order<S>> {
        std::mem::take(&mut self.orders)
    }
}

/// What a reader's poll gives.
#[derive(Debug)]
pub enum ReaderPoll<T> {
    /// Records, in order.
    Batch(Batch<T>),
    /// Nothing for now; ask again at the time given. The enumerator's word, or any other that its task
    /// hears, may come before.
    Later(Option<Timestamp>),
    /// Nothing, and no split is wanted, until the enumerator says something. Who waits so holds no
    /// aligned source back: what it waits for may be theirs to do.
    AwaitEnumerator,
    /// All splits are read; another one is wanted.
    NeedSplit,
    /// An event for the enumerator.
    Event(Vec<u8>),
    /// A watermark of the source's own; a generator of the stream's strategy overrules it.
    Watermark(Timestamp),
}

/// Reads splits. One a subtask and attempt, on the task's thread; never blocks for long.
pub trait SourceReader<T, S>: Send {
    /// Takes a split to read, behind those it has.
    fn add_split(&mut self, split: S);

    /// The next records. At most about a thousand at once, so that barriers are not held up.
    ///
    /// # Errors
    ///
    /// What cannot be read, by name and position; the task then fails.
    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>>;

    /// The splits that are not finished, with positions, in order.
    fn snapshot(&mut self) -> Vec<S>;

    /// The enumerator says something.
    ///
    /// # Errors
    ///
    /// What went wrong; the task then fails.
    fn enumerator_event(&mut self, _event: &[u8]) -> anyhow::Result<()> {
        Ok(())
    }
}
