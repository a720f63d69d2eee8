//! [`Cluster`]: the workers and kept partitions of an environment, for tests that take them away.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use element::{DataSetId, TaskManagerId};
use runtime::cluster::{DataSets, Deletion, RequestId};
use runtime::session::{PausedWorker, Session};

use crate::JobError;

/// The workers of an environment, and what they keep.
pub struct Cluster {
    session: Arc<Session>,
    data_sets: Arc<DataSets>,
}

impl Cluster {
    pub(crate) fn new(session: Arc<Session>, data_sets: Arc<DataSets>) -> Self {
        Self { session, data_sets }
    }

    /// The workers that are alive.
    #[must_use]
    pub fn workers(&self) -> Vec<TaskManagerId> {
        self.session.workers()
    }

    /// Kills a worker: its tasks fail, its files are gone, and every cached result of which it held a
    /// part is dropped everywhere. Another worker, with another id, takes its place. False if it is
    /// not alive.
    ///
    /// # Errors
    ///
    /// [`JobError`] if no other one can be started; the worker then lives on.
    pub fn kill(&self, worker: TaskManagerId) -> Result<bool, JobError> {
        self.session.kill(worker)
    }

    /// Has a worker answer nothing until what is handed back is dropped, which must be before the
    /// environment is closed. Tasks that it runs go on. After `heartbeat.timeout` it counts as lost,
    /// as if killed; when it comes back it drops what it holds, and ends. `None` if it is not alive.
    #[must_use]
    pub fn pause(&self, worker: TaskManagerId) -> Option<PausedWorker> {
        self.session.pause(worker)
    }

    /// Cuts a worker off, as [`pause`](Self::pause) does, and holds what its tasks say until what is
    /// handed back is dropped: it comes late then, and counts only if the worker still does. Files are
    /// read past the cut. `None` if it is not alive.
    #[must_use]
    pub fn cut_off(&self, worker: TaskManagerId) -> Option<PausedWorker> {
        self.session.cut_off(worker)
    }

    /// The number of the last heartbeat that a worker has answered, from 1; 0 before that. `None` if it
    /// is not alive.
    #[must_use]
    pub fn heartbeat(&self, worker: TaskManagerId) -> Option<u64> {
        self.data_sets.heartbeat(worker)
    }

    /// Workers that run nothing and hold no part of a cached result.
    #[must_use]
    pub fn idle_workers(&self) -> Vec<TaskManagerId> {
        self.data_sets.idle_workers()
    }

    /// Asks for a cached result to be dropped; answers at once. Harmless when repeated.
    #[must_use]
    pub fn delete(&self, data_set: DataSetId) -> RequestId {
        self.data_sets.delete(data_set)
    }

    /// How a deletion stands; `None` if there was no such one, or long ago.
    #[must_use]
    pub fn deletion(&self, request: RequestId) -> Option<Deletion> {
        self.data_sets.deletion(request)
    }

    /// Waits until every worker has done what it was asked to.
    pub fn quiesce(&self) {
        self.data_sets.quiesce();
    }

    /// The directory that holds all files of this environment.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.session.directory()
    }

    /// The files of a data set on all workers, data and index, by worker and name.
    #[must_use]
    pub fn partition_files(&self, data_set: DataSetId) -> Vec<PathBuf> {
        let prefix = format!("dataset-{data_set}-");
        let of_set = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
        };
        self.files().into_iter().filter(of_set).collect()
    }

    /// Every file below the directories of the workers that are alive, in order of path.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for worker in self.workers() {
            collect(&self.session.worker_directory(worker), &mut files);
        }
        files.sort();
        files
    }
}

/// What goes away meanwhile is left out.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}
