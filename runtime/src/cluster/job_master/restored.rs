//! What a subtask is given back of a checkpoint, at whatever parallelism it was taken.

use std::collections::BTreeMap;
use std::sync::Arc;

use element::{SubtaskIndex, VertexId};

use super::JobMaster;
use crate::checkpoint::{OperatorEntry, RestorePoint, RestoredOperator};

impl JobMaster {
    /// What a subtask's operators had stored in the checkpoint that the job goes on from: keyed
    /// snapshots and collected backlogs by overlap of key groups, the least watermark, and items: its
    /// own, dealt in turn if the parallelism is another one, or, where all subtasks store the same, one
    /// subtask's.
    pub(super) fn restored(
        &self,
        vertex: VertexId,
        subtask: SubtaskIndex,
    ) -> BTreeMap<String, RestoredOperator> {
        let mut restored: BTreeMap<String, RestoredOperator> = BTreeMap::new();
        let (Some(point), Some(vertex)) = (&self.latest, self.request.plan.vertex(vertex)) else {
            return restored;
        };
        let RestorePoint { manifest, store } = point;
        for node in &vertex.chain {
            let entries: Vec<&OperatorEntry> =
                manifest.operators.iter().filter(|entry| entry.state.uid == node.uid).collect();
            if entries.is_empty() {
                continue;
            }
            let operator = restored.entry(node.uid.clone()).or_default();
            operator.runs = Some(Arc::clone(store));
            for entry in &entries {
                operator.backlogs.extend(entry.state.backlog.iter().cloned());
                operator.keyed.extend(entry.state.keyed.iter().map(|handle| {
                    state::SnapshotSource { store: Arc::clone(store), handle: handle.clone() }
                }));
                operator.watermark = match (operator.watermark, entry.state.watermark) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
            operator.items = if node.attributes.broadcast_state {
                to_all(&entries)
            } else {
                // This job's own checkpoints are of its parallelism.
                let own = !self.checkpoints.is_empty();
                items_of(&entries, subtask, vertex.parallelism, own)
            };
        }
        restored
    }
}

/// The items of the first subtask that has stored some.
fn to_all(entries: &[&OperatorEntry]) -> Vec<Vec<u8>> {
    let stored = entries.iter().find(|entry| !entry.state.items.is_empty());
    stored.map(|entry| entry.state.items.clone()).unwrap_or_default()
}

/// The subtask's own items if the parallelism is that of the checkpoint, else every
/// `parallelism`-th one, beginning with the subtask's own number. A reader that is given the splits of
/// two would read the second one late. Parts of subtasks that had ended are not there.
fn items_of(
    entries: &[&OperatorEntry],
    subtask: SubtaskIndex,
    parallelism: u32,
    same: bool,
) -> Vec<Vec<u8>> {
    let last = entries.iter().map(|entry| entry.subtask + 1).max();
    if same || last == Some(parallelism) {
        let own = entries.iter().filter(|entry| entry.subtask == subtask.0);
        return own.flat_map(|entry| entry.state.items.iter().cloned()).collect();
    }
    let items = entries.iter().flat_map(|entry| entry.state.items.iter().cloned());
    items.skip(subtask.0 as usize).step_by(parallelism.max(1) as usize).collect()
}
