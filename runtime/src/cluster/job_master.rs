//! [`JobMaster`]: runs one job: deploys its units, hears its tasks, restarts what failed.
//!
//! ```text
//!   waiting --(inputs finished, slots free)--> running --(all tasks ended)--> finished
//!      ^                                          |
//!      '--(restart strategy says yes)-- failing <-'--(it says no)--> the job fails
//! ```
//!
//! A turn handles one message. It never waits for anything but its mailbox and the next deadline.

mod alignment;
mod checkpoints;
mod deploy;
mod ends;
mod failure;
mod losses;
mod mailbox;
mod outcome;
mod restored;
mod splits;
mod suspend;

pub(crate) use failure::lost_partition;
pub use outcome::{CompletedCheckpoint, JobOutcome};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use element::{
    ByteSize, CheckpointId, Clock, Configuration, DataSetId, EdgeId, Generation, JobId,
    SubtaskIndex, TaskManagerId, VertexId, option_table,
};
use graph::{Durability, ResolvedMode};

use super::alignment::AlignmentGroups;
use super::enumerators::Enumerators;
use super::progress::JobProgress;
use super::repair::RepairScope;
use super::restart::RestartPolicy;
use super::task_manager::{TaskManagerHandle, TaskManagerMessage};
use super::units::{Unit, units_of};
use crate::checkpoint::{
    BacklogOrigin, CheckpointCoordinator, CheckpointSettings, CheckpointStorage, Participant,
    RestorePoint, SharedFiles,
};
use crate::error::{JobError, TaskFailure};
use crate::events::{FinishedOutput, TaskEvent, TaskId, TaskMail};
use crate::executor::Turn;
use crate::factory::ExecutionPlan;
use crate::network::Network;
use crate::source::EnumeratorOrders;
use splits::sources_of;

/// A job to run.
pub struct JobRequest {
    /// Its id.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its plan.
    pub plan: Arc<ExecutionPlan>,
    /// Its options.
    pub config: Configuration,
    /// Workers to run it.
    pub managers: Vec<TaskManagerHandle>,
    /// Where its checkpoints rest.
    pub storage: Arc<dyn CheckpointStorage>,
    /// Which making of each data set it writes.
    pub data_sets: BTreeMap<DataSetId, Generation>,
    /// Bytes that cached results may take that it makes; more is an error.
    pub room: Option<ByteSize>,
    /// What is run of the plan, if only lost parts of a data set are to be made again.
    pub repair: Option<RepairScope>,
    /// The checkpoint to start from.
    pub restore: Option<RestorePoint>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Counters.
    pub progress: Arc<JobProgress>,
}

/// What a client asks of a running job.
#[non_exhaustive]
pub enum JobCommand {
    /// End it.
    Cancel,
    /// End its input: what was read is finished.
    Stop,
    /// Take a savepoint, and end without ending the input if that is asked for.
    Savepoint {
        /// Which kind: savepoint, or stop with savepoint.
        kind: element::BarrierKind,
        /// A folder is made for it below this one.
        directory: std::path::PathBuf,
        /// The savepoint's folder, or why there is none.
        answer: Sender<Result<std::path::PathBuf, JobError>>,
    },
    /// End it behind a last checkpoint, from which it can go on.
    Suspend,
    /// End it, for its environment is closed.
    Close,
    /// A worker is gone; another one stands in its place.
    WorkerLost {
        /// Which one.
        lost: TaskManagerId,
        /// The other one.
        replacement: TaskManagerHandle,
    },
}

enum UnitState {
    /// Not deployed; not before this time, if there is one.
    Waiting {
        not_before: Duration,
    },
    Running(Box<RunningUnit>),
    Finished,
}

struct RunningUnit {
    left: BTreeSet<TaskId>,
    slots: Vec<usize>,
    network: Arc<Network>,
    failure: Option<TaskFailure>,
    /// A result of a task that has ended was lost while others ran: all run once more.
    lacks_a_result: bool,
}

/// A savepoint that somebody waits for.
struct SavepointRequest {
    directory: std::path::PathBuf,
    answer: Sender<Result<std::path::PathBuf, JobError>>,
}

/// An event and who sent it.
type TaskMessage = (TaskId, TaskEvent);

