//! Side outputs of sources: where readers put what is no record of theirs, such as malformed rows.
//!
//! A reader emits into a queue; the head of the source's chain takes from it before every batch,
//! signal and step, so that what was read before a barrier has left before it. All on the task's
//! thread: the lock is never contended.

use std::sync::Arc;

use element::{Batch, Timestamp};
use parking_lot::Mutex;

use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::operator::side_output::{SideOutputs, SideTag};
use crate::output::{Output, Pump, Signal};

/// One record on its way to a side output, its type erased.
type Emission = Box<dyn FnOnce(&mut SideOutputs) -> Result<bool, TaskError> + Send>;

/// Takes records for the side outputs of a source. Given to its readers.
#[derive(Clone, Default)]
pub struct SourceSides {
    queue: Arc<Mutex<Vec<Emission>>>,
}

impl std::fmt::Debug for SourceSides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SourceSides({} waiting)", self.queue.lock().len())
    }
}

impl SourceSides {
    /// Emits one record to a tag. Where nobody listens to the tag it counts as skipped.
    pub fn emit<T: Send + 'static>(&self, tag: &SideTag<T>, value: T, at: Option<Timestamp>) {
        let tag = tag.clone();
        self.queue.lock().push(Box::new(move |sides: &mut SideOutputs| {
            let listened = sides.has(tag.name());
            sides.emit(&tag, value, at)?;
            Ok(listened)
        }));
    }

    fn take(&self) -> Vec<Emission> {
        std::mem::take(&mut *self.queue.lock())
    }
}

/// The head of a source's chain, with its side outputs beside it.
pub(crate) struct WithSides<T> {
    next: Box<dyn Output<T>>,
    outputs: SideOutputs,
    sides: SourceSides,
    context: Arc<OperatorContext>,
}

impl<T> WithSides<T> {
    /// Feeds `outputs` from what readers emit into `sides`.
    pub(crate) fn new(
        next: Box<dyn Output<T>>,
        outputs: SideOutputs,
        sides: SourceSides,
        context: &Arc<OperatorContext>,
    ) -> Self {
        Self { next, outputs, sides, context: Arc::clone(context) }
    }

    fn drain(&mut self) -> Result<(), TaskError> {
        for emission in self.sides.take() {
            if !emission(&mut self.outputs)? {
                self.context.metrics.skipped(1);
            }
        }
        Ok(())
    }
}

impl<T> Output<T> for WithSides<T> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        self.drain()?;
        self.next.batch(batch)
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.drain()?;
        self.outputs.signal(signal)?;
        self.next.signal(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        self.drain()?;
        Ok(match (self.outputs.pump()?, self.next.pump()?) {
            (Pump::HeldUp, _) | (_, Pump::HeldUp) => Pump::HeldUp,
            (Pump::Progress, _) | (_, Pump::Progress) => Pump::Progress,
            (Pump::Idle, Pump::Idle) => Pump::Idle,
        })
    }
}
