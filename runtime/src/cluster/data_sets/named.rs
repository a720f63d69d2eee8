//! Data sets with a name, which stay when the program ends: taken from the shelf if what they were
//! made of is the same, given up with a reason if it is not, put there when they are made.

use std::path::Path;
use std::sync::Arc;

use element::DataSetId;

use super::super::data_set::ClusterDataSet;
use super::super::shelf::{Fingerprint, NamedCache, SHELF, Shelf};
use super::{DataSets, Making, State};

/// What the registry knows of a named data set beside its life.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    name: String,
    /// The schema of its records.
    schema: String,
    /// What the parts were made of that are kept.
    kept: Fingerprint,
    /// What they would be made of now, as planned last.
    wanted: Fingerprint,
    /// Whether the shelf has been looked at.
    looked: bool,
}

impl Named {
    /// What it is made of, for the job that begins to make it.
    pub(super) fn wanted(&self) -> Fingerprint {
        self.wanted.clone()
    }
}

impl DataSets {
    /// The shelf in a directory, the same one at each call.
    pub fn shelf(&self, directory: &Path) -> Arc<Shelf> {
        let mut state = self.state.lock();
        if let Some(shelf) = &state.shelf {
            return Arc::clone(shelf);
        }
        let shelf = Arc::new(Shelf::new(directory));
        state.services.insert(SHELF, shelf.service());
        state.shelf = Some(Arc::clone(&shelf));
        shelf
    }

    /// Gives a data set its name, and says what its records are.
    pub fn name(&self, data_set: DataSetId, name: &str, schema: &str) {
        let (name, schema) = (name.to_owned(), schema.to_owned());
        let mut state = self.state.lock();
        let entry = state.sets.entry(data_set).or_default();
        entry.named = Some(Named { name, schema, ..Named::default() });
    }

    /// Whether a data set has been given a name.
    #[must_use]
    pub fn is_named(&self, data_set: DataSetId) -> bool {
        self.name_of(data_set).is_some()
    }

    /// The name of a data set, and the schema of its records.
    #[must_use]
    pub fn name_of(&self, data_set: DataSetId) -> Option<(String, String)> {
        let state = self.state.lock();
        let named = state.sets.get(&data_set)?.named.as_ref()?;
        Some((named.name.clone(), named.schema.clone()))
    }

    /// Says what a named data set would be made of now. What is kept of it and was made of something
    /// else is given up, with the difference as the reason.
    pub fn compare(&self, data_set: DataSetId, shelf: &Shelf, now: Fingerprint) {
        let mut state = self.state.lock();
        let Some(entry) = state.sets.get_mut(&data_set) else { return };
        let Some(named) = &mut entry.named else { return };
        named.wanted = now;
        if !named.looked {
            named.looked = true;
            if let Some(cache) = shelf.load(&named.name) {
                named.kept = cache.fingerprint.clone();
                entry.last = cache.generation;
                entry.made_in = cache.made_in;
                let broken = shelf.check(&cache).err();
                let NamedCache { generation, parts, .. } = cache;
                entry.life = ClusterDataSet::Kept { generation, parts };
                if let Some(error) = broken {
                    let reason = crate::report::chain_of(&error);
                    state.lose(data_set, &reason);
                    return;
                }
            }
        }
        let Some(entry) = state.sets.get(&data_set) else { return };
        let Some(named) = &entry.named else { return };
        if entry.life.parts().is_some()
            && let Some(changed) = named.kept.difference(&named.wanted)
        {
            state.lose(data_set, &changed);
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl State {
    /// A making is kept: if it has a name it is put on the shelf. One that cannot be is given up.
    pub(super) fn put_on_shelf(&mut self, data_set: DataSetId, making: &Making) {
        let (Some(entry), Some(shelf)) = (self.sets.get_mut(&data_set), &self.shelf) else {
            return;
        };
        let (Some(named), ClusterDataSet::Kept { generation, parts }) =
            (&mut entry.named, &entry.life)
        else {
            return;
        };
        // A repair has made parts of what was kept already.
        if let Some(fingerprint) = &making.fingerprint {
            named.kept = fingerprint.clone();
        }
        let cache = NamedCache {
            name: named.name.clone(),
            fingerprint: named.kept.clone(),
            generation: *generation,
            made_in: entry.made_in,
            bytes: 0,
            rows: 0,
            parts: parts.clone(),
        };
        if let Err(error) = shelf.store(data_set, &cache) {
            let reason = crate::report::chain_of(&error);
            self.lose(data_set, &reason);
        }
    }

    /// What is given up does not count any more, also for later programs.
    pub(super) fn forget_on_shelf(&self, data_set: DataSetId) {
        if let Some(shelf) = self.shelf.as_ref().filter(|_| data_set.is_named()) {
            shelf.forget(data_set);
        }
    }
}
