//! [`CoOperator`]: a keyed function over two inputs, live or over a sorted backlog.
//!
//! It sorts by itself (M6, M7): records of both inputs go to one sorter, which merges them by key and,
//! within a key, by timestamp and arrival. State, timers and drain are those of the
//! [`KeyedOperator`]; `TwoInputs` adds what two inputs say together. The function is a [`KeyedFunction`]
//! over [`Either`]: co-process functions, co-groups and joins are all made of it.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Batch, Control, Key, Record, Timestamp};
use state::{KeyedStateBackend, Timer, TimerKind};

use super::either::{Either, either_key};
use super::function::{KeyedFunction, NoFold};
use super::keyed::KeyedOperator;
use super::keyed_context::KeyedContext;
use super::selector::KeySelector;
use super::side_output::SideOutputs;
use super::two_inputs::{Collects, TwoInputs};
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no co-process function from `{A}` and `{B}` to `{O}` over keys of `{K}`",
    note = "implement `KeyedCoProcessFunction<K, A, B, O>`, or pass a closure that makes one"
)]
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

impl From<TwoInputBacklog> for Collects {
    fn from(rule: TwoInputBacklog) -> Self {
        match rule {
            TwoInputBacklog::UntilOneLive => Self::UntilOneLive,
            TwoInputBacklog::UntilAllLive => Self::UntilAllLive,
        }
    }
}

/// A keyed function over two inputs, with what follows it. Head of its chain.
pub struct CoOperator<F: KeyedFunction<K, Either<A, B>, O>, K: Key, A, B, O> {
    inputs: TwoInputs<F, K, Either<A, B>, O>,
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
        let keyed = KeyedOperator::open(either_key(keys.0, keys.1), function, side, context)?;
        Ok(Self { inputs: TwoInputs::new(keyed, rule.into(), next, context)? })
    }

    fn batch<T>(
        &mut self,
        batch: Batch<T>,
        side: impl Fn(T) -> Either<A, B>,
    ) -> Result<(), TaskError> {
        let (values, timestamps) = batch.into_parts();
        self.inputs.batch(Batch::new(values.into_iter().map(side).collect(), timestamps))
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
        self.inputs.control(side, control)
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.inputs.signal(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        self.inputs.pump()
    }
}
