//! [`KeyedFunction`]: what a keyed operator does with a record, a timer, or a combined backlog.
//!
//! Process functions, reductions, aggregations and windows are all keyed functions; the
//! [`super::keyed::KeyedOperator`] runs them.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Record, Timestamp};
use state::{KeyedStateBackend, Timer, TimerKind};

use super::keyed_context::KeyedContext;
use crate::context::OperatorContext;

/// How records of one key combine before they reach the state. Shared by threads.
pub trait Fold<I>: Send + Sync + 'static {
    /// What records combine to.
    type Partial: Record;

    /// The number of bytes that [`part`](Self::part) appends.
    const PART: usize = 0;

    /// Appends which part of its key a record belongs to, such as a window: records combine part by
    /// part. Always [`PART`](Self::PART) bytes; parts come in the order of their bytes.
    ///
    /// # Errors
    ///
    /// What makes the record belong nowhere; the task then fails.
    fn part(
        &self,
        _value: &I,
        _timestamp: Option<Timestamp>,
        _into: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    /// How many records of the stream a value stands for.
    fn records(_value: &I) -> u64 {
        1
    }

    /// Folds a record into what its key has so far; `Some` is the first partial of a key.
    fn fold(&self, partial: Option<&mut Self::Partial>, value: I) -> Option<Self::Partial>;

    /// Folds a later partial of a key into an earlier one.
    fn merge(&self, into: &mut Self::Partial, later: Self::Partial);
}

/// The fold of functions that do not combine.
#[derive(Debug)]
pub struct NoFold<I>(PhantomData<fn(I)>);

impl<I: 'static> Fold<I> for NoFold<I> {
    type Partial = ();

    fn fold(&self, partial: Option<&mut ()>, _: I) -> Option<()> {
        partial.is_none().then_some(())
    }

    fn merge(&self, (): &mut (), (): ()) {}
}

/// A keyed function. One instance a subtask and attempt; called on the task's thread, with the key
/// at hand set in the context.
pub trait KeyedFunction<K: Key, I, O>: Send {
    /// How a backlog combines; [`NoFold`] if it does not.
    type Fold: Fold<I>;

    /// The fold, if there is one for a phase that begins at `watermark`.
    fn fold(&self, _watermark: Timestamp) -> Option<Arc<Self::Fold>> {
        None
    }

    /// Tells where the function runs, before anything else.
    fn place(&mut self, _context: &OperatorContext) {}

    /// Binds states eagerly, so that a state that cannot be read fails before the first record.
    ///
    /// # Errors
    ///
    /// What the function says.
    fn open(&mut self, _backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(())
    }

    /// What the function stores beside keyed state.
    fn stored(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Takes one record.
    ///
    /// # Errors
    ///
    /// What the function says.
    fn element(&mut self, value: I, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()>;

    /// Takes one timer that fires.
    ///
    /// # Errors
    ///
    /// What the function says.
    fn on_timer(
        &mut self,
        _timer: &Timer,
        _kind: TimerKind,
        _context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    /// The last record of the key at hand in a sorted phase has been taken; its due timers fire next.
    /// Not called record by record: there a key never ends.
    ///
    /// # Errors
    ///
    /// What the function says.
    fn key_end(&mut self, _context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Takes what a backlog's records of one part of the key at hand have combined to. Only called if
    /// there is a fold.
    ///
    /// # Errors
    ///
    /// What the function says.
    fn partial(
        &mut self,
        _partial: <Self::Fold as Fold<I>>::Partial,
        _part: &[u8],
        _context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        Ok(())
    }
}
