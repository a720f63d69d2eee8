//! [`DataStream`]: records of one type, on their way.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, NodeId, Record};
use graph::{OperatorAttributes, OutputTag, Partitioner};
use runtime::exchange::{BytesEdge, CustomSelector};
use runtime::factory::NodePayload;
use runtime::nodes::{CloneTee, OneInputNode, SidedNode, SinkNode};
use runtime::operator::flat_map::FlatMap;
use runtime::operator::map::{Filter, Map};
use runtime::operator::process_function::ProcessOperator;
use runtime::operator::selector::KeySelector;
use runtime::operator::side_output::SideOutputs;
use runtime::operator::timestamps::Timestamps;
use runtime::sink::{ClosureSink, CollectSink};

use crate::upstream::Upstream;
use crate::{
    Collected, Collector, Error, JobError, KeyedStream, ProcessFunction, SideTag, Sink,
    StreamExecutionEnvironment, WatermarkStrategy,
};

/// A stream of records. Methods consume it; a stream whose records clone can be cloned, and then each
/// clone's consumers see all records.
pub struct DataStream<T> {
    pub(crate) env: StreamExecutionEnvironment,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) records: PhantomData<fn() -> T>,
}

impl<T: Clone + Send + 'static> Clone for DataStream<T> {
    fn clone(&self) -> Self {
        let mut graph = self.env.inner.graph.lock();
        for upstream in &self.upstreams {
            if let Some(node) = graph.node_mut(upstream.node) {
                node.payload.tees.insert(upstream.output.clone(), CloneTee::<T>::shared());
            }
        }
        drop(graph);
        Self { env: self.env.clone(), upstreams: self.upstreams.clone(), records: PhantomData }
    }
}

