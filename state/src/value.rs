//! [`ValueState`]: one value per key.
//!
//! Used by functions; the work is the backend's. With a time to live the value lies behind its stamp,
//! so a state with one and a state without are different types in the store.

use std::borrow::Cow;

use element::{Record, Timestamp};

use crate::backend::{Load, StateAccess};
use crate::cell::One;
use crate::handle::{Binding, Handle, StateDescriptor, StateKind};
use crate::ttl::Stamped;
use crate::{KeyedStateBackend, StateError, TtlConfig, TtlUpdate, TtlVisibility};

/// One value of type `V` for each key, and for each namespace of it.
///
/// ```
/// use element::{KeyGroups, MaxParallelism, hash_key_bytes, key_bytes};
/// use slackwater_state::{KeyedStateBackend, ValueState};
///
/// # fn main() -> Result<(), slackwater_state::StateError> {
/// let mut backend = KeyedStateBackend::heap(KeyGroups::all(MaxParallelism::DEFAULT));
/// let count = ValueState::<u64>::new("count");
/// let key = key_bytes(&7_u64);
/// backend.set_current_key(hash_key_bytes(&key), &key);
/// count.update(&mut backend, |count| *count = Some(count.unwrap_or(0) + 1))?;
/// assert_eq!(count.get(&mut backend)?, Some(1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ValueState<V> {
    handle: Handle<One<V>, One<Stamped<V>>>,
    default: Option<V>,
}

impl<V: Record + Clone> ValueState<V> {
    /// A state of this name, unique within its operator.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { handle: Handle::new(name.into(), StateKind::Value), default: None }
    }

    pub(crate) fn of_kind(name: Cow<'static, str>, kind: StateKind) -> Self {
        Self { handle: Handle::new(name, kind), default: None }
    }

    /// Lets values expire.
    #[must_use]
    pub fn with_ttl(self, ttl: TtlConfig) -> Self {
        Self { handle: self.handle.with_ttl(ttl), ..self }
    }

    /// What [`get`](Self::get) returns where there is no value.
    #[must_use]
    pub fn with_default(mut self, value: V) -> Self {
        self.default = Some(value);
        self
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
    /// [`StateError`] if the name stands for another state, or was restored with another type.
    pub fn bind(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<(), StateError> {
        self.handle.bind(context.backend())
    }

    /// A copy of the current key's value, else the default.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    #[inline]
    pub fn get(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<Option<V>, StateError> {
        self.get_in(context, &[])
    }

    /// As [`get`](Self::get), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    #[inline]
    pub fn get_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
    ) -> Result<Option<V>, StateError> {
        let backend = context.backend();
        let found = match &self.handle {
            Handle::Plain(handle) => {
                backend.read_record(handle, namespace, |value: Option<&V>| value.cloned())?
            }
            Handle::Expiring(handle, ttl) => read_stamped(backend, handle, namespace, *ttl)?,
        };
        Ok(found.or_else(|| self.default.clone()))
    }

    /// Puts a value in the place of what was there. Reads nothing.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    #[inline]
    pub fn set(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        value: V,
    ) -> Result<(), StateError> {
        self.set_in(context, &[], value)
    }

    /// As [`set`](Self::set), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    #[inline]
    pub fn set_in(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        value: V,
    ) -> Result<(), StateError> {
        let backend = context.backend();
        match &self.handle {
            Handle::Plain(handle) => {
                backend.change_record(handle, namespace, Load::Blind, |held| *held = Some(value))
            }
            Handle::Expiring(handle, ttl) => {
                let at = backend.now(ttl.clock);
                let stamped = Stamped { at, value };
                let set = |held: &mut Option<Stamped<V>>| *held = Some(stamped);
                backend.change_record(handle, namespace, Load::Blind, set)?;
                sweep(backend, handle, *ttl, at);
                Ok(())
            }
        }
    }

    /// Puts a value in, and hands back what was there; the default does not count.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn replace(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        value: V,
    ) -> Result<Option<V>, StateError> {
        self.update(context, |held| held.replace(value))
    }

    /// Changes the value in place: `None` is no value, before and after. No copy is made.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    #[inline]
    pub fn update<R>(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        change: impl FnOnce(&mut Option<V>) -> R,
    ) -> Result<R, StateError> {
        self.update_in(context, &[], change)
    }

    /// As [`update`](Self::update), in a namespace.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    #[inline]
    pub fn update_in<R>(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        namespace: &[u8],
        change: impl FnOnce(&mut Option<V>) -> R,
    ) -> Result<R, StateError> {
        let backend = context.backend();
        match &self.handle {
            Handle::Plain(handle) => backend.change_record(handle, namespace, Load::Read, change),
            Handle::Expiring(handle, ttl) => {
                let mut result = None;
                let change = |value: &mut Option<V>| result = Some(change(value));
                change_stamped(backend, handle, namespace, *ttl, change)?;
                Ok(result.expect("the change has been made"))
            }
        }
    }

    /// Removes the current key's value. Reads nothing.
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
            Handle::Plain(handle) => {
                backend.change_record(handle, namespace, Load::Blind, |held| *held = None)
            }
            Handle::Expiring(handle, _) => {
                backend.change_record(handle, namespace, Load::Blind, |held| *held = None)
            }
        }
    }
}

