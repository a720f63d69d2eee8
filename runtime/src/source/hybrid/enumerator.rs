//! The enumerator of a hybrid source: that of the present part, and the switch to the next.

use std::collections::BTreeSet;

use element::{SubtaskIndex, decode_exact, encode_to_vec};

use super::{PartSplit, Parts, Word};
use crate::events::TaskMail;
use crate::source::{AnyEnumerator, EnumeratorContext, EnumeratorOrders, SplitEnumerator};

/// What a checkpoint holds: the part, where it begins, and what its enumerator stored.
type Stored = (u32, Vec<u8>, Vec<u8>);

pub(super) struct HybridEnumerator<T> {
    parts: Parts<T>,
    part: u32,
    /// Where the part begins: what the one before it said at its end.
    position: Vec<u8>,
    restored: Option<Vec<u8>>,
    inner: Option<Box<dyn AnyEnumerator>>,
    /// The readers that have finished the part.
    finished: BTreeSet<SubtaskIndex>,
}

impl<T> HybridEnumerator<T> {
    pub(super) fn new(parts: Parts<T>, restored: Option<&[u8]>) -> anyhow::Result<Self> {
        let stored = restored.map(decode_exact::<Stored>).transpose()?;
        let (part, position, restored) = match stored {
            Some((part, position, inner)) => (part, position, Some(inner)),
            None => (0, Vec::new(), None),
        };
        Ok(Self { parts, part, position, restored, inner: None, finished: BTreeSet::new() })
    }

    /// Makes the enumerator of the present part and says, once, whether it is backlog.
    fn open_part(&mut self, context: &mut EnumeratorContext<PartSplit>) -> anyhow::Result<()> {
        let source = self.parts.open(self.part, &self.position)?;
        let restored = self.restored.take();
        let mut inner = source.enumerator(context.parallelism(), restored.as_deref())?;
        let mut orders = inner.start()?;
        self.inner = Some(inner);
        let is_backlog = !self.parts.is_last(self.part) || orders.is_backlog == Some(true);
        context.set_is_processing_backlog(is_backlog);
        orders.mail.retain(|(_, mail)| !matches!(mail, TaskMail::Backlog(_)));
        self.pass_on(orders, context);
        Ok(())
    }

    /// Orders of the present part's enumerator, with the part's number.
    fn pass_on(&self, orders: EnumeratorOrders, context: &mut EnumeratorContext<PartSplit>) {
        let part = self.part;
        let is_last = self.parts.is_last(part);
        for (reader, mail) in orders.mail {
            match (reader, mail) {
                (Some(reader), TaskMail::Splits(splits)) => {
                    for split in splits {
                        context.assign(reader, (part, self.position.clone(), split));
                    }
                }
                (Some(reader), TaskMail::NoMoreSplits) if is_last => context.no_more_splits(reader),
                (Some(reader), TaskMail::NoMoreSplits) => {
                    context.send_event(reader, Word::NoMoreOf(part).encode());
                }
                (Some(reader), TaskMail::ReaderEvent(event)) => {
                    context.send_event(reader, Word::OfPart(part, event).encode());
                }
                // The last part's own word counts; that of others is known.
                (_, TaskMail::Backlog(is_backlog)) if is_last => {
                    context.set_is_processing_backlog(is_backlog);
                }
                _ => {}
            }
        }
    }

    fn inner(&mut self) -> anyhow::Result<&mut Box<dyn AnyEnumerator>> {
        self.inner.as_mut().ok_or_else(|| anyhow::anyhow!("a hybrid source was not started"))
    }

    /// A reader has finished the part; when all have, the next one begins.
    fn finished(
        &mut self,
        reader: SubtaskIndex,
        context: &mut EnumeratorContext<PartSplit>,
    ) -> anyhow::Result<()> {
        self.finished.insert(reader);
        if self.finished.len() < context.parallelism() as usize || self.parts.is_last(self.part) {
            return Ok(());
        }
        self.finished.clear();
        self.position = self.inner()?.end_position()?;
        self.part += 1;
        self.open_part(context)?;
        for reader in 0..context.parallelism() {
            context.send_event(SubtaskIndex(reader), Word::SwitchTo(self.part).encode());
        }
        Ok(())
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
        let orders = self.inner()?.split_requested(reader)?;
        self.pass_on(orders, context);
        Ok(())
    }

    fn reader_event(
        &mut self,
        reader: SubtaskIndex,
        event: &[u8],
        context: &mut EnumeratorContext<PartSplit>,
    ) -> anyhow::Result<()> {
        match Word::decode(event)? {
            Word::Finished(part) if part == self.part => self.finished(reader, context),
            Word::OfPart(part, event) if part == self.part => {
                let orders = self.inner()?.reader_event(reader, &event)?;
                self.pass_on(orders, context);
                Ok(())
            }
            // About an earlier part, by a reader that begins anew: the part is over.
            Word::Finished(_) | Word::OfPart(..) => Ok(()),
            word => anyhow::bail!("a reader of a hybrid source says {word:?}"),
        }
    }

    fn end_position(&mut self) -> anyhow::Result<Vec<u8>> {
        self.inner()?.end_position()
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        let inner = self.inner()?.snapshot()?;
        Ok(encode_to_vec(&(self.part, self.position.clone(), inner)))
    }
}
