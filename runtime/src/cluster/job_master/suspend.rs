//! Suspension: a job that is asked to end, for its process is, ends behind a checkpoint of its own.
//!
//! ```text
//!   running --(suspend)--> last barrier --> checkpoint complete --> all tasks stop --> suspended
//!                 '-- none can be taken: backlog, restart pending, nowhere to keep it --^
//! ```
//!
//! Nothing is flushed: the job that goes on from the checkpoint does as if nothing had been. Where no
//! checkpoint can be taken, the error says so and why, and what was kept before stays (tK20).

use element::{BarrierKind, option_table};

use super::JobMaster;
use crate::error::{JobError, Suspension, TaskFailure};

impl JobMaster {
    /// The job is asked to end. Asked again, it ends at once.
    pub(super) fn suspend(&mut self) {
        if self.suspending.is_some() {
            return self.end_without_checkpoint("it was asked to end twice");
        }
        match self.last_barrier() {
            Ok(barrier) => {
                self.suspending = Some(barrier.id);
                self.trigger(barrier);
            }
            Err(reason) => self.end_without_checkpoint(&reason),
        }
    }

    fn last_barrier(&mut self) -> Result<element::Barrier, String> {
        let config = &self.request.config;
        let lacks = |key: &str| format!("option {key} is not set");
        if !self.is_batch() {
            if !matches!(config.get(&option_table::CHECKPOINT_INTERVAL), Ok(Some(_))) {
                return Err(lacks(option_table::CHECKPOINT_INTERVAL.key));
            }
            if !matches!(config.get(&option_table::CHECKPOINT_DIR), Ok(Some(_))) {
                return Err(lacks(option_table::CHECKPOINT_DIR.key));
            }
        }
        self.next_savepoint(BarrierKind::StopWithSavepoint)
    }

    pub(super) fn end_without_checkpoint(&mut self, reason: &str) {
        let ended = Suspension::WithoutCheckpoint { reason: reason.to_owned() };
        self.give_up(JobError::Suspended { job: self.request.name.clone(), ended });
    }

    /// What fails behind the savepoint or checkpoint that ends the job is not run again: nobody would end
    /// it then, and from an older checkpoint it would commit again what it has committed. Who goes on
    /// from the last one makes up for commits that have failed.
    pub(super) fn failed_behind_the_end(&mut self, failure: TaskFailure) {
        let job = self.request.name.clone();
        self.give_up(match self.suspending {
            Some(id) => {
                tracing::warn!(%job, reason = crate::report::chain_of(&failure), "ends in a failure");
                JobError::Suspended { job, ended: Suspension::FinalCheckpoint(id) }
            }
            None => JobError::Failed {
                job,
                attempts: self.policy.failures() + 1,
                source: Box::new(failure),
            },
        });
    }

    /// What the job ends with: its first error, or that it was suspended.
    pub(super) fn result(&mut self) -> Result<(), JobError> {
        if let Some(error) = self.giving_up.take() {
            return Err(error);
        }
        match self.suspending.filter(|id| self.retained.contains(id)) {
            Some(id) => {
                let ended = Suspension::FinalCheckpoint(id);
                Err(JobError::Suspended { job: self.request.name.clone(), ended })
            }
            None => Ok(()),
        }
    }
}
