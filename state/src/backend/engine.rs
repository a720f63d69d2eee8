//! Where cells come from when they are not all in memory: the cache's keys, and the way to the store.

use crate::StateError;
use crate::backend::WriteMode;
use crate::cache::KeyCache;
use crate::current_key::CurrentKey;
use crate::entry_key::EntryKey;
use crate::heap::Cut;
use crate::link::StoreLink;
use crate::slots::Slots;
use crate::sorted::SortedPhase;
use crate::store::{ByteStore, StoreSnapshot};
use crate::{StateCounters, StoreFailure};

/// How a backend keeps its cells.
#[derive(Debug)]
pub(crate) enum Engine {
    Heap(Cut),
    Cached(Box<CachedEngine>),
}

impl Engine {
    /// The way to the store, if there may be one.
    pub(crate) fn link(&mut self) -> Option<&mut StoreLink> {
        match self {
            Self::Heap(_) => None,
            Self::Cached(engine) => Some(&mut engine.link),
        }
    }
}

/// The cache of a backend over a store, or over nothing.
#[derive(Debug)]
pub(crate) struct CachedEngine {
    keys: KeyCache,
    pub(crate) link: StoreLink,
    /// Keys wanted in the cache; 0 is off.
    size: usize,
    /// The current key's index, valid while its epoch is current.
    index: u32,
    index_epoch: u64,
    /// The greatest key of sorted input so far.
    last: Option<(u64, EntryKey)>,
}

impl CachedEngine {
    pub(crate) fn new(store: Option<Box<dyn ByteStore>>, size: usize) -> Self {
        Self {
            keys: KeyCache::new(),
            link: StoreLink::new(store),
            size,
            index: 0,
            index_epoch: 0,
            last: None,
        }
    }

    pub(crate) fn counters(&self) -> StateCounters {
        StateCounters { cached_keys: self.keys.len() as u64, ..self.link.counters }
    }

    /// Keys that may be cached: at least one while input is sorted.
    pub(crate) fn capacity(&self) -> usize {
        if self.link.phase.is_some() { self.size.max(1) } else { self.size }
    }

    /// Whether an access must leave nothing behind.
    pub(crate) fn is_write_through(&self) -> bool {
        self.size == 0 && self.link.phase.is_none()
    }

    /// The current key's index; makes room if it is not cached.
    #[inline]
    pub(crate) fn enter(&mut self, at: &CurrentKey, slots: &mut Slots) -> Result<u32, StateError> {
        if self.index_epoch != at.epoch {
            self.change_key(at, slots)?;
        }
        Ok(self.index)
    }

    fn change_key(&mut self, at: &CurrentKey, slots: &mut Slots) -> Result<(), StateError> {
        self.index = match self.keys.find(at.hash, &at.key) {
            Some(index) => index,
            None => {
                if self.link.phase.is_some() {
                    self.check_order(at)?;
                }
                match self.keys.oldest() {
                    Some(oldest) if self.keys.len() >= self.size.max(1) => {
                        self.evict(oldest, slots)?;
                        self.keys.replace(oldest, at.hash, &at.key)
                    }
                    _ => self.keys.insert(at.hash, &at.key),
                }
            }
        };
        self.index_epoch = at.epoch;
        Ok(())
    }

    fn check_order(&mut self, at: &CurrentKey) -> Result<(), StateError> {
        let Some((hash, key)) = &mut self.last else {
            self.last = Some((at.hash, at.key.clone()));
            return Ok(());
        };
        if *hash > at.hash || (*hash == at.hash && *key >= at.key) {
            return Err(StateError::OutOfOrder { hash: at.hash });
        }
        *hash = at.hash;
        key.become_same(&at.key);
        Ok(())
    }

    /// Writes a key's changes and forgets its cells. Its index is another key's next.
    fn evict(&mut self, index: u32, slots: &mut Slots) -> Result<(), StoreFailure> {
        // A failed write leaves the key cached but clean: the attempt is lost with it.
        self.write_back(&[index], slots)?;
        slots.iter_mut().for_each(|slot| slot.forget(index));
        self.index_epoch = 0;
        self.link.counters.evicted_keys += 1;
        Ok(())
    }

    /// Writes the changes of these keys to the store.
    fn write_back(&mut self, indices: &[u32], slots: &mut Slots) -> Result<(), StoreFailure> {
        let keys = &self.keys;
        self.link.write(|batch| {
            for index in indices {
                let (hash, key) = keys.at(*index);
                for slot in slots.iter_mut() {
                    slot.write_back(*index, hash, key, batch);
                }
            }
        })
    }

    /// Ends one access with the cache off.
    pub(crate) fn write_through(&mut self, slots: &mut Slots) -> Result<(), StateError> {
        self.write_back(&[self.index], slots)?;
        slots.iter_mut().for_each(|slot| slot.forget(self.index));
        Ok(())
    }

    pub(crate) fn flush(&mut self, slots: &mut Slots) -> Result<(), StateError> {
        if self.link.phase.is_some() {
            return Ok(());
        }
        self.write_all(slots)
    }

    /// The store's view, with all changes in it.
    pub(crate) fn snapshot(
        &mut self,
        slots: &mut Slots,
    ) -> Result<Box<dyn StoreSnapshot>, StateError> {
        if self.link.phase.is_some() {
            let what = "a snapshot within sorted input";
            return Err(StateError::NotSupported { backend: "disk-backed", what });
        }
        self.write_all(slots)?;
        match &mut self.link.store {
            Some(store) => Ok(store.snapshot()?),
            None => Err(StateError::NotSupported { backend: "one-key", what: "snapshots" }),
        }
    }

    fn write_all(&mut self, slots: &mut Slots) -> Result<(), StateError> {
        let indices: Vec<u32> = self.keys.by_age().collect();
        self.write_back(&indices, slots)?;
        Ok(())
    }

    pub(crate) fn begin_sorted(
        &mut self,
        slots: &mut Slots,
        mode: WriteMode,
    ) -> Result<(), StateError> {
        if self.link.phase.is_some() {
            return Ok(());
        }
        self.write_all(slots)?;
        self.forget_all(slots);
        let Some(store) = &mut self.link.store else { return Ok(()) };
        let load = match mode {
            WriteMode::BulkLoad => store.bulk_load()?,
            WriteMode::Writes => None,
        };
        self.link.phase = Some(SortedPhase::begin(load));
        self.last = None;
        Ok(())
    }

    pub(crate) fn end_sorted(&mut self, slots: &mut Slots) -> Result<(), StateError> {
        if self.link.phase.is_some() {
            self.write_all(slots)?;
            self.forget_all(slots);
        }
        if let (Some(phase), Some(store)) = (self.link.phase.take(), &mut self.link.store) {
            phase.finish(store.as_mut(), &mut self.link.counters)?;
        }
        Ok(())
    }

    fn forget_all(&mut self, slots: &mut Slots) {
        while let Some(index) = self.keys.oldest() {
            slots.iter_mut().for_each(|slot| slot.forget(index));
            self.keys.remove(index);
        }
        self.index_epoch = 0;
    }
}
