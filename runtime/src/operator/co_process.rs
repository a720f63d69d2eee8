//! [`CoOperator`]: a keyed function over two inputs, live or over a sorted backlog.
//!
//! ```text
//!            all inputs in backlog, or not heard of yet      an input is live or has ended (decision D3)
//!   Direct -----------------------------------> Collecting ------------------------------> draining
//!     ^                                                                                      |
//!     '--------------- attributes and watermark of both inputs together --------------------'
//! ```
//!
//! It sorts by itself (M6, M7): records of both inputs go to one sorter, which merges them by key and,
//! within a key, by timestamp and arrival. State, timers and drain are those of the
//! [`KeyedOperator`]; this one adds what two inputs say together. The function is a [`KeyedFunction`]
//! over [`Either`]: co-process functions, co-groups and joins are all made of it.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Batch, Control, Key, Record, Timestamp};
use shuffle::ChannelStatus;
use state::{KeyedStateBackend, Timer, TimerKind};

use super::Operator;
use super::either::{Either, either_key};
use super::function::{KeyedFunction, NoFold};
use super::keyed::KeyedOperator;
use super::keyed_context::KeyedContext;
use super::selector::KeySelector;
use super::side_output::SideOutputs;
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::output::{Output, Pump, Signal};
use crate::task::{Side, TwoInput};

/// When a two-input operator ends the sorting of a backlog (decision D3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TwoInputBacklog {
    /// As soon as one input is not in backlog: from there on record by record.
    #[default]
    UntilOneLive,
    /// When no input is in backlog any more: suits a small live side joined to a long history.
    UntilAllLive,
}

/// A function over the records of one key of two inputs, with state and timers. One instance a
/// subtask and attempt, made by a factory closure; called on the task's thread only.
pub trait KeyedCoProcessFunction<K: Key, A, B, O>: Send + 'static {
    /// Called once before the first record; the place to `bind` states.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn open(&mut self, _states: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(())
    }

    /// Takes a record of the left input.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn process_left(
        &mut self,
        value: A,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()>;

    /// Takes a record of the right input.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn process_right(
        &mut self,
        value: B,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()>;

    /// An event-time timer of the key at hand fires.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn on_timer(
        &mut self,
        _at: Timestamp,
        _context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    /// A processing-time timer of the key at hand fires.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn on_processing_timer(
        &mut self,
        _at: Timestamp,
        _context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        Ok(())
    }
}

/// A co-process function as the operator runs it.
pub struct CoProcess<P, A, B> {
    function: P,
    inputs: PhantomData<fn(A, B)>,
}

impl<P, A, B> CoProcess<P, A, B> {
    /// Runs `function`.
    pub fn new(function: P) -> Self {
        Self { function, inputs: PhantomData }
    }
}

impl<K, A, B, O, P> KeyedFunction<K, Either<A, B>, O> for CoProcess<P, A, B>
where
    K: Key,
    A: 'static,
    B: 'static,
    P: KeyedCoProcessFunction<K, A, B, O>,
{
    type Fold = NoFold<Either<A, B>>;

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        self.function.open(backend)
    }

    fn element(
        &mut self,
        value: Either<A, B>,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        match value {
            Either::Left(value) => self.function.process_left(value, context),
            Either::Right(value) => self.function.process_right(value, context),
        }
    }

    fn on_timer(
        &mut self,
        timer: &Timer,
        kind: TimerKind,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        match kind {
            TimerKind::EventTime => self.function.on_timer(timer.time, context),
            TimerKind::ProcessingTime => self.function.on_processing_timer(timer.time, context),
        }
    }
}

/// What an input has said of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Unknown,
    Backlog,
    /// Live, or ended.
    Live,
}

/// A keyed function over two inputs, with what follows it. Head of its chain.
pub struct CoOperator<F: KeyedFunction<K, Either<A, B>, O>, K: Key, A, B, O> {
    keyed: KeyedOperator<F, K, Either<A, B>, O>,
    next: Box<dyn Output<O>>,
    phases: [Phase; 2],
    /// Both inputs' words combined, as a gate combines channels.
    status: ChannelStatus,
    rule: TwoInputBacklog,
    context: Arc<OperatorContext>,
}

impl<F, K, A, B, O> CoOperator<F, K, A, B, O>
where
    F: KeyedFunction<K, Either<A, B>, O>,
    K: Key,
    A: Record,
    B: Record,
    O: Send,
{
    /// Opens state and binds the function to it. Where backlogs are sorted, records are held from
    /// the first one until both inputs have said whether they are in backlog.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the state cannot be opened or restored.
    pub fn open(
        keys: (KeySelector<A, K>, KeySelector<B, K>),
        rule: TwoInputBacklog,
        function: F,
        next: Box<dyn Output<O>>,
        side: SideOutputs,
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        let selector = either_key(keys.0, keys.1);
        let mut keyed = KeyedOperator::open(selector, function, side, context)?;
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

    fn batch<T>(
        &mut self,
        batch: Batch<T>,
        side: impl Fn(T) -> Either<A, B>,
    ) -> Result<(), TaskError> {
        self.context.metrics.records_in(batch.len());
        let (values, timestamps) = batch.into_parts();
        let values = values.into_iter().map(side).collect();
        self.keyed.batch(Batch::new(values, timestamps), &mut *self.next)
    }

    /// Whether records are to be collected, by what the inputs have said.
    fn is_to_collect(&self) -> bool {
        let unheard = self.phases.contains(&Phase::Unknown);
        let backlog = match self.rule {
            TwoInputBacklog::UntilOneLive => !self.phases.contains(&Phase::Live),
            TwoInputBacklog::UntilAllLive => self.phases.contains(&Phase::Backlog),
        };
        self.keyed.plan().collects() && (unheard || backlog)
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
}

impl<F, K, A, B, O> TwoInput<A, B> for CoOperator<F, K, A, B, O>
where
    F: KeyedFunction<K, Either<A, B>, O>,
    K: Key,
    A: Record,
    B: Record,
    O: Send,
{
    fn left(&mut self, batch: Batch<A>) -> Result<(), TaskError> {
        self.batch(batch, Either::Left)
    }

    fn right(&mut self, batch: Batch<B>) -> Result<(), TaskError> {
        self.batch(batch, Either::Right)
    }

    fn control(&mut self, side: Side, control: Control) -> Result<(), TaskError> {
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

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        if let Signal::Stream(Control::Barrier(barrier)) = signal {
            if let Some(snapshot) = self.keyed.snapshot(barrier, &mut *self.next)? {
                self.context.snapshots.lock().push(snapshot);
            }
            return self.next.signal(signal);
        }
        self.keyed.signal(signal, &mut *self.next)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        match self.next.pump()? {
            Pump::Idle => self.keyed.pump(&mut *self.next),
            other => Ok(other),
        }
    }
}
