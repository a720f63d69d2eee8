//! [`MapState`]: a map per key, each entry stored by itself.
//!
//! Iteration goes by the canonical bytes of the map's keys, which is the order of the keys, on every
//! backend. Each entry has a time to live of its own, if the state has one.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use element::{Key, Record, Timestamp, decode_key_exact, key_bytes};

use crate::backend::{StateAccess, Touch};
use crate::handle::{Binding, Handle, StateDescriptor, StateKind};
use crate::link::Reader;
use crate::map_cell::{MapCell, Verdict};
use crate::ttl::Stamped;
use crate::{KeyedStateBackend, StateError, TtlConfig, TtlUpdate, TtlVisibility};

/// A map from `K` to `V` for each key, and for each namespace of it.
pub struct MapState<K, V> {
    handle: Handle<MapCell<V>, MapCell<Stamped<V>>>,
    keys: PhantomData<fn() -> K>,
}

impl<K: Key, V: Record + Clone> MapState<K, V> {
    /// A state of this name, unique within its operator.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { handle: Handle::new(name.into(), StateKind::Map), keys: PhantomData }
    }

    /// Lets entries expire, each by its own time.
    #[must_use]
    pub fn with_ttl(self, ttl: TtlConfig) -> Self {
        Self { handle: self.handle.with_ttl(ttl), ..self }
    }

    /// What the state declares.
    #[must_use]
    pub fn descriptor(&self) -> StateDescriptor {
        self.handle.descriptor()
    }

    /// Declares the state to the backend, before its first use does.
    ///
    /// # Errors
    ///
    /// As [`crate::ValueState::bind`].
    pub fn bind(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<(), StateError> {
        self.handle.bind(context.backend())
    }

    /// A copy of the value under `key`. At most one read of the store.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn get(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        key: &K,
    ) -> Result<Option<V>, StateError> {
        self.get_in(context, &[], key)
    }

    /// As [`get`](Self::get), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn get_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        key: &K,
    ) -> Result<Option<V>, StateError> {
        let backend = context.backend();
        let key = key_bytes(key);
        match &self.handle {
            Handle::Plain(handle) => backend.with_map(handle, namespace, |cell, reader| {
                Ok((cell.get(&key, reader)?.cloned(), Touch::Clean))
            }),
            Handle::Expiring(handle, ttl) => {
                let now = backend.now(ttl.clock);
                let found = backend.with_map(handle, namespace, |cell, reader| {
                    get_stamped(cell, &key, reader, *ttl, now)
                })?;
                sweep(backend, handle, *ttl, now);
                Ok(found)
            }
        }
    }

    /// Whether there is a value under `key`.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn contains(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        key: &K,
    ) -> Result<bool, StateError> {
        Ok(self.get(context, key)?.is_some())
    }

    /// Puts a value under `key`. Reads nothing.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn put(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        key: &K,
        value: V,
    ) -> Result<(), StateError> {
        self.put_in(context, &[], key, value)
    }

    /// As [`put`](Self::put), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn put_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        key: &K,
        value: V,
    ) -> Result<(), StateError> {
        let backend = context.backend();
        let key = key_bytes(key);
        match &self.handle {
            Handle::Plain(handle) => backend.with_map(handle, namespace, |cell, _| {
                cell.put(&key, value);
                Ok(((), Touch::Dirty))
            }),
            Handle::Expiring(handle, ttl) => {
                let at = backend.now(ttl.clock);
                backend.with_map(handle, namespace, |cell, _| {
                    cell.put(&key, Stamped { at, value });
                    Ok(((), Touch::Dirty))
                })?;
                sweep(backend, handle, *ttl, at);
                Ok(())
            }
        }
    }

    /// Changes the value under `key` in place: `None` is no value, before and after.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn update<R>(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        key: &K,
        change: impl FnOnce(&mut Option<V>) -> R,
    ) -> Result<R, StateError> {
        let backend = context.backend();
        let key = key_bytes(key);
        let (handle, ttl) = match &self.handle {
            Handle::Plain(handle) => {
                return backend.with_map(handle, &[], |cell, reader| {
                    Ok((cell.update(&key, reader, change)?, Touch::Dirty))
                });
            }
            Handle::Expiring(handle, ttl) => (handle, *ttl),
        };
        let now = backend.now(ttl.clock);
        let hidden = ttl.visibility == TtlVisibility::NeverReturnExpired;
        let change = |held: &mut Option<Stamped<V>>| {
            let live = held.take().filter(|held| !(hidden && ttl.is_expired(held.at, now)));
            let mut value = live.map(|held| held.value);
            let result = change(&mut value);
            *held = value.map(|value| Stamped { at: now, value });
            result
        };
        backend.with_map(handle, &[], |cell, reader| {
            Ok((cell.update(&key, reader, change)?, Touch::Dirty))
        })
    }

    /// Removes the value under `key`. Reads nothing.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn remove(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        key: &K,
    ) -> Result<(), StateError> {
        self.remove_in(context, &[], key)
    }

    /// As [`remove`](Self::remove), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn remove_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        key: &K,
    ) -> Result<(), StateError> {
        let backend = context.backend();
        let key = key_bytes(key);
        match &self.handle {
            Handle::Plain(handle) => backend.with_map(handle, namespace, |cell, reader| {
                cell.remove(&key, reader.is_durable());
                Ok(((), Touch::Dirty))
            }),
            Handle::Expiring(handle, _) => backend.with_map(handle, namespace, |cell, reader| {
                cell.remove(&key, reader.is_durable());
                Ok(((), Touch::Dirty))
            }),
        }
    }

    /// Copies of all entries, in the order of keys. One range read of the store a page of 1,024.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn entries(
        &self,
        context: &mut (impl StateAccess + ?Sized),
    ) -> Result<Vec<(K, V)>, StateError> {
        self.entries_in(context, &[])
    }

    /// As [`entries`](Self::entries), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn entries_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
    ) -> Result<Vec<(K, V)>, StateError> {
        let mut found = Vec::new();
        self.visit(context, namespace, |key, value| {
            found.push((key, value.clone()));
            Visited::Kept
        })?;
        Ok(found)
    }

    /// Visits each entry once, in the order of keys. A map of more than a page, 1,024 entries or a
    /// mebibyte, is read from a store page by page and not kept in memory.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn for_each(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        mut each: impl FnMut(K, &V),
    ) -> Result<(), StateError> {
        self.visit(context, &[], |key, value| {
            each(key, value);
            Visited::Kept
        })
    }

    /// Visits each entry once, in the order of keys, and removes those that `keep` refuses; what it
    /// does to a value stays. Read as by [`for_each`](Self::for_each); what is changed or removed is
    /// kept until it is written.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn retain(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        mut keep: impl FnMut(&K, &mut V) -> bool,
    ) -> Result<(), StateError> {
        self.visit(context, &[], |key, value| {
            if keep(&key, value) { Visited::Written } else { Visited::Refused }
        })
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn is_empty(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<bool, StateError> {
        match &self.handle {
            Handle::Plain(handle) => context
                .backend()
                .with_map(handle, &[], |cell, reader| Ok((cell.is_empty(reader)?, Touch::Clean))),
            Handle::Expiring(..) => Ok(self.entries(context)?.is_empty()),
        }
    }

    /// Removes all entries of the current key.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn clear(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<(), StateError> {
        self.clear_in(context, &[])
    }

    /// As [`clear`](Self::clear), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn clear_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
    ) -> Result<(), StateError> {
        let backend = context.backend();
        match &self.handle {
            Handle::Plain(handle) => backend.with_map(handle, namespace, |cell, reader| {
                Ok((cell.clear(reader)?, Touch::Dirty))
            }),
            Handle::Expiring(handle, _) => backend.with_map(handle, namespace, |cell, reader| {
                Ok((cell.clear(reader)?, Touch::Dirty))
            }),
        }
    }

    fn visit(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        mut each: impl FnMut(K, &mut V) -> Visited,
    ) -> Result<(), StateError> {
        let backend = context.backend();
        let decode = |key: &[u8]| {
            decode_key_exact::<K>(key).map_err(|source| StateError::Decode {
                state: self.handle.name().to_owned(),
                source,
            })
        };
        let (handle, ttl) = match &self.handle {
            Handle::Plain(handle) => {
                return backend.with_map(handle, namespace, |cell, reader| {
                    cell.retain(reader, |key, value| Ok(each(decode(key)?, value).verdict()))?;
                    Ok(((), Touch::Dirty))
                });
            }
            Handle::Expiring(handle, ttl) => (handle, *ttl),
        };
        let now = backend.now(ttl.clock);
        backend.with_map(handle, namespace, |cell, reader| {
            cell.retain(reader, |key, held| {
                let expired = ttl.is_expired(held.at, now);
                if expired && ttl.visibility == TtlVisibility::NeverReturnExpired {
                    return Ok(Verdict::Remove);
                }
                let visited = each(decode(key)?, &mut held.value);
                Ok(visited.stamped(held, expired, ttl, now))
            })?;
            Ok(((), Touch::Dirty))
        })
    }
}

