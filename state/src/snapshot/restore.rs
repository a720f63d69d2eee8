//! Restoring: entries of snapshots into a backend of any kind, clipped to its key groups.
//!
//! States are declared by the user's code, often after the restore. Until then memory keeps their
//! entries as bytes ([`RestoredStates`]); a store simply has them. When a state is declared, its
//! schema is compared with the written one; if they differ its entries are read by the old schema
//! and field by field, by name, as the new type.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use element::{KeyGroups, Timestamp};

use super::{SnapshotError, SnapshotHeader, SnapshotReader, SnapshotSource, StateHeader};
use crate::StateError;
use crate::handle::StateDescriptor;
use crate::store::{self, StoreSnapshot, WriteBatch};
use crate::store_key::{StateId, StoreKey};

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

/// As [`check_restorable`], for a snapshot of which only the header is read.
///
/// # Errors
///
/// As [`check_restorable`]; [`StateError::Snapshot`] if the file is missing, damaged or foreign.
pub fn check_source(
    source: &SnapshotSource,
    declared: &[StateDescriptor],
    others: NonRestored,
) -> Result<(), StateError> {
    check_restorable(open_file(source)?.header(), declared, others)
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
    /// Whether they are in no further snapshot. A store still holds their entries, by the old schema:
    /// one that is declared after all is read by it.
    left_out: bool,
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

    /// What they are, without those that are left out.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &StateHeader> {
        self.states.values().filter(|_| !self.left_out).map(|state| &state.header)
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

    /// Drops the entries in memory, and leaves all that is not declared out of snapshots.
    pub(crate) fn leave_out(&mut self) {
        self.left_out = true;
        self.states.values_mut().for_each(|state| state.entries.clear());
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

/// The directory of a restore's copies. Made only for tables, and deleted when it is empty again: each
/// view deletes its own.
#[derive(Debug)]
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is mostly not there.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A snapshot that is open, with the view of its tables if it has any.
pub(crate) struct Source {
    pub(crate) reader: SnapshotReader,
    tables: Option<Box<dyn StoreSnapshot>>,
}

/// Takes an entry: its key taken apart, its key, its value.
pub(crate) type VisitEntry<'a> =
    &'a mut dyn FnMut(StoreKey<'_>, &[u8], &[u8]) -> Result<(), StateError>;

impl Source {
    /// Visits the entries whose keys belong to `groups`: those of the file, then those of the tables,
    /// each in order.
    pub(crate) fn for_each_of(
        &self,
        groups: KeyGroups,
        visit: VisitEntry<'_>,
    ) -> Result<(), StateError> {
        let Some(hashes) = groups.hash_range() else { return Ok(()) };
        let reader = &self.reader;
        let mut visit = |key: &[u8], value: &[u8]| match StoreKey::parse(key) {
            Some(parts) => visit(parts, key, value),
            None => Err(reader.damaged("entry", 0).into()),
        };
        reader.scan(&hashes, &mut visit)?;
        let Some(tables) = &self.tables else { return Ok(()) };
        let from = hashes.start().to_be_bytes();
        let to = hashes.end().checked_add(1).map(u64::to_be_bytes);
        let mut failure = None;
        tables.scan(&from, to.as_ref().map(<[u8; 8]>::as_slice), &mut |key, value| {
            // A store may hold entries of states that had been left out by then.
            let is_known = |key: StoreKey<'_>| reader.header().state(key.state).is_some();
            if StoreKey::parse(key).is_some_and(|key| !is_known(key)) {
                return ControlFlow::Continue(());
            }
            match visit(key, value) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failure.map_or(Ok(()), Err)
    }
}

/// Opens the snapshots that overlap, the lowest key groups first. Tables are copied below `scratch`.
pub(crate) fn open_all(
    sources: &[SnapshotSource],
    groups: KeyGroups,
    operator: &str,
    scratch: &Path,
) -> Result<Vec<Source>, StateError> {
    let overlaps = |source: &&SnapshotSource| {
        let (theirs, ours) = (source.handle.groups.hash_range(), groups.hash_range());
        matches!((theirs, ours), (Some(theirs), Some(ours))
            if theirs.start() <= ours.end() && ours.start() <= theirs.end())
    };
    let mut chosen: Vec<&SnapshotSource> = sources.iter().filter(overlaps).collect();
    chosen.sort_by_key(|source| source.handle.groups.hash_range().map(|range| *range.start()));
    chosen.into_iter().map(|source| open(source, operator, scratch)).collect()
}

fn open(source: &SnapshotSource, operator: &str, scratch: &Path) -> Result<Source, StateError> {
    let reader = open_file(source)?;
    let found = &reader.header().operator;
    if found != operator {
        return Err(SnapshotError::OtherOperator {
            name: source.handle.name.clone(),
            found: found.clone(),
            expected: operator.to_owned(),
        }
        .into());
    }
    let tables = match source.handle.files.is_empty() {
        true => None,
        false => Some(store::open_tables(source, scratch)?),
    };
    Ok(Source { reader, tables })
}

/// Opens the file that stands for a snapshot, wherever its state lies.
pub(crate) fn open_file(source: &SnapshotSource) -> Result<SnapshotReader, SnapshotError> {
    let (store, handle) = (source.store.as_ref(), &source.handle);
    if handle.files.is_empty() {
        SnapshotReader::open(store, handle)
    } else {
        SnapshotReader::open_beside_tables(store, handle)
    }
}
