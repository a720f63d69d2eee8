//! [`Executor`]: who gives turns to the parts of the engine that run by themselves.
//!
//! A JobMaster, a TaskManager, a task, the writer of snapshots and the ear of the ResourceManager are
//! [`Actor`]s: a turn does a bounded piece of work and says what it waits for. In production each has
//! a thread, which blocks between turns. With the `sim` feature one thread gives all turns, in an
//! order that a seed decides (`crate::sim`); whoever would block there gives turns until what it
//! waits for has come.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Select, TryRecvError};
use element::SpillStore;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::JobError;
#[cfg(feature = "sim")]
use crate::sim::Simulation;

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something was done; there may be more.
    Progress,
    /// Nothing to do until something lies ready, or this much time is over.
    Wait(Option<Duration>),
    /// It has ended: it gets no further turn.
    Done,
}

/// A part of the engine that runs by itself. Implemented by what is named above; called by an
/// [`Executor`], one call at a time.
pub trait Actor: Send {
    /// A bounded piece of work; never blocks on another actor.
    fn turn(&mut self) -> Turn;

    /// Whether something lies ready for an actor that waits.
    fn is_ready(&self) -> bool;

    /// Blocks until something lies ready or `limit` is over, and takes note of that.
    fn wait(&mut self, limit: Option<Duration>);
}

/// Who gives the turns.
#[derive(Clone, Default)]
pub enum Executor {
    /// A thread for each actor.
    #[default]
    Threads,
    /// One thread for all, in the order of a seed.
    #[cfg(feature = "sim")]
    Simulated(Simulation),
}

/// An actor that has been started. Dropping it lets it run on.
pub enum Running {
    /// On a thread of its own.
    Thread(JoinHandle<()>),
    /// In a simulation; the other end is dropped with the actor.
    #[cfg(feature = "sim")]
    Simulated(Simulation, Receiver<()>),
}

impl Executor {
    /// Starts an actor.
    ///
    /// # Errors
    ///
    /// What the system says of a new thread.
    pub fn spawn(&self, name: String, mut actor: Box<dyn Actor>) -> io::Result<Running> {
        match self {
            Self::Threads => std::thread::Builder::new()
                .name(name)
                .spawn(move || run_to_end(&mut *actor))
                .map(Running::Thread),
            #[cfg(feature = "sim")]
            Self::Simulated(simulation) => {
                let ended = simulation.add(name, actor);
                Ok(Running::Simulated(simulation.clone(), ended))
            }
        }
    }

    /// Where files rest that end with the session: in the store that `make` makes, or in memory if
    /// this is a simulation.
    ///
    /// # Errors
    ///
    /// Those of `make`.
    pub fn store(
        &self,
        make: impl FnOnce() -> Result<Arc<dyn SpillStore>, JobError>,
    ) -> Result<Arc<dyn SpillStore>, JobError> {
        match self {
            Self::Threads => make(),
            #[cfg(feature = "sim")]
            Self::Simulated(simulation) => Ok(simulation.files()),
        }
    }

    /// Blocks by `block`, or lets one thing happen if this is a simulation; false if nothing ever
    /// will again.
    pub fn pause(&self, block: impl FnOnce()) -> bool {
        match self {
            Self::Threads => {
                block();
                true
            }
            #[cfg(feature = "sim")]
            Self::Simulated(simulation) => simulation.advance(),
        }
    }

    /// Waits for one message; `None` if none will come.
    pub fn receive<T>(&self, receiver: &Receiver<T>) -> Option<T> {
        match self {
            Self::Threads => receiver.recv().ok(),
            #[cfg(feature = "sim")]
            Self::Simulated(simulation) => simulation.receive(receiver),
        }
    }

