//! A job with its fallback: run, and run once more without what turned out to be lost (FLIP-205).
//!
//! ```text
//!   plan -> run -> well, or failed by itself ------------------------------> over
//!             '--> a cached data set is lost -> give up all that is damaged
//!                       -> plan again, with what is complete then -> run --> over, well or not
//! ```
//!
//! The restart strategy has no part in it (A17). A second loss is the job's error. Commands given at
//! any time reach the run that is under way, or the next.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::Receiver;
use element::{ByteSize, Clock, Configuration, DataSetId, JobId, option_table};
use graph::{CacheDecision, CachePlan, ResolvedMode};

use super::jobs::Made;
use super::workers::Workers;
use crate::checkpoint::{CheckpointStorage, RestorePoint};
use crate::cluster::{
    DataSets, JobCommand, JobMaster, JobOutcome, JobProgress, JobRequest, TaskManagerHandle,
    lost_partition, place_of,
};
use crate::error::{JobError, TaskFailure};
use crate::factory::ExecutionPlan;
use crate::report::{CacheReport, chain_of};

/// Plans a job anew, with the data sets that are complete when it is called.
pub type Replan = Box<dyn Fn() -> Result<ExecutionPlan, JobError> + Send>;

/// What the runs of one job share.
pub(super) struct Attempts {
    pub(super) name: String,
    pub(super) config: Configuration,
    pub(super) workers: Arc<Workers>,
    pub(super) registry: Arc<DataSets>,
    pub(super) storage: Arc<dyn CheckpointStorage>,
    pub(super) restore: Option<PathBuf>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) progress: Arc<JobProgress>,
    pub(super) mailbox: Receiver<JobCommand>,
    pub(super) budget: Option<ByteSize>,
    pub(super) next_job: Arc<AtomicU64>,
}

/// A run that can begin.
pub(super) struct Prepared {
    master: JobMaster,
    made: Made,
}

/// How a job ended, of all its runs the last.
pub(super) struct Ended {
    pub(super) outcome: JobOutcome,
    pub(super) caches: Vec<CacheReport>,
    pub(super) mode: ResolvedMode,
}

impl Prepared {
    /// Runs to the end. It is over when what it made is kept or gone, and not before (P4).
    fn run(self) -> Ended {
        let Self { master, made } = self;
        let outcome = master.run();
        let well = outcome.result.is_ok();
        let caches = made.settle(&outcome.persistent, well, outcome.took);
        Ended { outcome, caches, mode: made.plan.mode }
    }
}

impl Attempts {
    /// Prepares a run of a plan, under an id of its own.
    pub(super) fn prepare(&self, plan: Arc<ExecutionPlan>) -> Result<Prepared, JobError> {
        let id = JobId(self.next_job.fetch_add(1, Ordering::AcqRel));
        let managers = self.slots(&plan)?;
        let restore = self.restore.as_deref().map(RestorePoint::read).transpose()?;
        let data_sets = self.registry.begin(&plan);
        let request = JobRequest {
            id,
            name: self.name.clone(),
            plan: Arc::clone(&plan),
            config: self.config.clone(),
            managers,
            storage: Arc::clone(&self.storage),
            data_sets: data_sets.generations(),
            restore,
            clock: Arc::clone(&self.clock),
            progress: Arc::clone(&self.progress),
        };
        let registry = Arc::clone(&self.registry);
        let made = Made { job: id, plan, data_sets, registry, budget: self.budget };
        match JobMaster::new(request, self.mailbox.clone()) {
            Ok(master) => Ok(Prepared { master, made }),
            Err(error) => {
                made.settle(&[], false, Duration::ZERO);
                Err(error)
            }
        }
    }

    /// The workers with their slots: as configured, or as many as the cores or the job need.
    fn slots(&self, plan: &ExecutionPlan) -> Result<Vec<TaskManagerHandle>, JobError> {
        let managers = self.workers.handles();
        let workers = u32::try_from(managers.len()).unwrap_or(1).max(1);
        let slots = match self.config.get(&option_table::TASK_SLOTS)? {
            Some(slots) => slots,
            None => super::cores().max(plan.greatest_parallelism()).div_ceil(workers),
        };
        Ok(managers.into_iter().map(|manager| TaskManagerHandle { slots, ..manager }).collect())
    }

    /// Runs to the end, and once more if cached data is lost.
    pub(super) fn run(&self, first: Prepared, replan: &Replan) -> Ended {
        let ended = first.run();
        let Err(JobError::CacheLost { source, .. }) = &ended.outcome.result else { return ended };
        let reason = chain_of(&**source);
        self.give_up_damaged(source);
        tracing::info!(job = %self.name, %reason, "cached data is lost: the job runs without it");
        match self.plan_without_damage(replan).and_then(|plan| self.prepare(Arc::new(plan))) {
            Ok(second) => {
                self.progress.begin_again();
                let mut ended = second.run();
                ended.outcome.recovered.insert(0, reason);
                ended
            }
            Err(error) => {
                Ended { outcome: JobOutcome { result: Err(error), ..ended.outcome }, ..ended }
            }
        }
    }

    /// Plans until everything that the plan reads is whole: what it reads now may not have been read
    /// by the plan before, for the lost data set stood in front of it. Each round gives one up.
    fn plan_without_damage(&self, replan: &Replan) -> Result<ExecutionPlan, JobError> {
        loop {
            let plan = replan()?;
            let is_hit = |cache: &&CachePlan| matches!(cache.decision, CacheDecision::Hit { .. });
            let reads: Vec<DataSetId> =
                plan.caches.iter().filter(is_hit).map(|cache| cache.data_set).collect();
            let damaged = self.registry.verify(&reads);
            if damaged.is_empty() {
                return Ok(plan);
            }
            for (data_set, reason) in damaged {
                tracing::info!(job = %self.name, %data_set, %reason, "this one is damaged too");
            }
        }
    }

    /// Gives up the data set that a reader found damaged; healthy ones stay (D15).
    fn give_up_damaged(&self, failure: &TaskFailure) {
        let found = lost_partition(&failure.source).and_then(|partition| place_of(&partition));
        if let Some((data_set, generation, _)) = found {
            self.registry.damaged(data_set, generation, &chain_of(&failure.source));
        }
    }
}
