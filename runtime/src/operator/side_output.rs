//! Records by tag to outputs beside the main one.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use element::Timestamp;

use crate::error::TaskError;
use crate::factory::Wire;
use crate::output::{BatchBuffer, Output, Pump, Signal};

/// Names a side output and its type.
pub struct SideTag<T> {
    name: String,
    kind: PhantomData<fn() -> T>,
}

impl<T> SideTag<T> {
    /// A side output by name, unique within its operator.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: PhantomData }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T> Clone for SideTag<T> {
    fn clone(&self) -> Self {
        Self::new(self.name.clone())
    }
}

impl<T> fmt::Debug for SideTag<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SideTag({})", self.name)
    }
}

/// One side output with what is on its way to it, its type erased.
trait SideOutput: Send {
    fn flush(&mut self) -> Result<(), TaskError>;
    fn signal(&mut self, signal: Signal) -> Result<(), TaskError>;
    fn pump(&mut self) -> Result<Pump, TaskError>;
    fn as_any(&mut self) -> &mut dyn Any;
}

struct TypedSide<T> {
    buffer: BatchBuffer<T>,
    out: Box<dyn Output<T>>,
}

impl<T: Send + 'static> SideOutput for TypedSide<T> {
    fn flush(&mut self) -> Result<(), TaskError> {
        self.buffer.flush(&mut *self.out)
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.flush()?;
        self.out.signal(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        self.out.pump()
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// The side outputs of one operator that somebody listens to. What goes to another tag is dropped.
#[derive(Default)]
pub struct SideOutputs {
    outputs: BTreeMap<String, Box<dyn SideOutput>>,
}

/// Connects the side outputs of an operator, each by the type of its tag.
pub type SideConnector = fn(&mut SideOutputs, &str, Wire);

impl SideOutputs {
    /// Connects a tag.
    pub fn connect<T: Send + 'static>(&mut self, name: &str, wire: Wire) {
        let side = TypedSide::<T> { buffer: BatchBuffer::default(), out: wire.open() };
        self.outputs.insert(name.to_owned(), Box::new(side));
    }

    /// Whether somebody listens to a tag.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.outputs.contains_key(name)
    }

    /// Emits one record to a tag.
    ///
    /// # Errors
    ///
    /// What the output says; [`TaskError::User`] if the tag was connected with another type.
    pub fn emit<T: Send + 'static>(
        &mut self,
        tag: &SideTag<T>,
        value: T,
        timestamp: Option<Timestamp>,
    ) -> Result<(), TaskError> {
        let Some(side) = self.outputs.get_mut(tag.name()) else { return Ok(()) };
        let Some(side) = side.as_any().downcast_mut::<TypedSide<T>>() else {
            return Err(TaskError::User {
                operator: tag.name().to_owned(),
                record: None,
                source: anyhow::anyhow!("side output `{}` has another type", tag.name()),
            });
        };
        side.buffer.push(value, timestamp, &mut *side.out)
    }

    /// Hands half-filled batches down.
    ///
    /// # Errors
    ///
    /// What an output says.
    pub fn flush(&mut self) -> Result<(), TaskError> {
        self.outputs.values_mut().try_for_each(|side| side.flush())
    }

    /// Hands a signal to every side output, records first.
    ///
    /// # Errors
    ///
    /// What an output says.
    pub fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.outputs.values_mut().try_for_each(|side| side.signal(signal))
    }

    /// Pumps every side output.
    ///
    /// # Errors
    ///
    /// What an output says.
    pub fn pump(&mut self) -> Result<Pump, TaskError> {
        let mut all = Pump::Idle;
        for side in self.outputs.values_mut() {
            match side.pump()? {
                Pump::HeldUp => all = Pump::HeldUp,
                Pump::Progress if all == Pump::Idle => all = Pump::Progress,
                _ => {}
            }
        }
        Ok(all)
    }
}
