//! Sources without their split type: what tasks and the JobMaster hold.
//!
//! Splits pass between them as bytes, so that the messages could cross a process.

use std::sync::Arc;

use element::option_table::CacheSourceIdentity;
use element::{Record, SubtaskIndex, decode_exact, encode_to_vec};

use super::{
    Boundedness, EnumeratorContext, Order, ReaderContext, ReaderPoll, Source, SourceReader,
    SplitEnumerator,
};
use crate::events::TaskMail;

/// What an enumerator's call orders: mail for readers, and a change of the backlog flag.
#[derive(Debug, Default)]
pub struct EnumeratorOrders {
    /// Mail by reader, in order; a flag goes to all of them.
    pub mail: Vec<(Option<SubtaskIndex>, TaskMail)>,
    /// The flag, if it was set.
    pub is_backlog: Option<bool>,
}

/// An enumerator without its split type.
pub trait AnyEnumerator: Send {
    /// See [`SplitEnumerator::start`].
    ///
    /// # Errors
    ///
    /// What the enumerator says.
    fn start(&mut self) -> anyhow::Result<EnumeratorOrders>;

    /// See [`SplitEnumerator::split_requested`].
    ///
    /// # Errors
    ///
    /// What the enumerator says.
    fn split_requested(&mut self, reader: SubtaskIndex) -> anyhow::Result<EnumeratorOrders>;

    /// See [`SplitEnumerator::reader_event`].
    ///
    /// # Errors
    ///
    /// What the enumerator says.
    fn reader_event(
        &mut self,
        reader: SubtaskIndex,
        event: &[u8],
    ) -> anyhow::Result<EnumeratorOrders>;

    /// See [`SplitEnumerator::snapshot`].
    ///
    /// # Errors
    ///
    /// What the enumerator says.
    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>>;

    /// See [`SplitEnumerator::end_position`].
    ///
    /// # Errors
    ///
    /// What the enumerator says.
    fn end_position(&mut self) -> anyhow::Result<Vec<u8>>;
}

struct Enumerator<S> {
    inner: Box<dyn SplitEnumerator<S>>,
    context: EnumeratorContext<S>,
}

impl<S: Record> Enumerator<S> {
    fn orders(&mut self) -> EnumeratorOrders {
        let mut orders = EnumeratorOrders::default();
        for order in self.context.take() {
            let (reader, mail) = match order {
                Order::Assign(reader, split) => {
                    (Some(reader), TaskMail::Splits(vec![encode_to_vec(&split)]))
                }
                Order::NoMoreSplits(reader) => (Some(reader), TaskMail::NoMoreSplits),
                Order::Event(reader, event) => (Some(reader), TaskMail::ReaderEvent(event)),
                Order::Backlog(is_backlog) => {
                    orders.is_backlog = Some(is_backlog);
                    (None, TaskMail::Backlog(is_backlog))
                }
            };
            orders.mail.push((reader, mail));
        }
        orders
    }
}

impl<S: Record> AnyEnumerator for Enumerator<S> {
    fn start(&mut self) -> anyhow::Result<EnumeratorOrders> {
        self.inner.start(&mut self.context)?;
        Ok(self.orders())
    }

    fn split_requested(&mut self, reader: SubtaskIndex) -> anyhow::Result<EnumeratorOrders> {
        self.inner.split_requested(reader, &mut self.context)?;
        Ok(self.orders())
    }

    fn reader_event(
        &mut self,
        reader: SubtaskIndex,
        event: &[u8],
    ) -> anyhow::Result<EnumeratorOrders> {
        self.inner.reader_event(reader, event, &mut self.context)?;
        Ok(self.orders())
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        self.inner.snapshot()
    }

    fn end_position(&mut self) -> anyhow::Result<Vec<u8>> {
        self.inner.end_position()
    }
}

/// A reader without its split type.
pub trait AnyReader<T>: Send {
    /// See [`SourceReader::add_split`].
    ///
    /// # Errors
    ///
    /// If the bytes hold no split.
    fn add_split(&mut self, split: &[u8]) -> anyhow::Result<()>;

    /// See [`SourceReader::poll`].
    ///
    /// # Errors
    ///
    /// What the reader says.
    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>>;

    /// See [`SourceReader::snapshot`].
    fn snapshot(&mut self) -> Vec<Vec<u8>>;

    /// See [`SourceReader::enumerator_event`].
    ///
    /// # Errors
    ///
    /// What the reader says.
    fn enumerator_event(&mut self, event: &[u8]) -> anyhow::Result<()>;
}

struct Reader<T, S>(Box<dyn SourceReader<T, S>>);

impl<T, S: Record> AnyReader<T> for Reader<T, S> {
    fn add_split(&mut self, split: &[u8]) -> anyhow::Result<()> {
        self.0.add_split(decode_exact(split)?);
        Ok(())
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>> {
        self.0.poll()
    }

    fn snapshot(&mut self) -> Vec<Vec<u8>> {
        self.0.snapshot().iter().map(encode_to_vec).collect()
    }

    fn enumerator_event(&mut self, event: &[u8]) -> anyhow::Result<()> {
        self.0.enumerator_event(event)
    }
}

/// A source without its types: what the JobMaster needs.
pub trait ErasedSource: Send + Sync {
    /// Whether it ends by itself.
    fn boundedness(&self) -> Boundedness;

    /// Makes the enumerator for `parallelism` readers.
    ///
    /// # Errors
    ///
    /// What the source says.
    fn enumerator(
        &self,
        parallelism: u32,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn AnyEnumerator>>;

    /// See [`Source::identity`].
    ///
    /// # Errors
    ///
    /// What the source says.
    fn identity(&self, by: CacheSourceIdentity) -> anyhow::Result<Option<String>>;
}

/// A source without its split type: what a source task needs.
pub trait TypedSource<T>: ErasedSource {
    /// Makes the reader of one subtask.
    ///
    /// # Errors
    ///
    /// What the source says.
    fn reader(&self, context: &ReaderContext) -> anyhow::Result<Box<dyn AnyReader<T>>>;

    /// Itself, as the JobMaster needs it.
    fn erase(self: Arc<Self>) -> Arc<dyn ErasedSource>;
}

impl<X: Source> ErasedSource for X {
    fn boundedness(&self) -> Boundedness {
        Source::boundedness(self)
    }

    fn enumerator(
        &self,
        parallelism: u32,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn AnyEnumerator>> {
        let inner = Source::enumerator(self, restored)?;
        Ok(Box::new(Enumerator { inner, context: EnumeratorContext::new(parallelism) }))
    }

    fn identity(&self, by: CacheSourceIdentity) -> anyhow::Result<Option<String>> {
        Source::identity(self, by)
    }
}

impl<X: Source> TypedSource<X::Item> for X {
    fn reader(&self, context: &ReaderContext) -> anyhow::Result<Box<dyn AnyReader<X::Item>>> {
        Ok(Box::new(Reader(Source::reader(self, context)?)))
    }

    fn erase(self: Arc<Self>) -> Arc<dyn ErasedSource> {
        self
    }
}
