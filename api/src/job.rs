//! [`JobHandle`]: a job that runs.

use std::sync::Arc;

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
