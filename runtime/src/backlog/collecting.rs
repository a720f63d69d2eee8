//! Backlog records into the sorter, or into a table of partial aggregates.

use std::sync::Arc;
use std::time::Duration;

use element::{BarrierKind, Batch, ByteSize, Key, KeyGroups, Record, Timestamp};
use sort::{CombiningSorter, ExternalSorter, RunDescription};
use state::StateCounters;

use super::Draining;
use super::draining::Drained;
use super::folding::{FoldCombiner, FoldedKeys, fold_batch};
use super::key_watch::KeyWatch;
use super::plan::elapsed;
use super::sorted_input::SortedInput;
use crate::checkpoint::SealedBacklog;
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::events::TaskEvent;
use crate::metrics::PhaseReport;
use crate::operator::function::Fold;
use crate::operator::selector::KeySelector;
use crate::user::UserCode;

/// Where a phase's records are kept.
pub(super) enum Gathered<C: Fold<I>, I> {
    Sort(ExternalSorter),
    Combine { sorter: CombiningSorter<FoldCombiner<C, I>>, fold: Arc<C> },
}

impl<C: Fold<I>, I> Gathered<C, I> {
    fn bytes_in(&self) -> u64 {
        match self {
            Self::Sort(sorter) => sorter.stats().bytes_in,
            Self::Combine { sorter, .. } => sorter.stats().bytes_in,
        }
    }
}

/// A backlog phase, from its attribute to the switch.
pub struct Collecting<C: Fold<I>, I> {
    gathered: Gathered<C, I>,
    watermark: Option<Timestamp>,
    records: u64,
    keys: FoldedKeys,
    begun: Duration,
    durable: Option<Durable>,
    /// Under `auto`: the keys so far, and the bytes at which the memory is nearly full.
    watch: Option<(KeyWatch, ByteSize)>,
}

/// What a durable phase knows of its runs.
struct Durable {
    /// All that are sealed.
    runs: Vec<RunDescription>,
    /// Key groups whose records may be in them.
    groups: KeyGroups,
    /// The subtask's own key groups, where the runs may hold records of others.
    own: Option<KeyGroups>,
    /// Bytes collected when a run was last sealed or asked for.
    stored: u64,
    /// After so many bytes more a checkpoint is asked for.
    run_bytes: u64,
}

impl<C: Fold<I>, I> Collecting<C, I> {
    /// `auto_memory` is that of a sorter whose records may go over early.
    pub(super) fn new(
        gathered: Gathered<C, I>,
        auto_memory: Option<ByteSize>,
        context: &OperatorContext,
    ) -> Self {
        Self {
            gathered,
            watermark: None,
            records: 0,
            keys: FoldedKeys::default(),
            begun: context.task.clock.monotonic(),
            watch: auto_memory
                .map(|memory| (KeyWatch::for_memory(memory), ByteSize(memory.0 / 4 * 3))),
            durable: None,
        }
    }

    /// Makes the phase a durable one, which goes on with `runs` of `sealed`.
    pub(super) fn durable(
        mut self,
        sealed: &[SealedBacklog],
        runs: Vec<RunDescription>,
        run_bytes: u64,
        own: KeyGroups,
    ) -> Self {
        let mut groups = own;
        for sealed in sealed {
            self.watermark = self.watermark.max(sealed.watermark);
            self.records += sealed.records;
            groups.start = groups.start.min(sealed.groups.start);
            groups.end = groups.end.max(sealed.groups.end);
        }
        let own = Some(own).filter(|own| *own != groups);
        self.durable = Some(Durable { runs, groups, own, stored: 0, run_bytes });
        self
    }

    /// Whether a checkpoint can hold what is collected: it can in a durable phase, or if that is
    /// nothing. A savepoint cannot (F3).
    #[must_use]
    pub fn can_be_stored(&self, kind: BarrierKind) -> bool {
        !kind.is_savepoint() && (self.durable.is_some() || self.records == 0)
    }

