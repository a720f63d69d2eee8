//! Drives a chain with one input: gate to head.

use element::{Barrier, Batch, Control, Timestamp};
use shuffle::{GateEvent, InputGate};

use super::{Driver, Step};
use crate::error::TaskError;
use crate::events::TaskMail;
use crate::output::{Output, Pump, Signal};

/// Reads one gate.
pub struct InputDriver<T> {
    gate: InputGate<T>,
    head: Box<dyn Output<T>>,
    flushed: bool,
    ended: bool,
}

impl<T: Send> InputDriver<T> {
    /// Moves what `gate` yields into `head`.
    #[must_use]
    pub fn new(gate: InputGate<T>, head: Box<dyn Output<T>>) -> Self {
        Self { gate, head, flushed: true, ended: false }
    }

    fn records(&mut self, batch: Batch<T>) -> Result<Step, TaskError> {
        self.flushed = false;
        self.head.batch(batch)?;
        Ok(Step::Progress)
    }

    fn control(&mut self, control: Control) -> Result<Step, TaskError> {
        self.flushed = false;
        self.ended = control == Control::EndOfInput;
        self.head.signal(Signal::Stream(control))?;
        Ok(Step::Progress)
    }

    fn barrier(&mut self, barrier: Barrier) -> Result<Step, TaskError> {
        self.control(Control::Barrier(barrier))?;
        Ok(Step::Snapshot(barrier))
    }
}

impl<T: Send> Driver for InputDriver<T> {
    fn step(&mut self) -> Result<Step, TaskError> {
        match self.head.pump()? {
            Pump::HeldUp => return Ok(Step::Wait(None)),
            Pump::Progress => return Ok(Step::Progress),
            Pump::Idle if self.ended => return Ok(Step::Done),
            Pump::Idle => {}
        }
        match self.gate.poll()? {
            GateEvent::Batch { batch, .. } => self.records(batch),
            GateEvent::Watermark(mark) => self.control(Control::Watermark(mark)),
            GateEvent::Attributes(attributes) => self.control(Control::Attributes(attributes)),
            GateEvent::Idle => self.control(Control::Idle),
            GateEvent::Active => self.control(Control::Active),
            GateEvent::Barrier(barrier) => self.barrier(barrier),
            GateEvent::EndOfInput => {
                // The end of all input is the end of event time (E1, T5, D16).
                self.control(Control::Watermark(Timestamp::MAX))?;
                self.control(Control::EndOfInput)
            }
            GateEvent::Empty if !self.flushed => {
                self.flushed = true;
                self.head.signal(Signal::Flush)?;
                Ok(Step::Progress)
            }
            GateEvent::Empty => Ok(Step::Wait(None)),
            _ => Ok(Step::Progress),
        }
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.flushed = false;
        if let Signal::Aborted(id) = signal {
            self.gate.cancel_alignment(id);
        }
        self.head.signal(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        self.head.pump()
    }

    fn mail(&mut self, mail: TaskMail) -> Result<(), TaskError> {
        tracing::debug!(?mail, "mail for a source has come to a task without one");
        Ok(())
    }
}
