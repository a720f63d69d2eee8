//! Data sets that are lost: with their worker, or found damaged by a reader. Always whole (P10, P11).

use element::{DataSetId, Generation, SubtaskIndex, TaskManagerId};
use shuffle::{PartitionDescriptor, ShuffleError};

use super::super::data_set::{ClusterDataSet, DataSetPart};

use super::{DataSets, RequestId, State};

impl State {
    /// Gives a data set up for a reason, and asks its holders to drop what is left of it.
    pub(super) fn lose(&mut self, data_set: DataSetId, reason: &str) -> RequestId {
        let parts = match self.sets.get_mut(&data_set) {
            Some(entry) => {
                let parts = entry.life.give_up();
                entry.lost = Some(reason.to_owned());
                parts
            }
            None => super::super::data_set::Parts::new(),
        };
        self.forget_on_shelf(data_set);
        self.release(parts)
    }
}

impl State {
    /// Parts of a data set are lost: it is given up whole, unless it is to be mended by its parts.
    pub(super) fn lose_parts(
        &mut self,
        data_set: DataSetId,
        reason: &str,
        is_lost: impl Fn(&DataSetPart) -> bool,
    ) {
        let Some(entry) = self.sets.get_mut(&data_set) else { return };
        if !entry.mends || matches!(entry.life, ClusterDataSet::Promoting { .. }) {
            self.lose(data_set, reason);
            return;
        }
        let lost = entry.life.lose_parts(is_lost);
        if !lost.is_empty() {
            entry.lost = Some(reason.to_owned());
            self.release(lost);
        }
    }
}

impl DataSets {
    /// A worker is gone, and with it what rests there; what rests apart from it stays (tC7).
    /// `how` it came to be lost is the end of a clause that begins with the worker.
    pub fn worker_lost(&self, worker: TaskManagerId, how: &str) {
        let mut state = self.state.lock();
        state.workers.remove(&worker);
        let lost: Vec<DataSetId> = state
            .sets
            .iter()
            .filter(|(_, entry)| {
                entry.life.parts().is_some_and(|(_, parts)| {
                    parts.values().any(|part| part.worker == worker && !part.external)
                })
            })
            .map(|(id, _)| *id)
            .collect();
        let is_lost = |part: &DataSetPart| part.worker == worker && !part.external;
        for id in lost {
            state.lose_parts(id, &format!("worker {worker} {how}"), is_lost);
        }
        state.requests.forget_worker(worker);
        drop(state);
        self.changed.notify_all();
    }

    /// A reader has found a part of a making lost or damaged. A making from meanwhile is left alone.
    pub fn damaged(
        &self,
        data_set: DataSetId,
        generation: Generation,
        producer: SubtaskIndex,
        reason: &str,
    ) {
        let mut state = self.state.lock();
        let current = state.sets.get(&data_set).and_then(|entry| entry.life.parts());
        match current.map(|(current, _)| current) {
            Some(current) if current == generation => {
                let is_lost =
                    |part: &DataSetPart| part.place().is_some_and(|(_, _, at)| at == producer);
                state.lose_parts(data_set, reason, is_lost);
            }
            Some(_) => {}
            None => {
                if let Some(entry) = state.sets.get_mut(&data_set) {
                    entry.lost.get_or_insert_with(|| reason.to_owned());
                }
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Reads data sets to their end, after one of them was found damaged, so that one resubmission
    /// finds all that is lost (tC8); the damaged ones are given up, and named with the reason. A data
    /// set that is not complete counts as lost. Costs a read of every block.
    pub fn verify(&self, data_sets: &[DataSetId]) -> Vec<(DataSetId, String)> {
        let mut found = Vec::new();
        for data_set in data_sets {
            let Err(error) = self.read_through(*data_set) else { continue };
            let reason = crate::report::chain_of(&error);
            if let Some((_, generation, producer)) =
                super::super::data_set::place_of(error.partition())
            {
                self.damaged(*data_set, generation, producer, &reason);
            }
            found.push((*data_set, reason));
        }
        found
    }

    fn read_through(&self, data_set: DataSetId) -> Result<(), ShuffleError> {
        let parts = self.locate(data_set)?;
        parts.iter().try_for_each(|(worker, descriptor)| self.read_part(*worker, descriptor))
    }

    /// Reads one part to its end.
    pub(super) fn read_part(
        &self,
        worker: TaskManagerId,
        descriptor: &PartitionDescriptor,
    ) -> Result<(), ShuffleError> {
        let partition = descriptor.identity;
        let service = self.service(worker).ok_or(ShuffleError::Lost { partition })?;
        let mut reader = service.reader(descriptor, 0..descriptor.subpartitions)?;
        while reader.next()?.is_some() {}
        Ok(())
    }
}
