//! [`JobHandle`]: a job that runs.

use std::path::PathBuf;
use std::sync::Arc;

use element::BarrierKind;

use runtime::cluster::{JobCommand, JobProgress, OperatorProgress};
use runtime::session::RunningJob;

use crate::{JobError, JobReport};

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStatus {
    /// It runs, or waits to be restarted.
    Running,
    /// It runs, and a source is in backlog.
    InBacklog,
    /// It has ended; [`JobHandle::wait`] says how.
    Ended,
}

/// A job that has been started. Dropping it lets the job run on.
pub struct JobHandle {
    running: RunningJob,
}

impl JobHandle {
    pub(crate) fn new(running: RunningJob) -> Self {
        Self { running }
    }

    /// Counters, which go on counting.
    #[must_use]
    pub fn progress(&self) -> Arc<JobProgress> {
        Arc::clone(self.running.progress())
    }

    /// How it stands at this moment.
    #[must_use]
    pub fn status(&self) -> JobStatus {
        if self.is_finished() {
            JobStatus::Ended
        } else if self.running.progress().is_backlog() {
            JobStatus::InBacklog
        } else {
            JobStatus::Running
        }
    }

    /// The counters of all operators as they stand, by vertex and place in the chain.
    #[must_use]
    pub fn metrics(&self) -> Vec<OperatorProgress> {
        self.running.progress().operators()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.running.is_finished()
    }

    /// Ends it; [`wait`](Self::wait) then says that it was cancelled.
    pub fn cancel(&self) {
        self.running.command(JobCommand::Cancel);
    }

    /// Takes a savepoint into a folder of its own below `directory`; the job goes on.
    ///
    /// # Errors
    ///
    /// [`JobError::SavepointDeclined`], with the reason: the job is in backlog, part of it waits for
    /// a blocking result, or it has ended (decision D13).
    pub fn savepoint(&self, directory: impl Into<PathBuf>) -> Result<PathBuf, JobError> {
        self.running.savepoint(BarrierKind::Savepoint, directory.into())
    }

    /// Takes a savepoint and ends the job behind it, without ending its input: no window and no timer
    /// fires early, and a job that starts from the savepoint goes on as if nothing had been.
    ///
    /// # Errors
    ///
    /// As [`savepoint`](Self::savepoint); the job then goes on.
    pub fn stop_with_savepoint(&self, directory: impl Into<PathBuf>) -> Result<PathBuf, JobError> {
        self.running.savepoint(BarrierKind::StopWithSavepoint, directory.into())
    }

    /// Ends event time, takes a savepoint behind it and ends the job: windows and event-time timers
    /// fire first, and sinks commit what comes of that. For jobs that end for good: a job that starts
    /// from the savepoint finds event time ended, and every further record late.
    ///
    /// # Errors
    ///
    /// As [`savepoint`](Self::savepoint); the job then goes on, but if event time has been ended, it
    /// stays so.
    pub fn drain_with_savepoint(&self, directory: impl Into<PathBuf>) -> Result<PathBuf, JobError> {
        self.running.savepoint(BarrierKind::DrainWithSavepoint, directory.into())
    }

    /// Ends it behind a last checkpoint of its own, without ending its input, so that it can go on
    /// from there (option `execution.savepoint.path`). Asked twice, it ends at once.
    /// [`wait`](Self::wait) then answers [`JobError::Suspended`], which says whether there is such a
    /// checkpoint: there is none in mixed-mode backlog, while a restart is pending, while part of the
    /// job waits for a blocking result, or without `execution.checkpointing.interval` and
    /// `execution.checkpointing.dir`. Checkpoints taken before stay.
    pub fn suspend(&self) {
        self.running.command(JobCommand::Suspend);
    }

    /// Ends its sources; what was read is finished as at the end of input.
    pub fn stop(&self) {
        self.running.command(JobCommand::Stop);
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// [`JobError`]: why it failed, by name.
    pub fn wait(self) -> Result<JobReport, JobError> {
        let (outcome, report) = self.running.wait();
        outcome.result.map(|()| report)
    }
}
