//! [`BroadcastState`]: a map that every subtask of an operator holds alike, because every subtask gets
//! the same records of a broadcast stream.
//!
//! ```text
//!   broadcast side   BroadcastWrite   get, entries, put, remove
//!   the other side   BroadcastRead    get, entries
//! ```
//!
//! Values are held typed, by the canonical bytes of their keys; a look-up decodes nothing. Read by
//! functions through the runtime's contexts; written into checkpoints by every subtask and handed to
//! every subtask on a restore, at whatever parallelism. Left out on purpose: who calls when.
//!
//! Source: FLIP-17 for side inputs; Flink's "broadcast state pattern".

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use element::{Key, Record, decode_exact, decode_key_exact, encode_to_vec, key_bytes};

use crate::StateError;
use crate::operator_state::{OperatorStateBackend, Part, Redistribution, migrate};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Lends broadcast state for reading: contexts of the side that is not broadcast.
pub trait BroadcastRead {
    /// The state, to be read.
    fn broadcast_state(&mut self) -> ReadOnly<'_>;
}

/// Lends broadcast state for changing: contexts of the broadcast side. What is done here must depend
/// on the broadcast records alone, or the copies of the subtasks differ.
pub trait BroadcastWrite: BroadcastRead {
    /// The state, to be changed.
    fn broadcast_state_mut(&mut self) -> &mut OperatorStateBackend;
}

/// Broadcast state that can be read and not changed.
pub struct ReadOnly<'a>(&'a mut OperatorStateBackend);

impl BroadcastRead for OperatorStateBackend {
    fn broadcast_state(&mut self) -> ReadOnly<'_> {
        ReadOnly(self)
    }
}

impl BroadcastWrite for OperatorStateBackend {
    fn broadcast_state_mut(&mut self) -> &mut OperatorStateBackend {
        self
    }
}

/// A handle to a map that every subtask holds alike. Declared once, by name, as a field of a function.
pub struct BroadcastState<K, V> {
    name: String,
    /// The id of the maps it is bound to, and the place in them; ids count from 1.
    bound: Cell<(u64, usize)>,
    entries: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Record + Clone> BroadcastState<K, V> {
    /// A map of this name, unique within its operator.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), bound: Cell::new((0, 0)), entries: PhantomData }
    }

    /// A copy of the value under a key.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the state was restored and cannot be read as this type.
    pub fn get(
        &self,
        access: &mut (impl BroadcastRead + ?Sized),
        key: &K,
    ) -> Result<Option<V>, StateError> {
        let ReadOnly(backend) = access.broadcast_state();
        let map = self.map(backend)?;
        map.scratch.clear();
        key.encode_key(&mut map.scratch);
        Ok(map.entries.get(&map.scratch).map(|(_, value)| value.clone()))
    }

    /// Copies of all entries, in the order of keys.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn entries(
        &self,
        access: &mut (impl BroadcastRead + ?Sized),
    ) -> Result<Vec<(K, V)>, StateError> {
        let ReadOnly(backend) = access.broadcast_state();
        Ok(self.map(backend)?.entries.values().cloned().collect())
    }

    /// Puts a value under a key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn put(
        &self,
        access: &mut (impl BroadcastWrite + ?Sized),
        key: &K,
        value: V,
    ) -> Result<(), StateError> {
        let map = self.map(access.broadcast_state_mut())?;
        map.entries.insert(key_bytes(key), (key.clone(), value));
        Ok(())
    }

    /// Removes the value under a key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn remove(
        &self,
        access: &mut (impl BroadcastWrite + ?Sized),
        key: &K,
    ) -> Result<(), StateError> {
        let map = self.map(access.broadcast_state_mut())?;
        map.scratch.clear();
        key.encode_key(&mut map.scratch);
        map.entries.remove(&map.scratch);
        Ok(())
    }

    fn map<'a>(
        &self,
        backend: &'a mut OperatorStateBackend,
    ) -> Result<&'a mut TypedMap<K, V>, StateError> {
        let (id, place) = self.bound.get();
        let place = if id == backend.maps.id { place } else { self.bind(backend)? };
        let map: &mut dyn Any = backend.maps.maps[place].as_mut();
        Ok(map.downcast_mut().expect("a handle binds only to a map of its own types"))
    }

    /// Finds the map of this name, or makes it from what was restored.
    #[cold]
    fn bind(&self, backend: &mut OperatorStateBackend) -> Result<usize, StateError> {
        let place = match backend.maps.maps.iter().position(|map| map.name() == self.name) {
            Some(place) => place,
            None => {
                let map = TypedMap::<K, V>::restored(&self.name, backend.take_part(&self.name))?;
                backend.maps.maps.push(Box::new(map));
                backend.maps.maps.len() - 1
            }
        };
        let map: &dyn Any = backend.maps.maps[place].as_ref();
        if !map.is::<TypedMap<K, V>>() {
            return Err(StateError::Redeclared {
                state: self.name.clone(),
                declared: "a broadcast map of other types".to_owned(),
                again: format!("a broadcast map to {}", V::schema()),
            });
        }
        self.bound.set((backend.maps.id, place));
        Ok(place)
    }
}

/// The broadcast maps of one subtask.
pub(crate) struct BroadcastMaps {
    id: u64,
    maps: Vec<Box<dyn AnyMap>>,
}

impl Default for BroadcastMaps {
    fn default() -> Self {
        Self { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), maps: Vec::new() }
    }
}

impl BroadcastMaps {
    /// All maps as they are stored.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (String, Part)> {
        self.maps.iter().map(|map| (map.name().to_owned(), map.part()))
    }
}

trait AnyMap: Any + Send {
    fn name(&self) -> &str;

    fn part(&self) -> Part;
}

struct TypedMap<K, V> {
    name: String,
    /// By the canonical bytes of keys.
    entries: BTreeMap<Vec<u8>, (K, V)>,
    scratch: Vec<u8>,
}

impl<K: Key, V: Record + Clone> TypedMap<K, V> {
    fn restored(name: &str, part: Option<Part>) -> Result<Self, StateError> {
        let mut map = Self { name: name.to_owned(), entries: BTreeMap::new(), scratch: Vec::new() };
        let Some(mut part) = part else { return Ok(map) };
        if part.mode != Redistribution::Broadcast {
            return Err(StateError::Redeclared {
                state: name.to_owned(),
                declared: format!("{:?}", part.mode),
                again: format!("{:?}", Redistribution::Broadcast),
            });
        }
        if part.schema != V::schema() {
            migrate::<V>(name, &mut part)?;
        }
        let decode = |source| StateError::Decode { state: name.to_owned(), source };
        for (key, value) in part.entries {
            let entry =
                (decode_key_exact(&key).map_err(decode)?, decode_exact(&value).map_err(decode)?);
            map.entries.insert(key, entry);
        }
        Ok(map)
    }
}

impl<K: Key, V: Record + Clone> AnyMap for TypedMap<K, V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn part(&self) -> Part {
        let entry = |(key, (_, value)): (&Vec<u8>, &(K, V))| (key.clone(), encode_to_vec(value));
        Part {
            mode: Redistribution::Broadcast,
            schema: V::schema(),
            entries: self.entries.iter().map(entry).collect(),
        }
    }
}

impl fmt::Debug for BroadcastMaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.maps.iter().map(|map| map.name())).finish()
    }
}

impl<K, V> fmt::Debug for BroadcastState<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastState").field("name", &self.name).finish_non_exhaustive()
    }
}
