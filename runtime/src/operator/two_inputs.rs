//! [`TwoInputs`]: a keyed operator beneath what two inputs say together.
//!
//! ```text
//!            in backlog as the rule says, or not heard of      the rule's inputs are live or have ended
//!   Direct ------------------------------------> Collecting ------------------------------> draining
//!     ^                                                                                      |
//!     '--------------- attributes and watermark of both inputs together --------------------'
//! ```
//!
//! Used by operators over two keyed inputs ([`super::co_process`]) and over a keyed and a broadcast one
//! ([`super::keyed_broadcast`]), which say how records of each side come in.

use std::sync::Arc;

use element::{Batch, Control, Key, Record};
use shuffle::ChannelStatus;

use super::Operator;
use super::function::KeyedFunction;
use super::keyed::KeyedOperator;
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::output::{Output, Pump, Signal};
use crate::task::Side;

/// When the sorting of a backlog ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collects {
    /// As soon as one input is not in backlog (decision D3).
    UntilOneLive,
    /// When no input is in backlog any more.
    UntilAllLive,
    /// When the left input is not in backlog, whatever the right one says.
    WhileLeftIsBacklog,
}

/// What an input has said of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Unknown,
    Backlog,
    /// Live, or ended.
    Live,
}

/// A keyed operator with what follows it, and the status of its two inputs.
pub(crate) struct TwoInputs<F: KeyedFunction<K, I, O>, K: Key, I, O> {
    pub(crate) keyed: KeyedOperator<F, K, I, O>,
    pub(crate) next: Box<dyn Output<O>>,
    phases: [Phase; 2],
    /// Both inputs' words combined, as a gate combines channels.
    status: ChannelStatus,
    rule: Collects,
    context: Arc<OperatorContext>,
}

impl<F, K, I, O> TwoInputs<F, K, I, O>
where
    F: KeyedFunction<K, I, O>,
    K: Key,
    I: Record,
    O: Send,
{
    /// Where backlogs are sorted, records are held from the first one until the inputs have said
    /// whether they are in backlog.
    pub(crate) fn new(
        mut keyed: KeyedOperator<F, K, I, O>,
        rule: Collects,
        next: Box<dyn Output<O>>,
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        if keyed.plan().collects() && !keyed.is_collecting() {
            keyed.begin_backlog()?;
        }
        Ok(Self {
            keyed,
            next,
            phases: [Phase::Unknown; 2],
            status: ChannelStatus::new(2),
            rule,
            context: Arc::clone(context),
        })
    }

    /// Records for the keyed operator.
    pub(crate) fn batch(&mut self, batch: Batch<I>) -> Result<(), TaskError> {
        self.context.metrics.records_in(batch.len());
        self.keyed.batch(batch, &mut *self.next)
    }

    /// Whether records are to be collected, by what the inputs have said.
    fn is_to_collect(&self) -> bool {
        let unheard = self.phases.contains(&Phase::Unknown);
        let wanted = match self.rule {
            Collects::UntilOneLive => unheard || !self.phases.contains(&Phase::Live),
            Collects::UntilAllLive => unheard || self.phases.contains(&Phase::Backlog),
            Collects::WhileLeftIsBacklog => self.phases[0] != Phase::Live,
        };
        self.keyed.plan().collects() && wanted
    }

    /// Begins or ends a phase, then passes on what both inputs say together.
    fn turn(&mut self, said: &[Control]) -> Result<(), TaskError> {
        let mut held = None;
        match (self.keyed.is_collecting(), self.is_to_collect()) {
            (false, true) => self.keyed.begin_backlog()?,
            (true, false) => held = self.keyed.end_backlog(self.status.watermark())?,
            _ => {}
        }
        for word in said {
            self.pass_on(*word)?;
        }
        // Nobody says again what came while records were held; what is no news is not sent.
        if let Some(watermark) = held {
            self.keyed.advance(watermark);
        }
        Ok(())
    }

    fn pass_on(&mut self, word: Control) -> Result<(), TaskError> {
        match word {
            // While records are held time stands still; the switch asks for it again.
            Control::Watermark(_) if self.keyed.is_collecting() => {}
            Control::Watermark(watermark) => self.keyed.advance(watermark),
            Control::Attributes(attributes) => {
                // The flag carries the watermark: what is due by it goes before (decision D11).
                if let Some(watermark) = attributes.watermark.filter(|_| !attributes.is_backlog)
                    && !self.keyed.is_collecting()
                {
                    self.keyed.fire(watermark);
                }
                self.keyed.later(Signal::Stream(word));
                if !attributes.is_backlog {
                    self.keyed.announce();
                }
            }
            Control::EndOfInput => self.keyed.end_input()?,
            other => self.keyed.later(Signal::Stream(other)),
        }
        Ok(())
    }

    /// As [`crate::task::TwoInput::control`].
    pub(crate) fn control(&mut self, side: Side, control: Control) -> Result<(), TaskError> {
        let at = match side {
            Side::Left => 0,
            Side::Right => 1,
        };
        if let Some(phase) = self.phases.get_mut(at) {
            match control {
                Control::Attributes(attributes) if attributes.is_backlog => *phase = Phase::Backlog,
                Control::Attributes(_) | Control::EndOfInput => *phase = Phase::Live,
                _ => {}
            }
        }
        let mut said = Vec::new();
        self.status.receive(at, control, &mut |word| said.push(word));
        if self.keyed.plan().is_batch() && self.keyed.is_collecting() {
            if said.contains(&Control::EndOfInput) {
                self.keyed.end_input()?;
            }
        } else {
            self.turn(&said)?;
        }
        self.keyed.start_work(&mut *self.next)
    }

    /// As [`crate::task::TwoInput::signal`].
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        if let Signal::Stream(Control::Barrier(barrier)) = signal {
            if let Some(snapshot) = self.keyed.snapshot(barrier, &mut *self.next)? {
                self.context.snapshots.lock().push(snapshot);
            }
            return self.next.signal(signal);
        }
        self.keyed.signal(signal, &mut *self.next)
    }

    /// As [`crate::task::TwoInput::pump`].
    pub(crate) fn pump(&mut self) -> Result<Pump, TaskError> {
        match self.next.pump()? {
            Pump::Idle => self.keyed.pump(&mut *self.next),
            other => Ok(other),
        }
    }
}
