//! The reader of a hybrid source: that of the present part.
//!
//! Splits of a later part wait until the present one is read, so a reader that begins anew with splits
//! of several parts reads them all, in order.

use std::collections::VecDeque;

use element::Batch;

use super::{PartSplit, Parts, Word};
use crate::source::{AnyReader, ReaderContext, ReaderPoll, SourceReader};

/// The part that is read.
struct Open<T> {
    part: u32,
    position: Vec<u8>,
    reader: Box<dyn AnyReader<T>>,
}

pub(super) struct HybridReader<T> {
    parts: Parts<T>,
    context: ReaderContext,
    current: Option<Open<T>>,
    waiting: VecDeque<PartSplit>,
    /// The part of which no more splits come.
    no_more: Option<u32>,
    /// The part that was last said to be finished.
    announced: Option<u32>,
    /// Words for the reader of a part that is not open yet.
    words: Vec<(u32, Vec<u8>)>,
}

impl<T: Send + 'static> HybridReader<T> {
    pub(super) fn new(parts: Parts<T>, context: ReaderContext) -> Self {
        Self {
            parts,
            context,
            current: None,
            waiting: VecDeque::new(),
            no_more: None,
            announced: None,
            words: Vec::new(),
        }
    }

    /// Adds the splits at the front to the reader of their part; opens it if none is open.
    fn take_waiting(&mut self) -> anyhow::Result<()> {
        while let Some((part, position, split)) = self.waiting.pop_front() {
            if self.current.as_ref().is_some_and(|open| open.part != part) {
                self.waiting.push_front((part, position, split));
                break;
            }
            self.open(part, position)?.add_split(&split)?;
        }
        Ok(())
    }

    /// The reader of the part, which is the one that is open or none is.
    fn open(&mut self, part: u32, position: Vec<u8>) -> anyhow::Result<&mut Box<dyn AnyReader<T>>> {
        let open = match self.current.take() {
            Some(open) => open,
            None => {
                self.no_more = self.no_more.filter(|no_more| *no_more >= part);
                let mut reader = self.parts.open(part, &position)?.reader(&self.context)?;
                let words = std::mem::take(&mut self.words);
                for (_, word) in words.into_iter().filter(|(of, _)| *of == part) {
                    reader.enumerator_event(&word)?;
                }
                Open { part, position, reader }
            }
        };
        Ok(&mut self.current.insert(open).reader)
    }

    /// All splits are read: more are wanted, or the part is finished.
    fn without_splits(&mut self) -> ReaderPoll<T> {
        match self.no_more {
            None => ReaderPoll::NeedSplit,
            Some(part) if self.announced == Some(part) => ReaderPoll::AwaitEnumerator,
            Some(part) => {
                self.announced = Some(part);
                ReaderPoll::Event(Word::Finished(part).encode())
            }
        }
    }
}

impl<T: Send + 'static> SourceReader<T, PartSplit> for HybridReader<T> {
    fn add_split(&mut self, split: PartSplit) {
        self.waiting.push_back(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>> {
        self.take_waiting()?;
        let Some(open) = &mut self.current else { return Ok(self.without_splits()) };
        Ok(match open.reader.poll()? {
            ReaderPoll::NeedSplit if self.waiting.is_empty() => self.without_splits(),
            ReaderPoll::NeedSplit => {
                self.current = None;
                ReaderPoll::Batch(Batch::default())
            }
            ReaderPoll::Event(event) => ReaderPoll::Event(Word::OfPart(open.part, event).encode()),
            other => other,
        })
    }

    fn snapshot(&mut self) -> Vec<PartSplit> {
        let mut splits = Vec::new();
        if let Some(Open { part, position, reader }) = &mut self.current {
            let stored = reader.snapshot().into_iter();
            splits.extend(stored.map(|split| (*part, position.clone(), split)));
        }
        splits.extend(self.waiting.iter().cloned());
        splits
    }

    fn enumerator_event(&mut self, event: &[u8]) -> anyhow::Result<()> {
        match Word::decode(event)? {
            Word::NoMoreOf(part) => self.no_more = Some(part),
            // Every reader has said that it is through with what came before.
            Word::SwitchTo(part) => {
                self.no_more = self.no_more.filter(|no_more| *no_more >= part);
                self.current = self.current.take().filter(|open| open.part >= part);
            }
            Word::OfPart(part, event) => match &mut self.current {
                Some(open) if open.part == part => open.reader.enumerator_event(&event)?,
                _ => self.words.push((part, event)),
            },
            Word::Finished(part) => {
                anyhow::bail!("an enumerator says that part {part} is finished")
            }
        }
        Ok(())
    }
}
