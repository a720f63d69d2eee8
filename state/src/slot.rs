//! [`Slot`]: one state of a backend, with its cells: all of them, or those of the cached keys.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use element::{KeyHash, Schema};

use crate::backend::{ComingKeys, KeyEntry};
use crate::cell::Cell;
use crate::handle::{StateDescriptor, StateKind};
use crate::heap::HeapTable;
use crate::link::StoreLink;
use crate::migrate;
use crate::snapshot::{FrozenSlot, Restored};
use crate::store::WriteBatch;
use crate::store_key::{StateId, StoreKey};
use crate::{StateError, TtlConfig};

/// What a state is called and what it holds.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    pub(crate) name: Arc<str>,
    pub(crate) id: StateId,
    pub(crate) kind: StateKind,
    pub(crate) schema: Schema,
    pub(crate) ttl: Option<TtlConfig>,
}

impl Meta {
    pub(crate) fn descriptor(&self) -> StateDescriptor {
        StateDescriptor {
            name: self.name.to_string(),
            kind: self.kind,
            schema: self.schema.clone(),
            ttl: self.ttl,
        }
    }
}

/// One state of a backend.
pub(crate) struct Slot<C> {
    pub(crate) meta: Meta,
    pub(crate) body: Body<C>,
}

/// Where the cells are.
// With a tag of its own: it is looked at on every access.
#[repr(u8)]
pub(crate) enum Body<C> {
    /// All of them are in memory.
    Heap(HeapTable<C>),
    /// Those of the cached keys, by the key's index in [`crate::cache::KeyCache`].
    Cached(Vec<KeyCells<C>>),
}

/// The cells of one cached key.
pub(crate) struct KeyCells<C> {
    plain: Option<CachedCell<C>>,
    spaced: BTreeMap<Box<[u8]>, CachedCell<C>>,
}

/// A cell that has been fetched.
pub(crate) struct CachedCell<C> {
    pub(crate) cell: C,
    /// Whether it holds changes that the store does not have.
    pub(crate) dirty: bool,
    /// Whether the store is known to have nothing of it: what comes and goes in the cache alone is
    /// never written.
    pub(crate) absent: bool,
}

impl<C: Cell> CachedCell<C> {
    /// Adds the changes to a batch; `at` is the cell's place.
    fn write_back(&mut self, at: &StoreKey<'_>, batch: &mut WriteBatch) {
        if !std::mem::take(&mut self.dirty) || self.absent && self.cell.is_vacant() {
            return;
        }
        self.absent = C::WHOLE && self.cell.is_vacant();
        self.cell.emit_changes(&mut |map_key, value| match value {
            Some(encode) => batch.put_with(|out| at.push_of(map_key, out), encode),
            None => batch.delete_with(|out| at.push_of(map_key, out)),
        });
    }
}

impl<C> Default for KeyCells<C> {
    fn default() -> Self {
        Self { plain: None, spaced: BTreeMap::new() }
    }
}

impl<C> KeyCells<C> {
    /// The cell of a namespace, if it has been fetched.
    #[inline]
    pub(crate) fn get_mut(&mut self, namespace: &[u8]) -> Option<&mut CachedCell<C>> {
        if namespace.is_empty() { self.plain.as_mut() } else { self.spaced.get_mut(namespace) }
    }

    /// Puts a fetched cell in.
    pub(crate) fn insert(&mut self, namespace: &[u8], cell: C, absent: bool) -> &mut CachedCell<C> {
        let cell = CachedCell { cell, dirty: false, absent };
        if namespace.is_empty() {
            self.plain.insert(cell)
        } else {
            // The namespace was looked for and not found.
            self.spaced.entry(namespace.into()).or_insert(cell)
        }
    }
}

/// The cells of a key, for an index that may lie behind the end.
pub(crate) fn cells_at<C>(cells: &mut Vec<KeyCells<C>>, index: u32) -> &mut KeyCells<C> {
    let index = index as usize;
    if cells.len() <= index {
        cells.resize_with(index + 1, KeyCells::default);
    }
    &mut cells[index]
}

