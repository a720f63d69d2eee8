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

use std::collections::VecDeque;
use std::sync::Arc;

use element::{Barrier, Batch, Control, Key, Record, RecordAttributes, Timestamp, hash_key_bytes};
use state::TimerKind;

use super::Operator;
use super::function::{Fold, KeyedFunction};
use super::keyed_context::KeyedContext;
use super::keyed_parts::{CurrentKey, KeyedParts, timestamp_of};
use super::selector::KeySelector;
use crate::backlog::{BacklogPlan, Collecting, Draining};
use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::events::TaskEvent;
use crate::output::{Output, Pump, Signal};
use crate::user::UserCode;

/// Timers fired, or records drained, in one piece of work.
const PIECE: usize = 2_048;

/// Work that is done piece by piece, in order.
enum Work<C: Fold<I>, I> {
    /// A backlog's records into the function.
    Drain(Box<Draining<C, I>>),
    /// Event-time timers up to here.
    FireEvent(Timestamp),
    /// Processing-time timers up to here.
    FireProcessing(Timestamp),
    /// The backlog is through: the watermark from here on, and whether live records follow.
    Drained { watermark: Option<Timestamp>, live: bool },
    /// A signal that waits its turn.
    Forward(Signal),
}

/// A keyed function with its state, timers and backlog. Head of its chain.
pub struct KeyedOperator<F: KeyedFunction<K, I, O>, K: Key, I, O> {
    selector: KeySelector<I, K>,
    function: F,
    parts: KeyedParts<O>,
    current: CurrentKey<K>,
    scratch: Vec<u8>,
    collecting: Option<Collecting<F::Fold, I>>,
    work: VecDeque<Work<F::Fold, I>>,
    plan: BacklogPlan,
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
        let mut parts = KeyedParts::open(context, side)?;
        function
            .open(&mut parts.backend)
            .map_err(TaskError::user(&context.name))?;
        parts.rearm(context);
        let plan = BacklogPlan::of(context)?;
        let mut operator = Self {
            selector,
            function,
            parts,
            current: CurrentKey::default(),
            scratch: Vec::new(),
            collecting: None,
            work: VecDeque::new(),
            plan,
            user: UserCode::new(context),
            context: Arc::clone(context),
        };
        if operator.plan.collects_from_the_start() {
            operator.begin_backlog()?;
        }
        Ok(operator)
    }

    /// Makes the record's key the current one, for state and timers. Cheap when it is so already.
    #[inline]
    fn enter_key(
        selector: &KeySelector<I, K>,
        value: &I,
        current: &mut CurrentKey<K>,
        scratch: &mut Vec<u8>,
        parts: &mut KeyedParts<O>,
    ) {
        scratch.clear();
        let key = selector.encode(value, scratch);
        if *scratch != current.bytes || !current.set {
            std::mem::swap(scratch, &mut current.bytes);
            current.hash = hash_key_bytes(&current.bytes);
            current.key = key;
            current.set = true;
            parts.backend.set_current_key(current.hash, &current.bytes);
        }
    }

    fn direct(&mut self, batch: Batch<I>, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        self.parts.processing_time = self.context.task.clock.now();
        let Self { selector, function, parts, current, scratch, user, .. } = self;
        user.run_batch(|position| {
            for (value, timestamp) in batch.into_records() {
                position.next();
                Self::enter_key(selector, &value, current, scratch, parts);
                let mut context = KeyedContext::new(parts, current, out, timestamp);
                function.element(value, &mut context)?;
                context.check()?;
            }
            Ok(())
        })?;
        self.parts.arm(&self.context);
        self.parts.flush_outputs(out)
    }

    fn begin_backlog(&mut self) -> Result<(), TaskError> {
        let fold = self.function.fold();
        self.collecting = Some(self.plan.begin(fold, &self.context)?);
        self.context.tell(TaskEvent::BacklogBegun);
        Ok(())
    }

    /// The backlog is over: its records go to the function, then what follows them goes on.
    fn begin_drain(
        &mut self,
        collecting: Collecting<F::Fold, I>,
        watermark: Option<Timestamp>,
        live: bool,
    ) -> Result<(), TaskError> {
        let upto = self.parts.phase_watermark(collecting.watermark(), watermark);
        self.parts.begin_sorted_input(&self.context)?;
        self.current.set = false;
        let before = self.parts.backend.counters();
        let draining = collecting.finish(upto, self.plan.is_batch(), before, &self.context)?;
        self.work.push_back(Work::Drain(Box::new(draining)));
        self.work.push_back(Work::Drained { watermark: upto, live });
        Ok(())
    }

    /// One piece of a drain: records, and the timers at the end of their keys. True when it is done.
    fn drain_piece(
        &mut self,
        draining: &mut Draining<F::Fold, I>,
        out: &mut dyn Output<O>,
    ) -> Result<bool, TaskError> {
        let Self { function, parts, current, user, context, .. } = self;
        parts.processing_time = context.task.clock.now();
        let done = user.run_batch(|position| {
            draining.piece(PIECE, position, function, parts, current, out)
        })?;
        parts.flush_outputs(out)?;
        Ok(done)
    }

    /// Fires up to a piece of the timers that are due. True when none is left.
    fn fire_piece(
        &mut self,
        kind: TimerKind,
        upto: Timestamp,
        out: &mut dyn Output<O>,
    ) -> Result<bool, TaskError> {
        let Self { function, parts, current, user, .. } = self;
        let done = user.run_batch(|position| {
            for _ in 0..PIECE {
                let Some(timer) = parts.timers.pop_due(kind, upto) else { return Ok(true) };
                position.next();
                current.enter(&timer, parts);
                let timestamp = timestamp_of(&timer);
                let mut context = KeyedContext::new(parts, current, out, timestamp);
                function.on_timer(&timer, kind, &mut context)?;
                context.check()?;
            }
            Ok(false)
        })?;
        self.parts.arm(&self.context);
        self.parts.flush_outputs(out)?;
        Ok(done)
    }

    /// Leaves the sorted phase: state is flushed and taken in by the store.
    fn end_sorted_input(&mut self) -> Result<(), TaskError> {
        self.current.set = false;
        self.parts.end_sorted_input(&self.context)
    }

    /// Does one piece of the first work that is pending. True when it is done.
    fn work_piece(
        &mut self,
        work: &mut Work<F::Fold, I>,
        out: &mut dyn Output<O>,
    ) -> Result<bool, TaskError> {
        match work {
            Work::Drain(draining) => {
                let done = self.drain_piece(draining, out)?;
                if done {
                    self.end_sorted_input()?;
                    let report = draining.report(&self.parts.backend.counters());
                    self.context.metrics.phase(report);
                }
                Ok(done)
            }
            Work::FireEvent(upto) => self.fire_piece(TimerKind::EventTime, *upto, out),
            Work::FireProcessing(upto) => self.fire_piece(TimerKind::ProcessingTime, *upto, out),
            Work::Drained { watermark, live } => {
                self.drained(*watermark, *live, out)?;
                Ok(true)
            }
            Work::Forward(signal) => {
                self.forward(*signal, out)?;
                Ok(true)
            }
        }
    }

    /// Says downstream that the backlog is over; from here on this is a stream (decision D11).
    fn drained(
        &mut self,
        watermark: Option<Timestamp>,
        live: bool,
        out: &mut dyn Output<O>,
    ) -> Result<(), TaskError> {
        if live {
            self.forward(
                Signal::Stream(Control::Attributes(RecordAttributes::live(watermark))),
                out,
            )?;
        }
        if let Some(watermark) = watermark.filter(|mark| *mark > self.parts.watermark) {
            self.parts.watermark = watermark;
            self.forward(Signal::Stream(Control::Watermark(watermark)), out)?;
        }
        self.context.tell(TaskEvent::Drained);
        Ok(())
    }

    fn forward(&mut self, signal: Signal, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        self.parts.flush_outputs(out)?;
        self.parts.side.signal(signal)?;
        out.signal(signal)
    }

    /// Whatever waits beyond the first piece is left to `pump`.
    fn start_work(&mut self, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        while let Some(mut work) = self.work.pop_front() {
            if !self.work_piece(&mut work, out)? {
                self.work.push_front(work);
                return Ok(());
            }
        }
        Ok(())
    }

    fn attributes(&mut self, attributes: RecordAttributes) -> Result<(), TaskError> {
        match (attributes.is_backlog, self.collecting.take()) {
            (true, None) => {
                if self.plan.collects() {
                    self.begin_backlog()?;
                }
                let signal = Signal::Stream(Control::Attributes(attributes));
                self.work.push_back(Work::Forward(signal));
            }
            (false, Some(collecting)) if !self.plan.is_batch() => {
                self.begin_drain(collecting, attributes.watermark, true)?;
            }
            (_, Some(collecting)) => self.collecting = Some(collecting),
            (false, None) => {
                // Streamed through: what the phase's watermark covers fires before the switch goes on.
                self.work.extend(attributes.watermark.map(Work::FireEvent));
                self.work.push_back(Work::Drained { watermark: attributes.watermark, live: true });
            }
        }
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
                collecting.take(batch, &self.selector, &mut self.user, &self.context)
            }
            None => self.direct(batch, out),
        }
    }

    fn signal(&mut self, signal: Signal, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        match signal {
            Signal::Stream(Control::Watermark(watermark)) => match &mut self.collecting {
                Some(collecting) => collecting.fold_watermark(watermark),
                None => {
                    self.parts.watermark = self.parts.watermark.max(watermark);
                    self.work.push_back(Work::FireEvent(watermark));
                    self.work.push_back(Work::Forward(signal));
                }
            },
            Signal::Stream(Control::Attributes(attributes)) => self.attributes(attributes)?,
            Signal::Stream(Control::EndOfInput) => {
                match self.collecting.take() {
                    Some(collecting) => {
                        self.begin_drain(collecting, Some(Timestamp::MAX), false)?;
                    }
                    None => {
                        self.work.push_back(Work::FireEvent(Timestamp::MAX));
                        self.work.push_back(Work::Drained {
                            watermark: Some(Timestamp::MAX),
                            live: false,
                        });
                    }
                }
                self.work.push_back(Work::Forward(signal));
            }
            Signal::ProcessingTime(now) => {
                self.parts.processing_time = now;
                if self.collecting.is_none() {
                    self.work.push_back(Work::FireProcessing(now));
                }
                self.work.push_back(Work::Forward(signal));
            }
            other => self.work.push_back(Work::Forward(other)),
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
        _: Barrier,
        out: &mut dyn Output<O>,
    ) -> Result<Option<OperatorSnapshot>, TaskError> {
        self.parts.flush_outputs(out)?;
        self.current.set = false;
        self.parts.snapshot(&self.context).map(Some)
    }
}
