//! [`ListState`]: a list of values per key, in the order added.
//!
//! The list is one entry of the store, length and elements, so elements of any bytes stay apart. An
//! empty list and an absent one are the same. Left out on purpose: elements as entries of their own;
//! over a store without a cache each addition rewrites the list.

use std::borrow::Cow;
use std::fmt;

use element::Record;

use crate::backend::{Load, StateAccess};
use crate::cell::One;
use crate::handle::{Binding, Handle, StateDescriptor, StateKind};
use crate::ttl::Stamped;
use crate::{KeyedStateBackend, StateError, TtlConfig, TtlUpdate, TtlVisibility};

/// A list of `V` for each key, and for each namespace of it.
pub struct ListState<V> {
    handle: Handle<One<Vec<V>>, One<Vec<Stamped<V>>>>,
}

impl<V: Record + Clone> ListState<V> {
    /// A state of this name, unique within its operator.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { handle: Handle::new(name.into(), StateKind::List) }
    }

    /// Lets elements expire, each by its own time.
    #[must_use]
    pub fn with_ttl(self, ttl: TtlConfig) -> Self {
        Self { handle: self.handle.with_ttl(ttl) }
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

    /// A copy of the current key's list; empty if there is none.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn get(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<Vec<V>, StateError> {
        self.get_in(context, &[])
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
    ) -> Result<Vec<V>, StateError> {
        let backend = context.backend();
        match &self.handle {
            Handle::Plain(handle) => {
                let look = |list: Option<&Vec<V>>| list.cloned().unwrap_or_default();
                backend.read_record(handle, namespace, look)
            }
            Handle::Expiring(handle, ttl) => read_stamped(backend, handle, namespace, *ttl),
        }
    }

    /// Appends a value.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn add(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        value: V,
    ) -> Result<(), StateError> {
        self.add_all_in(context, &[], [value])
    }

    /// As [`add`](Self::add), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn add_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        value: V,
    ) -> Result<(), StateError> {
        self.add_all_in(context, namespace, [value])
    }

    /// Appends values, in their order.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn add_all(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        values: impl IntoIterator<Item = V>,
    ) -> Result<(), StateError> {
        self.add_all_in(context, &[], values)
    }

    /// As [`add_all`](Self::add_all), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn add_all_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        values: impl IntoIterator<Item = V>,
    ) -> Result<(), StateError> {
        self.write(context, namespace, Load::Read, values)
    }

    /// Puts values in the place of what was there; none of them clears the list. Reads nothing.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn update(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        values: impl IntoIterator<Item = V>,
    ) -> Result<(), StateError> {
        self.update_in(context, &[], values)
    }

    /// As [`update`](Self::update), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn update_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        values: impl IntoIterator<Item = V>,
    ) -> Result<(), StateError> {
        self.write(context, namespace, Load::Blind, values)
    }

    /// Removes the current key's list. Reads nothing.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn clear(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<(), StateError> {
        self.write(context, &[], Load::Blind, [])
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
        self.write(context, namespace, Load::Blind, [])
    }

    /// Removes the elements that `keep` refuses, as it visits each once and in order.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn retain(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        mut keep: impl FnMut(&V) -> bool,
    ) -> Result<(), StateError> {
        let mut list = self.get(context)?;
        list.retain(|value| keep(value));
        self.update(context, list)
    }

    /// Moves the lists of the namespaces `sources` behind that of `target`, in their order. The
    /// sources are empty afterwards.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn merge_namespaces(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        target: &[u8],
        sources: &[&[u8]],
    ) -> Result<(), StateError> {
        for source in sources.iter().filter(|source| **source != target) {
            let moved = self.get_in(context, source)?;
            self.clear_in(context, source)?;
            self.add_all_in(context, target, moved)?;
        }
        Ok(())
    }

    fn write(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        load: Load,
        values: impl IntoIterator<Item = V>,
    ) -> Result<(), StateError> {
        let backend = context.backend();
        match &self.handle {
            Handle::Plain(handle) => {
                backend.change_record(handle, namespace, load, |held| extend(held, load, values))
            }
            Handle::Expiring(handle, ttl) => {
                let at = backend.now(ttl.clock);
                let values = values.into_iter().map(|value| Stamped { at, value });
                backend.change_record(handle, namespace, load, |held: &mut Option<Vec<_>>| {
                    if let Some(list) = held {
                        list.retain(|held: &Stamped<V>| !ttl.is_expired(held.at, at));
                    }
                    extend(held, load, values);
                })
            }
        }
    }
}

fn extend<T>(held: &mut Option<Vec<T>>, load: Load, values: impl IntoIterator<Item = T>) {
    let mut list = held.take().filter(|_| load == Load::Read).unwrap_or_default();
    list.extend(values);
    *held = (!list.is_empty()).then_some(list);
}

/// Reads a list whose elements expire; those that have are cleaned up by the reading.
fn read_stamped<V: Record + Clone>(
    backend: &mut KeyedStateBackend,
    handle: &Binding<One<Vec<Stamped<V>>>>,
    namespace: &[u8],
    ttl: TtlConfig,
) -> Result<Vec<V>, StateError> {
    let now = backend.now(ttl.clock);
    let renews = ttl.update == TtlUpdate::OnReadAndWrite;
    let look = |held: Option<&Vec<Stamped<V>>>| held.cloned().unwrap_or_default();
    let held = backend.read_record(handle, namespace, look)?;
    let mut live = held.clone();
    live.retain(|held| !ttl.is_expired(held.at, now));
    if live.len() < held.len() || (renews && !live.is_empty()) {
        let mut kept = live.clone();
        if renews {
            kept.iter_mut().for_each(|held| held.at = now);
        }
        let replace = |held: &mut _| extend(held, Load::Blind, kept);
        backend.change_record(handle, namespace, Load::Blind, replace)?;
    }
    let shows = ttl.visibility == TtlVisibility::ReturnExpiredIfNotCleanedUp;
    let seen = if shows { held } else { live };
    Ok(seen.into_iter().map(|held| held.value).collect())
}

impl<V> fmt::Debug for ListState<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListState").field("handle", &self.handle).finish()
    }
}
