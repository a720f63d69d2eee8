//! [`SharedFiles`]: which retained checkpoints name which files, and when a file may go.
//!
//! ```text
//!   named by retained checkpoints --- the last of them is released ---> doomed
//!                                                                         |
//!        a checkpoint completes that was triggered after the release -----'--> deleted
//! ```
//!
//! The delay is for checkpoints under way: what they name again is of a checkpoint that their task
//! knew to be complete, and every task has heard of the newer one before it sees a barrier behind
//! the next. Owned by the JobMaster; a file is deleted here or not at all (trap tK16). What a
//! checkpoint names that the job has not taken over stays: one newer than that from which it was
//! restored shares tables with those before.

use std::collections::{BTreeMap, BTreeSet};

use element::CheckpointId;

use super::Manifest;

/// Shared files of the retained checkpoints of one run of a job.
#[derive(Debug, Default)]
pub struct SharedFiles {
    named_by: BTreeMap<CheckpointId, BTreeSet<String>>,
    /// Named by checkpoints of the same store that this run has not taken over.
    others: BTreeSet<String>,
    doomed: Vec<Doomed>,
}

/// Files that no retained checkpoint named when they were released.
#[derive(Debug)]
struct Doomed {
    /// They go when this checkpoint, or a later one, is complete.
    until: CheckpointId,
    names: BTreeSet<String>,
}

impl SharedFiles {
    /// Those of the checkpoints that a job takes over. Files that `others` name are never released.
    #[must_use]
    pub fn of(claimed: &[Manifest], others: &[Manifest]) -> Self {
        let others = others.iter().flat_map(names_of).collect();
        let mut shared = Self { others, ..Self::default() };
        claimed.iter().for_each(|manifest| shared.keep(manifest));
        shared
    }

    /// A checkpoint is complete and will be retained.
    pub fn keep(&mut self, manifest: &Manifest) {
        self.named_by.insert(manifest.id, names_of(manifest).collect());
    }

    /// A checkpoint is retained no more. What no other one names is due once the checkpoint `next`,
    /// the first that is not yet triggered, or one after it, is complete.
    pub fn release(&mut self, id: CheckpointId, next: CheckpointId) {
        let names = self.named_by.remove(&id).unwrap_or_default();
        self.doomed.push(Doomed { until: next, names });
    }

    /// The files that may be deleted when `completed` is complete.
    pub fn take_due(&mut self, completed: CheckpointId) -> BTreeSet<String> {
        let due = self.doomed.extract_if(.., |doomed| doomed.until <= completed);
        let due: BTreeSet<String> = due.flat_map(|doomed| doomed.names).collect();
        due.into_iter().filter(|name| !self.is_named(name)).collect()
    }

    /// All files that no retained checkpoint names: for the end of the job.
    pub fn take_doomed(&mut self) -> BTreeSet<String> {
        self.take_due(CheckpointId(u64::MAX))
    }

    /// Every file that a checkpoint names, or one under way might.
    #[must_use]
    pub fn in_use(&self) -> BTreeSet<String> {
        let doomed = self.doomed.iter().flat_map(|doomed| &doomed.names);
        self.named_by.values().flatten().chain(doomed).chain(&self.others).cloned().collect()
    }

    fn is_named(&self, name: &str) -> bool {
        self.others.contains(name) || self.named_by.values().any(|names| names.contains(name))
    }
}

fn names_of(manifest: &Manifest) -> impl Iterator<Item = String> {
    let handles = manifest.operators.iter().filter_map(|entry| entry.state.keyed.as_ref());
    handles.flat_map(|handle| handle.shared_files().map(|file| file.name.clone()))
}

#[cfg(test)]
mod tests {
    use element::{KeyGroups, MaxParallelism};
    use state::{SnapshotFile, SnapshotHandle};

    use super::*;
    use crate::checkpoint::{OperatorEntry, OperatorState};

    fn manifest(id: u64, names: &[&str]) -> Manifest {
        let file = |name: &&str| SnapshotFile {
            name: (*name).to_owned(),
            table: format!("{name}.sst"),
            bytes: 1,
            checksum: 1,
        };
        let keyed = SnapshotHandle {
            name: format!("chk-{id}/a"),
            bytes: 1,
            checksum: 1,
            groups: KeyGroups::all(MaxParallelism::DEFAULT),
            entries: 0,
            files: names.iter().map(file).collect(),
        };
        let state = OperatorState {
            uid: "a".to_owned(),
            keyed: Some(keyed),
            items: Vec::new(),
            watermark: None,
            backlog: None,
        };
        let operators = vec![OperatorEntry { subtask: 0, state }];
        Manifest { id: CheckpointId(id), operators, ..Manifest::default() }
    }

    fn names(files: BTreeSet<String>) -> Vec<String> {
        files.into_iter().collect()
    }

    /// Trap tK16.
    #[test]
    fn a_shared_file_goes_behind_the_last_checkpoint_that_names_it() {
        let mut shared = SharedFiles::default();
        shared.keep(&manifest(1, &["x", "y"]));
        shared.keep(&manifest(2, &["x", "z"]));
        shared.release(CheckpointId(1), CheckpointId(4));
        assert_eq!(names(shared.take_due(CheckpointId(3))), [""; 0], "3 may yet name y");
        assert_eq!(names(shared.in_use()), ["x", "y", "z"]);
        assert_eq!(names(shared.take_due(CheckpointId(4))), ["y"], "2 names x");
        shared.release(CheckpointId(2), CheckpointId(5));
        assert_eq!(names(shared.take_due(CheckpointId(6))), ["x", "z"]);
        assert_eq!(names(shared.in_use()), [""; 0]);
    }

    #[test]
    fn a_doomed_file_that_a_checkpoint_under_way_has_named_stays() {
        let mut shared = SharedFiles::default();
        shared.keep(&manifest(1, &["x"]));
        shared.keep(&manifest(2, &["y"]));
        shared.release(CheckpointId(1), CheckpointId(4));
        shared.keep(&manifest(3, &["x"]));
        shared.release(CheckpointId(2), CheckpointId(4));
        shared.keep(&manifest(4, &["x"]));
        assert_eq!(names(shared.take_due(CheckpointId(4))), ["y"]);
        assert_eq!(names(shared.take_doomed()), [""; 0]);
        assert_eq!(names(shared.in_use()), ["x"]);
    }

    /// A job goes on from checkpoint 2 though 3 lies there, too.
    #[test]
    fn what_a_checkpoint_that_is_not_taken_over_names_stays() {
        let mut shared = SharedFiles::of(
            &[manifest(1, &["x"]), manifest(2, &["x", "y", "z"])],
            &[manifest(3, &["y", "w"])],
        );
        shared.release(CheckpointId(1), CheckpointId(4));
        shared.release(CheckpointId(2), CheckpointId(4));
        assert_eq!(names(shared.in_use()), ["w", "x", "y", "z"]);
        assert_eq!(names(shared.take_due(CheckpointId(4))), ["x", "z"]);
        assert_eq!(names(shared.take_doomed()), [""; 0]);
        assert_eq!(names(shared.in_use()), ["w", "y"]);
    }
}