/// A finished partition and where it lies.
type Located = (TaskManagerId, FinishedOutput);

/// Runs one job.
pub struct JobMaster {
    request: JobRequest,
    events: (Sender<TaskMessage>, Receiver<TaskMessage>),
    commands: Receiver<JobCommand>,
    begun: Duration,
    /// Whether files that no checkpoint has were looked for.
    swept: bool,
    units: Vec<Unit>,
    states: Vec<UnitState>,
    attempts: BTreeMap<usize, u32>,
    placed: BTreeMap<TaskId, usize>,
    free_slots: Vec<u32>,
    enumerators: Enumerators,
    alignment: AlignmentGroups,
    assigned: BTreeMap<Participant, Vec<Vec<u8>>>,
    finished: BTreeMap<(EdgeId, SubtaskIndex), Located>,
    persistent: BTreeMap<(DataSetId, SubtaskIndex), Located>,
    coordinator: CheckpointCoordinator,
    policy: RestartPolicy,
    latest: Option<RestorePoint>,
    savepoints: BTreeMap<CheckpointId, SavepointRequest>,
    /// The checkpoint that ends the job, once it is asked to end behind one.
    suspending: Option<CheckpointId>,
    /// Whether the savepoint or checkpoint that ends the job is complete.
    stopped: bool,
    /// Tasks whose input has ended and whose last rows wait to be committed.
    awaiting: BTreeMap<TaskId, ends::Awaiting>,
    retained: Vec<CheckpointId>,
    /// Sealed runs that lay there when this checkpoint was triggered.
    runs_before: Option<(CheckpointId, BTreeSet<String>)>,
    shared: SharedFiles,
    checkpoints: Vec<CompletedCheckpoint>,
    recovered: Vec<String>,
    giving_up: Option<JobError>,
    /// Workers that were lost, and who stands in for them.
    lost: BTreeMap<TaskManagerId, TaskManagerHandle>,
    /// Whether a sink wants no more.
    answered: bool,
    satisfied: bool,
}

impl JobMaster {
    /// Prepares a job. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// [`JobError`] for options that have no valid value, or too few slots.
    pub fn new(request: JobRequest, commands: Receiver<JobCommand>) -> Result<Self, JobError> {
        let units = match &request.repair {
            Some(scope) => scope.units(&request.plan),
            None => units_of(&request.plan),
        };
        let available: u32 = request.managers.iter().map(|manager| manager.slots).sum();
        let needed = units.iter().map(|unit| unit.slots).max().unwrap_or(0);
        if needed > available {
            return Err(JobError::TooFewSlots { job: request.name, needed, available });
        }
        let settings = CheckpointSettings::of(&request.config)?;
        if let Some(point) = &request.restore {
            let allow = request.config.get(&option_table::ALLOW_NON_RESTORED_STATE)?;
            point.check(&request.plan, allow)?;
        }
        let batch = request.plan.mode == ResolvedMode::Batch;
        let settings = CheckpointSettings {
            interval: settings.interval.filter(|_| !batch),
            durable_backlog: keeps_runs(&request.plan),
            ..settings
        };
        let (claimed, others) = checkpoints::claimed(&request);
        let recoverable = batch || settings.interval.is_some();
        let policy = RestartPolicy::of(&request.config, recoverable)?;
        let stored = crate::session::last_checkpoint(&*request.storage);
        let last = request.restore.as_ref().map_or(stored, |point| point.manifest.id.max(stored));
        let now = request.clock.monotonic();
        let waiting = |_: &Unit| UnitState::Waiting { not_before: Duration::ZERO };
        let (enumerators, assigned) = request.repair.as_ref().map(sources_of).unwrap_or_default();
        Ok(Self {
            events: crossbeam_channel::unbounded(),
            commands,
            begun: now,
            swept: false,
            states: units.iter().map(waiting).collect(),
            units,
            attempts: BTreeMap::new(),
            placed: BTreeMap::new(),
            free_slots: request.managers.iter().map(|manager| manager.slots).collect(),
            enumerators,
            alignment: AlignmentGroups::default(),
            assigned,
            finished: BTreeMap::new(),
            persistent: BTreeMap::new(),
            coordinator: CheckpointCoordinator::new(settings, last, now),
            policy,
            latest: request.restore.clone(),
            savepoints: BTreeMap::new(),
            suspending: None,
            stopped: false,
            awaiting: BTreeMap::new(),
            retained: claimed.iter().map(|manifest| manifest.id).collect(),
            runs_before: None,
            shared: SharedFiles::of(&claimed, &others),
            checkpoints: Vec::new(),
            recovered: Vec::new(),
            giving_up: None,
            lost: BTreeMap::new(),
            answered: false,
            satisfied: false,
            request,
        })
    }

