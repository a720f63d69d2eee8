//! A job with its fallback: run, and run once more without what turned out to be lost (FLIP-205).
//!
//! ```text
//!   plan -> run -> well, or failed by itself ------------------------------> over
//!             '--> a cached data set is lost -> give up all that is damaged
//!                       -> plan again, with what is complete then -> run --> over, well or not
//! ```
//!
//! Where only lost parts are to be made again (`execution.cache.recovery`), a repair stands between the
//! plan and the run: the plan that would make the data set whole, of which only those parts' tasks
//! run. A loss that it meets is one of the job. The restart strategy has no part in the fallback (A17). A
//! second loss is the job's error.
//!
//! Commands given at any time reach the run that is under way, or the next.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::Receiver;
use element::option_table::{CacheOverBudget, CacheRecovery};
use element::{ByteSize, Clock, Configuration, DataSetId, JobId, VertexId, option_table};
use graph::{CacheDecision, CachePlan, ResolvedMode};

use super::jobs::{Made, Settling};
use super::workers::Workers;
use crate::checkpoint::{CheckpointStorage, RestorePoint};
use crate::cluster::{
    DataSets, JobCommand, JobDataSets, JobMaster, JobOutcome, JobProgress, JobRequest, RepairScope,
    TaskManagerHandle, lost_partition, place_of,
};
use crate::error::{JobError, TaskFailure};
use crate::executor::{Executor, Turn};
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
    pub(super) over_budget: CacheOverBudget,
    pub(super) recovery: CacheRecovery,
    pub(super) next_job: Arc<AtomicU64>,
    pub(super) executor: Executor,
}

/// How a job begins.
pub(super) enum First {
    /// With a run.
    Run(Box<Prepared>),
    /// With the repair of what the plan would make whole.
    Repair(Arc<ExecutionPlan>),
}

/// What was repaired for a job: why, and how many parts.
pub(super) type Repaired = BTreeMap<DataSetId, (String, u32)>;

/// A run that begins, and why it is the job's second, if it is.
pub(super) type Begun = (Box<Prepared>, Option<String>);

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
    /// Handles one message of the run.
    pub(super) fn turn(&mut self) -> Turn {
        self.master.turn()
    }

    /// Whether a message lies ready.
    pub(super) fn is_ready(&self) -> bool {
        self.master.is_ready()
    }

    /// Waits for a message.
    pub(super) fn wait(&self, limit: Option<Duration>) {
        self.master.wait(limit);
    }

    /// It is over when what it made is kept or gone, and not before (P4).
    pub(super) fn settle(self) -> Settling {
        self.made.settle(self.master.outcome())
    }

    /// Runs to the end while others wait: a repair, which stands before what was asked for.
    fn run(mut self, executor: &Executor) -> Ended {
        loop {
            let goes_on = match self.turn() {
                Turn::Done => false,
                Turn::Progress => true,
                Turn::Wait(limit) => executor.pause(|| self.wait(limit)),
            };
            if !goes_on {
                break;
            }
        }
        let settling = self.settle();
        settling.wait();
        settling.end()
    }
}

impl Attempts {
    /// Prepares the first run of a plan, unless something is to be repaired before.
    pub(super) fn first(&self, plan: Arc<ExecutionPlan>) -> Result<First, JobError> {
        if self.next_repair(&plan).is_some() {
            return Ok(First::Repair(plan));
        }
        Ok(First::Run(Box::new(self.prepare(plan)?)))
    }

    /// Prepares a run of a plan, under an id of its own.
    fn prepare(&self, plan: Arc<ExecutionPlan>) -> Result<Prepared, JobError> {
        let restore = self.restore.as_deref().map(RestorePoint::read).transpose()?;
        let data_sets = self.registry.begin(&plan, self.recovery);
        self.prepare_of(plan, data_sets, restore, None)
    }

    /// What was begun is settled, whatever happens.
    fn prepare_of(
        &self,
        plan: Arc<ExecutionPlan>,
        data_sets: JobDataSets,
        restore: Option<RestorePoint>,
        repair: Option<RepairScope>,
    ) -> Result<Prepared, JobError> {
        let id = JobId(self.next_job.fetch_add(1, Ordering::AcqRel));
        let request = JobRequest {
            id,
            name: self.name.clone(),
            plan: Arc::clone(&plan),
            config: self.config.clone(),
            managers: Vec::new(),
            storage: Arc::clone(&self.storage),
            data_sets: data_sets.generations(),
            room: self.room(),
            repair,
            restore,
            clock: Arc::clone(&self.clock),
            progress: Arc::clone(&self.progress),
        };
        let registry = Arc::clone(&self.registry);
        let made = Made { job: id, plan, data_sets, registry, budget: self.budget };
        let master = self.slots(&made.plan).and_then(|managers| {
            JobMaster::new(JobRequest { managers, ..request }, self.mailbox.clone())
        });
        match master {
            Ok(master) => Ok(Prepared { master, made }),
            Err(error) => {
                made.drop_all();
                Err(error)
            }
        }
    }

