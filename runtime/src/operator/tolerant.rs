//! Records whose function fails: put aside as [`DeadLetter`]s, or counted, while the job goes on.
//!
//! A call that returns an error or panics costs its record and nothing else. What the engine itself
//! reports (a full disk, a lost peer) is no fault of the record and fails the task as ever.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use element::{
    Barrier, Batch, CodecError, Control, Key, Record, Schema, SchemaError, Timestamp, Value,
};
use state::{KeyedStateBackend, StateError, StoreFailure, Timer, TimerKind};

use super::Operator;
use super::flat_map::Collector;
use super::function::{KeyedFunction, NoFold};
use super::keyed_context::KeyedContext;
use super::side_output::{SideOutputs, SideTag};
use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::metrics::OperatorMetrics;
use crate::output::{BatchBuffer, Output, Pump, Signal};
use crate::report::chain_of;
use crate::user::panic_message;

/// The tag of the side output that dead letters go to.
pub const DEAD_LETTERS: &str = "dead letters";

/// A record whose function failed: the record, and where and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter<T> {
    /// The record as the function was given it.
    pub record: T,
    /// The operator's name.
    pub operator: String,
    /// Which of its subtasks.
    pub subtask: u32,
    /// Which record of the subtask, from 1, in the order in which the function was given them.
    pub position: u64,
    /// What the function returned, causes included, or what its panic said.
    pub error: String,
}

type Fields<T> = (T, String, u32, u64, String);

/// Written as a tuple of its fields.
impl<T: Record> Record for DeadLetter<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.record.encode(out);
        self.operator.encode(out);
        self.subtask.encode(out);
        self.position.encode(out);
        self.error.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        Fields::<T>::decode(input).map(Self::of)
    }

    fn schema() -> Schema {
        Fields::<T>::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        Fields::<T>::from_value(value).map(Self::of)
    }
}

impl<T> DeadLetter<T> {
    fn of((record, operator, subtask, position, error): Fields<T>) -> Self {
        Self { record, operator, subtask, position, error }
    }
}

/// Makes the letters of one subtask.
struct Letters<T> {
    operator: String,
    subtask: u32,
    position: u64,
    tag: SideTag<DeadLetter<T>>,
    metrics: Arc<OperatorMetrics>,
}

impl<T: Clone + Send + 'static> Letters<T> {
    fn new() -> Self {
        Self {
            operator: String::new(),
            subtask: 0,
            position: 0,
            tag: SideTag::new(DEAD_LETTERS),
            metrics: Arc::default(),
        }
    }

    /// From here on letters name this operator and subtask.
    fn place(&mut self, context: &OperatorContext) {
        self.operator.clone_from(&context.name);
        self.subtask = context.task.subtask.0;
        self.metrics = Arc::clone(&context.metrics);
    }

    /// Gives a copy of a record to a function; the letter, if it fails. Errors are the engine's own.
    fn attempt(
        &mut self,
        value: T,
        call: impl FnOnce(T) -> anyhow::Result<()>,
    ) -> Result<Option<DeadLetter<T>>, TaskError> {
        self.position += 1;
        let copy = value.clone();
        let error = match catch_unwind(AssertUnwindSafe(|| call(copy))) {
            Ok(Ok(())) => return Ok(None),
            Ok(Err(source)) if is_of_state(&source) => {
                let (operator, record) = (self.operator.clone(), Some(self.position));
                return Err(TaskError::User { operator, record, source });
            }
            Ok(Err(source)) => match source.downcast::<TaskError>() {
                Ok(own) => return Err(own),
                Err(source) => chain_of(source.as_ref()),
            },
            Err(panic) => panic_message(&*panic),
        };
        let (operator, subtask) = (self.operator.clone(), self.subtask);
        let position = self.position;
        Ok(Some(DeadLetter { record: value, operator, subtask, position, error }))
    }

    /// Puts a letter aside; where nobody listens it is counted as skipped.
    fn post(
        &self,
        letter: DeadLetter<T>,
        timestamp: Option<Timestamp>,
        side: &mut SideOutputs,
    ) -> Result<(), TaskError> {
        if side.has(DEAD_LETTERS) {
            side.emit(&self.tag, letter, timestamp)
        } else {
            self.metrics.skipped(1);
            Ok(())
        }
    }
}