    /// Handles one message and what follows from it.
    pub(crate) fn turn(&mut self) -> Turn {
        if !std::mem::replace(&mut self.swept, true) {
            self.sweep_checkpoints();
        }
        let handled = self.message();
        self.tick();
        self.commit_last();
        if self.giving_up.is_none() {
            self.deploy_what_can();
        }
        if self.is_over() {
            Turn::Done
        } else if handled {
            Turn::Progress
        } else {
            Turn::Wait(self.until_deadline())
        }
    }

    /// How the job ended; to be asked when its last turn is done.
    pub(crate) fn outcome(mut self) -> JobOutcome {
        self.release_results();
        let result = self.result();
        self.discard_checkpoints(&result);
        JobOutcome {
            result,
            splits: self.splits_of_data_sets(),
            took: self.now().saturating_sub(self.begun),
            persistent: self.persistent.into_values().collect(),
            checkpoints: self.checkpoints,
            recovered: self.recovered,
        }
    }

    fn now(&self) -> Duration {
        self.request.clock.monotonic()
    }

    fn is_over(&self) -> bool {
        let ended = self.giving_up.is_some() || self.satisfied;
        self.states.iter().all(|state| match state {
            UnitState::Finished => true,
            UnitState::Waiting { .. } => ended,
            UnitState::Running(_) => false,
        })
    }

    fn command(&mut self, command: JobCommand) {
        match command {
            JobCommand::Cancel => {
                let error = JobError::Cancelled { job: self.request.name.clone() };
                self.give_up(error);
            }
            JobCommand::Suspend => self.suspend(),
            JobCommand::Close => self.give_up(JobError::Closed),
            JobCommand::WorkerLost { lost, replacement } => self.worker_lost(lost, replacement),
            JobCommand::Savepoint { kind, directory, answer } => {
                self.savepoint(kind, directory, answer);
            }
            JobCommand::Stop => {
                let sources: BTreeSet<VertexId> = self.enumerators.sources().collect();
                for task in self.running_tasks() {
                    if sources.contains(&task.vertex) {
                        self.mail(task, TaskMail::Stop);
                    }
                }
            }
        }
    }

    fn event(&mut self, task: TaskId, event: TaskEvent) {
        let Some(unit) = self.unit_of(task) else {
            tracing::debug!(?task, "an event of an attempt that is over");
            return;
        };
        let who = (task.vertex, task.subtask);
        let now = self.now();
        match event {
            TaskEvent::Ended(result) => self.ended(unit, task, result),
            TaskEvent::SplitRequest => {
                let orders = self.enumerators.split_requested(task.vertex, task.subtask);
                self.carry_out(task.vertex, orders);
            }
            TaskEvent::ReaderEvent(event) => {
                let orders = self.enumerators.reader_event(task.vertex, task.subtask, &event);
                self.carry_out(task.vertex, orders);
            }
            TaskEvent::BacklogBegun => {
                let decisions = self.coordinator.collecting(who, true, now);
                self.carry_out_decisions(decisions);
            }
            TaskEvent::RunIsDue => {
                let decisions = self.coordinator.wanted(now);
                self.carry_out_decisions(decisions);
            }
            TaskEvent::Drained => {
                let decisions = self.coordinator.collecting(who, false, now);
                self.carry_out_decisions(decisions);
            }
            TaskEvent::LagBacklog(is_backlog) => {
                self.set_backlog(BacklogOrigin::Lag(who.0, who.1), is_backlog);
            }
            TaskEvent::Acknowledged { id, states } => {
                if !self.coordinator.is_pending(id) && !self.retained.contains(&id) {
                    // Given up meanwhile: what was written since is of no use.
                    self.discard(id);
                }
                let decisions = self.coordinator.acknowledged(id, who, states, now);
                self.carry_out_decisions(decisions);
            }
            TaskEvent::Declined { id, reason } => {
                let decisions = self.coordinator.declined(id, &reason, now);
                self.carry_out_decisions(decisions);
            }
            TaskEvent::AwaitsLastCommit(states) => self.awaits_last_commit(task, states),
            TaskEvent::SnapshotFailed { id, reason } => {
                let decisions = self.coordinator.failed(id, &reason, now);
                self.carry_out_decisions(decisions);
            }
            TaskEvent::Alignment(report) => self.alignment_reported(who, report),
            TaskEvent::Satisfied => self.satisfied(),
        }
    }

