//! [`Work`]: what a keyed operator does piece by piece, so that its outputs are never overfilled.

use element::{Control, Key, Record, Timestamp};

use super::KeyedOperator;
use crate::backlog::{Collecting, Draining};
use crate::error::TaskError;
use crate::events::TaskEvent;
use crate::operator::firing::Firing;
use crate::operator::function::{Fold, KeyedFunction};
use crate::operator::keyed_context::KeyedCalls;
use crate::output::{FirstError, Output, Signal};
use crate::user::guarded;

/// Timers fired, or records drained, in one piece of work.
const PIECE: usize = 2_048;

/// Work that is done piece by piece, in order.
pub(super) enum Work<C: Fold<I>, I> {
    /// A backlog's records into the function.
    Drain(Box<Draining<C, I>>),
    /// What is held of a backlog whose keys are few; then collecting goes on, under the greatest
    /// watermark so far.
    HandOver(Box<Draining<C, I>>, Option<Timestamp>),
    /// Timers of all keys up to a time.
    Fire(Firing),
    /// The watermark from here on; sent on if it is news.
    Watermark(Timestamp),
    /// The backlog is through and all that follows from it has gone down.
    Announce,
    /// A signal that waits its turn.
    Forward(Signal),
}

impl<F, K, I, O> KeyedOperator<F, K, I, O>
where
    F: KeyedFunction<K, I, O>,
    K: Key,
    I: Record,
    O: Send,
{
    /// What was collected, in order, for timers up to `upto`.
    pub(super) fn sorted(
        &mut self,
        collecting: Collecting<F::Fold, I>,
        upto: Option<Timestamp>,
    ) -> Result<Draining<F::Fold, I>, TaskError> {
        self.parts.begin_sorted_input(&self.context)?;
        let before = self.parts.backend.counters();
        // Partial results of the runs are merged there, by the user's function.
        guarded(&self.context.name, || {
            collecting.finish(upto, self.plan.is_batch(), before, &self.context)
        })
    }

    /// Makes room for more of a backlog whose keys are few. No timer fires before the switch.
    pub(super) fn hand_over(&mut self, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        let Some(collecting) = self.collecting.take() else { return Ok(()) };
        let watermark = collecting.watermark();
        let draining = self.sorted(collecting, None)?;
        self.work.push_back(Work::HandOver(Box::new(draining), watermark));
        self.start_work(out)
    }

    /// One piece of a drain: records, and the timers at the end of their keys. True when it is done.
    fn drain_piece(
        &mut self,
        draining: &mut Draining<F::Fold, I>,
        out: &mut dyn Output<O>,
    ) -> Result<bool, TaskError> {
        let Self { function, parts, current, user, context, .. } = self;
        parts.processing_time = context.task.clock.now();
        let mut failed = FirstError::default();
        let mut calls = KeyedCalls::new(function, parts, current, out, &mut failed);
        let done = user.run_batch(|position| draining.piece(PIECE, position, &mut calls))?;
        self.parts.flush_outputs(out)?;
        Ok(done)
    }

    /// Fires up to a piece of the timers that are due. True when none is left.
    fn fire_piece(
        &mut self,
        firing: &mut Firing,
        out: &mut dyn Output<O>,
    ) -> Result<bool, TaskError> {
        let Self { function, parts, current, user, context, .. } = self;
        let mut failed = FirstError::default();
        let mut calls = KeyedCalls::new(function, parts, current, out, &mut failed);
        let done =
            user.run_batch(|position| firing.piece(PIECE, position, &mut calls, &context.name))?;
        self.parts.arm(&self.context);
        self.parts.flush_outputs(out)?;
        Ok(done)
    }

    /// Leaves the sorted phase: state is flushed and taken in by the store.
    fn end_sorted_input(&mut self) -> Result<(), TaskError> {
        self.parts.end_sorted_input(&self.context)
    }

    /// Does one piece of the first work that is pending. True when it is done.
    pub(super) fn work_piece(
        &mut self,
        work: &mut Work<F::Fold, I>,
        out: &mut dyn Output<O>,
    ) -> Result<bool, TaskError> {
        match work {
            Work::Drain(draining) => {
                let done = self.drain_piece(draining, out)?;
                if done {
                    self.end_sorted_input()?;
                    let last = draining.report(&self.parts.backend.counters());
                    self.context.metrics.phase(self.phase.whole(last, self.plan.is_auto()));
                }
                Ok(done)
            }
            Work::HandOver(draining, watermark) => {
                let done = self.drain_piece(draining, out)?;
                if done {
                    self.end_sorted_input()?;
                    self.phase.hand_over(draining.report(&self.parts.backend.counters()));
                    let collecting = self.collecting.insert(self.collect()?);
                    watermark.iter().for_each(|mark| collecting.fold_watermark(*mark));
                }
                Ok(done)
            }
            Work::Fire(firing) => self.fire_piece(firing, out),
            Work::Watermark(watermark) => {
                if *watermark > self.sent {
                    self.parts.set_watermark(*watermark);
                    self.sent = *watermark;
                    self.forward(Signal::Stream(Control::Watermark(*watermark)), out)?;
                }
                Ok(true)
            }
            Work::Announce => {
                self.context.tell(TaskEvent::Drained);
                Ok(true)
            }
            Work::Forward(signal) => {
                self.forward(*signal, out)?;
                Ok(true)
            }
        }
    }
}