/// A slot of any type, as the backend holds it.
pub(crate) trait AnySlot: Any + Send {
    fn meta(&self) -> &Meta;

    /// Adds the changes of a cached key to a batch; they are then the store's.
    fn write_back(&mut self, index: u32, hash: u64, key: &[u8], batch: &mut WriteBatch);

    /// Forgets the cells of a cached key.
    fn forget(&mut self, index: u32);

    /// Shares the table of a state in memory with a snapshot.
    fn freeze(&mut self) -> Option<Box<dyn FrozenSlot>>;

    /// Takes over what was restored for this state, read by its old schema if that differs.
    fn adopt(&mut self, restored: Restored, link: Option<&mut StoreLink>)
    -> Result<(), StateError>;

    /// The number of entries in memory.
    fn len(&self) -> usize;

    /// As [`HeapTable::estimated_len`]; none over a store.
    fn estimated_len(&self) -> usize;

    /// As [`HeapTable::prefetch`]; over a store nothing is done.
    fn prefetch(&self, keys: ComingKeys<'_>) -> usize;

    /// Appends the keys of a table in memory, once for each namespace, in no order.
    fn keys(&self, into: &mut Vec<KeyEntry>);

    /// Entries that had expired and were removed beside other accesses.
    fn cleaned(&self) -> u64;
}

impl<C: Cell> AnySlot for Slot<C> {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn write_back(&mut self, index: u32, hash: u64, key: &[u8], batch: &mut WriteBatch) {
        let Body::Cached(cells) = &mut self.body else { return };
        let Some(cells) = cells.get_mut(index as usize) else { return };
        let at = |namespace| StoreKey {
            hash: KeyHash(hash),
            key,
            state: self.meta.id,
            namespace,
            map_key: &[],
        };
        if let Some(cell) = &mut cells.plain {
            cell.write_back(&at(&[]), batch);
        }
        for (namespace, cell) in &mut cells.spaced {
            cell.write_back(&at(namespace), batch);
        }
    }

    fn forget(&mut self, index: u32) {
        if let Body::Cached(cells) = &mut self.body
            && let Some(cells) = cells.get_mut(index as usize)
        {
            cells.plain = None;
            if !cells.spaced.is_empty() {
                cells.spaced.clear();
            }
        }
    }

    fn freeze(&mut self) -> Option<Box<dyn FrozenSlot>> {
        let Body::Heap(table) = &mut self.body else { return None };
        Some(Box::new(table.freeze(self.meta.clone())))
    }

    fn adopt(
        &mut self,
        restored: Restored,
        link: Option<&mut StoreLink>,
    ) -> Result<(), StateError> {
        migrate::adopt(self, restored, link)
    }

    fn len(&self) -> usize {
        match &self.body {
            Body::Heap(table) => table.len(),
            Body::Cached(cells) => {
                cells.iter().map(|key| usize::from(key.plain.is_some()) + key.spaced.len()).sum()
            }
        }
    }

    fn keys(&self, into: &mut Vec<KeyEntry>) {
        if let Body::Heap(table) = &self.body {
            table.keys(into);
        }
    }

    fn estimated_len(&self) -> usize {
        match &self.body {
            Body::Heap(table) => table.estimated_len(),
            Body::Cached(_) => 0,
        }
    }

    fn prefetch(&self, keys: ComingKeys<'_>) -> usize {
        match &self.body {
            Body::Heap(table) => table.prefetch(keys),
            Body::Cached(_) => 0,
        }
    }

    fn cleaned(&self) -> u64 {
        match &self.body {
            Body::Heap(table) => table.cleaned(),
            Body::Cached(_) => 0,
        }
    }
}

impl fmt::Debug for dyn AnySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("meta", self.meta()).field("len", &self.len()).finish()
    }
}
