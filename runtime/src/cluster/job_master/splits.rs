//! Which splits the subtasks of a source read, from one job to the repair of what it has made.

use std::collections::BTreeMap;

use element::{DataSetId, SubtaskIndex};

use super::JobMaster;
use crate::checkpoint::Participant;
use crate::cluster::enumerators::Enumerators;
use crate::cluster::repair::{RepairScope, SplitsRead};

/// A repair's producer that is a source begins with the splits that it read before, and gets no more.
pub(super) fn sources_of(
    scope: &RepairScope,
) -> (Enumerators, BTreeMap<Participant, Vec<Vec<u8>>>) {
    let mut enumerators = Enumerators::default();
    let mut assigned = BTreeMap::new();
    if let Some(splits) = &scope.splits {
        enumerators.hand_out(scope.producer);
        let of_reader =
            |(subtask, splits): (_, &Vec<_>)| ((scope.producer, subtask), splits.clone());
        assigned.extend(splits.iter().map(|(subtask, splits)| of_reader((*subtask, splits))));
    }
    (enumerators, assigned)
}

impl JobMaster {
    /// What each subtask has read of which a source wrote a data set itself; nothing, of one that came
    /// too late for a split.
    pub(super) fn splits_of_data_sets(&self) -> BTreeMap<DataSetId, SplitsRead> {
        let plan = &self.request.plan;
        let mut found = BTreeMap::new();
        for vertex in plan.vertices.iter().filter(|vertex| !vertex.persistent.is_empty()) {
            if plan.edges.iter().any(|edge| edge.to.vertex == vertex.id) {
                continue;
            }
            let subtasks = (0..vertex.parallelism).map(SubtaskIndex);
            let read = subtasks.map(|subtask| {
                let splits = self.assigned.get(&(vertex.id, subtask));
                (subtask, splits.cloned().unwrap_or_default())
            });
            let read: SplitsRead = read.collect();
            found.extend(vertex.persistent.iter().map(|out| (out.data_set, read.clone())));
        }
        found
    }
}
