//! [`KeyedStateBackend`]: the keyed state of one operator subtask.
//!
//! The runtime sets the current key before it calls the user's function; handles read and change
//! what the backend holds for that key. Not generic over the key: it knows a key by its hash and
//! canonical bytes. Left out on purpose: timers, which are [`crate::TimerService`]'s.

mod access;
mod durable;
mod engine;
mod keys;
mod prefetch;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use element::{Clock, KeyGroups, KeyHash, MaxParallelism, SystemClock, Timestamp};

pub(crate) use access::{Load, Touch};
pub use keys::{KeyEntry, KeyedState};
pub use prefetch::ComingKeys;

use crate::cell::Cell;
use crate::current_key::CurrentKey;
use crate::handle::{Binding, StateDescriptor};
use crate::heap::{Cut, HeapTable};
use crate::slot::{AnySlot, Body, Meta, Slot};
use crate::slots::{SlotRef, Slots};
use crate::snapshot::RestoredStates;
use crate::store::ByteStore;
use crate::store_key::StateId;
use crate::{Expiry, StateCounters, StateError, TtlClock};
use engine::{CachedEngine, Engine};

/// Gives handles the backend they work on: implemented by the backend and by the runtime's contexts.
pub trait StateAccess {
    /// The backend, whose current key is set.
    fn backend(&mut self) -> &mut KeyedStateBackend;
}

impl StateAccess for KeyedStateBackend {
    #[inline]
    fn backend(&mut self) -> &mut KeyedStateBackend {
        self
    }
}

impl<A: StateAccess + ?Sized> StateAccess for &mut A {
    #[inline]
    fn backend(&mut self) -> &mut KeyedStateBackend {
        (**self).backend()
    }
}

/// The keyed state of one operator subtask.
pub struct KeyedStateBackend {
    groups: KeyGroups,
    at: CurrentKey,
    slots: Slots,
    by_name: HashMap<Arc<str>, usize>,
    engine: Engine,
    clock: Arc<dyn Clock>,
    watermark: Timestamp,
    operator: String,
    /// Restored states that no handle has declared yet.
    restored: RestoredStates,
    /// Where a restore copies tables to while it reads them.
    scratch: Option<PathBuf>,
    /// For the store, on its own threads.
    expiry: Arc<Expiry>,
    /// Batches for which keys are not wanted before they come.
    prefetch_pause: u32,
}

impl KeyedStateBackend {
    /// All state in memory, as typed values, for the keys of `groups`.
    #[must_use]
    pub fn heap(groups: KeyGroups) -> Self {
        Self::with_engine(groups, Engine::Heap(Cut::of(groups)))
    }

    /// Only the state of the current key, forgotten at the next key: for batch over sorted input.
    ///
    /// Source: FLIP-140, "State backend".
    #[must_use]
    pub fn one_key() -> Self {
        let groups = KeyGroups::all(MaxParallelism::DEFAULT);
        Self::with_engine(groups, Engine::Cached(Box::new(CachedEngine::new(None, 1))))
    }

    /// State in a byte store, behind a write-back cache of `cache_entries` keys; 0 turns it off, and
    /// every access goes to the store.
    ///
    /// Source: FLIP-325.
    #[must_use]
    pub fn over(store: Box<dyn ByteStore>, groups: KeyGroups, cache_entries: usize) -> Self {
        let engine = CachedEngine::new(Some(store), cache_entries);
        let mut backend = Self::with_engine(groups, Engine::Cached(Box::new(engine)));
        let expiry = Arc::clone(&backend.expiry);
        if let Some(store) = backend.engine.link().and_then(|link| link.store.as_mut()) {
            store.expire_by(expiry);
        }
        backend
    }

    fn with_engine(groups: KeyGroups, engine: Engine) -> Self {
        let at = CurrentKey::none();
        Self {
            groups,
            at,
            slots: Slots::new(),
            by_name: HashMap::new(),
            engine,
            clock: Arc::new(SystemClock::default()),
            watermark: Timestamp::MIN,
            operator: String::new(),
            restored: RestoredStates::default(),
            scratch: None,
            expiry: Arc::default(),
            prefetch_pause: 0,
        }
    }

