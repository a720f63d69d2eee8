//! [`Connected`]: one function over two streams without key.
//!
//! ```text
//!   left  ---> Either::Left  --\
//!                               >--> operator ---> next operator
//!   right ---> Either::Right --/
//! ```
//!
//! It is the head of its chain. Records come in no order between the inputs; the watermark, the backlog
//! and the end are those of both ([`ChannelStatus`]). Left out on purpose: state, which belongs to a key
//! ([`super::co_process`]) or is broadcast ([`super::broadcast`]).

use std::sync::Arc;

use element::{Batch, Control};
use shuffle::ChannelStatus;

use super::either::Either;
use super::process_function::{ProcessContext, ProcessFunction, RuntimeContext};
use super::{Chained, Operator};
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::output::{Output, Pump, Signal};
use crate::task::{Side, TwoInput};

/// A function over two streams without key. One instance a subtask and attempt, made by a factory
/// closure; called on the task's thread only. What its fields hold is in no checkpoint.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no co-process function from `{A}` and `{B}` to `{O}`",
    label = "not a `CoProcessFunction<{A}, {B}, {O}>`",
    note = "`process` takes a closure that makes the function, once a subtask; over keyed streams the function is a `KeyedCoProcessFunction`"
)]
pub trait CoProcessFunction<A, B, O>: Send + 'static {
    /// Called once before the first record.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn open(&mut self, _runtime: &RuntimeContext) -> anyhow::Result<()> {
        Ok(())
    }

    /// Takes a record of the first stream.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails, by the operator's name and the record's number.
    fn process_left(&mut self, value: A, context: &mut ProcessContext<'_, O>)
    -> anyhow::Result<()>;

    /// Takes a record of the second stream.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails, by the operator's name and the record's number.
    fn process_right(
        &mut self,
        value: B,
        context: &mut ProcessContext<'_, O>,
    ) -> anyhow::Result<()>;

    /// Called once when both inputs have ended; what it emits is the last of the stream.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn close(&mut self, _context: &mut ProcessContext<'_, O>) -> anyhow::Result<()> {
        Ok(())
    }
}

/// A co-process function as one over the records of either stream.
pub struct Both<F>(pub F);

impl<A, B, O, F: CoProcessFunction<A, B, O>> ProcessFunction<Either<A, B>, O> for Both<F> {
    fn open(&mut self, runtime: &RuntimeContext) -> anyhow::Result<()> {
        self.0.open(runtime)
    }

    fn process(
        &mut self,
        value: Either<A, B>,
        context: &mut ProcessContext<'_, O>,
    ) -> anyhow::Result<()> {
        match value {
            Either::Left(value) => self.0.process_left(value, context),
            Either::Right(value) => self.0.process_right(value, context),
        }
    }

    fn close(&mut self, context: &mut ProcessContext<'_, O>) -> anyhow::Result<()> {
        self.0.close(context)
    }
}

/// An operator over the records of either input, with what follows it. Head of its chain.
pub struct Connected<P, O> {
    chain: Chained<P, O>,
    status: ChannelStatus,
}

impl<P, O> Connected<P, O> {
    /// Feeds `operator` from both inputs.
    #[must_use]
    pub fn new(operator: P, next: Box<dyn Output<O>>, context: &Arc<OperatorContext>) -> Self {
        let chain = Chained::new(operator, next, Arc::clone(context));
        Self { chain, status: ChannelStatus::new(2) }
    }
}

fn as_either<T, A, B>(batch: Batch<T>, side: fn(T) -> Either<A, B>) -> Batch<Either<A, B>> {
    let (values, timestamps) = batch.into_parts();
    Batch::new(values.into_iter().map(side).collect(), timestamps)
}

impl<A, B, O, P> TwoInput<A, B> for Connected<P, O>
where
    O: Send,
    P: Operator<Either<A, B>, O>,
{
    fn left(&mut self, batch: Batch<A>) -> Result<(), TaskError> {
        self.chain.batch(as_either(batch, Either::Left))
    }

    fn right(&mut self, batch: Batch<B>) -> Result<(), TaskError> {
        self.chain.batch(as_either(batch, Either::Right))
    }

    fn control(&mut self, side: Side, control: Control) -> Result<(), TaskError> {
        let mut said = Vec::new();
        self.status.receive(usize::from(side == Side::Right), control, &mut |word| said.push(word));
        said.into_iter().try_for_each(|word| self.signal_of::<A, B>(Signal::Stream(word)))
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.signal_of::<A, B>(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        Output::<Either<A, B>>::pump(&mut self.chain)
    }
}

impl<P, O> Connected<P, O> {
    fn signal_of<A, B>(&mut self, signal: Signal) -> Result<(), TaskError>
    where
        P: Operator<Either<A, B>, O>,
    {
        Output::<Either<A, B>>::signal(&mut self.chain, signal)
    }
}
