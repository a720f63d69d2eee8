//! Records of an iterator that is made anew for each attempt.

use std::sync::Arc;

use element::{BATCH_RECORDS, Batch};

use super::{
    Boundedness, ReaderContext, ReaderPoll, Source, SourceReader, SplitEnumerator, StaticSplits,
};

/// A bounded source over an iterator, read by one subtask. Its position is the number of records read:
/// after a restore the iterator is made anew and that many are passed over.
pub struct IteratorSource<F> {
    make: Arc<F>,
}

impl<F> IteratorSource<F> {
    /// Records of the iterators that `make` makes; each must yield the same.
    pub fn new(make: F) -> Self {
        Self { make: Arc::new(make) }
    }
}

impl<I, F> Source for IteratorSource<F>
where
    I: IntoIterator,
    I::IntoIter: Send + 'static,
    I::Item: Send + 'static,
    F: Fn() -> I + Send + Sync + 'static,
{
    type Item = I::Item;
    type Split = u64;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(&self, restored: Option<&[u8]>) -> anyhow::Result<Box<dyn SplitEnumerator<u64>>> {
        Ok(Box::new(StaticSplits::new([0], restored)?))
    }

    fn reader(&self, _: &ReaderContext) -> anyhow::Result<Box<dyn SourceReader<I::Item, u64>>> {
        Ok(Box::new(Reader { make: Arc::clone(&self.make), open: None, waiting: Vec::new() }))
    }
}

struct Reader<F, R> {
    make: Arc<F>,
    open: Option<(R, u64)>,
    waiting: Vec<u64>,
}

impl<I, F> SourceReader<I::Item, u64> for Reader<F, I::IntoIter>
where
    I: IntoIterator,
    I::IntoIter: Send,
    F: Fn() -> I + Send + Sync,
{
    fn add_split(&mut self, split: u64) {
        self.waiting.push(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<I::Item>> {
        if self.open.is_none() {
            let Some(position) = self.waiting.pop() else { return Ok(ReaderPoll::NeedSplit) };
            let mut iterator = (self.make)().into_iter();
            if let Some(last) = position.checked_sub(1) {
                iterator.nth(usize::try_from(last)?);
            }
            self.open = Some((iterator, position));
        }
        let Some((iterator, position)) = &mut self.open else { return Ok(ReaderPoll::NeedSplit) };
        let values: Vec<I::Item> = iterator.by_ref().take(BATCH_RECORDS).collect();
        *position += values.len() as u64;
        if values.len() < BATCH_RECORDS {
            self.open = None;
        }
        Ok(ReaderPoll::Batch(Batch::unstamped(values)))
    }

    fn snapshot(&mut self) -> Vec<u64> {
        let open = self.open.as_ref().map(|(_, position)| *position);
        self.waiting.iter().copied().chain(open).collect()
    }
}