/// What a visitor did with an entry.
#[derive(Clone, Copy)]
enum Visited {
    /// Looked at it.
    Kept,
    /// May have changed it.
    Written,
    /// Wants it removed.
    Refused,
}

impl Visited {
    fn verdict(self) -> Verdict {
        match self {
            Self::Kept => Verdict::Keep,
            Self::Written => Verdict::Changed,
            Self::Refused => Verdict::Remove,
        }
    }

    /// The verdict on an entry with a time to live, renewed by what was done.
    fn stamped<V>(
        self,
        held: &mut Stamped<V>,
        expired: bool,
        ttl: TtlConfig,
        now: Timestamp,
    ) -> Verdict {
        match self {
            Self::Kept if expired => Verdict::Remove,
            Self::Kept if ttl.update == TtlUpdate::OnReadAndWrite => {
                held.at = now;
                Verdict::Changed
            }
            Self::Written => {
                held.at = now;
                Verdict::Changed
            }
            other => other.verdict(),
        }
    }
}

/// Removes the expired entries of a few maps from memory, behind the access at hand.
fn sweep<V: Record + Clone>(
    backend: &mut KeyedStateBackend,
    handle: &Binding<MapCell<Stamped<V>>>,
    ttl: TtlConfig,
    now: Timestamp,
) {
    backend.sweep(handle, |cell| cell.drop_dead(|held| ttl.is_expired(held.at, now)));
}

fn get_stamped<V: Record + Clone>(
    cell: &mut MapCell<Stamped<V>>,
    key: &[u8],
    reader: &mut Reader<'_>,
    ttl: TtlConfig,
    now: Timestamp,
) -> Result<(Option<V>, Touch), StateError> {
    let Some(held) = cell.get(key, reader)?.cloned() else { return Ok((None, Touch::Clean)) };
    if ttl.is_expired(held.at, now) {
        cell.remove(key, reader.is_durable());
        let seen = ttl.visibility == TtlVisibility::ReturnExpiredIfNotCleanedUp;
        return Ok((seen.then_some(held.value), Touch::Dirty));
    }
    if ttl.update == TtlUpdate::OnReadAndWrite {
        cell.put(key, Stamped { at: now, value: held.value.clone() });
        return Ok((Some(held.value), Touch::Dirty));
    }
    Ok((Some(held.value), Touch::Clean))
}

impl<K, V> fmt::Debug for MapState<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapState").field("handle", &self.handle).finish()
    }
}