    /// Bytes that a job's caches may take, if more is an error.
    fn room(&self) -> Option<ByteSize> {
        let budget = self.budget.filter(|_| self.over_budget == CacheOverBudget::Error)?;
        Some(ByteSize(budget.0.saturating_sub(self.registry.fixed_bytes().0)))
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

    /// Begins the first run, behind the repair if there is one; or how the job ended. A loss that the
    /// repair meets counts as one that a run meets: what begins is then the second run, and why.
    pub(super) fn begin(
        &self,
        first: First,
        replan: &Replan,
        repaired: &mut Repaired,
    ) -> Result<Begun, Box<Ended>> {
        let plan = match first {
            First::Run(prepared) => return Ok((prepared, None)),
            First::Repair(plan) => plan,
        };
        let mode = plan.mode;
        let first = match self.repair(plan, replan, repaired) {
            Err(JobError::CacheLost { source, .. }) => self.run_without(&source, replan, repaired),
            repaired => repaired
                .and_then(|plan| self.prepare(plan))
                .map(|prepared| (Box::new(prepared), None)),
        };
        first.map_err(|error| {
            let outcome = JobOutcome { result: Err(error), ..JobOutcome::internal("no run") };
            Box::new(Ended { outcome, caches: Vec::new(), mode })
        })
    }

    /// What runs behind a run that has ended, if cached data was lost, and why; or how the job ended.
    pub(super) fn second(
        &self,
        ended: Ended,
        replan: &Replan,
        repaired: &mut Repaired,
    ) -> Result<Begun, Box<Ended>> {
        let Err(JobError::CacheLost { source, .. }) = &ended.outcome.result else {
            return Err(Box::new(ended));
        };
        self.run_without(source, replan, repaired).map_err(|error| {
            let outcome = JobOutcome { result: Err(error), ..ended.outcome };
            Box::new(Ended { outcome, ..ended })
        })
    }

    /// Prepares the run that is to make good a loss. One that its repairs meet is a second one, and
    /// an error.
    fn run_without(
        &self,
        loss: &TaskFailure,
        replan: &Replan,
        repaired: &mut Repaired,
    ) -> Result<Begun, JobError> {
        let reason = chain_of(loss);
        self.give_up_damaged(loss);
        tracing::info!(job = %self.name, %reason, "cached data is lost: the job runs without it");
        let plan = self.plan_without_damage(replan)?;
        let prepared = self.prepare(self.repair(Arc::new(plan), replan, repaired)?)?;
        self.progress.begin_again();
        Ok((Box::new(prepared), Some(reason)))
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
        if let Some((data_set, generation, producer)) = found {
            self.registry.damaged(data_set, generation, producer, &chain_of(&failure.source));
        }
    }

    /// Makes the lost parts again of every data set that the plan would make whole, and plans with
    /// them. What cannot be repaired by parts is left to the plan, whole.
    fn repair(
        &self,
        mut plan: Arc<ExecutionPlan>,
        replan: &Replan,
        repaired: &mut Repaired,
    ) -> Result<Arc<ExecutionPlan>, JobError> {
        while let Some((data_set, producer)) = self.next_repair(&plan) {
            self.registry.check_parts(data_set);
            let Some((data_sets, damage)) = self.registry.begin_repair(data_set) else {
                plan = Arc::new(replan()?);
                continue;
            };
            let scope = match RepairScope::of(&plan, data_set, producer, &damage) {
                Ok(scope) => scope,
                Err(why) => {
                    tracing::info!(job = %self.name, %data_set, why, "made again as a whole");
                    self.registry.give_up(data_set, &damage.reason);
                    continue;
                }
            };
            tracing::info!(job = %self.name, %data_set, parts = damage.lost.len(), "repairs");
            let parts = u32::try_from(damage.lost.len()).unwrap_or(u32::MAX);
            let prepared = self.prepare_of(plan, data_sets, None, Some(scope))?;
            prepared.run(&self.executor).outcome.result?;
            self.progress.begin_again();
            repaired.insert(data_set, (damage.reason, parts));
            plan = Arc::new(replan()?);
        }
        Ok(plan)
    }

    /// Of the damaged data sets that a plan makes the one that is furthest up.
    fn next_repair(&self, plan: &ExecutionPlan) -> Option<(DataSetId, VertexId)> {
        let damaged = plan.caches.iter().filter_map(|cache| match cache.decision {
            CacheDecision::Computed { producer } if self.registry.is_damaged(cache.data_set) => {
                Some((producer, cache.data_set))
            }
            _ => None,
        });
        damaged.min().map(|(producer, data_set)| (data_set, producer))
    }
}
