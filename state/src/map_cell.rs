//! [`MapCell`]: the map that a key and namespace hold, or the part of it that is loaded.
//!
//! Over a store each map entry is an entry of the store. A cell then holds what has been read and
//! what has been changed; it is complete once the whole range has been read, or is known to be empty.
//! Entries lie in the order of their keys' canonical bytes, so iteration has one order everywhere.

use std::collections::BTreeMap;

use element::{CodecError, Record};

use crate::StateError;
use crate::cell::{Cell, Emit};
use crate::link::Reader;

/// Map entries by the canonical bytes of their key.
#[derive(Clone, Debug)]
pub(crate) struct MapCell<V> {
    entries: BTreeMap<Box<[u8]>, Entry<V>>,
    /// Whether what is not in `entries` is not in the store either.
    complete: bool,
}

/// **Invariant:** a value that is absent is known to be absent.
#[derive(Clone, Debug)]
struct Entry<V> {
    value: Option<V>,
    dirty: bool,
}

impl<V> Default for MapCell<V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), complete: false }
    }
}

impl<V: Record + Clone> MapCell<V> {
    /// The entry of `key`, read if need be.
    fn load(&mut self, key: &[u8], reader: &mut Reader<'_>) -> Result<&mut Entry<V>, StateError> {
        if !self.entries.contains_key(key) {
            let value = if self.complete { None } else { reader.get(key)? };
            self.entries.insert(key.into(), Entry { value, dirty: false });
        }
        Ok(self.entries.get_mut(key).expect("the entry has just been inserted"))
    }

    fn load_all(&mut self, reader: &mut Reader<'_>) -> Result<(), StateError> {
        if !self.complete {
            reader.scan(|key, value: V| {
                self.entries
                    .entry(key.into())
                    .or_insert(Entry { value: Some(value), dirty: false });
            })?;
            self.complete = true;
        }
        Ok(())
    }

    /// Drops what is known to be absent and needs no delete.
    fn forget_absent(&mut self, key: &[u8], durable: bool) {
        let droppable = |entry: &Entry<V>| {
            entry.value.is_none() && (!durable || (self.complete && !entry.dirty))
        };
        if self.entries.get(key).is_some_and(droppable) {
            self.entries.remove(key);
        }
    }

    pub(crate) fn get(
        &mut self,
        key: &[u8],
        reader: &mut Reader<'_>,
    ) -> Result<Option<&V>, StateError> {
        if self.complete || !reader.is_durable() {
            return Ok(self.entries.get(key).and_then(|entry| entry.value.as_ref()));
        }
        Ok(self.load(key, reader)?.value.as_ref())
    }

    /// Changes one entry in place; reads it first if it is not there.
    pub(crate) fn update<R>(
        &mut self,
        key: &[u8],
        reader: &mut Reader<'_>,
        change: impl FnOnce(&mut Option<V>) -> R,
    ) -> Result<R, StateError> {
        let entry = self.load(key, reader)?;
        let was_absent = entry.value.is_none();
        let result = change(&mut entry.value);
        // Absent before and after: there is nothing to write.
        entry.dirty |= !(was_absent && entry.value.is_none());
        self.forget_absent(key, reader.is_durable());
        Ok(result)
    }

    /// Sets one entry without reading it.
    pub(crate) fn put(&mut self, key: &[u8], value: V) {
        match self.entries.get_mut(key) {
            Some(entry) => *entry = Entry { value: Some(value), dirty: true },
            None => {
                self.entries.insert(key.into(), Entry { value: Some(value), dirty: true });
            }
        }
    }

    /// Removes one entry without reading it.
    pub(crate) fn remove(&mut self, key: &[u8], durable: bool) {
        if durable {
            match self.entries.get_mut(key) {
                Some(entry) => *entry = Entry { value: None, dirty: true },
                None if self.complete => {}
                None => {
                    self.entries.insert(key.into(), Entry { value: None, dirty: true });
                }
            }
        } else {
            self.entries.remove(key);
        }
    }

    /// Visits every entry in the order of keys; one that `keep` refuses is removed.
    pub(crate) fn retain(
        &mut self,
        reader: &mut Reader<'_>,
        mut keep: impl FnMut(&[u8], &mut V) -> Result<Verdict, StateError>,
    ) -> Result<(), StateError> {
        self.load_all(reader)?;
        let mut failure = None;
        for (key, entry) in &mut self.entries {
            let Some(value) = &mut entry.value else { continue };
            match keep(key, value) {
                Ok(Verdict::Keep) => {}
                Ok(Verdict::Changed) => entry.dirty = true,
                Ok(Verdict::Remove) => *entry = Entry { value: None, dirty: true },
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        if !reader.is_durable() {
            self.entries.retain(|_, entry| entry.value.is_some());
        }
        failure.map_or(Ok(()), Err)
    }

    /// Whether it holds an entry; reads as far as it must.
    pub(crate) fn is_empty(&mut self, reader: &mut Reader<'_>) -> Result<bool, StateError> {
        let present = |cell: &Self| cell.entries.values().any(|entry| entry.value.is_some());
        if !present(self) {
            self.load_all(reader)?;
        }
        Ok(!present(self))
    }

    /// Removes every entry.
    pub(crate) fn clear(&mut self, reader: &mut Reader<'_>) -> Result<(), StateError> {
        self.retain(reader, |_, _| Ok(Verdict::Remove))
    }
}

/// What becomes of a visited entry.
pub(crate) enum Verdict {
    Keep,
    Changed,
    Remove,
}

impl<V: Record + Clone> Cell for MapCell<V> {
    type Value = V;

    const WHOLE: bool = false;

    /// Nothing is read yet: the map's entries are, as they are asked for.
    fn fetch(_: &mut Reader<'_>) -> Result<Self, StateError> {
        Ok(Self::default())
    }

    fn is_vacant(&self) -> bool {
        self.entries.is_empty()
    }

    fn emit_all(&self, emit: Emit<'_>) {
        for (key, entry) in &self.entries {
            if let Some(value) = &entry.value {
                emit(key, Some(&|out| value.encode(out)));
            }
        }
    }

    fn emit_changes(&mut self, emit: Emit<'_>) {
        for (key, entry) in &mut self.entries {
            if std::mem::take(&mut entry.dirty) {
                match &entry.value {
                    Some(value) => emit(key, Some(&|out| value.encode(out))),
                    None => emit(key, None),
                }
            }
        }
    }

    fn accept(&mut self, map_key: &[u8], value: &[u8]) -> Result<(), CodecError> {
        let value = Some(element::decode_exact(value)?);
        self.entries.insert(map_key.into(), Entry { value, dirty: false });
        Ok(())
    }
}
