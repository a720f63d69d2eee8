//! Restoring: entries of snapshots into a backend of any kind, clipped to its key groups.
//!
//! States are declared by the user's code, often after the restore. Until then memory keeps their
//! entries as bytes ([`RestoredStates`]); a store simply has them. When a state is declared, its
//! schema is compared with the written one; if they differ its entries are read by the old schema
//! and field by field, by name, as the new type.

use std::collections::BTreeMap;
use std::sync::Arc;

use element::{SpillStore, Timestamp};

use super::{SnapshotError, SnapshotHeader, SnapshotReader, SnapshotSource, StateHeader};
use crate::StateError;
use crate::handle::StateDescriptor;
use crate::store::WriteBatch;
use crate::store_key::StateId;

/// What a restore has found.
#[derive(Clone, Debug, PartialEq)]
pub struct RestoredSnapshot {
    /// The least watermark of the snapshots: windows must not fire again below it.
    pub watermark: Timestamp,
    /// Entries taken over, timers included.
    pub entries: u64,
    /// The states found.
    pub states: Vec<StateDescriptor>,
}

/// What becomes of states that the snapshot has and the program has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonRestored {
    /// They are an error.
    Refuse,
    /// They are left out, `execution.savepoint.ignore-unclaimed-state`.
    LeaveOut,
}

/// Compares the states of a snapshot with those that a program declares, before any task starts.
///
/// # Errors
///
/// [`StateError::Schema`] and [`StateError::KindChanged`] name the state; so does
/// [`SnapshotError::NotRestored`].
pub fn check_restorable(
    header: &SnapshotHeader,
    declared: &[StateDescriptor],
    others: NonRestored,
) -> Result<(), StateError> {
    for written in &header.states {
        let name = &written.descriptor.name;
        match declared.iter().find(|declared| declared.name == *name) {
            Some(declared) => check_state(&written.descriptor, declared)?,
            None if others == NonRestored::LeaveOut => {}
            None => {
                let (state, operator) = (name.clone(), header.operator.clone());
                return Err(SnapshotError::NotRestored { state, operator }.into());
            }
        }
    }
    Ok(())
}

/// Whether what was written can be read as what is declared.
fn check_state(written: &StateDescriptor, declared: &StateDescriptor) -> Result<(), StateError> {
    if written.kind != declared.kind {
        return Err(StateError::KindChanged {
            state: declared.name.clone(),
            written: written.kind.to_string(),
            declared: declared.kind.to_string(),
        });
    }
    declared
        .schema
        .check_readable(&written.schema)
        .map_err(|source| StateError::Schema { state: declared.name.clone(), source })
}

/// A restored state that no handle has declared since.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) header: StateHeader,
    /// Its entries by store key, in memory only.
    pub(crate) entries: WriteBatch,
}

/// Restored states that no handle has declared since.
#[derive(Debug, Default)]
pub(crate) struct RestoredStates {
    states: BTreeMap<StateId, Restored>,
    /// The file that each was seen in first.
    seen_in: BTreeMap<StateId, String>,
}

impl RestoredStates {
    /// Takes a state out as it is declared, if there is one; one that does not fit stays.
    pub(crate) fn claim(
        &mut self,
        id: StateId,
        declared: &StateDescriptor,
    ) -> Result<Option<Restored>, StateError> {
        if let Some(restored) = self.states.get(&id) {
            check_state(&restored.header.descriptor, declared)?;
        }
        Ok(self.states.remove(&id))
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = &StateHeader> {
        self.states.values().map(|state| &state.header)
    }

    /// Adds an entry; false if its state was not announced by a header.
    pub(crate) fn keep(&mut self, id: StateId, key: &[u8], value: &[u8]) -> bool {
        let state = self.states.get_mut(&id);
        state.map(|state| state.entries.put(key, value)).is_some()
    }

    /// All entries, by store key.
    pub(crate) fn entries(&self) -> WriteBatch {
        let mut all = WriteBatch::new();
        self.states.values().for_each(|state| all.append(&state.entries));
        all.sort_from(0);
        all
    }

    pub(crate) fn clear(&mut self) {
        self.states.clear();
    }

    /// Announces the states of a snapshot.
    pub(crate) fn announce(
        &mut self,
        header: &SnapshotHeader,
        file: &str,
    ) -> Result<(), SnapshotError> {
        for state in &header.states {
            if let Some(known) = self.states.get(&state.id) {
                if known.header.descriptor != state.descriptor {
                    let first = self.seen_in.get(&state.id).cloned().unwrap_or_default();
                    let (state, second) = (state.descriptor.name.clone(), file.to_owned());
                    return Err(SnapshotError::Disagree { state, first, second });
                }
                continue;
            }
            self.seen_in.insert(state.id, file.to_owned());
            let restored = Restored { header: state.clone(), entries: WriteBatch::new() };
            self.states.insert(state.id, restored);
        }
        Ok(())
    }
}

/// Opens the snapshots that overlap, the lowest key groups first.
pub(crate) fn open_all(
    sources: &[SnapshotSource],
    groups: element::KeyGroups,
    operator: &str,
) -> Result<Vec<SnapshotReader>, SnapshotError> {
    let overlaps = |source: &&SnapshotSource| {
        let (theirs, ours) = (source.handle.groups.hash_range(), groups.hash_range());
        matches!((theirs, ours), (Some(theirs), Some(ours))
            if theirs.start() <= ours.end() && ours.start() <= theirs.end())
    };
    let mut chosen: Vec<&SnapshotSource> = sources.iter().filter(overlaps).collect();
    chosen.sort_by_key(|source| source.handle.groups.hash_range().map(|range| *range.start()));
    chosen.into_iter().map(|source| open(&source.store, source, operator)).collect()
}

fn open(
    store: &Arc<dyn SpillStore>,
    source: &SnapshotSource,
    operator: &str,
) -> Result<SnapshotReader, SnapshotError> {
    let reader = SnapshotReader::open(store.as_ref(), &source.handle)?;
    let found = &reader.header().operator;
    if found == operator {
        return Ok(reader);
    }
    Err(SnapshotError::OtherOperator {
        name: source.handle.name.clone(),
        found: found.clone(),
        expected: operator.to_owned(),
    })
}
