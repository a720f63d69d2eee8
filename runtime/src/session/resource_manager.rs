//! [`ResourceManager`]: hears what workers report, asks whether they are there, gives up who is silent.
//!
//! A worker without an answer for `heartbeat.timeout`, by the session's clock,
//! is lost as a killed one is: another takes its place, its parts of data sets are given up, its jobs
//! are told. It may only have been cut off: what it says later is of a worker that is not known, and
//! is dropped. Ends when no worker can report any more.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crossbeam_channel::{Receiver, Select, TryRecvError};
use element::{Clock, Configuration, TaskManagerId, option_table};

use super::jobs::Jobs;
use super::workers::Workers;
use crate::cluster::{DataSets, Heartbeats, JobCommand, TaskManagerMessage, WorkerReport};
use crate::error::JobError;
use crate::executor::{Actor, Executor, Running, Turn, is_ready, wait_for_any};

/// What hears them.
pub(super) struct ResourceManager {
    heard: Receiver<WorkerReport>,
    workers: Weak<Workers>,
    jobs: Arc<Jobs>,
    data_sets: Arc<DataSets>,
    clock: Arc<dyn Clock>,
    heartbeats: Heartbeats,
    /// Why a silent worker was given up, but for its id.
    silence: String,
}

impl ResourceManager {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// [`JobError`] for an option without a valid value, or a thread that cannot be had.
    pub(super) fn start(
        heard: Receiver<WorkerReport>,
        workers: &Arc<Workers>,
        jobs: &Arc<Jobs>,
        clock: &Arc<dyn Clock>,
        config: &Configuration,
        executor: &Executor,
    ) -> Result<Running, JobError> {
        let interval = config.get(&option_table::HEARTBEAT_INTERVAL)?;
        let timeout = config.get(&option_table::HEARTBEAT_TIMEOUT)?;
        let manager = Self {
            heard,
            workers: Arc::downgrade(workers),
            jobs: Arc::clone(jobs),
            data_sets: Arc::clone(workers.data_sets()),
            clock: Arc::clone(clock),
            heartbeats: Heartbeats::new(interval, timeout, clock.monotonic()),
            silence: format!("was lost: it gave no heartbeat for {} ms", timeout.as_millis()),
        };
        executor
            .spawn("resource-manager".to_owned(), Box::new(manager))
            .map_err(|error| JobError::Internal(format!("no thread for a session: {error}")))
    }

    fn beat(&mut self, workers: &Workers) {
        let handles = workers.handles();
        let ids: Vec<TaskManagerId> = handles.iter().map(|handle| handle.id).collect();
        let round = self.heartbeats.poll(self.clock.monotonic(), &ids);
        for (worker, number) in round.ask {
            let handle = handles.iter().find(|handle| handle.id == worker);
            let message = TaskManagerMessage::Heartbeat(number);
            if handle.is_none_or(|handle| handle.sender.send(message).is_err()) {
                tracing::debug!(%worker, "a worker ends");
            }
        }
        for lost in round.lost {
            match workers.give_up(lost, &self.silence) {
                Ok(Some(replacement)) => self
                    .jobs
                    .tell_all(|| JobCommand::WorkerLost { lost, replacement: replacement.clone() }),
                Ok(None) => {}
                // It is asked again, and lost again then.
                Err(error) => tracing::error!(worker = %lost, %error, "no other worker"),
            }
        }
    }
}

impl Actor for ResourceManager {
    fn turn(&mut self) -> Turn {
        let heard = self.heard.try_recv();
        if matches!(heard, Err(TryRecvError::Disconnected)) {
            return Turn::Done;
        }
        let is_idle = heard.is_err();
        if let Ok(report) = heard {
            self.heartbeats.answered(report.worker, report.heartbeat);
            self.data_sets.reported(report);
        }
        let Some(workers) = self.workers.upgrade() else { return Turn::Done };
        self.beat(&workers);
        if !is_idle {
            return Turn::Progress;
        }
        let left = self.heartbeats.next_deadline().saturating_sub(self.clock.monotonic());
        Turn::Wait(Some(left))
    }

    fn is_ready(&self) -> bool {
        is_ready(&self.heard)
    }

    fn wait(&mut self, limit: Option<Duration>) {
        let mut select = Select::new();
        select.recv(&self.heard);
        wait_for_any(&mut select, limit.map(|left| self.clock.patience(left)));
    }
}
