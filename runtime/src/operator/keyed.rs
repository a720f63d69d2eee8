//! [`KeyedOperator`]: a keyed function over state and timers, live or over a sorted backlog.
//!
//! ```text
//!            attributes{backlog}                attributes{live} or end of input
//!   Direct ----------------------> Collecting ----------------------------------> draining
//!     ^                                                                              |
//!     '---- state flushed, timers of other keys fired, attributes, watermark --------'
//! ```
//!
//! Records of a backlog go to a sorter or a combining table ([`crate::backlog`]); at the switch the
//! same function runs over the same state, key by key. What takes long (draining, firing many
//! timers) is done piece by piece in `pump`, so the task never overfills its outputs.
//!
//! Left out on purpose: what a record does to state. That is the [`KeyedFunction`].

mod work;

use std::collections::VecDeque;
use std::sync::Arc;

use element::{Barrier, Batch, Control, Key, Record, RecordAttributes, Timestamp};
use state::KeyedStateBackend;

use super::Operator;
use super::firing::Firing;
use super::function::KeyedFunction;
use super::hashed_keys::HashedKeys;
use super::keyed_context::KeyedCalls;
use super::keyed_parts::{CurrentKey, KeyedParts};
use super::selector::KeySelector;
use crate::backlog::{BacklogPlan, Collecting, PhaseSoFar, take_sealed};
use crate::checkpoint::SealedBacklog;
use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::events::TaskEvent;
use crate::output::{FirstError, Output, Pump, Signal};
use crate::user::{Position, UserCode};
use work::Work;

/// A keyed function with its state, timers and backlog. Head of its chain.
pub struct KeyedOperator<F: KeyedFunction<K, I, O>, K: Key, I, O> {
    selector: KeySelector<I, K>,
    function: F,
    parts: KeyedParts<O>,
    current: CurrentKey<K>,
    /// The keys of the records that come next.
    coming: HashedKeys<K>,
    collecting: Option<Collecting<F::Fold, I>>,
    work: VecDeque<Work<F::Fold, I>>,
    /// The greatest watermark sent on by this attempt; at most that of `parts`.
    sent: Timestamp,
    plan: BacklogPlan,
    phase: PhaseSoFar,
    user: UserCode,
    context: Arc<OperatorContext>,
}

