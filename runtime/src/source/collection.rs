//! Records that the program holds already.

use std::collections::VecDeque;
use std::sync::Arc;

use element::{BATCH_RECORDS, Batch, Timestamp};

use super::{
    Boundedness, ReaderContext, ReaderPoll, Source, SourceReader, SplitEnumerator, StaticSplits,
};

/// How many splits a collection is cut into at most.
const SPLITS: u64 = 64;

/// A bounded source over records in memory, shared by its readers and cloned one by one.
///
/// At parallelism 1 they come in order. Each record may carry a timestamp.
pub struct CollectionSource<T> {
    records: Arc<Vec<(T, Option<Timestamp>)>>,
}

impl<T: Clone + Send + Sync + 'static> CollectionSource<T> {
    /// Records without timestamps.
    pub fn new(records: impl IntoIterator<Item = T>) -> Self {
        Self { records: Arc::new(records.into_iter().map(|record| (record, None)).collect()) }
    }

    /// Records with timestamps.
    pub fn stamped(records: impl IntoIterator<Item = (T, Timestamp)>) -> Self {
        let records = records.into_iter().map(|(record, at)| (record, Some(at))).collect();
        Self { records: Arc::new(records) }
    }
}

/// Positions of a part: next and end.
type Range = (u64, u64);

impl<T: Clone + Send + Sync + 'static> Source for CollectionSource<T> {
    type Item = T;
    type Split = Range;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<Range>>> {
        let len = self.records.len() as u64;
        let size = len.div_ceil(SPLITS).max(BATCH_RECORDS as u64);
        let splits = (0..len.div_ceil(size)).map(|i| (i * size, ((i + 1) * size).min(len)));
        Ok(Box::new(StaticSplits::new(splits, restored)?))
    }

    fn reader(&self, _: &ReaderContext) -> anyhow::Result<Box<dyn SourceReader<T, Range>>> {
        Ok(Box::new(Reader { records: Arc::clone(&self.records), splits: VecDeque::new() }))
    }
}

struct Reader<T> {
    records: Arc<Vec<(T, Option<Timestamp>)>>,
    splits: VecDeque<Range>,
}

impl<T: Clone + Send + Sync> SourceReader<T, Range> for Reader<T> {
    fn add_split(&mut self, split: Range) {
        self.splits.push_back(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>> {
        let Some((next, end)) = self.splits.front_mut() else { return Ok(ReaderPoll::NeedSplit) };
        let mut batch = Batch::default();
        batch.reserve(BATCH_RECORDS);
        while *next < *end && batch.len() < BATCH_RECORDS {
            let at = usize::try_from(*next)?;
            let Some((record, timestamp)) = self.records.get(at) else {
                anyhow::bail!("record {at} of a collection of {}", self.records.len());
            };
            if !batch.admits(*timestamp) {
                break;
            }
            batch.push(record.clone(), *timestamp);
            *next += 1;
        }
        if *next >= *end {
            self.splits.pop_front();
        }
        Ok(ReaderPoll::Batch(batch))
    }

    fn snapshot(&mut self) -> Vec<Range> {
        self.splits.iter().copied().collect()
    }
}
