//! Records made by a function of their number: tests, benchmarks, demos, iterators.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use element::{BATCH_RECORDS, Batch, Clock, Timestamp};

use super::{
    Boundedness, ReaderContext, ReaderPoll, Source, SourceReader, SplitEnumerator, StaticSplits,
};

/// Makes record `i` by a function, for `i` from 0 up to a count or for ever, at full speed or at a
/// rate.
///
/// Each reader gets a part of the numbers: of a bounded source contiguous ones, of an unbounded one
/// each n-th. In order within a reader.
pub struct GeneratorSource<F> {
    make: Arc<F>,
    count: Option<u64>,
    rate: Option<f64>,
    parts: u64,
}

impl<F> GeneratorSource<F> {
    /// Records 0 to `count`, not including it, at full speed.
    pub fn bounded(count: u64, make: F) -> Self {
        Self { make: Arc::new(make), count: Some(count), rate: None, parts: 64 }
    }

    /// Records for ever.
    pub fn unbounded(make: F) -> Self {
        Self { make: Arc::new(make), count: None, rate: None, parts: 64 }
    }

    /// At most so many records a second, all readers together.
    #[must_use]
    pub fn records_per_second(mut self, rate: f64) -> Self {
        self.rate = Some(rate.max(f64::MIN_POSITIVE));
        self
    }

    /// Into how many splits the numbers are cut (64): an upper bound of useful readers.
    #[must_use]
    pub fn splits(mut self, parts: u64) -> Self {
        self.parts = parts.max(1);
        self
    }
}

/// The next number, the end, and the step between numbers.
type Numbers = (u64, u64, u64);

impl<T, F> Source for GeneratorSource<F>
where
    T: Send + 'static,
    F: Fn(u64) -> (T, Option<Timestamp>) + Send + Sync + 'static,
{
    type Item = T;
    type Split = Numbers;

    fn boundedness(&self) -> Boundedness {
        if self.count.is_some() { Boundedness::Bounded } else { Boundedness::Unbounded }
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<Numbers>>> {
        let parts = self.parts;
        let splits: Vec<Numbers> = match (self.count, self.rate) {
            (Some(count), None) => {
                let size = count.div_ceil(parts).max(1);
                (0..count.div_ceil(size))
                    .map(|i| (i * size, ((i + 1) * size).min(count), 1))
                    .collect()
            }
            // At a rate the numbers are dealt in turn, so that they come in order of time.
            (count, _) => (0..parts)
                .map(|i| (i, count.unwrap_or(u64::MAX), parts))
                .filter(|n| n.0 < n.1)
                .collect(),
        };
        let dealt = self.count.is_none() || self.rate.is_some();
        let inner = StaticSplits::new(splits, restored)?;
        Ok(if dealt { Box::new(Dealt { inner }) } else { Box::new(inner) })
    }

    fn reader(&self, context: &ReaderContext) -> anyhow::Result<Box<dyn SourceReader<T, Numbers>>> {
        let rate = self.rate.map(|rate| rate / f64::from(context.parallelism.max(1)));
        Ok(Box::new(Reader {
            make: Arc::clone(&self.make),
            splits: VecDeque::new(),
            pace: rate.map(|rate| Pace { rate, made: 0, begun: None }),
            clock: Arc::clone(&context.clock),
        }))
    }
}

/// Deals all splits at once, evenly: none of them ends before the source does.
struct Dealt {
    inner: StaticSplits<Numbers>,
}

impl SplitEnumerator<Numbers> for Dealt {
    fn split_requested(
        &mut self,
        reader: element::SubtaskIndex,
        context: &mut super::EnumeratorContext<Numbers>,
    ) -> anyhow::Result<()> {
        let readers = context.parallelism();
        let mine = self
            .inner
            .take_where(|split| split.0 % u64::from(readers.max(1)) == u64::from(reader.0));
        for split in mine {
            context.assign(reader, split);
        }
        context.no_more_splits(reader);
        Ok(())
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        self.inner.snapshot()
    }
}

struct Pace {
    rate: f64,
    made: u64,
    begun: Option<Duration>,
}

impl Pace {
    /// How many records may be made by now.
    fn allowed(&mut self, now: Duration) -> u64 {
        let begun = *self.begun.get_or_insert(now);
        let due = (now.saturating_sub(begun).as_secs_f64() * self.rate) as u64 + 1;
        due.saturating_sub(self.made)
    }
}

struct Reader<F> {
    make: Arc<F>,
    splits: VecDeque<Numbers>,
    pace: Option<Pace>,
    clock: Arc<dyn Clock>,
}

impl<T, F> SourceReader<T, Numbers> for Reader<F>
where
    F: Fn(u64) -> (T, Option<Timestamp>) + Send + Sync,
{
    fn add_split(&mut self, split: Numbers) {
        self.splits.push_back(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>> {
        if self.splits.is_empty() {
            return Ok(ReaderPoll::NeedSplit);
        }
        let mut room = BATCH_RECORDS as u64;
        if let Some(pace) = &mut self.pace {
            room = room.min(pace.allowed(self.clock.monotonic()));
            if room == 0 {
                return Ok(ReaderPoll::Later(Some(self.clock.now().saturating_add(1))));
            }
        }
        let mut batch = Batch::default();
        batch.reserve(BATCH_RECORDS);
        while room > 0 {
            let Some(front) = self.splits.front_mut() else { break };
            let (next, end, step) = *front;
            if next >= end {
                self.splits.pop_front();
                continue;
            }
            // Dealt in turn, the next number is another split's.
            let here = if step == 1 { room.min(end - next) } else { 1 };
            let made = batch.fill((next..next + here).map(|number| (self.make)(number)));
            front.0 = next.saturating_add(made as u64 * step);
            room -= made as u64;
            if (made as u64) < here {
                break;
            }
            if step > 1 {
                self.splits.rotate_left(1);
            }
        }
        if let Some(pace) = &mut self.pace {
            pace.made += batch.len() as u64;
        }
        Ok(ReaderPoll::Batch(batch))
    }

    fn snapshot(&mut self) -> Vec<Numbers> {
        self.splits.iter().copied().collect()
    }
}
