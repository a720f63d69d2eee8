//! The jobs of a session that run: told of lost workers and of its end, and settled when over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::Sender;
use element::{ByteSize, DataSetId, JobId, TaskManagerId};
use parking_lot::Mutex;

use super::attempts::Ended;
use crate::cluster::{
    DataSets, JobCommand, JobDataSets, JobOutcome, RequestId, Settlement, SplitsRead,
};
use crate::events::FinishedOutput;
use crate::executor::{Executor, Waiting};
use crate::factory::ExecutionPlan;

/// The jobs that run, by id.
#[derive(Default)]
pub(super) struct Jobs {
    /// By a number that counts submissions.
    running: Mutex<BTreeMap<u64, Sender<JobCommand>>>,
    submitted: AtomicU64,
    ended: Waiting,
}

impl Jobs {
    /// Has this executor give turns while somebody waits for their end.
    pub(super) fn run_by(&self, executor: &Executor) {
        self.ended.run_by(executor);
    }

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
        self.ended.wait_while(&mut running, |running| !running.is_empty());
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
    fn settlement<'a>(
        &'a self,
        written: &'a [(TaskManagerId, FinishedOutput)],
        splits: &'a BTreeMap<DataSetId, SplitsRead>,
        well: bool,
        took: Duration,
    ) -> Settlement<'a> {
        let (job, data_sets, budget) = (self.job, &self.data_sets, self.budget);
        Settlement { job, data_sets, written, splits, well, took, budget }
    }

    /// What a job made that did not run is nothing.
    pub(super) fn drop_all(&self) {
        let splits = BTreeMap::new();
        let nothing = self.settlement(&[], &splits, false, Duration::ZERO);
        self.registry.begin_settling(&nothing);
        self.registry.end_settling(&nothing);
    }

    /// Has what a run has made promoted or released.
    pub(super) fn settle(self, outcome: JobOutcome) -> Settling {
        let settlement = self.settlement(
            &outcome.persistent,
            &outcome.splits,
            outcome.result.is_ok(),
            outcome.took,
        );
        let request = self.registry.begin_settling(&settlement);
        Settling { made: self, outcome, request }
    }
}

/// The end of a run: workers have been asked to keep or drop what it made.
pub(super) struct Settling {
    made: Made,
    outcome: JobOutcome,
    request: RequestId,
}

impl Settling {
    /// Whether all workers have answered.
    pub(super) fn is_answered(&self) -> bool {
        self.made.registry.is_answered(self.request)
    }

    /// Waits until they have.
    pub(super) fn wait(&self) {
        self.made.registry.wait(self.request);
    }

    /// How the run ended, and what became of the cached streams.
    pub(super) fn end(self) -> Ended {
        let Self { made, outcome, .. } = self;
        let settlement = made.settlement(
            &outcome.persistent,
            &outcome.splits,
            outcome.result.is_ok(),
            outcome.took,
        );
        made.registry.end_settling(&settlement);
        let caches = made.registry.report(&made.plan, &made.data_sets);
        Ended { outcome, caches, mode: made.plan.mode }
    }
}