/// Whether an error has come from keyed state, however the function has wrapped it: a store that
/// cannot be read would cost one record after the other.
fn is_of_state(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<StateError>() || cause.is::<StoreFailure>())
}

/// As [`super::flat_map::FlatMap`]; records whose function fails are put aside.
pub struct TolerantFlatMap<F, I, O> {
    function: Arc<F>,
    letters: Letters<I>,
    buffer: BatchBuffer<O>,
    side: SideOutputs,
}

impl<F, I: Clone + Send + 'static, O> TolerantFlatMap<F, I, O> {
    /// Applies `function`; results carry the timestamp of their record.
    #[must_use]
    pub fn new(function: Arc<F>, side: SideOutputs, context: &OperatorContext) -> Self {
        let mut letters = Letters::new();
        letters.place(context);
        Self { function, letters, buffer: BatchBuffer::default(), side }
    }
}

impl<I, O, F> Operator<I, O> for TolerantFlatMap<F, I, O>
where
    I: Clone + Send + 'static,
    O: Send,
    F: Fn(I, &mut Collector<'_, O>) -> anyhow::Result<()> + Send + Sync,
{
    fn batch(&mut self, batch: Batch<I>, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        let Self { function, letters, buffer, side } = self;
        let mut collector = Collector::new(buffer, &mut *out);
        for (value, timestamp) in batch.into_records() {
            collector.set_timestamp(timestamp);
            if let Some(letter) = letters.attempt(value, |value| function(value, &mut collector))? {
                letters.post(letter, timestamp, side)?;
            }
            collector.check()?;
        }
        self.buffer.flush(out)?;
        self.side.flush()
    }

    fn signal(&mut self, signal: Signal, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        self.side.signal(signal)?;
        out.signal(signal)
    }

    fn pump(&mut self, _: &mut dyn Output<O>) -> Result<Pump, TaskError> {
        self.side.pump()
    }

    fn snapshot(
        &mut self,
        barrier: Barrier,
        _: &mut dyn Output<O>,
    ) -> Result<Option<OperatorSnapshot>, TaskError> {
        self.side.signal(Signal::Stream(Control::Barrier(barrier)))?;
        Ok(None)
    }
}

/// A keyed function whose records may fail. What a failed call has done to state before it failed, and
/// what it has emitted, stays. A timer that fails fails the task: there is no record to put aside.
pub struct TolerantFunction<F, I> {
    function: F,
    letters: Letters<I>,
}

impl<F, I: Clone + Send + 'static> TolerantFunction<F, I> {
    /// Runs `function`.
    #[must_use]
    pub fn new(function: F) -> Self {
        Self { function, letters: Letters::new() }
    }
}

impl<K, I, O, F> KeyedFunction<K, I, O> for TolerantFunction<F, I>
where
    K: Key,
    I: Clone + Send + 'static,
    F: KeyedFunction<K, I, O>,
{
    type Fold = NoFold<I>;

    fn place(&mut self, context: &OperatorContext) {
        self.letters.place(context);
        self.function.place(context);
    }

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        self.function.open(backend)
    }

    fn element(&mut self, value: I, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        let Self { function, letters } = self;
        if let Some(letter) = letters.attempt(value, |value| function.element(value, context))? {
            letters.post(letter, context.timestamp(), &mut context.parts.side)?;
        }
        Ok(())
    }

    fn on_timer(
        &mut self,
        timer: &Timer,
        kind: TimerKind,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        self.function.on_timer(timer, kind, context)
    }
}
