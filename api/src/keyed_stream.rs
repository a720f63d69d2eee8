//! [`KeyedStream`]: records grouped by key.

use std::sync::Arc;

use element::{Key, Record};
use graph::{BacklogEmission, OperatorAttributes, Partitioner};
use runtime::exchange::{BytesEdge, CombiningEdge};
use runtime::factory::{EdgePayload, NodePayload};
use runtime::nodes::{CombiningNode, KeyedNode};
use runtime::operator::aggregate::{AggregateFold, Emission, KeyAndResult, ResultOnly};
use runtime::operator::process::Process;
use runtime::operator::selector::KeySelector;

use crate::aggregates::{Count, Extreme, FoldAggregate, Reduce, Sum};
use crate::upstream::Upstream;
use crate::{Aggregator, DataStream, KeyedProcessFunction, StreamExecutionEnvironment};

/// A stream grouped by key: all records of a key come to one subtask.
pub struct KeyedStream<K, T> {
    pub(crate) env: StreamExecutionEnvironment,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) selector: KeySelector<T, K>,
    emission: BacklogEmission,
}

impl<K: Key, T: Record> KeyedStream<K, T> {
    pub(crate) fn new(stream: DataStream<T>, selector: KeySelector<T, K>) -> Self {
        let by_key = |upstream: &Upstream| {
            upstream.by(Partitioner::KeyGroup, BytesEdge::keyed(selector.clone()))
        };
        let upstreams = stream.upstreams.iter().map(by_key).collect();
        Self { env: stream.env, upstreams, selector, emission: BacklogEmission::default() }
    }

    /// What rolling aggregates over this stream emit in a sorted backlog: the last value of each key,
    /// or every value, as in stream mode (decision D9).
    #[must_use]
    pub fn backlog_emission(mut self, emission: BacklogEmission) -> Self {
        self.emission = emission;
        self
    }

    pub(crate) fn keyed<O: Send + 'static>(
        self,
        name: &str,
        payload: NodePayload,
    ) -> DataStream<O> {
        let node = self.env.add(name, &[&self.upstreams], payload);
        DataStream::of(&self.env, Upstream::main::<O>(node))
    }

    /// Runs a function with state and timers; `make` is called for each subtask and attempt.
    pub fn process<O, F>(self, make: impl Fn() -> F + Send + Sync + 'static) -> DataStream<O>
    where
        O: Send + 'static,
        F: KeyedProcessFunction<K, T, O>,
    {
        let make = move || Process::<F, T>::new(make());
        let attributes = OperatorAttributes::keyed();
        let node = KeyedNode::<K, T, O, _>::new(self.selector.clone(), attributes, make);
        self.keyed("process", NodePayload::new(node))
    }

    /// Keeps a running aggregate per key. Live, each record gives a pair of key and result; over a
    /// sorted backlog and in batch mode each key gives one, unless
    /// [`backlog_emission`](Self::backlog_emission) asks for all (decision D9).
    ///
    /// In batch mode the producers combine before anything moves.
    pub fn aggregate<A: Aggregator<T>>(self, aggregator: A) -> DataStream<(K, A::Output)> {
        self.rolling::<A, KeyAndResult>("aggregate", aggregator)
    }

    fn rolling<A, E>(self, name: &str, aggregator: A) -> DataStream<E::Output>
    where
        A: Aggregator<T>,
        E: Emission<K, A::Output>,
    {
        let aggregator = Arc::new(aggregator);
        let fold = Arc::new(AggregateFold::<A, T>::new(Arc::clone(&aggregator)));
        let combining = |upstream: &Upstream| {
            let edge = CombiningEdge::new(&self.selector, Arc::clone(&fold));
            Upstream { edge: EdgePayload(Arc::new(edge)), ..upstream.clone() }
        };
        let upstreams = self.upstreams.iter().map(combining).collect();
        let node = CombiningNode::<K, T, A, E>::new(self.selector.clone(), aggregator)
            .with_backlog_emission(self.emission);
        Self { upstreams, ..self }.keyed(name, NodePayload::new(node))
    }

    /// Combines each record with the result of those before it, by an associative function.
    pub fn reduce<F>(self, function: F) -> DataStream<T>
    where
        T: Clone,
        F: Fn(T, T) -> T + Send + Sync + 'static,
    {
        self.rolling::<Reduce<F>, ResultOnly>("reduce", Reduce::new(function))
    }

    /// Counts the records of each key.
    pub fn count(self) -> DataStream<(K, u64)> {
        self.aggregate(Count).name("count")
    }

    /// Adds up a number of each record.
    ///
    /// An integer's sum that does not fit its type fails the job with [`SumError`](crate::SumError), which
    /// the failure names the operator of; have the closure return a wider type where that may be. Floats
    /// and types of your own add as their `+=` does.
    pub fn sum<N, F>(self, number: F) -> DataStream<(K, N)>
    where
        N: Record + Clone + std::ops::AddAssign,
        F: Fn(&T) -> N + Send + Sync + 'static,
    {
        self.aggregate(Sum::new(number)).name("sum")
    }

    /// The least of a value of each record.
    pub fn min<V, F>(self, value: F) -> DataStream<(K, V)>
    where
        V: Record + Clone + PartialOrd,
        F: Fn(&T) -> V + Send + Sync + 'static,
    {
        self.aggregate(Extreme::least(value)).name("min")
    }

    /// The greatest of a value of each record.
    pub fn max<V, F>(self, value: F) -> DataStream<(K, V)>
    where
        V: Record + Clone + PartialOrd,
        F: Fn(&T) -> V + Send + Sync + 'static,
    {
        self.aggregate(Extreme::greatest(value)).name("max")
    }

    /// The record with the least value; of equal ones the first.
    pub fn min_by<V, F>(self, value: F) -> DataStream<T>
    where
        T: Clone,
        V: PartialOrd,
        F: Fn(&T) -> V + Send + Sync + 'static,
    {
        let later_is_less = move |a: &T, b: &T| value(b) < value(a);
        self.reduce(move |a, b| if later_is_less(&a, &b) { b } else { a }).name("min by")
    }

    /// The record with the greatest value; of equal ones the first.
    pub fn max_by<V, F>(self, value: F) -> DataStream<T>
    where
        T: Clone,
        V: PartialOrd,
        F: Fn(&T) -> V + Send + Sync + 'static,
    {
        let later_is_greater = move |a: &T, b: &T| value(b) > value(a);
        self.reduce(move |a, b| if later_is_greater(&a, &b) { b } else { a }).name("max by")
    }

    /// Folds the records of each key into a value, beginning with `initial`; `merge` folds what later
    /// records came to into what earlier ones did.
    pub fn fold<A, F, M>(self, initial: A, add: F, merge: M) -> DataStream<(K, A)>
    where
        A: Record + Clone + Sync,
        F: Fn(&mut A, T) + Send + Sync + 'static,
        M: Fn(&mut A, A) + Send + Sync + 'static,
    {
        self.aggregate(FoldAggregate::new(initial, add, merge)).name("fold")
    }
}
