//! [`SealedBacklog`]: what an operator has collected of a backlog when a checkpoint is taken.
//!
//! ```text
//!   barrier in backlog -> the sorter seals its runs -> their descriptions, in the manifest
//!                                '-> files below `runs/`, beside the checkpoints that name them
//! ```
//!
//! The state before the phase and these runs are together what the operator knows. The list only grows
//! until the backlog is drained, so a newer checkpoint names every run that is still read: a run that
//! goes with an older checkpoint and is not in a newer one is needed by nobody. Whoever discards
//! checkpoints removes runs; a sorter removes only what it has not sealed.

use std::collections::BTreeSet;

use element::{
    CodecError, FileRole, KeyGroups, MaxParallelism, Record, SpillStore, StoreError, Timestamp,
};
use sort::RunDescription;

use super::Manifest;

/// The folder of sealed runs, beside those of checkpoints.
pub(crate) const RUNS: &str = "runs/";

/// What one subtask has collected of a backlog, at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedBacklog {
    /// Whether the runs hold partial results rather than records.
    pub combined: bool,
    /// The key groups whose records may be in the runs that were written since the last restore.
    pub groups: KeyGroups,
    /// The greatest watermark seen in the phase.
    pub watermark: Option<Timestamp>,
    /// Records collected in the phase.
    pub records: u64,
    /// The runs, in order of arrival.
    pub runs: Vec<RunDescription>,
}

/// As it is written: combined, watermark and records; first group, behind the last, all; runs.
type Written = ((bool, Option<i64>, u64), (u32, u32, u32), Vec<RunDescription>);

impl SealedBacklog {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let about = (self.combined, self.watermark.map(|mark| mark.0), self.records);
        let groups = (self.groups.start, self.groups.end, self.groups.max.get());
        (about, groups, self.runs.clone()).encode(out);
    }

    pub(super) fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let ((combined, watermark, records), (start, end, max), runs) = Written::decode(input)?;
        let wrong = CodecError::Tag { what: "key groups", found: u64::from(max) };
        let max = MaxParallelism::new(max).ok_or(wrong)?;
        let groups = KeyGroups { start, end, max };
        let watermark = watermark.map(Timestamp);
        Ok(Self { combined, groups, watermark, records, runs })
    }

    /// Whether records of `groups` may be in it.
    #[must_use]
    pub fn overlaps(&self, groups: KeyGroups) -> bool {
        self.groups.start < groups.end && groups.start < self.groups.end
    }
}

/// The names of the runs of one checkpoint.
pub(super) fn named_by(manifest: &Manifest) -> BTreeSet<String> {
    let sealed = manifest.operators.iter().filter_map(|entry| entry.state.backlog.as_ref());
    sealed.flat_map(|sealed| &sealed.runs).map(|run| run.name().to_owned()).collect()
}

/// Removes those of `runs` that no manifest in the store names.
///
/// # Errors
///
/// [`StoreError`] if the store cannot be listed or a manifest not read: then nothing is removed.
pub(super) fn remove_unnamed(
    store: &dyn SpillStore,
    mut runs: BTreeSet<String>,
) -> Result<(), StoreError> {
    if runs.is_empty() {
        return Ok(());
    }
    for name in manifests_in(store)? {
        let named = named_by(&read_manifest(store, &name)?);
        runs.retain(|run| !named.contains(run));
    }
    remove(store, FileRole::SortRun, runs)
}

/// Removes files of checkpoints that belong to no whole one: neither to one that has a manifest, nor
/// named by any.
///
/// # Errors
///
/// [`StoreError`] if the store cannot be listed or a manifest not read: then nothing is removed.
pub(super) fn remove_parts(store: &dyn SpillStore) -> Result<(), StoreError> {
    let mut kept = BTreeSet::new();
    let mut whole = BTreeSet::new();
    for name in manifests_in(store)? {
        let manifest = read_manifest(store, &name)?;
        let handles = manifest.operators.iter().filter_map(|entry| entry.state.keyed.as_ref());
        kept.extend(handles.flat_map(|keyed| keyed.files.iter().map(|file| file.name.clone())));
        whole.extend(folder_of(&name).map(str::to_owned));
    }
    let mut names: BTreeSet<String> = store.list(FileRole::Snapshot, "chk-")?.into_iter().collect();
    names.retain(|name| {
        !kept.contains(name) && !folder_of(name).is_some_and(|of| whole.contains(of))
    });
    remove(store, FileRole::Snapshot, names)
}

fn folder_of(name: &str) -> Option<&str> {
    name.split_once('/').map(|(folder, _)| folder)
}

fn remove(
    store: &dyn SpillStore,
    role: FileRole,
    names: BTreeSet<String>,
) -> Result<(), StoreError> {
    for name in names {
        match store.delete(role, &name) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn manifests_in(store: &dyn SpillStore) -> Result<Vec<String>, StoreError> {
    let mut names = store.list(FileRole::Manifest, "chk-")?;
    names.retain(|name| name.ends_with("/manifest"));
    Ok(names)
}

/// The whole checkpoints of a store, oldest first; those that cannot be read are left out.
pub(crate) fn stored_manifests(store: &dyn SpillStore) -> Vec<Manifest> {
    let names = manifests_in(store).unwrap_or_default();
    let mut manifests: Vec<Manifest> =
        names.iter().filter_map(|name| read_manifest(store, name).ok()).collect();
    manifests.sort_unstable_by_key(|manifest| manifest.id);
    manifests
}

/// Reads a manifest of the store.
pub(super) fn read_manifest(store: &dyn SpillStore, name: &str) -> Result<Manifest, StoreError> {
    let reader = store.open(FileRole::Manifest, name)?;
    let mut bytes = vec![0; usize::try_from(reader.len()?).unwrap_or(0)];
    reader.read_at(0, &mut bytes)?;
    Manifest::decode(&bytes).map_err(|reason| StoreError {
        operation: element::Operation::Read,
        role: FileRole::Manifest,
        name: name.to_owned(),
        source: std::io::Error::new(std::io::ErrorKind::InvalidData, reason),
    })
}