/// Reads a value with a time to live; one that has expired is cleaned up by the reading.
pub(crate) fn read_stamped<V: Record + Clone>(
    backend: &mut KeyedStateBackend,
    handle: &Binding<One<Stamped<V>>>,
    namespace: &[u8],
    ttl: TtlConfig,
) -> Result<Option<V>, StateError> {
    let now = backend.now(ttl.clock);
    let found = read_at(backend, handle, namespace, ttl, now)?;
    sweep(backend, handle, ttl, now);
    Ok(found)
}

fn read_at<V: Record + Clone>(
    backend: &mut KeyedStateBackend,
    handle: &Binding<One<Stamped<V>>>,
    namespace: &[u8],
    ttl: TtlConfig,
    now: Timestamp,
) -> Result<Option<V>, StateError> {
    let look = |held: Option<&Stamped<V>>| {
        held.map(|held| (ttl.is_expired(held.at, now), held.value.clone()))
    };
    let Some((expired, value)) = backend.read_record(handle, namespace, look)? else {
        return Ok(None);
    };
    if expired {
        backend.change_record(
            handle,
            namespace,
            Load::Blind,
            |held: &mut Option<Stamped<V>>| {
                *held = None;
            },
        )?;
        let seen = ttl.visibility == TtlVisibility::ReturnExpiredIfNotCleanedUp;
        return Ok(seen.then_some(value));
    }
    if ttl.update == TtlUpdate::OnReadAndWrite {
        renew(backend, handle, namespace, now)?;
    }
    Ok(Some(value))
}

/// Removes a few expired values of other keys from memory, behind the access at hand: what has expired
/// and may still be seen is seen first.
fn sweep<V: Record + Clone>(
    backend: &mut KeyedStateBackend,
    handle: &Binding<One<Stamped<V>>>,
    ttl: TtlConfig,
    now: Timestamp,
) {
    backend.sweep(handle, |cell: &mut One<Stamped<V>>| {
        let expired = cell.0.take_if(|held| ttl.is_expired(held.at, now));
        u64::from(expired.is_some())
    });
}

fn renew<V: Record + Clone>(
    backend: &mut KeyedStateBackend,
    handle: &Binding<One<Stamped<V>>>,
    namespace: &[u8],
    now: Timestamp,
) -> Result<(), StateError> {
    backend.change_record(handle, namespace, Load::Read, |held: &mut Option<Stamped<V>>| {
        if let Some(held) = held {
            held.at = now;
        }
    })
}

/// Changes a value with a time to live in place; the write renews it.
pub(crate) fn change_stamped<V: Record + Clone, R>(
    backend: &mut KeyedStateBackend,
    handle: &Binding<One<Stamped<V>>>,
    namespace: &[u8],
    ttl: TtlConfig,
    change: impl FnOnce(&mut Option<V>) -> R,
) -> Result<R, StateError> {
    let now = backend.now(ttl.clock);
    let changed = |held: &mut Option<Stamped<V>>| {
        let hidden = ttl.visibility == TtlVisibility::NeverReturnExpired;
        let live = held.take().filter(|held| !(hidden && ttl.is_expired(held.at, now)));
        let mut value = live.map(|held| held.value);
        let result = change(&mut value);
        *held = value.map(|value| Stamped { at: now, value });
        result
    };
    let result = backend.change_record(handle, namespace, Load::Read, changed)?;
    sweep(backend, handle, ttl, now);
    Ok(result)
}
