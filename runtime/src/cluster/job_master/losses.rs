//! Workers that are gone, and results that went with them: all found at once (tC8).

use std::time::Duration;

use element::{DataSetId, SubtaskIndex, TaskManagerId, VertexId};
use shuffle::PartitionIdentity;

use super::{JobMaster, UnitState};
use crate::cluster::task_manager::TaskManagerHandle;
use crate::error::TaskError;
use crate::events::TaskId;

impl JobMaster {
    /// Another worker takes a lost one's place; what rested there is produced again, and what ran
    /// there has failed. What rests apart from its worker stays (tC7).
    pub(super) fn worker_lost(&mut self, lost: TaskManagerId, replacement: TaskManagerHandle) {
        // Two losses may be told in any order: one that stands in may be lost already.
        self.lost.insert(lost, replacement.clone());
        let mut replacement = replacement;
        while let Some(next) = self.lost.get(&replacement.id) {
            replacement = next.clone();
        }
        let Some(at) = self.request.managers.iter().position(|manager| manager.id == lost) else {
            return;
        };
        let survives = replacement.service.survives_worker_loss();
        let heir = replacement.id;
        if let Some(manager) = self.request.managers.get_mut(at) {
            *manager = TaskManagerHandle { slots: manager.slots, ..replacement };
        }
        if survives {
            let id = self.request.managers.get(at).map_or(lost, |manager| manager.id);
            for (manager, _) in self.finished.values_mut().filter(|(manager, _)| *manager == lost) {
                *manager = id;
            }
        } else {
            self.results_lost(lost);
        }
        // A part that its worker can no longer answer for cannot be promoted.
        self.parts_lost(lost, heir);
        let there: Vec<TaskId> =
            self.placed.iter().filter(|(_, place)| **place == at).map(|(task, _)| *task).collect();
        for task in there {
            if let Some(unit) = self.unit_of(task) {
                self.ended(unit, task, Err(TaskError::WorkerLost { worker: lost }));
            }
        }
    }

    fn results_lost(&mut self, lost: TaskManagerId) {
        let now = self.now();
        let results: Vec<PartitionIdentity> = self
            .finished
            .values()
            .filter(|(manager, _)| *manager == lost)
            .map(|(_, output)| output.descriptor.identity)
            .collect();
        for identity in results {
            self.produce_again(identity, now);
        }
    }

    /// What rests apart from its worker is dropped by `heir`, for it is written again by another name.
    fn parts_lost(&mut self, lost: TaskManagerId, heir: TaskManagerId) {
        let now = self.now();
        let parts: Vec<(DataSetId, SubtaskIndex)> = self
            .persistent
            .iter()
            .filter(|(_, (manager, _))| *manager == lost)
            .map(|(key, _)| *key)
            .collect();
        for (data_set, producer) in parts {
            let part = self.persistent.remove(&(data_set, producer));
            if let Some((_, output)) = part {
                self.release(heir, output);
            }
            let vertex =
                self.request.plan.vertices.iter().find(|vertex| {
                    vertex.persistent.iter().any(|output| output.data_set == data_set)
                });
            if let Some(vertex) = vertex.map(|vertex| vertex.id) {
                self.run_again(vertex, producer, now);
            }
        }
    }

    /// A finished unit that holds a subtask runs again. One that runs does so when it has ended, unless
    /// the subtask still runs; one that waits is left alone.
    pub(super) fn run_again(&mut self, vertex: VertexId, subtask: SubtaskIndex, at: Duration) {
        let unit = self.units.iter().position(|unit| unit.tasks.contains(&(vertex, subtask)));
        let Some(unit) = unit else { return };
        match self.states.get_mut(unit) {
            Some(UnitState::Finished) => self.wait_again(unit, at),
            Some(UnitState::Running(running)) => {
                let is_it = |task: &TaskId| (task.vertex, task.subtask) == (vertex, subtask);
                running.lacks_a_result |= !running.left.iter().any(is_it);
            }
            _ => {}
        }
    }

    /// All blocking inputs of a unit are looked for once one was not there.
    pub(super) fn missing_inputs_again(&mut self, unit: usize, at: Duration) {
        let tasks = self.units.get(unit).map(|unit| unit.tasks.clone()).unwrap_or_default();
        let mut lost = Vec::new();
        for (vertex, _) in tasks {
            for location in self.input_partitions(vertex).into_values().flatten() {
                let all = 0..location.descriptor.subpartitions;
                if location.service.reader(&location.descriptor, all).is_err() {
                    lost.push(location.descriptor.identity);
                }
            }
        }
        for identity in lost {
            self.produce_again(identity, at);
        }
    }
}
