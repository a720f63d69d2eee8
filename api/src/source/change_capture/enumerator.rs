//! Hands out the chunks of a captured table, and says when all of them have been sent.
//!
//! Readers report the chunks that they have sent; restored readers report them again, so a report
//! that was under way when a checkpoint was taken is not missed.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Debug;

use element::{decode_exact, encode_to_vec};

use super::CaptureError;
use super::split::{CaptureSplit, KeyRange, Word};
use crate::{EnumeratorContext, Record, SplitEnumerator, SubtaskIndex};

/// The chunks that nobody has, and those that have not been sent.
pub(super) struct Enumerator<K> {
    left: VecDeque<(u32, KeyRange<K>)>,
    unsent: BTreeSet<u32>,
}

impl<K: Record + Ord + Clone + Debug> Enumerator<K> {
    /// All chunks between `bounds`.
    pub(super) fn over(bounds: Vec<K>) -> Result<Self, CaptureError> {
        for (place, pair) in (1..).zip(bounds.windows(2)) {
            if let [before, bound] = pair
                && before >= bound
            {
                return Err(CaptureError::BoundsOutOfOrder { place, bound: format!("{bound:?}") });
            }
        }
        let ends = bounds.into_iter().map(Some).chain([None]);
        let ranges = ends.scan(None, |from, to| {
            let range = KeyRange { from: std::mem::replace(from, to.clone()), to };
            Some(range)
        });
        let left: VecDeque<_> = (0..).zip(ranges).collect();
        let unsent = left.iter().map(|(number, _)| *number).collect();
        Ok(Self { left, unsent })
    }

    /// What a checkpoint says is left.
    pub(super) fn restored(stored: &[u8]) -> anyhow::Result<Self> {
        let (left, unsent) = decode_exact::<(Vec<(u32, KeyRange<K>)>, Vec<u32>)>(stored)?;
        Ok(Self { left: left.into(), unsent: unsent.into_iter().collect() })
    }

    fn is_in_log(&self) -> bool {
        self.unsent.is_empty()
    }
}

impl<K, R, P> SplitEnumerator<CaptureSplit<K, R, P>> for Enumerator<K>
where
    K: Record + Ord + Clone + Debug,
    R: Record,
    P: Record,
{
    fn start(
        &mut self,
        context: &mut EnumeratorContext<CaptureSplit<K, R, P>>,
    ) -> anyhow::Result<()> {
        context.set_is_processing_backlog(!self.is_in_log());
        Ok(())
    }

    fn split_requested(
        &mut self,
        reader: SubtaskIndex,
        context: &mut EnumeratorContext<CaptureSplit<K, R, P>>,
    ) -> anyhow::Result<()> {
        match self.left.pop_front() {
            Some((number, range)) => context.assign(reader, CaptureSplit::Chunk(number, range)),
            None if self.is_in_log() => context.no_more_splits(reader),
            // Others still read: the reader hears when the log begins.
            None => {}
        }
        Ok(())
    }

    fn reader_event(
        &mut self,
        reader: SubtaskIndex,
        event: &[u8],
        context: &mut EnumeratorContext<CaptureSplit<K, R, P>>,
    ) -> anyhow::Result<()> {
        let Word::Sent(chunks) = Word::hear(event)? else {
            anyhow::bail!("a reader says that the log begins");
        };
        let was_in_log = self.is_in_log();
        for number in chunks {
            self.unsent.remove(&number);
        }
        if was_in_log {
            // Restored behind the last chunk.
            context.send_event(reader, Word::LogBegins.say());
        } else if self.is_in_log() {
            // The flag stands before the word in every reader's mail.
            context.set_is_processing_backlog(false);
            for reader in (0..context.parallelism()).map(SubtaskIndex) {
                context.send_event(reader, Word::LogBegins.say());
            }
        }
        Ok(())
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        let left: Vec<_> = self.left.iter().cloned().collect();
        let unsent: Vec<u32> = self.unsent.iter().copied().collect();
        Ok(encode_to_vec(&(left, unsent)))
    }
}