impl<T: Send + 'static> DataStream<T> {
    pub(crate) fn of(env: &StreamExecutionEnvironment, upstream: Upstream) -> Self {
        Self { env: env.clone(), upstreams: vec![upstream], records: PhantomData }
    }

    /// A one-input operator behind this stream.
    pub(crate) fn operator<U: Send + 'static>(
        &self,
        name: &str,
        payload: NodePayload,
    ) -> DataStream<U> {
        let node = self.env.add(name, &[&self.upstreams], payload);
        DataStream::of(&self.env, Upstream::main::<U>(node))
    }

    fn with_nodes(
        self,
        change: impl Fn(&mut graph::Transformation<NodePayload, runtime::factory::EdgePayload>),
    ) -> Self {
        let mut graph = self.env.inner.graph.lock();
        for upstream in &self.upstreams {
            if let Some(node) = graph.node_mut(upstream.node) {
                change(node);
            }
        }
        drop(graph);
        self
    }

    /// Names the operator that makes this stream.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.with_nodes(|node| name.clone_into(&mut node.name))
    }

    /// Gives the operator that makes this stream an id that survives changes of the program: its
    /// state is found again by it.
    #[must_use]
    pub fn uid(self, uid: &str) -> Self {
        self.with_nodes(|node| node.uid = Some(uid.to_owned()))
    }

    /// Sets the subtasks of the operator that makes this stream.
    #[must_use]
    pub fn parallelism(self, subtasks: u32) -> Self {
        self.with_nodes(|node| node.parallelism = Some(subtasks))
    }

    /// Sets the key groups of the operator that makes this stream: the bound of its parallelism.
    #[must_use]
    pub fn max_parallelism(self, groups: u32) -> Self {
        self.with_nodes(|node| node.max_parallelism = Some(groups))
    }

    /// Applies a function to each record. Order and timestamps stay.
    pub fn map<U, F>(self, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(T) -> U + Send + Sync + 'static,
    {
        self.try_map(move |value| Ok(function(value)))
    }

    /// As [`map`](Self::map), with a function that may fail; the job then does.
    pub fn try_map<U, F>(self, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(T) -> Result<U, Error> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        let make = move |context: &Arc<_>| Ok(Map::new(Arc::clone(&function), context));
        let node = OneInputNode::<T, U, _>::new(OperatorAttributes::operator(), make);
        self.operator("map", NodePayload::new(node))
    }

    /// Keeps the records that a predicate holds for. Order and timestamps stay.
    pub fn filter<F>(self, predicate: F) -> Self
    where
        F: Fn(&T) -> bool + Send + Sync + 'static,
    {
        let predicate = Arc::new(move |value: &T| Ok(predicate(value)));
        let make = move |context: &Arc<_>| Ok(Filter::new(Arc::clone(&predicate), context));
        let node = OneInputNode::<T, T, _>::new(OperatorAttributes::operator(), make);
        self.operator("filter", NodePayload::new(node))
    }

    /// Shows each record to a closure and hands it on as it is; at least once, as with
    /// [`for_each`](Self::for_each).
    pub fn inspect<F>(self, function: F) -> Self
    where
        F: Fn(&T) + Send + Sync + 'static,
    {
        self.map(move |value| {
            function(&value);
            value
        })
        .name("inspect")
    }

    /// Applies a function that emits any number of results for each record. Results carry the
    /// record's timestamp.
    pub fn flat_map<U, F>(self, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(T, &mut Collector<'_, U>) + Send + Sync + 'static,
    {
        self.try_flat_map(move |value, out: &mut Collector<'_, U>| {
            function(value, out);
            Ok(())
        })
    }

    /// As [`flat_map`](Self::flat_map), with a function that may fail; the job then does.
    pub fn try_flat_map<U, F>(self, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(T, &mut Collector<'_, U>) -> Result<(), Error> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        let make = move |context: &Arc<_>| Ok(FlatMap::<_, U>::new(Arc::clone(&function), context));
        let node = OneInputNode::<T, U, _>::new(OperatorAttributes::operator(), make);
        self.operator("flat map", NodePayload::new(node))
    }

    /// Applies a function that keeps what it returns something for.
    pub fn filter_map<U, F>(self, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(T) -> Option<U> + Send + Sync + 'static,
    {
        self.flat_map(move |value, out: &mut Collector<'_, U>| {
            if let Some(result) = function(value) {
                out.collect(result);
            }
        })
        .name("filter map")
    }

    /// Runs a function with side outputs, a beginning and an end; `make` is called for each subtask and
    /// attempt. State and timers belong to a key: [`KeyedStream::process`].
    pub fn process<O, F>(self, make: impl Fn() -> F + Send + Sync + 'static) -> DataStream<O>
    where
        O: Send + 'static,
        F: ProcessFunction<T, O>,
    {
        let make = move |context: &Arc<_>, side: SideOutputs| {
            ProcessOperator::<F, O>::new(make(), side, context)
        };
        self.operator("process", NodePayload::new(SidedNode::<T, O, _>::new(make)))
    }

    /// Finds timestamps and makes watermarks, in place of those that the records had.
    pub fn assign_timestamps_and_watermarks(self, strategy: WatermarkStrategy<T>) -> Self {
        let make = move |context: &Arc<_>| Timestamps::new(strategy.clone(), context);
        let node = OneInputNode::<T, T, _>::new(OperatorAttributes::operator(), make);
        self.operator("timestamps", NodePayload::new(node))
    }

    /// This stream's records and those of another one, in no order between them; of one stream twice,
    /// every record twice.
    #[must_use]
    pub fn union(mut self, other: impl Into<Self>) -> Self {
        self.upstreams.extend(other.into().upstreams);
        self
    }

    /// What the operator that makes this stream has put aside under a tag.
    pub fn side_output<U: Send + 'static>(&self, tag: &SideTag<U>) -> DataStream<U> {
        let mut graph = self.env.inner.graph.lock();
        let upstreams = self.upstreams.iter().map(|upstream| {
            if let Some(node) = graph.node_mut(upstream.node) {
                node.payload.sides.insert(tag.name().to_owned(), |side, name, wire| {
                    side.connect::<U>(name, wire);
                });
            }
            Upstream::output::<U>(upstream.node, OutputTag::Side(tag.name().to_owned()))
        });
        let upstreams = upstreams.collect();
        drop(graph);
        DataStream { env: self.env.clone(), upstreams, records: PhantomData }
    }

    /// Writes to a sink.
    pub fn sink_to(self, sink: impl Sink<T>) -> SinkStream {
        self.sink(Arc::new(sink), "sink")
    }

    /// Gives each record to a closure, at least once.
    pub fn for_each<F>(self, function: F) -> SinkStream
    where
        F: Fn(T) + Send + Sync + 'static,
    {
        self.try_for_each(move |value| {
            function(value);
            Ok(())
        })
    }

    /// As [`for_each`](Self::for_each), with a function that may fail; the job then does.
    pub fn try_for_each<F>(self, function: F) -> SinkStream
    where
        F: Fn(T) -> Result<(), Error> + Send + Sync + 'static,
    {
        self.sink(Arc::new(ClosureSink(Arc::new(function))), "for each")
    }

    /// Writes each record as a line to the standard output; with several subtasks, the subtask's number,
    /// from 1, stands before it. Pairs and structs: [`print_debug`](Self::print_debug).
    pub fn print(self) -> SinkStream
    where
        T: std::fmt::Display,
    {
        self.sink_to(crate::sink::Print(|out, value| write!(out, "{value}"))).name("print")
    }

    /// As [`print`](Self::print), each record as `{:?}` spells it: for pairs, such as key and count, and for
    /// structs that derive `Debug`.
    pub fn print_debug(self) -> SinkStream
    where
        T: std::fmt::Debug,
    {
        self.sink_to(crate::sink::Print(|out, value| write!(out, "{value:?}"))).name("print")
    }

    fn sink(self, sink: Arc<dyn Sink<T>>, name: &str) -> SinkStream {
        let node = self.env.add(name, &[&self.upstreams], NodePayload::new(SinkNode::new(sink)));
        self.env.add_sink(node);
        SinkStream { env: self.env, node }
    }

    /// Runs a job that ends in this stream alone, and collects its records.
    ///
    /// # Errors
    ///
    /// [`JobError`]: what could not be planned, started or finished, by name.
    pub fn execute_and_collect(self) -> Result<Collected<T>, JobError> {
        self.collect_up_to(None)
    }

    /// Runs a job that ends in this stream alone, and stops it once it has `n` records.
    ///
    /// # Errors
    ///
    /// [`JobError`]: what could not be planned, started or finished, by name.
    pub fn take(self, n: u64) -> Result<Collected<T>, JobError> {
        self.collect_up_to(Some(n))
    }

    fn collect_up_to(self, limit: Option<u64>) -> Result<Collected<T>, JobError> {
        let collected = runtime::sink::Collected::default();
        let sink = Arc::new(CollectSink::new(collected.clone(), limit));
        let payload = NodePayload::new(SinkNode::<T>::new(sink));
        let node = self.env.add("collect", &[&self.upstreams], payload);
        if let Some(node) = self.env.inner.graph.lock().node_mut(node) {
            node.parallelism = Some(1);
        }
        let report = self.env.submit_sinks("collect", &[node])?.wait()?;
        let records = collected.take().into_iter().map(|(value, _)| value).collect();
        Ok(Collected::new(records, report))
    }
}

/// Methods whose records travel: each asks for a [`Record`], so that a missing one is named.
impl<T: Send + 'static> DataStream<T> {
    fn by(self, partitioner: Partitioner, edge: impl Fn() -> BytesEdge<T>) -> Self
    where
        T: Record,
    {
        let upstreams =
            self.upstreams.iter().map(|upstream| upstream.by(partitioner, edge())).collect();
        Self { env: self.env, upstreams, records: PhantomData }
    }

    /// Groups records by a key that a function makes of each.
    pub fn key_by<K, F>(self, key: F) -> KeyedStream<K, T>
    where
        T: Record,
        K: Key,
        F: Fn(&T) -> K + Send + Sync + 'static,
    {
        KeyedStream::new(self, KeySelector::owned(key))
    }

    /// Groups records by a key that is a part of each: no clone a record.
    pub fn key_by_ref<K, F>(self, key: F) -> KeyedStream<K, T>
    where
        T: Record,
        K: Key,
        F: for<'a> Fn(&'a T) -> &'a K + Send + Sync + 'static,
    {
        KeyedStream::new(self, KeySelector::borrowed(key))
    }

    /// Deals batches of records out to the next operator's subtasks in turn.
    #[must_use]
    pub fn rebalance(self) -> Self
    where
        T: Record,
    {
        self.by(Partitioner::Rebalance, BytesEdge::plain)
    }

    /// As [`rebalance`](Self::rebalance), each subtask to a few of the next only.
    #[must_use]
    pub fn rescale(self) -> Self
    where
        T: Record,
    {
        self.by(Partitioner::Rescale, BytesEdge::plain)
    }

    /// Sends each record to a subtask drawn at random, the same for each run.
    #[must_use]
    pub fn shuffle(self) -> Self
    where
        T: Record,
    {
        self.by(Partitioner::Shuffle, BytesEdge::plain)
    }

    /// Sends everything to the first subtask.
    #[must_use]
    pub fn global(self) -> Self
    where
        T: Record,
    {
        self.by(Partitioner::Global, BytesEdge::plain)
    }

    /// Demands that each subtask feeds the next operator's subtask of the same number.
    #[must_use]
    pub fn forward(self) -> Self
    where
        T: Record,
    {
        self.by(Partitioner::ForwardStrict, BytesEdge::plain)
    }

    /// Sends every record to every subtask.
    #[must_use]
    pub fn broadcast(self) -> Self
    where
        T: Record + Clone,
    {
        self.by(Partitioner::Broadcast, BytesEdge::broadcast)
    }

    /// Sends each record to the subtask that a function of it and their number names.
    #[must_use]
    pub fn partition_custom<F>(self, function: F) -> Self
    where
        T: Record,
        F: Fn(&T, u32) -> u32 + Send + Sync + 'static,
    {
        let function: CustomSelector<T> = Arc::new(function);
        self.by(Partitioner::Custom, move || BytesEdge::custom(Arc::clone(&function)))
    }
}

/// The end of a stream: its sink, to be named.
pub struct SinkStream {
    env: StreamExecutionEnvironment,
    node: NodeId,
}

impl SinkStream {
    fn with_node(
        self,
        change: impl FnOnce(&mut graph::Transformation<NodePayload, runtime::factory::EdgePayload>),
    ) -> Self {
        if let Some(node) = self.env.inner.graph.lock().node_mut(self.node) {
            change(node);
        }
        self
    }

    /// Names the sink.
    pub fn name(self, name: &str) -> Self {
        self.with_node(|node| name.clone_into(&mut node.name))
    }

    /// Gives the sink an id that survives changes of the program.
    pub fn uid(self, uid: &str) -> Self {
        self.with_node(|node| node.uid = Some(uid.to_owned()))
    }

    /// Sets the sink's subtasks.
    pub fn parallelism(self, subtasks: u32) -> Self {
        self.with_node(|node| node.parallelism = Some(subtasks))
    }
}
