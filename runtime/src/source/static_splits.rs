//! An enumerator for sources whose splits are known from the start.

use std::collections::VecDeque;

use element::{Record, SubtaskIndex, decode_exact, encode_to_vec};

use super::{EnumeratorContext, SplitEnumerator};

/// Hands a fixed list of splits out, one a request, in order.
#[derive(Debug)]
pub struct StaticSplits<S> {
    left: VecDeque<S>,
}

impl<S: Record> StaticSplits<S> {
    /// All of `splits`, or those that a checkpoint says are left.
    ///
    /// # Errors
    ///
    /// If the checkpoint's bytes hold no list of splits.
    pub fn new(
        splits: impl IntoIterator<Item = S>,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Self> {
        let left = match restored {
            Some(bytes) => decode_exact::<Vec<S>>(bytes)?.into(),
            None => splits.into_iter().collect(),
        };
        Ok(Self { left })
    }

    /// Takes the splits that a predicate holds for, in order.
    pub fn take_where(&mut self, wanted: impl Fn(&S) -> bool) -> Vec<S> {
        let (taken, left): (Vec<S>, Vec<S>) =
            std::mem::take(&mut self.left).into_iter().partition(wanted);
        self.left = left.into();
        taken
    }
}

impl<S: Record + Clone> SplitEnumerator<S> for StaticSplits<S> {
    fn split_requested(
        &mut self,
        reader: SubtaskIndex,
        context: &mut EnumeratorContext<S>,
    ) -> anyhow::Result<()> {
        match self.left.pop_front() {
            Some(split) => context.assign(reader, split),
            None => context.no_more_splits(reader),
        }
        Ok(())
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        Ok(encode_to_vec(&self.left.iter().cloned().collect::<Vec<S>>()))
    }
}
