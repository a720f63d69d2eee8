//! The end of a job: what it made is promoted or released, and only then is it over (P1, P2, P4).

use std::collections::BTreeMap;
use std::time::Duration;

use element::{ByteSize, DataSetId, JobId, TaskManagerId};
use shuffle::PartitionIdentity;

use super::super::data_set::{ClusterDataSet, place_of};
use super::super::repair::SplitsRead;
use super::super::task_manager::TaskManagerMessage;
use super::{DataSets, JobDataSets, RequestId, State};
use crate::events::FinishedOutput;
use crate::report::{CacheOutcome, CacheReport};

/// How a job ended, as far as data sets are concerned.
pub struct Settlement<'a> {
    /// Which job.
    pub job: JobId,
    /// What it read and made.
    pub data_sets: &'a JobDataSets,
    /// The parts that it wrote, with the workers that hold them; empty unless it ended well.
    pub written: &'a [(TaskManagerId, FinishedOutput)],
    /// What the sources read that wrote data sets themselves.
    pub splits: &'a BTreeMap<DataSetId, SplitsRead>,
    /// Whether it ended well.
    pub well: bool,
    /// What it took.
    pub took: Duration,
    /// The budget of all caches.
    pub budget: Option<ByteSize>,
}

impl DataSets {
    /// Has every worker keep what is to be kept of a job and drop the rest. To be ended by
    /// [`end_settling`](Self::end_settling) when all have answered.
    pub fn begin_settling(&self, settlement: &Settlement<'_>) -> RequestId {
        let mut state = self.state.lock();
        let kept = state.promote(settlement);
        let request = state.requests.open();
        let workers: Vec<TaskManagerId> = state.workers.keys().copied().collect();
        for id in workers {
            let Some(worker) = state.workers.get(&id) else { continue };
            let keep = kept.get(&id).cloned().unwrap_or_default();
            let message = TaskManagerMessage::Settle { request, job: settlement.job, keep };
            if worker.handle.sender.send(message).is_ok() {
                state.requests.wait_for(request, id);
            }
        }
        state.requests.close_if_done(request);
        request
    }

    /// Gives up a data set of which a part was not kept, whole.
    pub fn end_settling(&self, settlement: &Settlement<'_>) {
        let mut state = self.state.lock();
        for id in settlement.data_sets.makes.keys() {
            if state
                .sets
                .get(id)
                .is_some_and(|entry| matches!(entry.life, ClusterDataSet::Promoting { .. }))
            {
                state.lose(*id, "a part was lost before it was kept");
            }
        }
        for (id, making) in &settlement.data_sets.makes {
            state.put_on_shelf(*id, making);
        }
        for id in &settlement.data_sets.reads {
            if let Some(entry) = state.sets.get_mut(id) {
                entry.readers = entry.readers.saturating_sub(1);
            }
        }
        if let Some(budget) = settlement.budget {
            state.hold_to(budget);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// What became of each cached stream of a job. Bytes and rows are those at its end.
    #[must_use]
    pub fn report(
        &self,
        plan: &crate::factory::ExecutionPlan,
        data_sets: &JobDataSets,
    ) -> Vec<CacheReport> {
        let state = self.state.lock();
        let reports = plan.caches.iter().map(|cache| {
            let entry = state.sets.get(&cache.data_set);
            let parts = entry.and_then(|entry| entry.life.parts()).map(|(_, parts)| parts);
            let hit = data_sets.reads.contains(&cache.data_set);
            let outcome = match data_sets.makes.get(&cache.data_set) {
                Some(making) => match &making.lost {
                    Some(reason) => CacheOutcome::Recomputed { reason: reason.clone() },
                    None => CacheOutcome::Computed,
                },
                None if hit => CacheOutcome::Hit,
                None => CacheOutcome::Uncached,
            };
            CacheReport {
                data_set: cache.data_set,
                name: super::stream_name(&cache.name, &cache.output),
                outcome,
                bytes: parts.map_or(0, |parts| parts.values().map(|part| part.bytes).sum()),
                rows: parts.map_or(0, |parts| parts.values().map(|part| part.rows).sum()),
                saved: entry.filter(|_| hit).map(|entry| entry.made_in),
            }
        });
        reports.collect()
    }
}

impl State {
    /// Decides which of the data sets that a job made count; answers the parts that each worker is
    /// to keep.
    fn promote(
        &mut self,
        settlement: &Settlement<'_>,
    ) -> BTreeMap<TaskManagerId, Vec<PartitionIdentity>> {
        let mut kept: BTreeMap<TaskManagerId, Vec<PartitionIdentity>> = BTreeMap::new();
        for (id, making) in &settlement.data_sets.makes {
            let Some(entry) = self.sets.get_mut(id) else { continue };
            let parts: Vec<_> = parts_of(settlement, *id).collect();
            let whole = settlement.well && parts.len() == making.parts as usize;
            let mends = matches!(entry.life, ClusterDataSet::Damaged { .. });
            if whole && entry.life.promote(making.generation) {
                let attempts = parts.iter().filter_map(|(_, identity)| attempt_of(identity));
                let attempt = attempts.max().unwrap_or(0);
                if mends {
                    entry.attempt = entry.attempt.max(attempt);
                } else {
                    entry.attempt = attempt;
                    entry.made_in = settlement.took;
                    entry.splits = settlement.splits.get(id).cloned().unwrap_or_default();
                }
                for (worker, identity) in parts {
                    kept.entry(worker).or_default().push(identity);
                }
            } else {
                entry.life.abandon(making.generation);
            }
        }
        kept
    }
}

fn attempt_of(identity: &PartitionIdentity) -> Option<u32> {
    match identity {
        PartitionIdentity::DataSet { attempt, .. } => Some(attempt.0),
        PartitionIdentity::Result(_) => None,
    }
}

/// The parts of one data set that a job has written.
fn parts_of<'a>(
    settlement: &'a Settlement<'_>,
    data_set: DataSetId,
) -> impl Iterator<Item = (TaskManagerId, PartitionIdentity)> + 'a {
    settlement.written.iter().filter_map(move |(worker, output)| {
        let identity = output.descriptor.identity;
        let (of, _, _) = place_of(&identity)?;
        (of == data_set).then_some((*worker, identity))
    })
}
