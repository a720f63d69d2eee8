//! Good ends: a job that has its answer, and the last commit: sinks whose input has ended wait until
//! all that may still fail has ended too.
//!
//! ```text
//!   sink: end of input, prepares, waits    JobMaster: nothing else runs -> manifest -> "finished"
//!         '-- or a checkpoint that covers it is complete before that ---------> "finished"
//! ```
//!
//! Without it a sink that ends early would commit rows that a failure elsewhere makes the job write
//! again. The last checkpoint has what the sinks prepared, so a crash between its manifest and the
//! commits is made up by the next attempt (FLIP-147; tK19).

use element::{BarrierKind, CheckpointId, SubtaskIndex};

use super::{JobMaster, UnitState};
use crate::checkpoint::{Manifest, OperatorEntry, OperatorState};
use crate::error::JobError;
use crate::events::{TaskId, TaskMail};

/// A task whose input has ended and whose last rows are prepared.
pub(super) struct Awaiting {
    states: Vec<OperatorState>,
    /// The checkpoint that has its last part, if one is under way.
    covered_by: Option<CheckpointId>,
}

impl JobMaster {
    /// The job's answer is there: what still runs is ended, unless it fills a cache (decision D18).
    pub(super) fn satisfied(&mut self) {
        self.answered = true;
        if !self.fills_cache() && !self.satisfied {
            self.satisfied = true;
            self.cancel_all();
        }
    }

    /// Whether some part of a data set is still to be written.
    pub(super) fn fills_cache(&self) -> bool {
        self.request.plan.vertices.iter().any(|vertex| {
            let subtasks = (0..vertex.parallelism).map(SubtaskIndex);
            subtasks.into_iter().any(|subtask| {
                let key = |data_set| (data_set, subtask);
                let mut outputs = vertex.persistent.iter();
                outputs.any(|output| !self.persistent.contains_key(&key(output.data_set)))
            })
        })
    }

    /// A task has ended its input and waits for the last commit.
    pub(super) fn awaits_last_commit(&mut self, task: TaskId, states: Vec<OperatorState>) {
        let who = (task.vertex, task.subtask);
        let owed = self.coordinator.owed_by(who);
        let covered_by = owed.first().copied();
        self.awaiting.insert(task, Awaiting { states: states.clone(), covered_by });
        for id in owed {
            let now = self.now();
            let decisions = self.coordinator.acknowledged(id, who, states.clone(), now);
            self.carry_out_decisions(decisions);
        }
    }

    /// The parts of tasks that wait: they get no barrier any more, and owe nothing.
    pub(super) fn parts_of_waiting(&mut self, id: CheckpointId) -> Vec<OperatorEntry> {
        let mut entries = Vec::new();
        for (task, awaiting) in &mut self.awaiting {
            awaiting.covered_by.get_or_insert(id);
            let subtask = task.subtask.0;
            let states = awaiting.states.iter().cloned();
            entries.extend(states.map(|state| OperatorEntry { subtask, state }));
        }
        entries
    }

    /// A checkpoint is given up: what it would have covered waits for another one.
    pub(super) fn uncover(&mut self, id: CheckpointId) {
        for awaiting in self.awaiting.values_mut() {
            awaiting.covered_by = awaiting.covered_by.filter(|by| *by != id);
        }
    }

    /// A checkpoint is complete: tasks whose last part it has may commit and end.
    pub(super) fn release_covered(&mut self, id: CheckpointId) {
        let covered = |awaiting: &Awaiting| awaiting.covered_by.is_some_and(|by| by <= id);
        let tasks = self.awaiting.iter().filter(|(_, awaiting)| covered(awaiting));
        let tasks: Vec<TaskId> = tasks.map(|(task, _)| *task).collect();
        for task in tasks {
            self.awaiting.remove(&task);
            self.mail(task, TaskMail::Finished);
        }
    }

    /// When nothing runs but tasks that wait, and nothing more can be deployed, the last checkpoint
    /// is written and they are let go. What lacks slots gets theirs.
    pub(super) fn commit_last(&mut self) {
        let running = self.running_tasks();
        let all_wait = !running.is_empty() && running.iter().all(|t| self.awaiting.contains_key(t));
        let more = (0..self.states.len()).any(|unit| match self.states.get(unit) {
            Some(UnitState::Waiting { .. }) => {
                self.inputs_finished(unit) && self.has_slots_for(unit)
            }
            Some(UnitState::Running(running)) => running.failure.is_some(),
            _ => false,
        });
        if !all_wait || more || self.giving_up.is_some() {
            return;
        }
        // It ends by itself before it could be suspended.
        self.suspending = None;
        let decisions = self.coordinator.abort_all("the job ends");
        self.carry_out_decisions(decisions);
        let barrier = self.coordinator.next_barrier(BarrierKind::ExactlyOnce);
        let enumerators = match self.enumerators.snapshot() {
            Ok(enumerators) => enumerators,
            Err(error) => {
                let reason = crate::report::chain_of(&error);
                let job = self.request.name.clone();
                return self.give_up(JobError::Checkpoint { job, id: barrier.id, reason });
            }
        };
        let operators = self.parts_of_waiting(barrier.id);
        let job = self.request.name.clone();
        let manifest = Manifest { id: barrier.id, job, operators, enumerators };
        self.complete(barrier, manifest, std::time::Duration::ZERO);
    }
}
