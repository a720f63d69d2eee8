//! A user's keyed function with state and timers.

use std::marker::PhantomData;

use element::{Key, Timestamp};
use state::{KeyedStateBackend, Timer, TimerKind};

use super::function::{KeyedFunction, NoFold};
use super::keyed_context::KeyedContext;

/// A function over the records of one key, with state and timers. One instance a subtask and attempt,
/// made by a factory closure; called on the task's thread only.
///
/// States are declared once, as fields made by `ValueState::new("name")` and its kin.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no process function from `{I}` to `{O}` over keys of `{K}`",
    label = "not a `KeyedProcessFunction<{K}, {I}, {O}>`",
    note = "`process` takes a closure that makes the function, once a subtask: `.process(|| MyFunction::new())`"
)]
pub trait KeyedProcessFunction<K: Key, I, O>: Send + 'static {
    /// Called once before the first record; the place to `bind` states, so that one that cannot be
    /// restored fails before any task starts. Bind all states or none: where some are bound, a stored
    /// state that is not counts as removed from the program, which a restore refuses.
    ///
    /// A restore calls it on a function of its own beforehand, to learn the states.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn open(&mut self, _states: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(())
    }

    /// Takes one record.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails, by the operator's name and the record's number.
    fn process(&mut self, value: I, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()>;

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

/// A process function as the keyed operator runs it.
pub struct Process<P, I> {
    function: P,
    input: PhantomData<fn(I)>,
}

impl<P, I> Process<P, I> {
    /// Runs `function`.
    pub fn new(function: P) -> Self {
        Self { function, input: PhantomData }
    }
}

impl<K: Key, I: 'static, O, P: KeyedProcessFunction<K, I, O>> KeyedFunction<K, I, O>
    for Process<P, I>
{
    type Fold = NoFold<I>;

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        self.function.open(backend)
    }

    #[inline]
    fn element(&mut self, value: I, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        self.function.process(value, context)
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
