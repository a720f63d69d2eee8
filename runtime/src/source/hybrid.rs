//! A source of several parts, read one after the other: history, then what is live (FLIP-150).
//!
//! All parts but the last are backlog (FLIP-309). A part begins when every reader has finished the one
//! before it, so no record of a later part overtakes one of an earlier.
//!
//! ```text
//!   enumerator                         reader
//!     <------------ split request ------
//!     --- split (part, bytes) --------->
//!     --- no more of part i ----------->
//!     <------------ finished part i ----   when all readers have: the next part begins
//!     --- switch to part i+1 ---------->
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use element::{SubtaskIndex, decode_exact, encode_to_vec};

use super::{
    AnyEnumerator, AnyReader, Boundedness, EnumeratorContext, EnumeratorOrders, ReaderContext,
    ReaderPoll, Source, SourceReader, SplitEnumerator, TypedSource,
};
use crate::events::TaskMail;

/// Several sources of one type, read one after the other. All but the last must be bounded.
pub struct HybridSource<T> {
    parts: Vec<Arc<dyn TypedSource<T>>>,
}

impl<T: Send + 'static> HybridSource<T> {
    /// Begins with `first`: a bounded part, read as backlog.
    pub fn starting_with(first: impl Source<Item = T>) -> Self {
        Self { parts: vec![Arc::new(first)] }
    }

    /// Goes on with `next`.
    #[must_use]
    pub fn then(mut self, next: impl Source<Item = T>) -> Self {
        self.parts.push(Arc::new(next));
        self
    }
}

/// A split of one part: the part's number, and the split's own bytes.
type PartSplit = (u32, Vec<u8>);

/// What enumerator and readers say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    NoMoreOf(u32),
    Finished(u32),
    SwitchTo(u32),
}

impl Word {
    fn encode(self) -> Vec<u8> {
        let (tag, part): (u8, u32) = match self {
            Self::NoMoreOf(part) => (0, part),
            Self::Finished(part) => (1, part),
            Self::SwitchTo(part) => (2, part),
        };
        encode_to_vec(&(tag, part))
    }

    fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        match decode_exact::<(u8, u32)>(bytes)? {
            (0, part) => Ok(Self::NoMoreOf(part)),
            (1, part) => Ok(Self::Finished(part)),
            (2, part) => Ok(Self::SwitchTo(part)),
            (other, _) => anyhow::bail!("{other} is no word of a hybrid source"),
        }
    }
}

impl<T: Send + 'static> Source for HybridSource<T> {
    type Item = T;
    type Split = PartSplit;

    fn boundedness(&self) -> Boundedness {
        self.parts.last().map_or(Boundedness::Bounded, |part| part.boundedness())
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<PartSplit>>> {
        if let Some(endless) = self
            .parts
            .iter()
            .rev()
            .skip(1)
            .position(|part| part.boundedness() == Boundedness::Unbounded)
        {
            let part = self.parts.len() - 1 - endless;
            anyhow::bail!(
                "part {part} of a hybrid source never ends, so part {} never begins",
                part + 1
            );
        }
        let restored = restored.map(decode_exact::<(u32, Vec<u8>)>).transpose()?;
        Ok(Box::new(HybridEnumerator {
            parts: self.parts.clone(),
            part: restored.as_ref().map_or(0, |(part, _)| *part),
            restored: restored.map(|(_, inner)| inner),
            inner: None,
            finished: BTreeSet::new(),
        }))
    }

    fn reader(
        &self,
        context: &ReaderContext,
    ) -> anyhow::Result<Box<dyn SourceReader<T, PartSplit>>> {
        Ok(Box::new(HybridReader {
            parts: self.parts.clone(),
            context: context.clone(),
            current: None,
            waiting: Vec::new(),
            no_more: false,
            announced: false,
        }))
    }
}

struct HybridEnumerator<T> {
    parts: Vec<Arc<dyn TypedSource<T>>>,
    part: u32,
    restored: Option<Vec<u8>>,
    inner: Option<Box<dyn AnyEnumerator>>,
    finished: BTreeSet<SubtaskIndex>,
}

impl<T> HybridEnumerator<T> {
    fn is_last(&self) -> bool {
        self.part as usize + 1 >= self.parts.len()
    }

    /// Makes the enumerator of the current part and says whether it is backlog.
    fn open_part(&mut self, context: &mut EnumeratorContext<PartSplit>) -> anyhow::Result<()> {
        context.set_is_processing_backlog(!self.is_last());
        let Some(source) = self.parts.get(self.part as usize) else {
            anyhow::bail!("a hybrid source has no part {}", self.part);
        };
        let restored = self.restored.take();
        let mut inner = source.enumerator(context.parallelism(), restored.as_deref())?;
        let orders = inner.start()?;
        self.inner = Some(inner);
        self.pass_on(orders, context);
        Ok(())
    }