    /// Seals what is collected so far. Costs one run, synced, if anything came since the last time.
    ///
    /// # Errors
    ///
    /// [`TaskError::Sort`] if the run cannot be written.
    pub fn seal(&mut self, context: &OperatorContext) -> Result<Option<SealedBacklog>, TaskError> {
        let Some(durable) = &mut self.durable else { return Ok(None) };
        let failed = TaskError::sort(&context.name);
        let (combined, sealed) = match &mut self.gathered {
            Gathered::Sort(sorter) => (false, sorter.seal()),
            Gathered::Combine { sorter, .. } => (true, sorter.seal()),
        };
        durable.runs.extend(sealed.map_err(failed)?);
        durable.stored = self.gathered.bytes_in();
        Ok(Some(SealedBacklog {
            combined,
            groups: durable.groups,
            watermark: self.watermark,
            records: self.records,
            runs: durable.runs.clone(),
        }))
    }

    /// Asks for a checkpoint when about a run has been collected since the last one.
    fn ask_for_checkpoint(&mut self, context: &OperatorContext) {
        let Some(durable) = &mut self.durable else { return };
        let bytes = self.gathered.bytes_in();
        if bytes.saturating_sub(durable.stored) >= durable.run_bytes {
            durable.stored = bytes;
            context.tell(TaskEvent::RunIsDue);
        }
    }

    /// Remembers a watermark that came in the phase.
    pub fn fold_watermark(&mut self, watermark: Timestamp) {
        self.watermark = self.watermark.max(Some(watermark));
    }

    /// The greatest watermark of the phase.
    #[must_use]
    pub fn watermark(&self) -> Option<Timestamp> {
        self.watermark
    }

    /// Takes records of the phase.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the key function or fold panics, or a run cannot be spilled.
    pub fn take<K: Key>(
        &mut self,
        batch: Batch<I>,
        selector: &KeySelector<I, K>,
        user: &mut UserCode,
        context: &OperatorContext,
    ) -> Result<(), TaskError>
    where
        I: Record,
    {
        self.records += batch.values().iter().map(C::records).sum::<u64>();
        self.ask_for_checkpoint(context);
        let Self { gathered, keys, watch, .. } = self;
        let failed = TaskError::sort(&context.name);
        user.run_batch(|position| {
            let sorter = match gathered {
                Gathered::Sort(sorter) => sorter,
                Gathered::Combine { sorter, fold } => {
                    let name = &context.name;
                    return fold_batch(batch, selector, &**fold, keys, sorter, position, name);
                }
            };
            let watch = watch.as_mut().map(|(watch, _)| watch);
            selector.push(batch, SortedInput { sorter, watch, position }).map_err(&failed)?;
            Ok(())
        })
    }

    /// Whether a few keys have filled the memory: then handing over costs less than spilling. Asked
    /// after each batch; when the keys are many it is not asked again.
    pub fn is_to_hand_over(&mut self) -> bool {
        let (Gathered::Sort(sorter), Some((watch, nearly_full))) =
            (&self.gathered, &mut self.watch)
        else {
            return false;
        };
        let stats = sorter.stats();
        if stats.peak_bytes < nearly_full.0 && stats.runs == 0 {
            return false;
        }
        let few = watch.are_few(self.records);
        if !few {
            self.watch = None;
        }
        few
    }

    /// Ends the phase: what was collected comes back in order.
    ///
    /// # Errors
    ///
    /// [`TaskError::Sort`] if runs cannot be merged.
    pub fn finish(
        self,
        upto: Option<Timestamp>,
        batch: bool,
        before: StateCounters,
        context: &Arc<OperatorContext>,
    ) -> Result<Draining<C, I>, TaskError> {
        let failed = TaskError::sort(&context.name);
        let (treatment, drained) = match self.gathered {
            Gathered::Sort(sorter) => ("sort", Drained::Sort(sorter.finish().map_err(failed)?)),
            Gathered::Combine { sorter, .. } => {
                ("combine", Drained::Combine(sorter.finish().map_err(failed)?))
            }
        };
        let report = PhaseReport {
            treatment,
            reason: context.treatment.reason.clone(),
            records: self.records,
            collecting: elapsed(context, self.begun),
            ..PhaseReport::default()
        };
        let own = self.durable.and_then(|durable| durable.own);
        Ok(Draining::new(drained, own, upto, batch, report, before, context))
    }
}