    /// Waits while a condition holds of what a lock guards; `changed` is notified when that changes.
    pub fn wait_while<T>(
        &self,
        changed: &Condvar,
        guard: &mut MutexGuard<'_, T>,
        mut holds: impl FnMut(&T) -> bool,
    ) {
        while holds(guard) {
            match self {
                Self::Threads => changed.wait(guard),
                #[cfg(feature = "sim")]
                Self::Simulated(simulation) => {
                    if !MutexGuard::unlocked(guard, || simulation.advance()) {
                        return;
                    }
                }
            }
        }
    }
}

impl Running {
    /// Waits for the actor's end. False if it has panicked.
    #[must_use]
    pub fn join(self) -> bool {
        match self {
            Self::Thread(thread) => thread.join().is_ok(),
            #[cfg(feature = "sim")]
            Self::Simulated(simulation, ended) => {
                // Nothing is sent: the other end goes with the actor.
                simulation.receive(&ended);
                true
            }
        }
    }

    /// Whether the actor has ended. In a simulation each question lets one turn pass.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self {
            Self::Thread(thread) => thread.is_finished(),
            #[cfg(feature = "sim")]
            Self::Simulated(simulation, ended) => {
                !simulation.advance() || ended.try_recv() == Err(TryRecvError::Disconnected)
            }
        }
    }
}

fn run_to_end(actor: &mut dyn Actor) {
    loop {
        match actor.turn() {
            Turn::Progress => {}
            Turn::Wait(limit) => actor.wait(limit),
            Turn::Done => return,
        }
    }
}

/// Blocks until one of the channels has a message or is closed, or `limit` is over.
pub(crate) fn wait_for_any(select: &mut Select<'_>, limit: Option<Duration>) {
    match limit {
        Some(limit) => {
            // What is ready is found by whoever tries it next; a limit that is over is no error.
            let _ = select.ready_timeout(limit);
        }
        None => {
            select.ready();
        }
    }
}

/// Gives each message of a channel to a function, until the channel is closed.
pub(crate) struct Consumer<T, F> {
    receiver: Receiver<T>,
    consume: F,
}

impl<T, F: FnMut(T)> Consumer<T, F> {
    /// Gives what comes through `receiver` to `consume`.
    pub(crate) fn new(receiver: Receiver<T>, consume: F) -> Self {
        Self { receiver, consume }
    }
}

impl<T: Send, F: FnMut(T) + Send> Actor for Consumer<T, F> {
    fn turn(&mut self) -> Turn {
        match self.receiver.try_recv() {
            Ok(message) => {
                (self.consume)(message);
                Turn::Progress
            }
            Err(TryRecvError::Empty) => Turn::Wait(None),
            Err(TryRecvError::Disconnected) => Turn::Done,
        }
    }

    fn is_ready(&self) -> bool {
        is_ready(&self.receiver)
    }

    fn wait(&mut self, limit: Option<Duration>) {
        let mut select = Select::new();
        select.recv(&self.receiver);
        wait_for_any(&mut select, limit);
    }
}

/// Whether a channel has a message or is closed.
pub(crate) fn is_ready<T>(receiver: &Receiver<T>) -> bool {
    let mut select = Select::new();
    select.recv(receiver);
    select.try_ready().is_ok()
}

/// A condition with the lock that guards it, and who gives turns meanwhile.
#[derive(Default)]
pub(crate) struct Waiting {
    executor: Mutex<Executor>,
    changed: Condvar,
}

impl Waiting {
    /// Has this executor give turns from here on.
    pub(crate) fn run_by(&self, executor: &Executor) {
        *self.executor.lock() = executor.clone();
    }

    /// Has everybody who waits look again.
    pub(crate) fn notify_all(&self) {
        self.changed.notify_all();
    }

    /// Waits for the next change.
    pub(crate) fn wait_once<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let mut first = true;
        self.wait_while(guard, |_| std::mem::take(&mut first));
    }

    /// Waits while a condition holds.
    pub(crate) fn wait_while<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        holds: impl FnMut(&T) -> bool,
    ) {
        let executor = self.executor.lock().clone();
        executor.wait_while(&self.changed, guard, holds);
    }
}
