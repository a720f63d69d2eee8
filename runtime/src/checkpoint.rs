//! Checkpoints: triggered at sources, carried by barriers, acknowledged by tasks, named when whole.

mod coordinator;
mod declared;
mod manifest;
mod restore;
mod sealed;
mod settings;
mod shared_files;
mod storage;
mod writer;

pub use coordinator::{BacklogOrigin, CheckpointCoordinator, Decision, Participant};
pub use manifest::{Manifest, OperatorEntry};
pub(crate) use restore::export;
pub use restore::{RestorePoint, newest_checkpoint};
pub use sealed::SealedBacklog;
pub(crate) use sealed::{RUNS, stored_manifests};
pub use settings::CheckpointSettings;
pub use shared_files::SharedFiles;
pub(crate) use storage::copy_file;
pub use storage::{CheckpointStorage, DirectoryStorage};
pub use writer::{SnapshotWork, SnapshotWriter};

use std::sync::Arc;

use element::{SpillStore, Timestamp};
use state::{SnapshotHandle, SnapshotSource};

/// What one operator's subtask has stored in a checkpoint.
#[derive(Clone, Debug)]
pub struct OperatorState {
    /// The operator's uid.
    pub uid: String,
    /// Its keyed state, written.
    pub keyed: Option<SnapshotHandle>,
    /// Items of its own.
    pub items: Vec<Vec<u8>>,
    /// Its watermark.
    pub watermark: Option<Timestamp>,
    /// What it had collected of a backlog, in a job with a durable one.
    pub backlog: Option<SealedBacklog>,
}

/// What an operator's subtask is given back.
#[derive(Clone, Debug, Default)]
pub struct RestoredOperator {
    /// Snapshots whose key groups overlap those of the subtask.
    pub keyed: Vec<SnapshotSource>,
    /// Its share of the items.
    pub items: Vec<Vec<u8>>,
    /// The least watermark of the subtasks that stored one.
    pub watermark: Option<Timestamp>,
    /// Collected backlogs that may hold records of its key groups.
    pub backlogs: Vec<SealedBacklog>,
    /// Where the runs of those lie.
    pub runs: Option<Arc<dyn SpillStore>>,
}
