//! [`ReducingState`]: one value per key, into which others are reduced.

use std::borrow::Cow;
use std::fmt;

use element::Record;

use crate::backend::StateAccess;
use crate::handle::{StateDescriptor, StateKind};
use crate::{StateError, TtlConfig, ValueState};

/// A running value: each added one is reduced into it by an associative function.
pub struct ReducingState<V> {
    value: ValueState<V>,
    reduce: Box<dyn Fn(V, V) -> V + Send>,
}

impl<V: Record + Clone> ReducingState<V> {
    /// A state of this name; `reduce` takes what is there and what is added.
    #[must_use]
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        reduce: impl Fn(V, V) -> V + Send + 'static,
    ) -> Self {
        let value = ValueState::of_kind(name.into(), StateKind::Reducing);
        Self { value, reduce: Box::new(reduce) }
    }

    /// Lets the value expire.
    #[must_use]
    pub fn with_ttl(self, ttl: TtlConfig) -> Self {
        Self { value: self.value.with_ttl(ttl), ..self }
    }

    /// What the state declares.
    #[must_use]
    pub fn descriptor(&self) -> StateDescriptor {
        self.value.descriptor()
    }

    /// Declares the state to the backend, before its first use does.
    ///
    /// # Errors
    ///
    /// As [`ValueState::bind`].
    pub fn bind(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<(), StateError> {
        self.value.bind(context)
    }

    /// The current key's value.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn get(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<Option<V>, StateError> {
        self.value.get(context)
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
    ) -> Result<Option<V>, StateError> {
        self.value.get_in(context, namespace)
    }

    /// Reduces a value into the current key's.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn add(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        value: V,
    ) -> Result<(), StateError> {
        self.add_in(context, &[], value)
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
        self.value.update_in(context, namespace, |held| {
            *held = Some(match held.take() {
                Some(before) => (self.reduce)(before, value),
                None => value,
            });
        })
    }

    /// Moves the values of the namespaces `sources` into `target`, reduced in their order behind what
    /// is there. The sources are empty afterwards.
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
            let moved = self.value.update_in(context, source, Option::take)?;
            if let Some(moved) = moved {
                self.add_in(context, target, moved)?;
            }
        }
        Ok(())
    }

    /// Removes the current key's value.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn clear(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<(), StateError> {
        self.value.clear(context)
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
        self.value.clear_in(context, namespace)
    }
}

impl<V> fmt::Debug for ReducingState<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReducingState").finish_non_exhaustive()
    }
}
