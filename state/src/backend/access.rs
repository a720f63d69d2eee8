//! How a handle reaches a cell: a hash table's in memory, a cached one over a store.

use element::Record;

use super::KeyedStateBackend;
use super::engine::Engine;
use crate::StateError;
use crate::cell::{Cell, One};
use crate::handle::Binding;
use crate::link::Reader;
use crate::map_cell::MapCell;
use crate::slot::{Body, Slot, cells_at};
use crate::slots::SlotRef;

/// Places of a table in memory that one access looks at for expired entries: enough that a pass over
/// all takes a third as many accesses as there are entries.
const SWEPT: usize = 5;

/// Whether a cell that is not at hand must be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Read,
    /// What was there will be replaced.
    Blind,
}

/// Whether an access has changed the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Clean,
    Dirty,
}

impl KeyedStateBackend {
    /// Looks at the record of the current key.
    #[inline]
    pub(crate) fn read_record<V: Record + Clone, R>(
        &mut self,
        handle: &Binding<One<V>>,
        namespace: &[u8],
        look: impl FnOnce(Option<&V>) -> R,
    ) -> Result<R, StateError> {
        if let Some(Slot { body: Body::Heap(table), .. }) = self.slots.get_mut(handle.at()) {
            return match table.read(&self.at, namespace) {
                Some(cell) => Ok(look(cell.0.as_ref())),
                None if self.at.epoch == 0 => Err(no_key(handle)),
                None => Ok(look(None)),
            };
        }
        let mut result = None;
        self.read_elsewhere(handle, namespace, |value| result = Some(look(value)))?;
        Ok(result.expect("the record has been looked at"))
    }

    /// Looks at a record over a store, or by a handle that is not bound yet.
    #[inline(never)]
    fn read_elsewhere<V: Record + Clone>(
        &mut self,
        handle: &Binding<One<V>>,
        namespace: &[u8],
        look: impl FnOnce(Option<&V>),
    ) -> Result<(), StateError> {
        let slot = self.slot(handle)?;
        if let Engine::Heap(_) = &self.engine
            && let Some(Slot { body: Body::Heap(table), .. }) = self.slots.get_mut(slot)
        {
            let found = table.read(&self.at, namespace);
            if found.is_none() && self.at.epoch == 0 {
                return Err(no_key(handle));
            }
            look(found.and_then(|cell| cell.0.as_ref()));
            return Ok(());
        }
        self.with_cached(handle, slot, namespace, Load::Read, |cell: &mut One<V>, _| {
            look(cell.0.as_ref());
            Ok(((), Touch::Clean))
        })
    }

    /// Changes the record of the current key in place.
    #[inline]
    pub(crate) fn change_record<V: Record + Clone, R>(
        &mut self,
        handle: &Binding<One<V>>,
        namespace: &[u8],
        load: Load,
        change: impl FnOnce(&mut Option<V>) -> R,
    ) -> Result<R, StateError> {
        let result = match self.slots.get_mut(handle.at()) {
            Some(Slot { body: Body::Heap(table), .. }) if namespace.is_empty() => {
                table.change_plain(&self.at, |cell| change(&mut cell.0))
            }
            _ => {
                // The result comes back by a way of its own: where a call writes into this function's, the
                // path above goes through memory, too.
                let mut result = None;
                let change = |value: &mut Option<V>| result = Some(change(value));
                self.change_elsewhere(handle, namespace, load, change)?;
                result
            }
        };
        result.ok_or_else(|| no_key(handle))
    }

