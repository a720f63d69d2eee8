//! What is kept, as a list (P8).

use element::{DataSetId, Generation, TaskManagerId};

use super::super::data_set::ClusterDataSet;
use super::super::shelf::SHELF;
use super::DataSets;

/// One cached result that lies somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSetListing {
    /// Its id.
    pub id: DataSetId,
    /// The stream's name, with the tag if it is a side output.
    pub name: String,
    /// Which making.
    pub generation: Generation,
    /// Whether every part is there.
    pub is_complete: bool,
    /// Parts that are there.
    pub partitions: u32,
    /// Bytes at rest, of the parts that are there.
    pub bytes: u64,
    /// Rows, of the parts that are there.
    pub rows: u64,
    /// The workers that wrote them, each once, in order; none if an earlier program did.
    pub workers: Vec<TaskManagerId>,
    /// Whether it may be evicted.
    pub is_pinned: bool,
}

impl DataSets {
    /// Every data set of which something is kept, by id, as the workers have reported it.
    #[must_use]
    pub fn list(&self) -> Vec<DataSetListing> {
        let state = self.state.lock();
        let listed = state.sets.iter().filter_map(|(id, entry)| {
            let (generation, parts) = entry.life.parts()?;
            let mut workers: Vec<_> = parts.values().map(|part| part.worker).collect();
            workers.retain(|worker| *worker != SHELF);
            workers.sort_unstable();
            workers.dedup();
            Some(DataSetListing {
                id: *id,
                name: entry.name.clone(),
                generation,
                is_complete: matches!(entry.life, ClusterDataSet::Kept { .. }),
                partitions: u32::try_from(parts.len()).unwrap_or(u32::MAX),
                bytes: parts.values().map(|part| part.bytes).sum(),
                rows: parts.values().map(|part| part.rows).sum(),
                workers,
                is_pinned: entry.pinned,
            })
        });
        listed.collect()
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, data_set: DataSetId) -> Option<DataSetListing> {
        self.list().into_iter().find(|listed| listed.id == data_set)
    }
}
