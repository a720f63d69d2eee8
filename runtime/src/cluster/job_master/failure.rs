//! Ends of tasks, good and bad: what runs again, and when the job gives up.

use std::time::Duration;

use element::{Attempt, DataSetId, SubtaskIndex, TaskManagerId, VertexId};
use graph::CacheDecision;
use shuffle::PartitionIdentity;

use super::{JobMaster, UnitState};
use crate::checkpoint::BacklogOrigin;
use crate::cluster::task_manager::TaskManagerMessage;
use crate::error::{JobError, TaskError, TaskFailure};
use crate::events::{FinishedOutput, TaskEnd, TaskId};

impl JobMaster {
    pub(super) fn ended(&mut self, unit: usize, task: TaskId, result: Result<TaskEnd, TaskError>) {
        let at = self.placed.remove(&task);
        self.awaiting.remove(&task);
        self.leave_alignment((task.vertex, task.subtask));
        let manager = at.and_then(|at| self.request.managers.get(at)).map(|manager| manager.id);
        if let Some(UnitState::Running(running)) = self.states.get_mut(unit) {
            running.left.remove(&task);
        }
        match result {
            Ok(end) => {
                self.keep_results(manager, end);
                self.source_ended(unit, task.vertex);
                let decisions = self.coordinator.ended((task.vertex, task.subtask), self.now());
                self.carry_out_decisions(decisions);
            }
            Err(source) => {
                // Its part is missing for good: nothing that waits for it can become whole.
                let decisions = self.coordinator.abort_all("a task has failed");
                self.carry_out_decisions(decisions);
                self.task_failed(unit, task, source);
            }
        }
        let empty = matches!(
            self.states.get(unit),
            Some(UnitState::Running(running)) if running.left.is_empty()
        );
        if empty {
            self.unit_ended(unit);
        }
    }

    fn keep_results(&mut self, manager: Option<TaskManagerId>, end: TaskEnd) {
        let Some(manager) = manager else { return };
        for output in end.partitions {
            let identity = output.descriptor.identity;
            let before = match identity {
                PartitionIdentity::Result(id) => {
                    self.finished.insert((id.edge, id.producer), (manager, output))
                }
                PartitionIdentity::DataSet { data_set, producer, .. } => {
                    let before = self.persistent.insert((data_set, producer), (manager, output));
                    self.hold_to_room(data_set);
                    before
                }
            };
            // The same part again, at the same place, has replaced the one before.
            if let Some((at, before)) = before
                && (at, before.descriptor.identity) != (manager, identity)
            {
                self.release(at, before);
            }
        }
        if self.answered && !self.satisfied && !self.fills_cache() {
            self.satisfied = true;
            self.cancel_all();
        }
    }

    /// The job fails as soon as what it keeps finds no room.
    fn hold_to_room(&mut self, data_set: DataSetId) {
        let Some(room) = self.request.room else { return };
        let bytes: u64 = self.persistent.values().map(|(_, output)| output.finished.bytes).sum();
        if bytes > room.0 {
            let (job, name) = (self.request.name.clone(), name_of(&self.request.plan, data_set));
            self.give_up(JobError::CacheOverBudget { job, name, bytes, room: room.0 });
        }
    }

    pub(super) fn release(&self, manager: TaskManagerId, output: FinishedOutput) {
        let manager = self.request.managers.iter().find(|other| other.id == manager);
        let message = TaskManagerMessage::Release(vec![output.descriptor]);
        if manager.is_none_or(|manager| manager.sender.send(message).is_err()) {
            tracing::debug!("a result's task manager is gone");
        }
    }

