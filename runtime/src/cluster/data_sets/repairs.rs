//! Data sets of which some parts are lost and the others are kept, to be made whole again
//! (`execution.cache.recovery = partitions`).

use std::collections::BTreeSet;

use element::{DataSetId, Generation, SubtaskIndex};

use super::super::data_set::{ClusterDataSet, DataSetPart, place_of};
use super::super::repair::Damage;
use super::{DataSets, Entry, JobDataSets, Making};

impl Entry {
    fn damage(&self) -> Option<(Generation, Damage)> {
        let ClusterDataSet::Damaged { generation, parts, .. } = &self.life else { return None };
        let of = parts.values().next()?.of;
        let all = (0..of).map(SubtaskIndex);
        let lost = all.filter(|producer| !parts.contains_key(producer)).collect::<BTreeSet<_>>();
        let damage = Damage {
            lost,
            of,
            reason: self.lost.clone().unwrap_or_default(),
            splits: self.splits.clone(),
            attempt: self.attempt,
        };
        Some((*generation, damage))
    }
}

impl DataSets {
    /// Whether only some parts of a data set are lost.
    #[must_use]
    pub fn is_damaged(&self, data_set: DataSetId) -> bool {
        let state = self.state.lock();
        let entry = state.sets.get(&data_set);
        matches!(entry.map(|entry| &entry.life), Some(ClusterDataSet::Damaged { .. }))
    }

    /// Takes the repair of a data set on; `None` if there is none to be done. Waits while another job
    /// repairs it. What the caller has taken on ends with the settlement of its job.
    #[must_use]
    pub fn begin_repair(&self, data_set: DataSetId) -> Option<(JobDataSets, Damage)> {
        let mut state = self.state.lock();
        loop {
            let entry = state.sets.get_mut(&data_set)?;
            match &mut entry.life {
                ClusterDataSet::Damaged { repairing: false, .. } => {
                    let (generation, damage) = entry.damage()?;
                    if let ClusterDataSet::Damaged { repairing, .. } = &mut entry.life {
                        *repairing = true;
                    }
                    let parts = u32::try_from(damage.lost.len()).unwrap_or(u32::MAX);
                    let lost = Some(damage.reason.clone());
                    let mut job = JobDataSets::default();
                    job.makes
                        .insert(data_set, Making { generation, parts, lost, fingerprint: None });
                    return Some((job, damage));
                }
                ClusterDataSet::Damaged { repairing: true, .. } => {}
                _ => return None,
            }
            self.changed.wait_once(&mut state);
        }
    }

    /// Gives up what is left of a data set, for a reason.
    pub fn give_up(&self, data_set: DataSetId, reason: &str) {
        let mut state = self.state.lock();
        state.lose(data_set, reason);
        drop(state);
        self.changed.notify_all();
    }

    /// Reads each part of a data set that is kept, and gives up those that are damaged. One read of
    /// every block.
    pub fn check_parts(&self, data_set: DataSetId) {
        for part in self.parts_of(data_set) {
            if let Err(error) = self.read_part(part.worker, &part.descriptor)
                && let Some((_, generation, producer)) = place_of(&part.descriptor.identity)
            {
                let reason = crate::report::chain_of(&error);
                self.damaged(data_set, generation, producer, &reason);
            }
        }
    }

    fn parts_of(&self, data_set: DataSetId) -> Vec<DataSetPart> {
        let state = self.state.lock();
        let parts = state.sets.get(&data_set).and_then(|entry| entry.life.parts());
        parts.map(|(_, parts)| parts.values().cloned().collect()).unwrap_or_default()
    }
}
