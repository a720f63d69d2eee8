//! [`MapCell`]: the map that a key and namespace hold, or the part of it that is loaded.
//!
//! Over a store each map entry is an entry of the store. A cell then holds what has been read and
//! what has been changed; it is complete once the whole range has been read, or is known to be empty.
//! An iteration takes in a map of one page; of a larger one it reads page by page, beside what the
//! cell holds, and keeps only what it changes.
//! Entries lie in the order of their keys' canonical bytes, so iteration has one order everywhere.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use element::{CodecError, Record};

use crate::StateError;
use crate::cell::{Cell, Emit};
use crate::link::{Page, Reader};

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

    /// Takes in a map of one page; else hands out the first page.
    fn load_all(&mut self, reader: &mut Reader<'_>) -> Result<Option<Page<V>>, StateError> {
        if self.complete {
            return Ok(None);
        }
        let page = reader.page(None)?;
        if page.more {
            return Ok(Some(page));
        }
        for (key, value) in page.entries {
            self.entries.entry(key).or_insert(Entry { value: Some(value), dirty: false });
        }
        self.complete = true;
        Ok(None)
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

    /// Visits every entry in the order of keys; one that `keep` refuses is removed. Holds one page of
    /// what is stored at a time.
    pub(crate) fn retain(
        &mut self,
        reader: &mut Reader<'_>,
        mut keep: impl FnMut(&[u8], &mut V) -> Result<Verdict, StateError>,
    ) -> Result<(), StateError> {
        let visited = match self.load_all(reader)? {
            None => self.visit_held(&mut keep).map(|_| ()),
            Some(first) => self.visit_pages(first, reader, &mut keep).map(|_| ()),
        };
        if !reader.is_durable() {
            self.entries.retain(|_, entry| entry.value.is_some());
        }
        visited
    }

    /// Visits the entries of a cell that is complete.
    fn visit_held(&mut self, keep: Keep<'_, V>) -> Result<ControlFlow<()>, StateError> {
        for (key, entry) in &mut self.entries {
            if entry.visit(key, keep)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits what is stored page by page, and what the cell holds between.
    fn visit_pages(
        &mut self,
        mut page: Page<V>,
        reader: &mut Reader<'_>,
        keep: Keep<'_, V>,
    ) -> Result<ControlFlow<()>, StateError> {
        let mut behind: Option<Box<[u8]>> = None;
        loop {
            let last = page.entries.last().filter(|_| page.more).map(|(key, _)| key.clone());
            if self.visit_page(page.entries, behind.as_deref(), last.as_deref(), keep)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let Some(last) = last else { return Ok(ControlFlow::Continue(())) };
            page = reader.page(Some(&last))?;
            behind = Some(last);
        }
    }

    /// Visits one page, and what the cell holds behind one key and up to another; the cell's entries
    /// go before those stored under the same key.
    fn visit_page(
        &mut self,
        stored: Vec<(Box<[u8]>, V)>,
        behind: Option<&[u8]>,
        last: Option<&[u8]>,
        keep: Keep<'_, V>,
    ) -> Result<ControlFlow<()>, StateError> {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let to = last.map_or(Bound::Unbounded, Bound::Included);
        let held: Vec<Box<[u8]>> =
            self.entries.range::<[u8], _>((from, to)).map(|(key, _)| key.clone()).collect();
        let mut held = held.into_iter().peekable();
        for (key, value) in stored {
            while let Some(earlier) = held.next_if(|held| *held < key) {
                if self.visit_one(&earlier, keep)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let flow = if held.next_if(|held| *held == key).is_some() {
                self.visit_one(&key, keep)?
            } else {
                let mut entry = Entry { value: Some(value), dirty: false };
                let flow = entry.visit(&key, keep)?;
                if entry.dirty {
                    self.entries.insert(key, entry);
                }
                flow
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        for key in held {
            if self.visit_one(&key, keep)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn visit_one(&mut self, key: &[u8], keep: Keep<'_, V>) -> Result<ControlFlow<()>, StateError> {
        self.entries
            .get_mut(key)
            .map_or(Ok(ControlFlow::Continue(())), |held| held.visit(key, keep))
    }

    /// Removes the entries in memory that `is_dead` says; none is in a store. Returns how many.
    pub(crate) fn drop_dead(&mut self, is_dead: impl Fn(&V) -> bool) -> u64 {
        let before = self.entries.len();
        self.entries.retain(|_, entry| !entry.value.as_ref().is_some_and(&is_dead));
        (before - self.entries.len()) as u64
    }

    /// Whether it holds an entry; reads as far as it must.
    pub(crate) fn is_empty(&mut self, reader: &mut Reader<'_>) -> Result<bool, StateError> {
        if self.entries.values().any(|entry| entry.value.is_some()) {
            return Ok(false);
        }
        let stop = &mut |_: &[u8], _: &mut V| Ok(Verdict::Stop);
        let flow = match self.load_all(reader)? {
            None => self.visit_held(stop)?,
            Some(first) => self.visit_pages(first, reader, stop)?,
        };
        Ok(flow.is_continue())
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
    /// It is kept, and no other one is visited.
    Stop,
}

/// Decides about the entries that are visited.
type Keep<'a, V> = &'a mut dyn FnMut(&[u8], &mut V) -> Result<Verdict, StateError>;

impl<V> Entry<V> {
    /// Has an entry decided about, if it is there.
    fn visit(&mut self, key: &[u8], keep: Keep<'_, V>) -> Result<ControlFlow<()>, StateError> {
        let Some(value) = &mut self.value else { return Ok(ControlFlow::Continue(())) };
        match keep(key, value)? {
            Verdict::Keep => {}
            Verdict::Changed => self.dirty = true,
            Verdict::Remove => *self = Self { value: None, dirty: true },
            Verdict::Stop => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(()))
    }
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