    /// Changes a record in a namespace, over a store, or by a handle that is not bound yet. Nothing is done
    /// if no key is current.
    #[inline(never)]
    fn change_elsewhere<V: Record + Clone>(
        &mut self,
        handle: &Binding<One<V>>,
        namespace: &[u8],
        load: Load,
        change: impl FnOnce(&mut Option<V>),
    ) -> Result<(), StateError> {
        let slot = self.slot(handle)?;
        if let Engine::Heap(_) = &self.engine
            && let Some(Slot { body: Body::Heap(table), .. }) = self.slots.get_mut(slot)
        {
            table.change(&self.at, namespace, |cell| change(&mut cell.0));
            return Ok(());
        }
        self.with_cached(handle, slot, namespace, load, |cell: &mut One<V>, _| {
            let was_absent = load == Load::Read && cell.0.is_none();
            change(&mut cell.0);
            // Absent before and after: there is nothing to write.
            let clean = was_absent && cell.0.is_none();
            Ok(((), if clean { Touch::Clean } else { Touch::Dirty }))
        })
    }

    /// Works on the map of the current key.
    pub(crate) fn with_map<V: Record + Clone, R>(
        &mut self,
        handle: &Binding<MapCell<V>>,
        namespace: &[u8],
        work: impl FnOnce(&mut MapCell<V>, &mut Reader<'_>) -> Result<(R, Touch), StateError>,
    ) -> Result<R, StateError> {
        let slot = self.slot(handle)?;
        if let Engine::Heap(_) = &self.engine
            && let Some(Slot { meta, body: Body::Heap(table) }) = self.slots.get_mut(slot)
        {
            let mut reader = Reader { link: None, state: meta, at: &self.at, namespace };
            let work = |cell: &mut MapCell<V>| work(cell, &mut reader);
            let worked = table.change(&self.at, namespace, work);
            return worked.unwrap_or_else(|| Err(no_key(handle))).map(|(result, _)| result);
        }
        self.with_cached(handle, slot, namespace, Load::Read, work)
    }

    /// Beside an access to a state with a time to live: looks at a few other cells in memory, and lets
    /// `clean` remove what has expired. A store cleans up when it compacts.
    pub(crate) fn sweep<C: Cell>(&mut self, handle: &Binding<C>, clean: impl FnMut(&mut C) -> u64) {
        if let Some(Slot { body: Body::Heap(table), .. }) = self.slots.get_mut(handle.at()) {
            table.sweep(SWEPT, clean);
        }
    }

    /// Works on a cell of a cached key, fetched if need be.
    fn with_cached<C: Cell, R>(
        &mut self,
        handle: &Binding<C>,
        slot: SlotRef<C>,
        namespace: &[u8],
        load: Load,
        work: impl FnOnce(&mut C, &mut Reader<'_>) -> Result<(R, Touch), StateError>,
    ) -> Result<R, StateError> {
        let Engine::Cached(engine) = &mut self.engine else {
            unreachable!("cells are either all in memory or cached")
        };
        if self.at.epoch == 0 {
            return Err(no_key(handle));
        }
        let index = engine.enter(&self.at, &mut self.slots)?;
        let Some(Slot { meta, body: Body::Cached(cells) }) = self.slots.get_mut(slot) else {
            unreachable!("cells are either all in memory or cached")
        };
        let cells = cells_at(cells, index);
        let link = &mut engine.link;
        let cached = match cells.get_mut(namespace) {
            // Looked up twice, for the borrow of a found cell cannot end in the other arm.
            Some(_) => {
                link.counters.hits += 1;
                cells.get_mut(namespace).expect("the cell has just been found")
            }
            None => {
                link.counters.misses += 1;
                let mut reader =
                    Reader { link: Some(&mut *link), state: meta, at: &self.at, namespace };
                let (cell, read) = match load {
                    Load::Read => (C::fetch(&mut reader)?, true),
                    Load::Blind => (C::default(), false),
                };
                let absent = read && C::WHOLE && cell.is_vacant();
                cells.insert(namespace, cell, absent)
            }
        };
        let mut reader = Reader { link: Some(link), state: meta, at: &self.at, namespace };
        let (result, touch) = work(&mut cached.cell, &mut reader)?;
        cached.dirty |= touch == Touch::Dirty;
        if engine.is_write_through() {
            engine.write_through(&mut self.slots)?;
        }
        Ok(result)
    }
}

#[cold]
fn no_key<C: Cell>(handle: &Binding<C>) -> StateError {
    StateError::NoKey { state: handle.name().to_owned() }
}