    /// The first failure counts; those of tasks that were cancelled for it, or that miss the other end
    /// of a channel, follow from it.
    fn task_failed(&mut self, unit: usize, task: TaskId, source: TaskError) {
        let name =
            self.request.plan.vertex(task.vertex).map(|v| v.name.clone()).unwrap_or_default();
        let Some(UnitState::Running(running)) = self.states.get_mut(unit) else { return };
        let replaces = match &running.failure {
            None => true,
            Some(before) => follows(&before.source) && !follows(&source),
        };
        if !replaces {
            return;
        }
        let TaskId { attempt, subtask, .. } = task;
        running.failure = Some(TaskFailure { task: name, subtask, attempt, source });
        running.network.abandon();
        let others: Vec<TaskId> = running.left.iter().copied().collect();
        for other in others {
            self.tell(other, TaskManagerMessage::Cancel(self.request.id, vec![other]));
        }
    }

    fn unit_ended(&mut self, unit: usize) {
        let Some(state) = self.states.get_mut(unit) else { return };
        let UnitState::Running(running) = std::mem::replace(state, UnitState::Finished) else {
            return;
        };
        self.give_slots_back(&running.slots);
        if self.giving_up.is_some() || self.satisfied {
            return;
        }
        match running.failure {
            Some(failure) => self.unit_failed(unit, failure),
            None if running.lacks_a_result => {
                self.close_sources(unit);
                self.wait_again(unit, self.now());
            }
            None => {}
        }
    }

    fn vertices_of(&self, unit: usize) -> Vec<VertexId> {
        let tasks = self.units.get(unit).map(|unit| unit.tasks.as_slice()).unwrap_or_default();
        tasks.iter().map(|(vertex, _)| *vertex).collect()
    }

    /// A source whose readers have all ended is no longer in backlog, whatever else of its unit still
    /// runs (D2, tB7).
    fn source_ended(&mut self, unit: usize, vertex: VertexId) {
        let runs = match self.states.get(unit) {
            Some(UnitState::Running(running)) => {
                running.failure.is_some() || running.left.iter().any(|task| task.vertex == vertex)
            }
            _ => false,
        };
        if !runs && self.enumerators.is_source(vertex) && self.enumerators.is_backlog(vertex) {
            self.set_backlog(BacklogOrigin::Source(vertex), false);
        }
    }

    fn unit_failed(&mut self, unit: usize, failure: TaskFailure) {
        let lost = lost_partition(&failure.source);
        if let Some(data_set) = self.lost_cache(&failure.source) {
            return self.cache_lost(data_set, failure);
        }
        if self.stopped {
            return self.failed_behind_the_end(failure);
        }
        let now = self.now();
        // What is refused would be refused again.
        let curable = !matches!(failure.source, TaskError::Config(_) | TaskError::Restore { .. });
        let Some(delay) = curable.then(|| self.policy.failed(now)).flatten() else {
            return self.give_up(JobError::Failed {
                job: self.request.name.clone(),
                attempts: self.policy.failures().max(1),
                source: Box::new(failure),
            });
        };
        self.recovered.push(crate::report::chain_of(&failure));
        if let Some(PartitionIdentity::Result(id)) = lost {
            self.produce_again(PartitionIdentity::Result(id), now + delay);
        }
        if lost.is_some() {
            self.missing_inputs_again(unit, now + delay);
        }
        if !self.is_batch() {
            let decisions = self.coordinator.abort_all("the job restarts");
            self.carry_out_decisions(decisions);
            let vertices = self.vertices_of(unit).into_iter().collect();
            self.coordinator.restarted(&vertices, now + delay);
            self.request.progress.set_backlog(self.coordinator.is_backlog());
        }
        self.close_sources(unit);
        self.wait_again(unit, now + delay);
        self.request.progress.restarted();
        self.sweep_checkpoints();
    }

    /// A result of this job is lost: its producer runs again, unless it has done so already.
    pub(super) fn produce_again(&mut self, lost: PartitionIdentity, at: Duration) {
        let PartitionIdentity::Result(id) = lost else { return };
        let key = (id.edge, id.producer);
        if self.finished.get(&key).is_none_or(|(_, kept)| kept.descriptor.identity != lost) {
            return;
        }
        if let Some((manager, output)) = self.finished.remove(&key) {
            self.release(manager, output);
        }
        if let Some(vertex) = self.request.plan.edge(id.edge).map(|edge| edge.from.vertex) {
            self.run_again(vertex, id.producer, at);
        }
    }

