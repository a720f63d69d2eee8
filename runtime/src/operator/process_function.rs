//! [`ProcessFunction`]: a user's function over a stream without key, with side outputs, the time, and a
//! beginning and an end.
//!
//! ```text
//!   open -> process* -> close at the end of the input -> dropped
//! ```
//!
//! Left out on purpose: state and timers, which belong to a key ([`super::process`]).

use std::sync::Arc;

use element::{Barrier, Batch, Configuration, Control, Timestamp};

use super::Operator;
use super::side_output::{SideOutputs, SideTag};
use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::output::{BatchBuffer, FirstError, Output, Pump, Signal};
use crate::user::UserCode;

/// A function over a stream without key. One instance a subtask and attempt, made by a factory closure;
/// called on the task's thread only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no process function from `{I}` to `{O}`",
    label = "not a `ProcessFunction<{I}, {O}>`",
    note = "`process` takes a closure that makes the function, once a subtask; on a keyed stream the function is a `KeyedProcessFunction`"
)]
pub trait ProcessFunction<I, O>: Send + 'static {
    /// Called once before the first record.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn open(&mut self, _runtime: &RuntimeContext) -> anyhow::Result<()> {
        Ok(())
    }

    /// Takes one record.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails, by the operator's name and the record's number.
    fn process(&mut self, value: I, context: &mut ProcessContext<'_, O>) -> anyhow::Result<()>;

    /// Called once when the input has ended; what it emits is the last of the stream.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn close(&mut self, _context: &mut ProcessContext<'_, O>) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Where a function runs.
#[derive(Clone, Debug)]
pub struct RuntimeContext {
    context: Arc<OperatorContext>,
}

impl RuntimeContext {
    pub(crate) fn new(context: &Arc<OperatorContext>) -> Self {
        Self { context: Arc::clone(context) }
    }

    /// The operator's name.
    #[must_use]
    pub fn operator(&self) -> &str {
        &self.context.name
    }

    /// The job's name.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.context.task.job_name
    }

    /// Which of the operator's subtasks it is, from 0.
    #[must_use]
    pub fn subtask(&self) -> u32 {
        self.context.task.subtask.0
    }

    /// How many subtasks the operator has.
    #[must_use]
    pub fn parallelism(&self) -> u32 {
        self.context.task.parallelism
    }

    /// The job's options: the same in every subtask.
    #[must_use]
    pub fn config(&self) -> &Configuration {
        &self.context.task.config
    }
}

/// Time and side outputs of a subtask.
struct Reach<O> {
    buffer: BatchBuffer<O>,
    side: SideOutputs,
    timestamp: Option<Timestamp>,
    watermark: Timestamp,
    processing_time: Timestamp,
    failed: FirstError,
}

/// What a function may reach while it works on one record: outputs, and the time.
pub struct ProcessContext<'a, O> {
    reach: &'a mut Reach<O>,
    out: &'a mut dyn Output<O>,
}

impl<O> ProcessContext<'_, O> {
    /// The timestamp of the record at hand, if it has one.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.reach.timestamp
    }

    /// The operator's watermark.
    #[must_use]
    pub fn watermark(&self) -> Timestamp {
        self.reach.watermark
    }

    /// Processing time, read once a batch.
    #[must_use]
    pub fn processing_time(&self) -> Timestamp {
        self.reach.processing_time
    }

    /// Emits a result with the timestamp of the record at hand.
    pub fn collect(&mut self, value: O) {
        self.collect_at(value, self.reach.timestamp);
    }

    /// Emits a result with a timestamp of its own.
    pub fn collect_at(&mut self, value: O, timestamp: Option<Timestamp>) {
        let Self { reach: Reach { buffer, failed, .. }, out } = self;
        failed.of(|| buffer.push(value, timestamp, *out));
    }

    /// Emits a result to a side output.
    pub fn side_output<T: Send + 'static>(&mut self, tag: &SideTag<T>, value: T) {
        let Reach { side, timestamp, failed, .. } = &mut *self.reach;
        failed.of(|| side.emit(tag, value, *timestamp));
    }
}

/// A process function as an operator.
pub struct ProcessOperator<P, O> {
    function: P,
    reach: Reach<O>,
    user: UserCode,
    is_open: bool,
    context: Arc<OperatorContext>,
}

impl<P, O> ProcessOperator<P, O> {
    /// Runs `function`.
    #[must_use]
    pub fn new(function: P, side: SideOutputs, context: &Arc<OperatorContext>) -> Self {
        let reach = Reach {
            buffer: BatchBuffer::default(),
            side,
            timestamp: None,
            watermark: Timestamp::MIN,
            processing_time: context.task.clock.now(),
            failed: FirstError::default(),
        };
        let user = UserCode::new(context);
        Self { function, reach, user, is_open: false, context: Arc::clone(context) }
    }

    /// Opens the function, once.
    fn open<I>(&mut self) -> Result<(), TaskError>
    where
        P: ProcessFunction<I, O>,
    {
        if std::mem::replace(&mut self.is_open, true) {
            return Ok(());
        }
        let runtime = RuntimeContext::new(&self.context);
        let Self { function, user, .. } = self;
        user.run_batch(|_| function.open(&runtime))
    }
}

impl<I, O, P> Operator<I, O> for ProcessOperator<P, O>
where
    I: Send,
    O: Send,
    P: ProcessFunction<I, O>,
{
    fn batch(&mut self, batch: Batch<I>, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        self.open()?;
        self.reach.processing_time = self.context.task.clock.now();
        let Self { function, reach, user, .. } = self;
        user.run_batch(|position| {
            for (value, timestamp) in batch.into_records() {
                position.next();
                reach.timestamp = timestamp;
                function.process(value, &mut ProcessContext { reach, out })?;
                reach.failed.check()?;
            }
            Ok(())
        })?;
        reach.buffer.flush(out)?;
        reach.side.flush()
    }

    fn signal(&mut self, signal: Signal, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        match signal {
            Signal::Stream(Control::Watermark(mark)) => {
                self.reach.watermark = self.reach.watermark.max(mark);
            }
            Signal::Stream(Control::EndOfInput) => {
                self.open()?;
                let Self { function, reach, user, .. } = self;
                reach.timestamp = None;
                user.run_batch(|_| {
                    function.close(&mut ProcessContext { reach, out })?;
                    Ok(reach.failed.check()?)
                })?;
                reach.buffer.flush(out)?;
            }
            _ => {}
        }
        self.reach.side.signal(signal)?;
        out.signal(signal)
    }

    fn pump(&mut self, _: &mut dyn Output<O>) -> Result<Pump, TaskError> {
        self.reach.side.pump()
    }

    fn snapshot(
        &mut self,
        barrier: Barrier,
        _: &mut dyn Output<O>,
    ) -> Result<Option<OperatorSnapshot>, TaskError> {
        self.reach.side.signal(Signal::Stream(Control::Barrier(barrier)))?;
        Ok(None)
    }
}
