//! [`JobHandle`]: a job that runs.

use std::path::PathBuf;
use std::sync::Arc;

use element::BarrierKind;

use runtime::cluster::{JobCommand, JobProgress};
use runtime::session::RunningJob;

use crate::{JobError, JobReport};

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
