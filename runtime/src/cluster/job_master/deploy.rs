//! Deployment: which unit can run, on which slots, with what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use element::{Attempt, EdgeId, SubtaskIndex, VertexId};
use graph::{Exchange, ResolvedMode};

use super::{JobMaster, RunningUnit, UnitState};
use crate::checkpoint::Participant;
use crate::cluster::task_manager::TaskManagerMessage;
use crate::error::TaskError;
use crate::events::{TaskId, TaskMail};
use crate::network::Network;
use crate::source::EnumeratorOrders;
use crate::task::{PartitionLocation, TaskDeployment};

impl JobMaster {
    /// Deploys every unit that can be, in the plan's order, while there are slots.
    pub(super) fn deploy_what_can(&mut self) {
        for unit in 0..self.units.len() {
            if self.giving_up.is_some() || self.satisfied {
                return;
            }
            let due = matches!(
                self.states.get(unit),
                Some(UnitState::Waiting { not_before }) if *not_before <= self.now()
            );
            if due
                && self.inputs_finished(unit)
                && let Some(slots) = self.take_slots(unit)
            {
                self.deploy(unit, slots);
            }
        }
    }

    /// Whether every blocking input of a unit has been written by all of its producers.
    pub(super) fn inputs_finished(&self, unit: usize) -> bool {
        let Some(unit) = self.units.get(unit) else { return false };
        unit.tasks.iter().all(|(vertex, _)| {
            self.blocking_inputs(*vertex).into_iter().all(|(edge, producers)| {
                (0..producers).all(|i| self.finished.contains_key(&(edge, SubtaskIndex(i))))
            })
        })
    }

    /// The blocking edges into a vertex, with the number of their producers.
    fn blocking_inputs(&self, vertex: VertexId) -> Vec<(EdgeId, u32)> {
        let plan = &self.request.plan;
        let producers = |id| plan.vertex(id).map_or(1, |vertex| vertex.parallelism);
        plan.edges
            .iter()
            .filter(|edge| edge.to.vertex == vertex && edge.exchange == Exchange::Blocking)
            .map(|edge| (edge.id, producers(edge.from.vertex)))
            .collect()
    }

    /// Whether there are as many free slots as a unit needs.
    pub(super) fn has_slots_for(&self, unit: usize) -> bool {
        let wanted = self.units.get(unit).map_or(0, |unit| unit.slots);
        self.free_slots.iter().sum::<u32>() >= wanted
    }

    /// Slots for a unit, spread over the workers: for each the worker's place in the list.
    fn take_slots(&mut self, unit: usize) -> Option<Vec<usize>> {
        if !self.has_slots_for(unit) {
            return None;
        }
        let wanted = self.units.get(unit)?.slots;
        let mut slots = Vec::new();
        while slots.len() < wanted as usize {
            let (at, free) =
                self.free_slots.iter_mut().enumerate().rev().max_by_key(|(_, free)| **free)?;
            *free -= 1;
            slots.push(at);
        }
        Some(slots)
    }

    pub(super) fn give_slots_back(&mut self, slots: &[usize]) {
        for slot in slots {
            if let Some(free) = self.free_slots.get_mut(*slot) {
                *free += 1;
            }
        }
    }

    fn deploy(&mut self, unit: usize, slots: Vec<usize>) {
        let Some(tasks) = self.units.get(unit).map(|unit| unit.tasks.clone()) else { return };
        let attempt = {
            let first = self.request.repair.as_ref().map_or(0, |scope| scope.first_attempt);
            let next = self.attempts.entry(unit).or_insert(first);
            *next += 1;
            Attempt(*next - 1)
        };
        self.request.progress.attempt_begun(tasks.len());
        let vertices: BTreeSet<VertexId> = tasks.iter().map(|(vertex, _)| *vertex).collect();
        let alone = tasks.len() == 1;
        let mut orders = Vec::new();
        for vertex in &vertices {
            match self.open_enumerator(*vertex, alone) {
                Ok(opened) => orders.extend(opened.map(|opened| (*vertex, opened))),
                Err(error) => {
                    self.give_slots_back(&slots);
                    return self.source_failed(*vertex, error);
                }
            }
        }
        let capacity = crate::exchange::channel_capacity(&self.request.config).unwrap_or_default();
        let network = Arc::new(Network::new(capacity));
        let mut left = BTreeSet::new();
        for who in &tasks {
            let task = TaskId { attempt, vertex: who.0, subtask: who.1 };
            let slot = if alone { 0 } else { who.1.0 as usize };
            let Some(at) = slots.get(slot).copied() else { continue };
            self.placed.insert(task, at);
            left.insert(task);
            let deployment = self.deployment(*who, attempt, &network, alone);
            self.tell(task, TaskManagerMessage::Deploy(Box::new(deployment)));
        }
        if let Some(state) = self.states.get_mut(unit) {
            let running =
                RunningUnit { left, slots, network, failure: None, lacks_a_result: false };
            *state = UnitState::Running(Box::new(running));
        }
        for (vertex, mut opened) in orders {
            // The flag went with the deployments.
            opened.mail.retain(|(_, mail)| !matches!(mail, TaskMail::Backlog(_)));
            self.carry_out(vertex, Ok(opened));
        }
    }