    /// Sets the clock by which values expire.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.expiry.set_clock(Arc::clone(&clock));
        self.clock = clock;
        self
    }

    /// Sets the operator's uid, which snapshots carry: a restore takes only those of its own.
    #[must_use]
    pub fn with_operator(mut self, uid: impl Into<String>) -> Self {
        self.operator = uid.into();
        self
    }

    /// Sets the directory below which a restore puts copies of tables while it reads them; without
    /// one it is the system's temporary directory.
    #[must_use]
    pub fn with_scratch(mut self, directory: impl Into<PathBuf>) -> Self {
        self.scratch = Some(directory.into());
        self
    }

    /// The key groups whose keys are here.
    #[must_use]
    pub fn groups(&self) -> KeyGroups {
        self.groups
    }

    /// Sets the operator's watermark, by which values expire in event time.
    pub fn set_watermark(&mut self, watermark: Timestamp) {
        self.watermark = watermark;
        self.expiry.set_watermark(watermark);
    }

    /// Sets the key that handles work on: its canonical bytes, and their [hash](element::hash_key_bytes).
    /// Costs one comparison when it is current already.
    #[inline]
    pub fn set_current_key(&mut self, hash: KeyHash, key: &[u8]) {
        self.at.enter(hash.0, key);
    }

    /// As [`set_current_key`](Self::set_current_key), of a key of eight bytes. False where it is current
    /// already.
    #[inline]
    pub fn set_current_word(&mut self, hash: KeyHash, word: [u8; 8]) -> bool {
        self.at.enter_word(hash.0, word)
    }

    /// Whether the key of these bytes is the current one.
    #[inline]
    #[must_use]
    pub fn is_current(&self, key: &[u8]) -> bool {
        self.at.is(key)
    }

    /// Hash and canonical bytes of the current key, if one is set.
    #[must_use]
    pub fn current_key(&self) -> Option<(KeyHash, &[u8])> {
        (self.at.epoch > 0).then(|| (KeyHash(self.at.hash), self.at.key.key()))
    }

    /// From here on keys come in the order (hash, key bytes), each of them once.
    ///
    /// Over a store: what is dirty is written, then the store is read in step with the input, where
    /// it holds anything, and written by a bulk load if `bulk_load` says so. The cache keeps its
    /// size, and at least one key. In memory nothing changes.
    ///
    /// # Errors
    ///
    /// [`StateError::Store`].
    ///
    /// Source: FLIP-327, "State backend".
    pub fn begin_sorted_input(&mut self, bulk_load: WriteMode) -> Result<(), StateError> {
        match &mut self.engine {
            Engine::Heap(_) => Ok(()),
            Engine::Cached(engine) => engine.begin_sorted(&mut self.slots, bulk_load),
        }
    }

    /// Ends what [`begin_sorted_input`](Self::begin_sorted_input) began: all changes are in the store
    /// and visible; keys may come in any order.
    ///
    /// # Errors
    ///
    /// [`StateError::Store`]; the store is as it was before the phase if it loads in bulk.
    pub fn end_sorted_input(&mut self) -> Result<(), StateError> {
        match &mut self.engine {
            Engine::Heap(_) => Ok(()),
            Engine::Cached(engine) => engine.end_sorted(&mut self.slots),
        }
    }

    /// Writes dirty cached values to the store. In memory, and within sorted input, there is nothing
    /// to do: there a key's values are written when the key ends.
    ///
    /// # Errors
    ///
    /// [`StateError::Store`].
    pub fn flush(&mut self) -> Result<(), StateError> {
        match &mut self.engine {
            Engine::Heap(_) => Ok(()),
            Engine::Cached(engine) => engine.flush(&mut self.slots),
        }
    }

    /// What has been counted.
    #[must_use]
    pub fn counters(&self) -> StateCounters {
        match &self.engine {
            Engine::Heap(_) => {
                let cleaned_entries = self.slots.iter().map(|slot| slot.cleaned()).sum();
                StateCounters { cleaned_entries, ..StateCounters::default() }
            }
            Engine::Cached(engine) => {
                StateCounters { cleaned_entries: self.expiry.removed(), ..engine.counters() }
            }
        }
    }

    /// Keys that the cache holds at most at this moment; `None` in memory.
    #[must_use]
    pub fn cache_entries(&self) -> Option<usize> {
        match &self.engine {
            Engine::Heap(_) => None,
            Engine::Cached(engine) => Some(engine.capacity()),
        }
    }

    /// The time by which values expire.
    pub(crate) fn now(&self, clock: TtlClock) -> Timestamp {
        match clock {
            TtlClock::ProcessingTime => self.clock.now(),
            TtlClock::EventTime => self.watermark,
        }
    }

    /// The slot of a handle's state, made if there is none of its name.
    #[inline]
    pub(crate) fn slot<C: Cell>(&mut self, handle: &Binding<C>) -> Result<SlotRef<C>, StateError> {
        if self.slots.has(handle.at()) { Ok(handle.at()) } else { self.bind(handle) }
    }

    #[cold]
    fn bind<C: Cell>(&mut self, handle: &Binding<C>) -> Result<SlotRef<C>, StateError> {
        let at = self.declare(handle.descriptor())?;
        handle.set(at);
        Ok(at)
    }

    fn declare<C: Cell>(&mut self, descriptor: StateDescriptor) -> Result<SlotRef<C>, StateError> {
        if let Some(slot) = self.by_name.get(descriptor.name.as_str()) {
            return self.same_slot(*slot, &descriptor);
        }
        let id = StateId::of(&descriptor.name);
        if let Some(other) = self.slots.iter().find(|slot| slot.meta().id == id) {
            let first = other.meta().name.to_string();
            return Err(StateError::NameClash { first, second: descriptor.name });
        }
        let name: Arc<str> = descriptor.name.into();
        let StateDescriptor { kind, schema, ttl, .. } = descriptor;
        let meta = Meta { name: Arc::clone(&name), id, kind, schema, ttl };
        let body = match &self.engine {
            Engine::Heap(cut) => Body::Heap(HeapTable::<C>::new(*cut)),
            Engine::Cached(_) => Body::Cached(Vec::new()),
        };
        let mut slot = Slot { meta, body };
        self.expiry.declare(id, &slot.meta.descriptor());
        if let Some(restored) = self.restored.claim(id, &slot.meta.descriptor())? {
            slot.adopt(restored, self.engine.link())?;
        }
        self.by_name.insert(name, self.slots.len());
        Ok(self.slots.push(slot))
    }

    /// The states that handles have declared, in that order.
    #[must_use]
    pub fn declared(&self) -> Vec<StateDescriptor> {
        self.slots.iter().map(|slot| slot.meta().descriptor()).collect()
    }

    /// A slot that is there, for another handle to the same state.
    fn same_slot<C: Cell>(
        &self,
        slot: usize,
        descriptor: &StateDescriptor,
    ) -> Result<SlotRef<C>, StateError> {
        let meta = self.slots.any(slot).meta();
        let found = self.slots.find(slot).filter(|_| meta.kind == descriptor.kind);
        found.ok_or_else(|| StateError::Redeclared {
            state: descriptor.name.clone(),
            declared: format!("{} of {}", meta.kind, meta.schema),
            again: format!("{} of {}", descriptor.kind, descriptor.schema),
        })
    }
}

/// How values reach the store while input is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WriteMode {
    /// As files that the store takes whole, where it can.
    #[default]
    BulkLoad,
    /// As sorted batches of writes.
    Writes,
}

impl fmt::Debug for KeyedStateBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedStateBackend")
            .field("groups", &self.groups)
            .field("at", &self.at)
            .field("slots", &self.slots.iter().collect::<Vec<_>>())
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}
