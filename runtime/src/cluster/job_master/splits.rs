//! Which splits the subtasks of a source read, from one job to the repair of what it has made.

use std::collections::BTreeMap;

use element::DataSetId;

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
    /// What each subtask has read of which a source wrote a data set itself.
    pub(super) fn splits_of_data_sets(&self) -> BTreeMap<DataSetId, SplitsRead> {
        let mut found: BTreeMap<DataSetId, SplitsRead> = BTreeMap::new();
        for vertex in &self.request.plan.vertices {
            for output in &vertex.persistent {
                let read = self.assigned.iter().filter(|((of, _), _)| *of == vertex.id);
                let read: SplitsRead =
                    read.map(|((_, subtask), splits)| (*subtask, splits.clone())).collect();
                if !read.is_empty() {
                    found.insert(output.data_set, read);
                }
            }
        }
        found
    }
}