    /// Orders of the current part's enumerator, with the part's number.
    fn pass_on(&self, orders: EnumeratorOrders, context: &mut EnumeratorContext<PartSplit>) {
        for (reader, mail) in orders.mail {
            match (reader, mail) {
                (Some(reader), TaskMail::Splits(splits)) => {
                    for split in splits {
                        context.assign(reader, (self.part, split));
                    }
                }
                (Some(reader), TaskMail::NoMoreSplits) if self.is_last() => {
                    context.no_more_splits(reader);
                }
                (Some(reader), TaskMail::NoMoreSplits) => {
                    context.send_event(reader, Word::NoMoreOf(self.part).encode());
                }
                // A backlog flag of a part: the last part's own word counts, that of others is known.
                (_, TaskMail::Backlog(is_backlog)) if self.is_last() => {
                    context.set_is_processing_backlog(is_backlog);
                }
                _ => {}
            }
        }
    }
}

impl<T: Send + 'static> SplitEnumerator<PartSplit> for HybridEnumerator<T> {
    fn start(&mut self, context: &mut EnumeratorContext<PartSplit>) -> anyhow::Result<()> {
        self.open_part(context)
    }

    fn split_requested(
        &mut self,
        reader: SubtaskIndex,
        context: &mut EnumeratorContext<PartSplit>,
    ) -> anyhow::Result<()> {
        let Some(inner) = &mut self.inner else { anyhow::bail!("asked before the start") };
        let orders = inner.split_requested(reader)?;
        self.pass_on(orders, context);
        Ok(())
    }

    fn reader_event(
        &mut self,
        reader: SubtaskIndex,
        event: &[u8],
        context: &mut EnumeratorContext<PartSplit>,
    ) -> anyhow::Result<()> {
        if Word::decode(event)? != Word::Finished(self.part) {
            // A word about an earlier part, said again after a restore.
            return Ok(());
        }
        self.finished.insert(reader);
        if self.finished.len() < context.parallelism() as usize || self.is_last() {
            return Ok(());
        }
        self.finished.clear();
        self.part += 1;
        self.open_part(context)?;
        for reader in 0..context.parallelism() {
            context.send_event(SubtaskIndex(reader), Word::SwitchTo(self.part).encode());
        }
        Ok(())
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        let inner = self.inner.as_mut().map_or(Ok(Vec::new()), |inner| inner.snapshot())?;
        Ok(encode_to_vec(&(self.part, inner)))
    }
}

struct HybridReader<T> {
    parts: Vec<Arc<dyn TypedSource<T>>>,
    context: ReaderContext,
    current: Option<(u32, Box<dyn AnyReader<T>>)>,
    waiting: Vec<PartSplit>,
    no_more: bool,
    announced: bool,
}

impl<T: Send + 'static> HybridReader<T> {
    fn open_part(&mut self, part: u32) -> anyhow::Result<()> {
        if self.current.as_ref().is_none_or(|(current, _)| *current != part) {
            let Some(source) = self.parts.get(part as usize) else {
                anyhow::bail!("a hybrid source has no part {part}");
            };
            self.current = Some((part, source.reader(&self.context)?));
            self.no_more = false;
            self.announced = false;
        }
        Ok(())
    }

    fn open_waiting(&mut self) -> anyhow::Result<()> {
        for (part, split) in std::mem::take(&mut self.waiting) {
            self.open_part(part)?;
            if let Some((_, reader)) = &mut self.current {
                reader.add_split(&split)?;
            }
        }
        Ok(())
    }
}

impl<T: Send + 'static> SourceReader<T, PartSplit> for HybridReader<T> {
    fn add_split(&mut self, split: PartSplit) {
        self.waiting.push(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>> {
        self.open_waiting()?;
        let Some((part, reader)) = &mut self.current else { return Ok(ReaderPoll::NeedSplit) };
        match reader.poll()? {
            ReaderPoll::NeedSplit if self.no_more && !self.announced => {
                self.announced = true;
                Ok(ReaderPoll::Event(Word::Finished(*part).encode()))
            }
            ReaderPoll::NeedSplit if self.no_more => Ok(ReaderPoll::Later(None)),
            other => Ok(other),
        }
    }

    fn snapshot(&mut self) -> Vec<PartSplit> {
        let mut splits = Vec::new();
        if let Some((part, reader)) = &mut self.current {
            splits.extend(reader.snapshot().into_iter().map(|split| (*part, split)));
        }
        splits.extend(self.waiting.iter().cloned());
        splits
    }

    fn enumerator_event(&mut self, event: &[u8]) -> anyhow::Result<()> {
        match Word::decode(event)? {
            Word::NoMoreOf(part) => {
                self.open_waiting()?;
                self.open_part(part)?;
                self.no_more = true;
            }
            Word::SwitchTo(part) => self.open_part(part)?,
            Word::Finished(_) => {}
        }
        Ok(())
    }
}
