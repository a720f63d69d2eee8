//! [`RestorePoint`]: a checkpoint or savepoint that a job goes on from, and where its files lie.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use element::{DirectoryStore, SpillStore, option_table};
use state::{NonRestored, SnapshotHandle};

use super::{Manifest, OperatorState};
use crate::error::JobError;
use crate::factory::ExecutionPlan;

/// A whole checkpoint, in the directory of this job or of another one.
#[derive(Clone, Debug)]
pub struct RestorePoint {
    /// What it consists of; file names are those in `store`.
    pub manifest: Manifest,
    /// Where its files lie.
    pub store: Arc<dyn SpillStore>,
}

impl RestorePoint {
    /// Reads the checkpoint in the folder `path`, or the newest one in a folder of checkpoints. The
    /// folder may have been moved: files are looked for beside the manifest, and those that it shares
    /// with earlier checkpoints in the folders beside its own.
    ///
    /// # Errors
    ///
    /// [`JobError::Restore`] if there is none, or its manifest is cut, damaged or of another version.
    pub fn read(path: &Path) -> Result<Self, JobError> {
        let failed =
            |reason: String| JobError::Restore { path: path.display().to_string(), reason };
        let folder = match newest_checkpoint(path) {
            Some(folder) if !path.join("manifest").exists() => folder,
            _ => path.to_owned(),
        };
        let bytes =
            std::fs::read(folder.join("manifest")).map_err(|error| failed(error.to_string()))?;
        let mut manifest = Manifest::decode(&bytes).map_err(failed)?;
        let folder = folder.canonicalize().map_err(|error| failed(error.to_string()))?;
        let (root, own) = match (folder.parent(), folder.file_name().and_then(|name| name.to_str()))
        {
            (Some(parent), Some(name)) => (parent, format!("{name}/")),
            _ => (&*folder, String::new()),
        };
        let written = format!("{}/", super::storage::folder_of(manifest.id));
        for handle in manifest.operators.iter_mut().filter_map(|entry| entry.state.keyed.as_mut()) {
            let file = handle.name.rsplit_once('/').map_or(&*handle.name, |(_, file)| file);
            handle.name = format!("{own}{file}");
            for file in &mut handle.files {
                if let Some(rest) = file.name.strip_prefix(&written) {
                    file.name = format!("{own}{rest}");
                }
            }
        }
        Ok(Self { manifest, store: Arc::new(DirectoryStore::new(root)) })
    }

    /// Refuses state that no operator of the plan claims, and states that an operator has no more,
    /// unless that is allowed; and states that do not fit what the program declares.
    ///
    /// # Errors
    ///
    /// [`JobError::Restore`], which names the uids or the state, and the option;
    /// [`JobError::RestoreState`], which names operator, state, field, old and new type.
    pub fn check(&self, plan: &ExecutionPlan, allow_unclaimed: bool) -> Result<(), JobError> {
        self.check_operators(plan, allow_unclaimed)?;
        let removed = if allow_unclaimed { NonRestored::LeaveOut } else { NonRestored::Refuse };
        super::declared::check(self, plan, removed)
    }

    /// What errors call it.
    pub(super) fn name(&self) -> String {
        format!("checkpoint {} of job `{}`", self.manifest.id, self.manifest.job)
    }

    fn check_operators(&self, plan: &ExecutionPlan, allow_unclaimed: bool) -> Result<(), JobError> {
        let known: BTreeSet<&str> = plan
            .vertices
            .iter()
            .flat_map(|vertex| &vertex.chain)
            .map(|node| node.uid.as_str())
            .collect();
        let unclaimed: BTreeSet<&str> = self
            .manifest
            .operators
            .iter()
            .filter(|entry| holds_state(&entry.state))
            .map(|entry| entry.state.uid.as_str())
            .filter(|uid| !known.contains(uid))
            .collect();
        if unclaimed.is_empty() || allow_unclaimed {
            return Ok(());
        }
        let stored = self.manifest.operators.iter().map(|entry| entry.state.uid.as_str()).collect();
        let new = quoted(known.difference(&stored));
        Err(JobError::Restore {
            path: self.name(),
            reason: format!(
                "no operator has the uid{} {}, whose state would be lost (option {} allows that); {}",
                if unclaimed.len() == 1 { "" } else { "s" },
                quoted(&unclaimed),
                option_table::ALLOW_NON_RESTORED_STATE.key,
                if new.is_empty() {
                    "all uids of the program have state there".to_owned()
                } else {
                    format!("the program's uids without state there: {new}")
                }
            ),
        })
    }
}

fn quoted<'a>(uids: impl IntoIterator<Item = &'a &'a str>) -> String {
    let uids: Vec<String> = uids.into_iter().map(|uid| format!("`{uid}`")).collect();
    uids.join(", ")
}

fn holds_state(state: &OperatorState) -> bool {
    !state.items.is_empty()
        || state.backlog.as_ref().is_some_and(|backlog| backlog.records > 0)
        || state.keyed.as_ref().is_some_and(SnapshotHandle::holds_entries)
}

/// The folder of the newest whole checkpoint directly below `directory`, if there is one.
#[must_use]
pub fn newest_checkpoint(directory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?;
    entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let id = path.file_name()?.to_str()?.strip_prefix("chk-")?.parse::<u64>().ok()?;
            path.join("manifest").exists().then_some((id, path))
        })
        .max()
        .map(|(_, path)| path)
}

/// Copies a checkpoint's files and its manifest, the manifest last, into the folder `target`.
///
/// # Errors
///
/// What the files say, as a clause.
pub(crate) fn export(
    manifest: &Manifest,
    from: &dyn SpillStore,
    target: &Path,
) -> Result<(), String> {
    use super::storage::{copy_file, write_manifest};
    let to = DirectoryStore::new(target);
    let mut copy = manifest.clone();
    for handle in copy.operators.iter_mut().filter_map(|entry| entry.state.keyed.as_mut()) {
        let file = handle.name.rsplit_once('/').map_or(&*handle.name, |(_, file)| file).to_owned();
        copy_file(from, &handle.name, &to, &file)
            .map_err(|error| crate::report::chain_of(&error))?;
        handle.name = file;
    }
    write_manifest(&copy, &to, "").map_err(|error| crate::report::chain_of(&error))
}
