//! [`AggregatingState`]: one accumulator per key, of another type than what goes in and comes out.

use std::borrow::Cow;
use std::fmt;

use element::Record;

use crate::backend::StateAccess;
use crate::handle::{StateDescriptor, StateKind};
use crate::{StateError, TtlConfig, ValueState};

/// How values become an accumulator, and the accumulator a result. Implemented by users; called on
/// the task's thread.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how values are aggregated",
    note = "implement `AggregateFunction`: an accumulator, how a value is added, and the result"
)]
pub trait AggregateFunction: Send + 'static {
    /// What is added.
    type In;
    /// What is kept.
    type Accumulator: Record + Clone;
    /// What is read.
    type Out;

    /// An accumulator of nothing.
    fn create(&self) -> Self::Accumulator;

    /// Adds one value.
    fn add(&self, accumulator: &mut Self::Accumulator, value: Self::In);

    /// The result so far.
    fn result(&self, accumulator: &Self::Accumulator) -> Self::Out;

    /// Adds another accumulator.
    fn merge(&self, into: &mut Self::Accumulator, other: Self::Accumulator);
}

/// An accumulator for each key.
pub struct AggregatingState<A: AggregateFunction> {
    accumulator: ValueState<A::Accumulator>,
    function: A,
}

impl<A: AggregateFunction> AggregatingState<A> {
    /// A state of this name.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, function: A) -> Self {
        Self { accumulator: ValueState::of_kind(name.into(), StateKind::Aggregating), function }
    }

    /// Lets the accumulator expire.
    #[must_use]
    pub fn with_ttl(self, ttl: TtlConfig) -> Self {
        Self { accumulator: self.accumulator.with_ttl(ttl), ..self }
    }

    /// What the state declares.
    #[must_use]
    pub fn descriptor(&self) -> StateDescriptor {
        self.accumulator.descriptor()
    }

    /// Declares the state to the backend, before its first use does.
    ///
    /// # Errors
    ///
    /// As [`ValueState::bind`].
    pub fn bind(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<(), StateError> {
        self.accumulator.bind(context)
    }

    /// The current key's result; `None` if nothing was added.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn get(
        &self,
        context: &mut (impl StateAccess + ?Sized),
    ) -> Result<Option<A::Out>, StateError> {
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
    ) -> Result<Option<A::Out>, StateError> {
        let accumulator = self.accumulator.get_in(context, namespace)?;
        Ok(accumulator.map(|accumulator| self.function.result(&accumulator)))
    }

    /// Adds a value to the current key's accumulator.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn add(
        &self,
        context: &mut (impl StateAccess + ?Sized),
        value: A::In,
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
        value: A::In,
    ) -> Result<(), StateError> {
        self.accumulator.update_in(context, namespace, |held| {
            let accumulator = held.get_or_insert_with(|| self.function.create());
            self.function.add(accumulator, value);
        })
    }

    /// Moves the accumulators of the namespaces `sources` into `target`, merged in their order. The
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
            let Some(moved) = self.accumulator.update_in(context, source, Option::take)? else {
                continue;
            };
            self.accumulator.update_in(context, target, |held| match held {
                Some(accumulator) => self.function.merge(accumulator, moved),
                None => *held = Some(moved),
            })?;
        }
        Ok(())
    }

    /// Removes the current key's accumulator.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn clear(&self, context: &mut (impl StateAccess + ?Sized)) -> Result<(), StateError> {
        self.accumulator.clear(context)
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
        self.accumulator.clear_in(context, namespace)
    }
}

impl<A: AggregateFunction> fmt::Debug for AggregatingState<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AggregatingState").finish_non_exhaustive()
    }
}