impl<F, K, I, O> KeyedOperator<F, K, I, O>
where
    F: KeyedFunction<K, I, O>,
    K: Key,
    I: Record,
    O: Send,
{
    /// Opens state and binds the function to it.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the state cannot be opened or restored.
    pub fn open(
        selector: KeySelector<I, K>,
        mut function: F,
        side: super::side_output::SideOutputs,
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        let sealed = take_sealed(context)?;
        let mut parts = KeyedParts::open(context, side)?;
        function.place(context);
        function.open(&mut parts.backend).map_err(TaskError::user(&context.name))?;
        parts.leave_out_removed(context)?;
        parts.rearm(context);
        let plan = BacklogPlan::of(context)?;
        let mut operator = Self {
            selector,
            function,
            parts,
            current: CurrentKey::default(),
            coming: HashedKeys::default(),
            collecting: None,
            work: VecDeque::new(),
            sent: Timestamp::MIN,
            plan,
            phase: PhaseSoFar::default(),
            user: UserCode::new(context),
            context: Arc::clone(context),
        };
        if !sealed.is_empty() {
            operator.resume_backlog(&sealed)?;
        } else if operator.plan.collects_from_the_start() {
            operator.begin_backlog()?;
        }
        Ok(operator)
    }

    /// Timers that wait, of both kinds.
    pub(crate) fn timers(&self) -> usize {
        let timers = &self.parts.timers;
        timers.len(state::TimerKind::EventTime) + timers.len(state::TimerKind::ProcessingTime)
    }

    /// The side outputs, to connect more of them.
    pub(crate) fn sides(&mut self) -> &mut super::side_output::SideOutputs {
        &mut self.parts.side
    }

    fn direct(&mut self, batch: Batch<I>, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        self.parts.processing_time = self.context.task.clock.now();
        let Self { selector, function, parts, current, coming, user, .. } = self;
        let is_far = batch.len() >= KeyedStateBackend::PREFETCHED && parts.backend.wants_prefetch();
        let (values, stamps) = batch.into_parts();
        let mut values = values.into_iter();
        let mut stamps = stamps.map(Vec::into_iter);
        user.run_batch(|position| {
            let mut failed = FirstError::default();
            let mut calls = KeyedCalls::new(function, parts, current, out, &mut failed);
            while let Some(block) = values.as_slice().chunks(KeyedStateBackend::PREFETCHED).next() {
                let before = position.begun();
                selector.hashed(block, position, coming);
                position.back_to(before);
                if is_far {
                    calls.context.parts.backend.prefetch(coming.all());
                }
                let (mut words, mut others) = coming.one_by_one();
                while calls.enter_next(&mut words, &mut others) {
                    let Some(value) = values.next() else { break };
                    let timestamp = stamps.as_mut().and_then(Iterator::next);
                    position.next();
                    calls.call(timestamp, |function, context| function.element(value, context))?;
                }
            }
            Ok(())
        })?;
        self.parts.arm(&self.context);
        self.parts.flush_outputs(out)
    }

    /// Runs the function beside its keyed records. No key is current before or after.
    ///
    /// # Errors
    ///
    /// What `call` says, by the operator's name, and [`TaskError`] of an output.
    pub(crate) fn beside(
        &mut self,
        out: &mut dyn Output<O>,
        call: impl FnOnce(&mut KeyedCalls<'_, F, K, O>, &mut Position) -> anyhow::Result<()>,
    ) -> Result<(), TaskError> {
        self.parts.processing_time = self.context.task.clock.now();
        let Self { function, parts, current, user, .. } = self;
        let mut failed = FirstError::default();
        let mut calls = KeyedCalls::new(function, parts, current, out, &mut failed);
        user.run_batch(|position| call(&mut calls, position))?;
        self.parts.arm(&self.context);
        self.parts.flush_outputs(out)
    }

    /// Whether records are collected at this moment.
    pub(crate) fn is_collecting(&self) -> bool {
        self.collecting.is_some()
    }

    /// What a backlog phase does here.
    pub(crate) fn plan(&self) -> &BacklogPlan {
        &self.plan
    }

    /// From here on records are collected.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the options of the sorter are not valid.
    pub(crate) fn begin_backlog(&mut self) -> Result<(), TaskError> {
        self.collecting = Some(self.collect()?);
        self.context.tell(TaskEvent::BacklogBegun);
        Ok(())
    }

    /// Goes on with a backlog that a checkpoint has stored, until the input says that it is live.
    fn resume_backlog(&mut self, sealed: &[SealedBacklog]) -> Result<(), TaskError> {
        let fold = self.function.fold(self.parts.watermark);
        self.collecting = Some(self.plan.resume(sealed, fold, &self.context)?);
        self.context.tell(TaskEvent::BacklogBegun);
        Ok(())
    }

    /// State, timers, and what the function itself stores.
    fn stored(&mut self, barrier: Barrier) -> Result<OperatorSnapshot, TaskError> {
        let snapshot = self.parts.snapshot(barrier, &self.context)?;
        Ok(OperatorSnapshot { items: self.function.stored(), ..snapshot })
    }

    fn collect(&self) -> Result<Collecting<F::Fold, I>, TaskError> {
        self.plan.begin(self.function.fold(self.parts.watermark), &self.context)
    }

    /// Ends a phase: what was collected goes to the function, key by key; then the due timers of
    /// other keys fire (decision D10). Returns the watermark of the phase. Nothing is sent on.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the sorted runs cannot be merged, or the store cannot begin.
    pub(crate) fn end_backlog(
        &mut self,
        watermark: Option<Timestamp>,
    ) -> Result<Option<Timestamp>, TaskError> {
        let Some(collecting) = self.collecting.take() else { return Ok(watermark) };
        let upto = self.parts.phase_watermark(collecting.watermark(), watermark);
        let draining = self.sorted(collecting, upto)?;
        self.work.push_back(Work::Drain(Box::new(draining)));
        self.work.extend(upto.map(|upto| Work::Fire(Firing::event(upto))));
        Ok(upto)
    }

    /// Time has come to `watermark`: due timers fire, then it is sent on.
    pub(crate) fn advance(&mut self, watermark: Timestamp) {
        self.fire(watermark);
        self.work.push_back(Work::Watermark(watermark));
    }

    /// Timers due by `watermark` fire; it is not sent on yet.
    pub(crate) fn fire(&mut self, watermark: Timestamp) {
        self.work.push_back(Work::Fire(Firing::event_with_watermark(watermark)));
    }

    /// A signal to be sent on when all work before it is done.
    pub(crate) fn later(&mut self, signal: Signal) {
        self.work.push_back(Work::Forward(signal));
    }

    /// The JobMaster is told that the phase is through when all work before this is done.
    pub(crate) fn announce(&mut self) {
        self.work.push_back(Work::Announce);
    }

    fn forward(&mut self, signal: Signal, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        self.parts.flush_outputs(out)?;
        if signal == Signal::Stream(Control::EndOfInput) {
            // A job without checkpoints reports what its state has cost too.
            self.context.metrics.set_state(self.parts.backend.counters());
        }
        self.parts.side.signal(signal)?;
        out.signal(signal)
    }

    /// Whatever waits beyond the first piece is left to `pump`.
    ///
    /// # Errors
    ///
    /// [`TaskError`] of the function, the store or an output.
    pub(crate) fn start_work(&mut self, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        while let Some(mut work) = self.work.pop_front() {
            if !self.work_piece(&mut work, out)? {
                self.work.push_front(work);
                return Ok(());
            }
        }
        Ok(())
    }

    fn attributes(&mut self, attributes: RecordAttributes) -> Result<(), TaskError> {
        let signal = Signal::Stream(Control::Attributes(attributes));
        if self.plan.is_batch() && self.collecting.is_some() {
            // The whole input is one backlog; what is said about parts of it changes nothing.
        } else if attributes.is_backlog {
            match (self.plan.collects(), &self.collecting) {
                (true, None) => self.begin_backlog()?,
                (false, Some(_)) => {
                    // Stored by a run that sorted its backlog, which this one does not.
                    self.end_backlog(None)?;
                    self.announce();
                }
                (false, None) if self.plan.is_auto() => {
                    self.phase.stream(self.parts.backend.counters(), &self.context);
                }
                _ => {}
            }
            self.later(signal);
        } else {
            self.phase.end_stream(self.parts.backend.counters(), &self.context);
            // Downstream sees drained records, then the flag, then the watermark (decision D11).
            let watermark = match self.collecting {
                Some(_) => self.end_backlog(attributes.watermark)?,
                None => {
                    attributes.watermark.into_iter().for_each(|watermark| self.fire(watermark));
                    attributes.watermark
                }
            };
            self.later(Signal::Stream(Control::Attributes(RecordAttributes::live(watermark))));
            self.work.extend(watermark.map(Work::Watermark));
            self.announce();
        }
        Ok(())
    }

    /// The input has ended: what was collected is drained, all timers fire, time ends (D16).
    ///
    /// # Errors
    ///
    /// As [`end_backlog`](Self::end_backlog).
    pub(crate) fn end_input(&mut self) -> Result<(), TaskError> {
        self.phase.end_stream(self.parts.backend.counters(), &self.context);
        self.end_backlog(Some(Timestamp::MAX))?;
        self.advance(Timestamp::MAX);
        self.announce();
        self.later(Signal::Stream(Control::EndOfInput));
        Ok(())
    }
}

impl<F, K, I, O> Operator<I, O> for KeyedOperator<F, K, I, O>
where
    F: KeyedFunction<K, I, O>,
    K: Key,
    I: Record,
    O: Send,
{
    fn batch(&mut self, batch: Batch<I>, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        match &mut self.collecting {
            Some(collecting) => {
                self.context.metrics.backlog_records(batch.len());
                collecting.take(batch, &self.selector, &mut self.user, &self.context)?;
                if collecting.is_to_hand_over() { self.hand_over(out) } else { Ok(()) }
            }
            None => {
                self.phase.records(batch.len());
                self.direct(batch, out)
            }
        }
    }

    fn signal(&mut self, signal: Signal, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        match signal {
            Signal::Stream(Control::Watermark(watermark)) => match &mut self.collecting {
                Some(collecting) => collecting.fold_watermark(watermark),
                None => self.advance(watermark),
            },
            Signal::Stream(Control::Attributes(attributes)) => self.attributes(attributes)?,
            Signal::Stream(Control::EndOfInput) => self.end_input()?,
            Signal::ProcessingTime(now) => {
                self.parts.processing_time = now;
                // The deadline that led here is used up: what is left of the timers asks for the next.
                self.parts.next_processing_timer = Some(now);
                if self.collecting.is_none() {
                    self.work.push_back(Work::Fire(Firing::processing(now)));
                }
                self.work.push_back(Work::Forward(signal));
            }
            other => {
                if let Signal::Complete(id) = other {
                    self.parts.backend.checkpoint_completed(id);
                }
                self.work.push_back(Work::Forward(other));
            }
        }
        self.start_work(out)
    }

    fn pump(&mut self, out: &mut dyn Output<O>) -> Result<Pump, TaskError> {
        match self.parts.side.pump()? {
            Pump::Idle => {}
            other => return Ok(other),
        }
        if self.work.is_empty() {
            return Ok(Pump::Idle);
        }
        self.start_work(out)?;
        Ok(Pump::Progress)
    }

    fn snapshot(
        &mut self,
        barrier: Barrier,
        out: &mut dyn Output<O>,
    ) -> Result<Option<OperatorSnapshot>, TaskError> {
        self.parts.flush_outputs(out)?;
        let snapshot = match &mut self.collecting {
            None => Some(self.stored(barrier)?),
            Some(collecting) if collecting.can_be_stored(barrier.kind) => {
                let backlog = collecting.seal(&self.context)?;
                Some(OperatorSnapshot { backlog, ..self.stored(barrier)? })
            }
            Some(_) => {
                // What is collected is in no state yet, so nothing that is stored would be whole (F1).
                self.context.tell(TaskEvent::Declined {
                    id: barrier.id,
                    reason: format!("`{}` collects a backlog", self.context.name),
                });
                None
            }
        };
        self.parts.side.signal(Signal::Stream(Control::Barrier(barrier)))?;
        Ok(snapshot)
    }
}