    /// The data set of the plan's that an error says is lost, if it does.
    pub(super) fn lost_cache(&self, error: &TaskError) -> Option<DataSetId> {
        let Some(PartitionIdentity::DataSet { data_set, .. }) = lost_partition(error) else {
            return None;
        };
        let reads = |cache: &graph::CachePlan| {
            cache.data_set == data_set && matches!(cache.decision, CacheDecision::Hit { .. })
        };
        self.request.plan.caches.iter().any(reads).then_some(data_set)
    }

    /// Nobody in this job can make it again: past the restart strategy (A17).
    fn cache_lost(&mut self, data_set: DataSetId, failure: TaskFailure) {
        self.give_up(JobError::CacheLost {
            job: self.request.name.clone(),
            data_sets: vec![(data_set, name_of(&self.request.plan, data_set))],
            source: Box::new(failure),
        });
    }

    /// Sources of a unit of several tasks begin anew; in batch mode a source whose subtasks run alone
    /// keeps its enumerator, and each subtask the splits that it had.
    fn close_sources(&mut self, unit: usize) {
        let vertices = self.vertices_of(unit);
        if vertices.len() > 1 || !self.is_batch() {
            for vertex in vertices {
                self.enumerators.close(vertex);
            }
        }
    }

    /// An enumerator has failed: as if a task of its vertex had, for good.
    pub(super) fn source_failed(&mut self, vertex: VertexId, source: TaskError) {
        let task = self.request.plan.vertex(vertex).map(|v| v.name.clone()).unwrap_or_default();
        let lost = self.lost_cache(&source);
        let failure = TaskFailure { task, subtask: SubtaskIndex(0), attempt: Attempt(0), source };
        if let Some(data_set) = lost {
            return self.cache_lost(data_set, failure);
        }
        self.give_up(JobError::Failed {
            job: self.request.name.clone(),
            attempts: self.policy.failures() + 1,
            source: Box::new(failure),
        });
    }

    /// Ends the job with an error; the first one counts.
    pub(super) fn give_up(&mut self, error: JobError) {
        self.giving_up.get_or_insert(error);
        self.cancel_all();
    }

    pub(super) fn cancel_all(&mut self) {
        for task in self.running_tasks() {
            self.tell(task, TaskManagerMessage::Cancel(self.request.id, vec![task]));
        }
        for state in &self.states {
            if let UnitState::Running(running) = state {
                running.network.abandon();
            }
        }
    }

    /// Results between the job's own stages end with it.
    pub(super) fn release_results(&mut self) {
        for (manager, output) in std::mem::take(&mut self.finished).into_values() {
            self.release(manager, output);
        }
    }
}

/// Whether an error follows from the failure of another task.
fn follows(error: &TaskError) -> bool {
    matches!(
        error,
        TaskError::Cancelled
            | TaskError::Read(shuffle::ReadError::Abandoned)
            | TaskError::Write(shuffle::WriteError::Closed { .. })
    )
}

/// The partition at rest whose loss or damage an error is about.
pub(crate) fn lost_partition(error: &TaskError) -> Option<PartitionIdentity> {
    match error {
        TaskError::Read(error) => error.partition().copied(),
        TaskError::Shuffle(error) => Some(*error.partition()),
        TaskError::Source { source, .. } => source.chain().find_map(|cause| {
            let read = cause.downcast_ref::<shuffle::ReadError>().and_then(|e| e.partition());
            let partition = cause.downcast_ref::<shuffle::ShuffleError>().map(|e| e.partition());
            read.or(partition).copied()
        }),
        _ => None,
    }
}

fn name_of(plan: &crate::factory::ExecutionPlan, data_set: DataSetId) -> String {
    plan.caches
        .iter()
        .find(|cache| cache.data_set == data_set)
        .map_or_else(|| data_set.to_string(), |cache| cache.name.clone())
}
