//! Rolling aggregates: one running value per key, combined in backlog.
//!
//! Live, each record gives one output. Over a sorted backlog and in batch mode a key gives one
//! output, with its greatest timestamp (decision D9).

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Record, Timestamp};
use state::{KeyedStateBackend, ValueState};

use super::function::{Fold, KeyedFunction};
use super::keyed_context::KeyedContext;

/// An associative aggregate. Shared by the subtasks; holds no state of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not aggregate records of `{I}`",
    label = "not an `Aggregator<{I}>`",
    note = "for a closure use `reduce` or `fold`; `Count`, `Sum` and `Extreme` are aggregators"
)]
pub trait Aggregator<I>: Send + Sync + 'static {
    /// What is kept per key.
    type Accumulator: Record + Clone;
    /// What comes out.
    type Output: Send + 'static;

    /// The accumulator of the first record of a key.
    fn first(&self, value: I) -> Self::Accumulator;

    /// Adds a record.
    fn add(&self, accumulator: &mut Self::Accumulator, value: I);

    /// Adds what later records have come to.
    fn merge(&self, accumulator: &mut Self::Accumulator, later: Self::Accumulator);

    /// The result so far.
    fn result(&self, accumulator: &Self::Accumulator) -> Self::Output;
}

/// An aggregate as a fold.
pub struct AggregateFold<A, I> {
    aggregator: Arc<A>,
    input: PhantomData<fn(I)>,
}

impl<A, I> AggregateFold<A, I> {
    /// Folds by `aggregator`.
    #[must_use]
    pub fn new(aggregator: Arc<A>) -> Self {
        Self { aggregator, input: PhantomData }
    }
}

impl<I: 'static, A: Aggregator<I>> Fold<I> for AggregateFold<A, I> {
    type Partial = A::Accumulator;

    #[inline]
    fn fold(&self, partial: Option<&mut A::Accumulator>, value: I) -> Option<A::Accumulator> {
        match partial {
            None => Some(self.aggregator.first(value)),
            Some(accumulator) => {
                self.aggregator.add(accumulator, value);
                None
            }
        }
    }

    fn merge(&self, into: &mut A::Accumulator, later: A::Accumulator) {
        self.aggregator.merge(into, later);
    }
}

/// What a rolling aggregate emits of a key and its result.
pub trait Emission<K, R>: Send + 'static {
    /// What goes out.
    type Output: Send + 'static;

    /// Makes it; `key` is only asked for if it is wanted.
    fn emit<'k>(key: impl FnOnce() -> &'k K, result: R) -> Self::Output
    where
        K: 'k;
}

/// Emits results alone.
#[derive(Debug)]
pub enum ResultOnly {}

/// Emits pairs of key and result.
#[derive(Debug)]
pub enum KeyAndResult {}

impl<K, R: Send + 'static> Emission<K, R> for ResultOnly {
    type Output = R;

    #[inline]
    fn emit<'k>(_: impl FnOnce() -> &'k K, result: R) -> R
    where
        K: 'k,
    {
        result
    }
}

impl<K: Key, R: Send + 'static> Emission<K, R> for KeyAndResult {
    type Output = (K, R);

    #[inline]
    fn emit<'k>(key: impl FnOnce() -> &'k K, result: R) -> (K, R)
    where
        K: 'k,
    {
        (key().clone(), result)
    }
}

/// A rolling aggregate as the keyed operator runs it.
pub struct RollingAggregate<A: Aggregator<I>, I, E> {
    aggregator: Arc<A>,
    fold: Arc<AggregateFold<A, I>>,
    state: ValueState<A::Accumulator>,
    emission: PhantomData<fn() -> E>,
}

impl<I: 'static, A: Aggregator<I>, E> RollingAggregate<A, I, E> {
    /// Runs `aggregator`.
    #[must_use]
    pub fn new(aggregator: Arc<A>) -> Self {
        let fold = Arc::new(AggregateFold::new(Arc::clone(&aggregator)));
        Self { aggregator, fold, state: ValueState::new("aggregate"), emission: PhantomData }
    }
}

impl<K, I, A, E> KeyedFunction<K, I, E::Output> for RollingAggregate<A, I, E>
where
    K: Key,
    I: 'static,
    A: Aggregator<I>,
    E: Emission<K, A::Output>,
{
    type Fold = AggregateFold<A, I>;

    fn fold(&self, _: Timestamp) -> Option<Arc<Self::Fold>> {
        Some(Arc::clone(&self.fold))
    }

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(self.state.bind(backend)?)
    }

    #[inline]
    fn element(
        &mut self,
        value: I,
        context: &mut KeyedContext<'_, K, E::Output>,
    ) -> anyhow::Result<()> {
        let aggregator = &*self.aggregator;
        let result = self.state.update(context, |state| {
            let accumulator = match state {
                Some(accumulator) => {
                    aggregator.add(accumulator, value);
                    accumulator
                }
                None => state.insert(aggregator.first(value)),
            };
            aggregator.result(accumulator)
        })?;
        let output = E::emit(|| context.key(), result);
        context.collect(output);
        Ok(())
    }

    fn partial(
        &mut self,
        partial: A::Accumulator,
        _: &[u8],
        context: &mut KeyedContext<'_, K, E::Output>,
    ) -> anyhow::Result<()> {
        let aggregator = &*self.aggregator;
        let result = self.state.update(context, |state| {
            let accumulator = match state {
                Some(accumulator) => {
                    aggregator.merge(accumulator, partial);
                    accumulator
                }
                None => state.insert(partial),
            };
            aggregator.result(accumulator)
        })?;
        let output = E::emit(|| context.key(), result);
        context.collect(output);
        Ok(())
    }
}
