//! [`RestorePoint`]: a checkpoint or savepoint that a job goes on from, and where its files lie.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use element::{DirectoryStore, SpillStore, option_table};

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
    /// folder may have been moved: files are looked for beside the manifest.
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
        for entry in &mut manifest.operators {
            if let Some(handle) = &mut entry.state.keyed
                && let Some((_, file)) = handle.name.rsplit_once('/')
            {
                handle.name = file.to_owned();
            }
        }
        Ok(Self { manifest, store: Arc::new(DirectoryStore::new(folder)) })
    }

    /// Refuses state that no operator of the plan claims, unless that is allowed.
    ///
    /// # Errors
    ///
    /// [`JobError::Restore`], which names the uids and the option.
    pub fn check(&self, plan: &ExecutionPlan, allow_unclaimed: bool) -> Result<(), JobError> {
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
        let names: Vec<String> = unclaimed.iter().map(|uid| format!("`{uid}`")).collect();
        Err(JobError::Restore {
            path: format!("checkpoint {} of job `{}`", self.manifest.id, self.manifest.job),
            reason: format!(
                "no operator has the uid{} {}, whose state would be lost (option {} allows that)",
                if names.len() == 1 { "" } else { "s" },
                names.join(", "),
                option_table::ALLOW_NON_RESTORED_STATE.key
            ),
        })
    }
}

fn holds_state(state: &OperatorState) -> bool {
    !state.items.is_empty() || state.keyed.as_ref().is_some_and(|handle| handle.entries > 0)
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
