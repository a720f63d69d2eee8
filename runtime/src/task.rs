//! The life of a task: wired, stepped, ended.
//!
//! A task is a state machine. [`Task::step`] does a bounded piece of work and says what it waits for;
//! it never blocks, sleeps or reads a clock of its own. Its TaskManager gives it turns
//! (`crate::cluster`).

mod input_driver;
mod source_driver;
mod two_input_driver;
mod waker;
mod wiring;

pub use input_driver::InputDriver;
pub use source_driver::SourceDriver;
pub use two_input_driver::{Side, TwoInput, TwoInputDriver};
pub use waker::TaskWaker;
pub use wiring::{PartitionLocation, Place, TaskDeployment, wire};

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::Receiver;
use element::{Barrier, CheckpointId, Timestamp};
use parking_lot::Mutex;

use crate::checkpoint::{OperatorState, SnapshotWork};
use crate::context::{OperatorSnapshot, TaskContext};
use crate::error::TaskError;
use crate::events::{FinishedOutput, TaskEnd, TaskEvent, TaskMail};
use crate::output::{Pump, Signal};

/// Partitions that a task has finished, collected from its outputs.
pub type FinishedOutputs = Arc<Mutex<Vec<FinishedOutput>>>;

/// What a step of a driver came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done; there may be more.
    Progress,
    /// A barrier has passed through the chain: snapshots lie ready.
    Snapshot(Barrier),
    /// Nothing to do until the task is woken, or this time has come.
    Wait(Option<Timestamp>),
    /// The input has ended and everything has left.
    Done,
}

/// Moves records from a task's inputs into the head of its chain. Called on the task's thread.
pub trait Driver: Send {
    /// A bounded piece of work.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn step(&mut self) -> Result<Step, TaskError>;

    /// A signal from outside of the stream, down the chain.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn signal(&mut self, signal: Signal) -> Result<(), TaskError>;

    /// Pending work of the chain, without reading any input.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn pump(&mut self) -> Result<Pump, TaskError>;

    /// Mail that is the driver's own business: splits, flags, triggers.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task then fails.
    fn mail(&mut self, mail: TaskMail) -> Result<(), TaskError>;
}

/// One subtask of a vertex, in one attempt.
pub struct Task {
    context: Arc<TaskContext>,
    driver: Box<dyn Driver>,
    mail: Receiver<TaskMail>,
    snapshots: Arc<Mutex<Vec<OperatorSnapshot>>>,
    finished: FinishedOutputs,
    writer: crossbeam_channel::Sender<SnapshotWork>,
    /// The savepoint behind which nothing is read; the task ends when it is complete.
    stopping: Option<CheckpointId>,
    stopped: bool,
    /// Whether the driver is done: it is called no more.
    done: bool,
    /// Snapshots handed over and not yet acknowledged.
    outstanding: Arc<AtomicUsize>,
}

impl Task {
    /// A bounded piece of work: mail first, then timers, then input.
    ///
    /// # Errors
    ///
    /// [`TaskError`]; the task has then failed.
    pub fn step(&mut self) -> Result<Step, TaskError> {
        if self.context.cancelled.is_cancelled() {
            return Err(TaskError::Cancelled);
        }
        if self.done {
            return Ok(self.end_behind_snapshots());
        }
        while let Ok(mail) = self.mail.try_recv() {
            match mail {
                TaskMail::Complete(id) => {
                    self.stopped |= self.stopping == Some(id);
                    self.driver.signal(Signal::Complete(id))?;
                }
                TaskMail::Finished => self.driver.signal(Signal::Finished)?,
                TaskMail::Aborted(id) => {
                    self.stopping = self.stopping.filter(|stopping| *stopping != id);
                    self.driver.signal(Signal::Aborted(id))?;
                }
                other => self.driver.mail(other)?,
            }
        }
        if self.stopping.is_some() {
            return self.step_while_stopping();
        }
        let now = self.context.clock.now();
        if self.context.deadline.take_due(now) {
            self.driver.signal(Signal::ProcessingTime(now))?;
        }
        match self.driver.step()? {
            Step::Snapshot(barrier) => {
                self.hand_over_snapshots(barrier);
                Ok(Step::Progress)
            }
            Step::Wait(until) => {
                let announced = self.announce_end();
                let times = [until, self.context.deadline.next(), announced];
                Ok(Step::Wait(times.into_iter().flatten().min()))
            }
            Step::Done => {
                self.done = true;
                Ok(self.end_behind_snapshots())
            }
            Step::Progress => Ok(Step::Progress),
        }
    }

    /// A task ends when its last snapshot is acknowledged: its end means that it owes nothing, so it
    /// must not overtake what the writing thread still has to say.
    fn end_behind_snapshots(&self) -> Step {
        if self.outstanding.load(Ordering::Acquire) == 0 {
            return Step::Done;
        }
        Step::Wait(Some(self.context.clock.now().saturating_add(1)))
    }

    /// Behind the last savepoint: what lies in the outputs leaves, nothing is read, no timer fires.
    fn step_while_stopping(&mut self) -> Result<Step, TaskError> {
        Ok(match self.driver.pump()? {
            Pump::Progress => Step::Progress,
            Pump::Idle if self.stopped => self.end_behind_snapshots(),
            Pump::Idle | Pump::HeldUp => Step::Wait(None),
        })
    }

    /// What sinks have prepared at the end of their input goes to the JobMaster. A snapshot that was
    /// not taken for a barrier is one of these. It must not overtake the part of a checkpoint whose
    /// barrier came before, of which it would be taken for the part; so it may have to wait until a time.
    fn announce_end(&mut self) -> Option<Timestamp> {
        if self.snapshots.lock().is_empty() {
            return None;
        }
        if self.outstanding.load(Ordering::Acquire) > 0 {
            return Some(self.context.clock.now().saturating_add(1));
        }
        let last = std::mem::take(&mut *self.snapshots.lock());
        let states = last.into_iter().map(|snapshot| {
            let OperatorSnapshot { uid, items, watermark, .. } = snapshot;
            OperatorState { uid, keyed: None, items, watermark, backlog: None }
        });
        self.context.events.send(TaskEvent::AwaitsLastCommit(states.collect()));
        None
    }

    /// What the operators stored for a barrier goes to the thread that writes it.
    fn hand_over_snapshots(&mut self, barrier: Barrier) {
        let snapshots = std::mem::take(&mut *self.snapshots.lock());
        if barrier.kind.stops() {
            self.stopping = Some(barrier.id);
        }
        let work = SnapshotWork {
            barrier,
            snapshots,
            store: Arc::clone(&self.context.checkpoints),
            events: self.context.events.clone(),
            outstanding: Arc::clone(&self.outstanding),
        };
        self.outstanding.fetch_add(1, Ordering::AcqRel);
        if self.writer.send(work).is_err() {
            tracing::warn!(checkpoint = %barrier.id, "nobody writes snapshots any more");
            self.outstanding.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The name of its vertex.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.context.vertex_name
    }

    /// What the task has to say at its end.
    #[must_use]
    pub fn end(self) -> TaskEnd {
        let Self { driver, finished, .. } = self;
        drop(driver);
        TaskEnd { partitions: std::mem::take(&mut *finished.lock()) }
    }
}
