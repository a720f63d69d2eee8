//! Where checkpoints rest: one directory a checkpoint, a manifest last.
//!
//! Files below a checkpoint's `shared/` may outlive it: later checkpoints name them
//! ([`super::SharedFiles`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use element::{CheckpointId, DirectoryStore, FileRole, SpillStore, StoreError};

use super::{Manifest, sealed};

/// The folder of a checkpoint.
pub(super) fn folder_of(id: CheckpointId) -> String {
    format!("chk-{id}")
}

/// Writes a manifest under another name, syncs and renames it: it is there whole or not at all.
pub(super) fn write_manifest(
    manifest: &Manifest,
    store: &dyn SpillStore,
    folder: &str,
) -> Result<(), StoreError> {
    let (temporary, name) = (format!("{folder}manifest.part"), format!("{folder}manifest"));
    let mut writer = store.create(FileRole::Manifest, &temporary)?;
    writer.write(&manifest.encode())?;
    writer.sync()?;
    drop(writer);
    store.rename(FileRole::Manifest, &temporary, &name)
}

/// Copies a file from one store to another, and syncs it.
pub(crate) fn copy_file(
    from: &dyn SpillStore,
    name: &str,
    to: &dyn SpillStore,
    target: &str,
) -> Result<(), StoreError> {
    let reader = from.open(FileRole::Snapshot, name)?;
    let mut writer = to.create(FileRole::Snapshot, target)?;
    let (mut at, mut buffer) = (0, vec![0; 64 << 10]);
    let len = reader.len()?;
    while at < len {
        let step = usize::try_from(len - at).unwrap_or(usize::MAX).min(buffer.len());
        let part = buffer.get_mut(..step).unwrap_or_default();
        reader.read_at(at, part)?;
        writer.write(part)?;
        at += step as u64;
    }
    writer.sync()
}

/// Keeps checkpoints. Implemented by a directory; called by the JobMaster.
pub trait CheckpointStorage: Send + Sync + std::fmt::Debug {
    /// Where tasks write their parts.
    fn store(&self) -> Arc<dyn SpillStore>;

    /// Makes a checkpoint whole: its manifest is written under another name, synced, renamed.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the checkpoint is then not there.
    fn complete(&self, manifest: &Manifest) -> Result<(), StoreError>;

    /// Removes a checkpoint: manifest first; then the sealed runs that no other one names. The files
    /// named in `kept` stay: other checkpoints name them.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; files may be left.
    fn discard(&self, id: CheckpointId, kept: &BTreeSet<String>) -> Result<(), StoreError>;

    /// Removes what killed processes and failed attempts have left: files of checkpoints without a
    /// manifest, and sealed runs that no checkpoint names. Called while no task runs that might write
    /// some.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; files may be left.
    fn sweep(&self) -> Result<(), StoreError>;

    /// The names of all sealed runs.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if they cannot be listed.
    fn runs(&self) -> Result<BTreeSet<String>, StoreError>;

    /// Removes those of `runs` that no checkpoint names.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; files may be left.
    fn release_runs(&self, runs: BTreeSet<String>) -> Result<(), StoreError>;
}

/// Checkpoints below one directory.
#[derive(Clone, Debug)]
pub struct DirectoryStorage {
    store: Arc<dyn SpillStore>,
}

impl DirectoryStorage {
    /// Checkpoints below `directory`.
    #[must_use]
    pub fn new(directory: impl Into<std::path::PathBuf>) -> Self {
        Self { store: Arc::new(DirectoryStore::new(directory)) }
    }

    /// Checkpoints in a store of any kind.
    #[must_use]
    pub fn over(store: Arc<dyn SpillStore>) -> Self {
        Self { store }
    }
}

impl CheckpointStorage for DirectoryStorage {
    fn store(&self) -> Arc<dyn SpillStore> {
        Arc::clone(&self.store)
    }

    fn complete(&self, manifest: &Manifest) -> Result<(), StoreError> {
        write_manifest(manifest, &*self.store, &format!("{}/", folder_of(manifest.id)))
    }

    fn discard(&self, id: CheckpointId, kept: &BTreeSet<String>) -> Result<(), StoreError> {
        let folder = format!("{}/", folder_of(id));
        let runs = match sealed::read_manifest(&*self.store, &format!("{folder}manifest")) {
            Ok(manifest) => sealed::named_by(&manifest),
            Err(error) if error.is_not_found() => BTreeSet::new(),
            Err(error) => return Err(error),
        };
        let mut names = self.store.list(FileRole::Snapshot, &folder)?;
        // The manifest goes first: what has none is no checkpoint.
        names.sort_by_key(|name| !name.ends_with("/manifest"));
        for name in names.into_iter().filter(|name| !kept.contains(name)) {
            match self.store.delete(FileRole::Snapshot, &name) {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        sealed::remove_unnamed(&*self.store, runs)
    }

    fn sweep(&self) -> Result<(), StoreError> {
        sealed::remove_parts(&*self.store)?;
        self.release_runs(self.runs()?)
    }

    fn runs(&self) -> Result<BTreeSet<String>, StoreError> {
        Ok(self.store.list(FileRole::SortRun, sealed::RUNS)?.into_iter().collect())
    }

    fn release_runs(&self, runs: BTreeSet<String>) -> Result<(), StoreError> {
        sealed::remove_unnamed(&*self.store, runs)
    }
}
