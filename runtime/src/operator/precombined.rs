//! [`Precombined`]: a rolling aggregate over records and over what their producers have combined.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Timestamp};
use state::KeyedStateBackend;

use super::aggregate::{Aggregator, Emission, RollingAggregate};
use super::function::{Fold, KeyedFunction};
use super::keyed_context::KeyedContext;
use crate::exchange::Combined;

/// Folds records and partial results alike.
pub struct PrecombinedFold<A, T> {
    aggregator: Arc<A>,
    input: PhantomData<fn(T)>,
}

impl<T: 'static, A: Aggregator<T>> Fold<Combined<T, A::Accumulator>> for PrecombinedFold<A, T> {
    type Partial = A::Accumulator;

    fn records(value: &Combined<T, A::Accumulator>) -> u64 {
        match value {
            Combined::Left(_) => 1,
            Combined::Right(partial) => partial.2,
        }
    }

    fn fold(
        &self,
        partial: Option<&mut A::Accumulator>,
        value: Combined<T, A::Accumulator>,
    ) -> Option<A::Accumulator> {
        match (partial, value) {
            (None, Combined::Left(value)) => return Some(self.aggregator.first(value)),
            (None, Combined::Right(partial)) => return Some(partial.1),
            (Some(held), Combined::Left(value)) => self.aggregator.add(held, value),
            (Some(held), Combined::Right(partial)) => self.aggregator.merge(held, partial.1),
        }
        None
    }

    fn merge(&self, into: &mut A::Accumulator, later: A::Accumulator) {
        self.aggregator.merge(into, later);
    }
}

/// A rolling aggregate behind producers that combine.
pub struct Precombined<A: Aggregator<T>, T, E> {
    rolling: RollingAggregate<A, T, E>,
    fold: Arc<PrecombinedFold<A, T>>,
}

impl<T: 'static, A: Aggregator<T>, E> Precombined<A, T, E> {
    /// Runs `aggregator`.
    #[must_use]
    pub fn new(aggregator: &Arc<A>) -> Self {
        let fold = PrecombinedFold { aggregator: Arc::clone(aggregator), input: PhantomData };
        Self { rolling: RollingAggregate::new(Arc::clone(aggregator)), fold: Arc::new(fold) }
    }
}

impl<K, T, A, E> KeyedFunction<K, Combined<T, A::Accumulator>, E::Output> for Precombined<A, T, E>
where
    K: Key,
    T: 'static,
    A: Aggregator<T>,
    E: Emission<K, A::Output>,
{
    type Fold = PrecombinedFold<A, T>;

    fn fold(&self, _: Timestamp) -> Option<Arc<Self::Fold>> {
        Some(Arc::clone(&self.fold))
    }

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        KeyedFunction::<K, T, E::Output>::open(&mut self.rolling, backend)
    }

    fn element(
        &mut self,
        value: Combined<T, A::Accumulator>,
        context: &mut KeyedContext<'_, K, E::Output>,
    ) -> anyhow::Result<()> {
        match value {
            Combined::Left(value) => self.rolling.element(value, context),
            Combined::Right(partial) => self.rolling.partial(partial.1, &[], context),
        }
    }

    fn partial(
        &mut self,
        partial: A::Accumulator,
        part: &[u8],
        context: &mut KeyedContext<'_, K, E::Output>,
    ) -> anyhow::Result<()> {
        self.rolling.partial(partial, part, context)
    }
}
