//! Drives a chain with two inputs: two gates, one head.
//!
//! Barriers are aligned over both: the side that has its barrier waits for the other.

use element::{Barrier, Batch, Control, Timestamp};
use shuffle::{GateEvent, InputGate};

use super::{Driver, Step};
use crate::error::TaskError;
use crate::events::TaskMail;
use crate::output::{Pump, Signal};

/// A head with two inputs, with what follows it. Called on the task's thread.
pub trait TwoInput<A, B>: Send {
    /// The side that is to be read first, while it has something; none: both in turn.
    fn first(&self) -> Option<Side> {
        None
    }

    /// Records of the first input.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn left(&mut self, batch: Batch<A>) -> Result<(), TaskError>;

    /// Records of the second input.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn right(&mut self, batch: Batch<B>) -> Result<(), TaskError>;

    /// A control element of one input: watermark, attributes, idleness, end.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn control(&mut self, side: Side, control: Control) -> Result<(), TaskError>;

    /// A signal for the whole chain; barriers come here once they are aligned.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn signal(&mut self, signal: Signal) -> Result<(), TaskError>;

    /// As [`crate::output::Output::pump`].
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn pump(&mut self) -> Result<Pump, TaskError>;
}

/// Which of two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    Left,
    /// The second.
    Right,
}

#[derive(Default)]
struct Input {
    ended: bool,
    barrier: Option<Barrier>,
}

/// Reads two gates in turn.
pub struct TwoInputDriver<A, B> {
    left: InputGate<A>,
    right: InputGate<B>,
    head: Box<dyn TwoInput<A, B>>,
    left_state: Input,
    right_state: Input,
    turn: Side,
    flushed: bool,
    ended: bool,
}

impl<A: Send, B: Send> TwoInputDriver<A, B> {
    /// Moves what the gates yield into `head`.
    #[must_use]
    pub fn new(left: InputGate<A>, right: InputGate<B>, head: Box<dyn TwoInput<A, B>>) -> Self {
        Self {
            left,
            right,
            head,
            left_state: Input::default(),
            right_state: Input::default(),
            turn: Side::Left,
            flushed: true,
            ended: false,
        }
    }

    /// Polls one side; `None` if it has nothing, has ended, or waits at a barrier.
    fn poll_side(&mut self, side: Side) -> Result<Option<Step>, TaskError> {
        let state = match side {
            Side::Left => &self.left_state,
            Side::Right => &self.right_state,
        };
        if state.ended || state.barrier.is_some() {
            return Ok(None);
        }
        let event = match side {
            Side::Left => match self.left.poll()? {
                GateEvent::Batch { batch, .. } => {
                    self.head.left(batch)?;
                    return Ok(Some(Step::Progress));
                }
                other => control_of(&other),
            },
            Side::Right => match self.right.poll()? {
                GateEvent::Batch { batch, .. } => {
                    self.head.right(batch)?;
                    return Ok(Some(Step::Progress));
                }
                other => control_of(&other),
            },
        };
        let Some(control) = event else { return Ok(None) };
        let state = match side {
            Side::Left => &mut self.left_state,
            Side::Right => &mut self.right_state,
        };
        match control {
            Control::Barrier(barrier) => {
                state.barrier = Some(barrier);
                self.aligned()
            }
            Control::EndOfInput => {
                state.ended = true;
                self.head.control(side, Control::Watermark(Timestamp::MAX))?;
                self.head.control(side, Control::EndOfInput)?;
                self.ended = self.left_state.ended && self.right_state.ended;
                self.aligned()
            }
            other => {
                self.head.control(side, other)?;
                Ok(Some(Step::Progress))
            }
        }
    }

    /// Passes a barrier on once both sides have it, or have ended. An older one is given up when a
    /// newer comes.
    fn aligned(&mut self) -> Result<Option<Step>, TaskError> {
        let (left, right) = (&mut self.left_state, &mut self.right_state);
        let barrier = match (left.barrier, right.barrier) {
            (Some(a), Some(b)) if a.id == b.id => a,
            (Some(a), Some(b)) => {
                if a.id < b.id {
                    left.barrier = None
                } else {
                    right.barrier = None
                }
                return Ok(Some(Step::Progress));
            }
            (Some(a), None) if right.ended => a,
            (None, Some(b)) if left.ended => b,
            _ => return Ok(Some(Step::Progress)),
        };
        left.barrier = None;
        right.barrier = None;
        self.head.signal(Signal::Stream(Control::Barrier(barrier)))?;
        Ok(Some(Step::Snapshot(barrier)))
    }
}

/// A gate's event as a control element; `None` if it has nothing.
fn control_of<T>(event: &GateEvent<T>) -> Option<Control> {
    match event {
        GateEvent::Watermark(mark) => Some(Control::Watermark(*mark)),
        GateEvent::Attributes(attributes) => Some(Control::Attributes(*attributes)),
        GateEvent::Idle => Some(Control::Idle),
        GateEvent::Active => Some(Control::Active),
        GateEvent::Barrier(barrier) => Some(Control::Barrier(*barrier)),
        GateEvent::EndOfInput => Some(Control::EndOfInput),
        _ => None,
    }
}

impl<A: Send, B: Send> Driver for TwoInputDriver<A, B> {
    fn step(&mut self) -> Result<Step, TaskError> {
        match self.head.pump()? {
            Pump::HeldUp => return Ok(Step::Wait(None)),
            Pump::Progress => return Ok(Step::Progress),
            Pump::Idle if self.ended => return Ok(Step::Done),
            Pump::Idle => {}
        }
        let sides = match self.head.first().unwrap_or(self.turn) {
            Side::Left => [Side::Left, Side::Right],
            Side::Right => [Side::Right, Side::Left],
        };
        self.turn = sides[1];
        for side in sides {
            if let Some(step) = self.poll_side(side)? {
                self.flushed = false;
                return Ok(step);
            }
        }
        if !self.flushed {
            self.flushed = true;
            self.head.signal(Signal::Flush)?;
            return Ok(Step::Progress);
        }
        Ok(Step::Wait(None))
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.flushed = false;
        if let Signal::Aborted(id) = signal {
            self.left.cancel_alignment(id);
            self.right.cancel_alignment(id);
            for state in [&mut self.left_state, &mut self.right_state] {
                state.barrier = state.barrier.filter(|barrier| barrier.id > id);
            }
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
