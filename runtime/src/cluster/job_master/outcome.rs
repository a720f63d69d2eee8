//! [`JobOutcome`]: what is left of a job when its master has run it to the end.

use std::collections::BTreeMap;
use std::time::Duration;

use element::{CheckpointId, DataSetId, TaskManagerId};

use crate::cluster::repair::SplitsRead;
use crate::error::JobError;
use crate::events::FinishedOutput;

/// How a job ended.
pub struct JobOutcome {
    /// Well or not.
    pub result: Result<(), JobError>,
    /// Parts of data sets that it wrote, with the worker that holds them. Whoever ran the job keeps
    /// them if it ended well, and releases them if not.
    pub persistent: Vec<(TaskManagerId, FinishedOutput)>,
    /// What sources read that wrote data sets themselves.
    pub splits: BTreeMap<DataSetId, SplitsRead>,
    /// Checkpoints completed: id, time taken, bytes of keyed state.
    pub checkpoints: Vec<CompletedCheckpoint>,
    /// Failures that were recovered from, as text.
    pub recovered: Vec<String>,
    /// From the first deployment to the end.
    pub took: Duration,
}

impl JobOutcome {
    /// The engine's own failure.
    #[must_use]
    pub fn internal(what: &str) -> Self {
        Self {
            result: Err(JobError::Internal(what.to_owned())),
            persistent: Vec::new(),
            splits: BTreeMap::new(),
            checkpoints: Vec::new(),
            recovered: Vec::new(),
            took: Duration::ZERO,
        }
    }
}

/// A checkpoint that is whole.
#[derive(Clone, Debug)]
pub struct CompletedCheckpoint {
    /// Its id.
    pub id: CheckpointId,
    /// From its trigger to its manifest.
    pub took: Duration,
    /// Bytes of keyed state.
    pub bytes: u64,
}