    fn set_backlog(&mut self, who: BacklogOrigin, is_backlog: bool) {
        let now = self.now();
        if is_backlog {
            self.expect_drains(who.vertex());
        }
        let decisions = self.coordinator.backlog(who, is_backlog, now);
        self.request.progress.set_backlog(self.coordinator.is_backlog());
        self.carry_out_decisions(decisions);
    }

    /// Sends what an enumerator has ordered. Splits are remembered, for a reader that must begin anew.
    fn carry_out(
        &mut self,
        vertex: VertexId,
        orders: Result<EnumeratorOrders, crate::error::TaskError>,
    ) {
        let orders = match orders {
            Ok(orders) => orders,
            Err(error) => return self.source_failed(vertex, error),
        };
        let parallelism = self.request.plan.vertex(vertex).map_or(1, |vertex| vertex.parallelism);
        for (reader, mail) in orders.mail {
            let readers: Vec<SubtaskIndex> = match reader {
                Some(reader) => vec![reader],
                None => (0..parallelism).map(SubtaskIndex).collect(),
            };
            for reader in readers {
                let copy = match &mail {
                    TaskMail::Splits(splits) => {
                        let assigned = self.assigned.entry((vertex, reader)).or_default();
                        assigned.extend(splits.iter().cloned());
                        TaskMail::Splits(splits.clone())
                    }
                    TaskMail::NoMoreSplits => TaskMail::NoMoreSplits,
                    TaskMail::Backlog(is_backlog) => TaskMail::Backlog(*is_backlog),
                    TaskMail::ReaderEvent(event) => TaskMail::ReaderEvent(event.clone()),
                    _ => continue,
                };
                self.mail_participant((vertex, reader), copy);
            }
        }
        if let Some(is_backlog) = orders.is_backlog {
            self.set_backlog(BacklogOrigin::Source(vertex), is_backlog);
        }
    }

    fn mail_participant(&mut self, who: Participant, mail: TaskMail) {
        let running = self.placed.keys().find(|task| (task.vertex, task.subtask) == who).copied();
        if let Some(task) = running {
            self.mail(task, mail);
        }
    }

    fn mail(&self, task: TaskId, mail: TaskMail) {
        self.tell(task, TaskManagerMessage::Mail(self.request.id, task, mail));
    }

    fn tell(&self, task: TaskId, message: TaskManagerMessage) {
        let manager = self.placed.get(&task).and_then(|at| self.request.managers.get(*at));
        if manager.is_none_or(|manager| manager.sender.send(message).is_err()) {
            tracing::debug!(?task, "its task manager is gone");
        }
    }

    fn running_tasks(&self) -> Vec<TaskId> {
        self.states
            .iter()
            .filter_map(|state| match state {
                UnitState::Running(running) => Some(running.left.iter().copied()),
                _ => None,
            })
            .flatten()
            .collect()
    }

    fn unit_of(&self, task: TaskId) -> Option<usize> {
        self.states.iter().position(
            |state| matches!(state, UnitState::Running(running) if running.left.contains(&task)),
        )
    }

    /// Deadlines that have passed.
    fn tick(&mut self) {
        let decisions = self.coordinator.poll(self.now());
        self.carry_out_decisions(decisions);
    }
}

/// Whether any operator's collected backlog is stored in checkpoints.
fn keeps_runs(plan: &ExecutionPlan) -> bool {
    let mut operators = plan.vertices.iter().flat_map(|vertex| &vertex.chain);
    operators.any(|operator| operator.durability == Durability::Kept)
}
