//! The jobs of a session that run: told of lost workers and of its end, and settled when over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::Sender;
use element::{ByteSize, DataSetId, JobId, TaskManagerId};
use parking_lot::{Condvar, Mutex};

use crate::cluster::{DataSets, JobCommand, JobDataSets, Settlement, SplitsRead};
use crate::events::FinishedOutput;
use crate::factory::ExecutionPlan;
use crate::report::CacheReport;

/// The jobs that run, by id.
#[derive(Default)]
pub(super) struct Jobs {
    /// By a number that counts submissions.
    running: Mutex<BTreeMap<u64, Sender<JobCommand>>>,
    submitted: AtomicU64,
    ended: Condvar,
}

impl Jobs {
    /// Sends a command to each.
    pub(super) fn tell_all(&self, command: impl Fn() -> JobCommand) {
        self.tell_and_count(command);
    }

    /// Sends a command to each; answers how many there are.
    pub(super) fn tell_and_count(&self, command: impl Fn() -> JobCommand) -> usize {
        let running = self.running.lock();
        for (id, job) in &*running {
            if job.send(command()).is_err() {
                tracing::debug!(submission = id, "the job has ended");
            }
        }
        running.len()
    }

    /// Ends all of them and waits until they are over.
    pub(super) fn close(&self) {
        self.tell_all(|| JobCommand::Close);
        let mut running = self.running.lock();
        while !running.is_empty() {
            self.ended.wait(&mut running);
        }
    }
}

/// A job's place among those that run; given back when dropped, on whatever way it ends.
pub(super) struct Registered {
    jobs: Arc<Jobs>,
    id: u64,
}

impl Registered {
    pub(super) fn new(jobs: &Arc<Jobs>, commands: Sender<JobCommand>) -> Self {
        let id = jobs.submitted.fetch_add(1, Ordering::Relaxed);
        jobs.running.lock().insert(id, commands);
        Self { jobs: Arc::clone(jobs), id }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.jobs.running.lock().remove(&self.id);
        self.jobs.ended.notify_all();
    }
}

/// What is to be settled at a job's end.
pub(super) struct Made {
    pub(super) job: JobId,
    pub(super) plan: Arc<ExecutionPlan>,
    pub(super) data_sets: JobDataSets,
    pub(super) registry: Arc<DataSets>,
    pub(super) budget: Option<ByteSize>,
}

impl Made {
    /// Promotes or releases; answers what became of the cached streams.
    pub(super) fn settle(
        &self,
        written: &[(TaskManagerId, FinishedOutput)],
        splits: &BTreeMap<DataSetId, SplitsRead>,
        well: bool,
        took: Duration,
    ) -> Vec<CacheReport> {
        self.registry.settle(&Settlement {
            job: self.job,
            data_sets: &self.data_sets,
            written,
            splits,
            well,
            took,
            budget: self.budget,
        });
        self.registry.report(&self.plan, &self.data_sets)
    }
}
