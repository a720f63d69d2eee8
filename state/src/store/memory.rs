//! A byte store in memory: an ordered map. Serves tests, and shows how little a store needs.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use super::{ByteStore, StoreSnapshot, Visit, WriteBatch};
use crate::StoreFailure;

type Entries = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// An ordered map of bytes. The first write after a snapshot copies the map while the snapshot lives.
#[derive(Debug, Default)]
pub struct MemoryByteStore {
    entries: Arc<Entries>,
}

impl MemoryByteStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

fn scan(entries: &Entries, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) {
    let to = to.map_or(Bound::Unbounded, Bound::Excluded);
    for (key, value) in entries.range::<[u8], _>((Bound::Included(from), to)) {
        if let ControlFlow::Break(()) = visit(key, value) {
            return;
        }
    }
}

impl ByteStore for MemoryByteStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFailure> {
        Ok(self.entries.get(key).map(|value| value.to_vec()))
    }

    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        if to.is_none_or(|to| from < to) {
            scan(&self.entries, from, to, visit);
        }
        Ok(())
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        let entries = Arc::make_mut(&mut self.entries);
        for (key, value) in batch.iter() {
            match value {
                Some(value) => entries.insert(key.into(), value.into()),
                None => entries.remove(key),
            };
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Box<dyn StoreSnapshot>, StoreFailure> {
        Ok(Box::new(MemorySnapshot { entries: Arc::clone(&self.entries) }))
    }
}

#[derive(Debug)]
struct MemorySnapshot {
    entries: Arc<Entries>,
}

impl StoreSnapshot for MemorySnapshot {
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        if to.is_none_or(|to| from < to) {
            scan(&self.entries, from, to, visit);
        }
        Ok(())
    }
}