    /// Opens the enumerator of a source, unless its other subtasks use it already.
    fn open_enumerator(
        &mut self,
        vertex: VertexId,
        alone: bool,
    ) -> Result<Option<EnumeratorOrders>, TaskError> {
        if alone && self.enumerators.is_source(vertex) {
            return Ok(None);
        }
        self.assigned.retain(|(of, _), _| *of != vertex);
        let latest = self.latest.as_ref();
        self.enumerators.open(&self.request.plan, vertex, |uid| {
            latest?
                .manifest
                .enumerators
                .iter()
                .find(|(of, _)| of == uid)
                .map(|(_, stored)| stored.clone())
        })
    }

    fn deployment(
        &self,
        (vertex, subtask): Participant,
        attempt: Attempt,
        network: &Arc<Network>,
        alone: bool,
    ) -> TaskDeployment {
        let request = &self.request;
        let chain =
            request.plan.vertex(vertex).map(|vertex| vertex.chain.as_slice()).unwrap_or_default();
        let names = chain.iter().map(|node| (node.name.clone(), node.uid.clone()));
        let metrics = request.progress.register(vertex, names, subtask.0 as usize);
        let mut restored = self.restored(vertex, subtask);
        if let Some(splits) = self.assigned.get(&(vertex, subtask)).filter(|_| alone)
            && let Some(head) = chain.first()
        {
            let operator = restored.entry(head.uid.clone()).or_default();
            operator.items.clone_from(splits);
        }
        TaskDeployment {
            job: request.id,
            job_name: request.name.clone(),
            attempt,
            plan: Arc::clone(&request.plan),
            vertex,
            subtask,
            config: request.config.clone(),
            network: Arc::clone(network),
            inputs: self.input_partitions(vertex),
            data_sets: request.data_sets.clone(),
            only: request
                .repair
                .as_ref()
                .filter(|scope| scope.producer == vertex)
                .map(|scope| scope.data_set),
            restored,
            is_backlog: self.enumerators.is_backlog(vertex),
            metrics,
            checkpoints: request.storage.store(),
            events: self.events.0.clone(),
        }
    }

    /// Where the blocking inputs of a vertex lie, by edge and producer.
    pub(super) fn input_partitions(
        &self,
        vertex: VertexId,
    ) -> BTreeMap<EdgeId, Vec<PartitionLocation>> {
        let locate = |(manager, output): &super::Located| {
            let manager = self.request.managers.iter().find(|other| other.id == *manager)?;
            let descriptor = output.descriptor.clone().as_finished(&output.finished);
            Some(PartitionLocation { descriptor, service: Arc::clone(&manager.service) })
        };
        self.blocking_inputs(vertex)
            .into_iter()
            .map(|(edge, producers)| {
                let partitions = (0..producers)
                    .filter_map(|i| self.finished.get(&(edge, SubtaskIndex(i))))
                    .filter_map(locate);
                (edge, partitions.collect())
            })
            .collect()
    }

    /// Whether units begin anew from their inputs when they fail, and not from a checkpoint.
    pub(super) fn is_batch(&self) -> bool {
        self.request.plan.mode == ResolvedMode::Batch
    }

    /// Puts a unit back in line, not before a time.
    pub(super) fn wait_again(&mut self, unit: usize, not_before: Duration) {
        if let Some(state) = self.states.get_mut(unit) {
            *state = UnitState::Waiting { not_before };
        }
    }
}
