//! [`Operator`]: what turns records of one type into records of another, and its order of calls.
//!
//! ```text
//! made by a factory (per subtask and attempt, state already restored)
//!   -> (batch | signal | pump)*  -> signal(EndOfInput) -> pump until idle -> dropped
//! ```
//!
//! [`Chained`] joins an operator with what follows it; it handles what all operators handle alike:
//! barriers (snapshot, then forward) and counting.

pub mod aggregate;
pub mod async_function;
pub mod broadcast;
pub mod co_group;
pub mod co_process;
pub mod connected;
pub mod either;
pub(crate) mod firing;
pub mod flat_map;
pub mod function;
pub(crate) mod hashed_keys;
pub mod interval_join;
pub mod keyed;
pub mod keyed_broadcast;
pub mod keyed_context;
pub(crate) mod keyed_parts;
pub mod map;
pub mod partition;
pub mod precombined;
pub mod process;
pub mod process_function;
pub mod selector;
pub mod side_output;
pub mod timestamps;
pub mod tolerant;
pub(crate) mod two_inputs;
pub mod window;
pub mod with_state;

use std::sync::Arc;

use element::{Barrier, Batch, Control};

use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::output::{Output, Pump, Signal};

/// One-input operator. Called on the task's thread only; needs no lock of its own.
pub trait Operator<I, O>: Send {
    /// Takes records and pushes results to `out`.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn batch(&mut self, batch: Batch<I>, out: &mut dyn Output<O>) -> Result<(), TaskError>;

    /// Takes a signal. By default it is handed on. Barriers do not come here:
    /// [`Operator::snapshot`] is asked instead.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn signal(&mut self, signal: Signal, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        out.signal(signal)
    }

    /// Does a bounded piece of work that is pending, when nothing below is pending. Operators that
    /// have such work must be heads of chains, so that no record comes while it is done.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn pump(&mut self, _out: &mut dyn Output<O>) -> Result<Pump, TaskError> {
        Ok(Pump::Idle)
    }

    /// Takes a consistent copy of the operator's state, cheaply: writing it is done elsewhere.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn snapshot(
        &mut self,
        _barrier: Barrier,
        _out: &mut dyn Output<O>,
    ) -> Result<Option<OperatorSnapshot>, TaskError> {
        Ok(None)
    }
}

/// An operator and what follows it.
pub struct Chained<P, O> {
    operator: P,
    next: Box<dyn Output<O>>,
    context: Arc<OperatorContext>,
}

impl<P, O> Chained<P, O> {
    /// Joins `operator` with `next`.
    #[must_use]
    pub fn new(operator: P, next: Box<dyn Output<O>>, context: Arc<OperatorContext>) -> Self {
        Self { operator, next, context }
    }
}

impl<I, O, P: Operator<I, O>> Output<I> for Chained<P, O> {
    fn batch(&mut self, batch: Batch<I>) -> Result<(), TaskError> {
        self.context.metrics.records_in(batch.len());
        self.operator.batch(batch, &mut *self.next)
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        if let Signal::Stream(Control::Barrier(barrier)) = signal {
            if let Some(snapshot) = self.operator.snapshot(barrier, &mut *self.next)? {
                self.context.snapshots.lock().push(snapshot);
            }
            return self.next.signal(signal);
        }
        self.operator.signal(signal, &mut *self.next)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        match self.next.pump()? {
            Pump::Idle => self.operator.pump(&mut *self.next),
            other => Ok(other),
        }
    }
}
