//! [`CachedDataStream`]: a stream whose records are kept between jobs (FLIP-205).
//!
//! ```text
//!  cache() -> nothing kept -(a batch job needs it and ends well)-> kept -> later jobs read it
//!                 ^                                                 |
//!                 '---- invalidate(), or a part lost or damaged ----'
//! ```
//!
//! The environment owns what is kept: closing or dropping it frees everything, dropping a handle does
//! not (decision D19). Left out on purpose: whether something is kept. The cluster knows, and each
//! job asks it anew.

use std::sync::Arc;

use element::{DataSetId, NodeId, Record};
use graph::{OperatorAttributes, Partitioner};
use runtime::cluster::Deletion;
use runtime::exchange::BytesEdge;
use runtime::factory::{EdgePayload, NodePayload};
use runtime::nodes::{CloneTee, OneInputNode};
use runtime::operator::map::Map;
use runtime::source::cached::CachedNode;

use crate::stream_methods::stream_methods;
use crate::upstream::Upstream;
use crate::{DataStream, JobError, StreamExecutionEnvironment};

/// A stream that the first batch job that computes it keeps, and that later jobs read instead.
///
/// Usable as any stream, and as often as wanted: methods borrow it. [`take`](Self::take) of one that is
/// not kept yet computes it to its end, and keeps it (decision D18). If a part of what is kept is lost or
/// damaged, the job that reads it is run again without it, once, and keeps it anew. What a plain closure
/// of the failed run has done by then stays done; collected results and transactional sinks hold no row
/// of it.
pub struct CachedDataStream<T> {
    env: StreamExecutionEnvironment,
    upstream: Upstream,
    data_set: DataSetId,
    rows: std::marker::PhantomData<fn() -> T>,
}

impl<T> Clone for CachedDataStream<T> {
    fn clone(&self) -> Self {
        Self {
            env: self.env.clone(),
            upstream: self.upstream.clone(),
            data_set: self.data_set,
            rows: std::marker::PhantomData,
        }
    }
}

impl<T: Record + Clone> DataStream<T> {
    /// Keeps this stream's records after the job that computes them, for later jobs.
    ///
    /// Nothing runs here. The records are written once, by the subtasks that make them, in the first
    /// batch job with blocking exchanges that needs them. A union is cached over an identity step. A
    /// stream that is cached already keeps its one data set.
    ///
    /// ```
    /// use slackwater::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let env = StreamExecutionEnvironment::new();
    /// let doubled = env.from_collection([1_u64, 2, 3]).map(|n| n * 2).name("doubled").cache();
    /// assert_eq!(doubled.execute_and_collect()?.sorted(), [2, 4, 6]);
    /// let again = doubled.execute_and_collect()?;
    /// assert!(again.report().cache("doubled").is_some_and(|cache| cache.is_hit()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Source: FLIP-205, "DataStream#cache".
    pub fn cache(self) -> CachedDataStream<T> {
        let id = self.env.data_sets().new_id();
        self.cache_as(id)
    }

    /// As [`cache`](Self::cache), under an id of its own; under another one if it is cached already.
    pub(crate) fn cache_as(self, id: DataSetId) -> CachedDataStream<T> {
        let (env, upstream) = match self.upstreams.as_slice() {
            [only] if only.partitioner == Partitioner::Forward => (self.env.clone(), only.clone()),
            _ => {
                let payload = identity::<T>();
                let node = self.env.add("cached union", &[&self.upstreams], payload);
                (self.env.clone(), Upstream::main::<T>(node))
            }
        };
        CachedDataStream::mark(env, &upstream, id)
    }
}

/// A step that changes nothing.
fn identity<T: Send + 'static>() -> NodePayload {
    let function = Arc::new(|value: T| Ok(value));
    let make = move |context: &Arc<_>| Ok(Map::new(Arc::clone(&function), context));
    NodePayload::new(OneInputNode::<T, T, _>::new(OperatorAttributes::operator(), make))
}

impl<T: Record + Clone> CachedDataStream<T> {
    /// Marks an output in the program.
    fn mark(env: StreamExecutionEnvironment, upstream: &Upstream, id: DataSetId) -> Self {
        let data_sets = env.data_sets();
        let tag = upstream.output.clone();
        let mut reader = CachedNode::<T>::payload(Arc::clone(data_sets), id, tag.clone());
        reader.tees.insert(tag.clone(), CloneTee::<T>::shared());
        let writer = EdgePayload(Arc::new(BytesEdge::<T>::plain()));
        let data_set = {
            let mut graph = env.inner.graph.lock();
            if let Some(node) = graph.node_mut(upstream.node) {
                node.payload.tees.insert(tag.clone(), CloneTee::<T>::shared());
            }
            graph.mark_cached(upstream.node, tag, id, reader, writer)
        };
        let upstream = upstream.by(Partitioner::Forward, BytesEdge::<T>::plain());
        Self { env, upstream, data_set, rows: std::marker::PhantomData }
    }

    /// The stream, to be used in any way.
    #[must_use]
    pub fn stream(&self) -> DataStream<T> {
        DataStream {
            env: self.env.clone(),
            upstreams: vec![self.upstream.clone()],
            records: std::marker::PhantomData,
        }
    }

    pub(crate) fn env(&self) -> &StreamExecutionEnvironment {
        &self.env
    }

    /// The data set that keeps it.
    #[must_use]
    pub fn data_set(&self) -> DataSetId {
        self.data_set
    }

    /// Whether all of it is kept now.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.env.data_sets().is_complete(self.data_set)
    }

    /// Names the operator that makes the stream, and with it the cache.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.with_node(|node| name.clone_into(&mut node.name))
    }

    /// Gives the operator that makes the stream an id that survives changes of the program.
    #[must_use]
    pub fn uid(self, uid: &str) -> Self {
        self.with_node(|node| node.uid = Some(uid.to_owned()))
    }

    /// Sets the subtasks of the operator that makes the stream, and so the number of its parts.
    #[must_use]
    pub fn parallelism(self, subtasks: u32) -> Self {
        self.with_node(|node| node.parallelism = Some(subtasks))
    }

    /// Sets the key groups of the operator that makes the stream: the bound of its parallelism.
    #[must_use]
    pub fn max_parallelism(self, groups: u32) -> Self {
        self.with_node(|node| node.max_parallelism = Some(groups))
    }

    fn with_node(
        self,
        change: impl FnOnce(&mut graph::Transformation<NodePayload, EdgePayload>),
    ) -> Self {
        let node: NodeId = self.upstream.node;
        if let Some(node) = self.env.inner.graph.lock().node_mut(node) {
            change(node);
        }
        self
    }

    /// Drops what is kept, and waits until it is gone; the next job that needs it computes it anew. A
    /// job that reads it meanwhile finishes, or computes it itself, and never reads a mixture. A job
    /// that is making it meanwhile does not keep it. Harmless when repeated, or before any use.
    ///
    /// # Errors
    ///
    /// [`JobError::NotReleased`] if a worker could not drop its part; no job reads it all the same.
    pub fn invalidate(&self) -> Result<(), JobError> {
        let data_sets = self.env.data_sets();
        match data_sets.wait(data_sets.delete(self.data_set)) {
            Deletion::Failed(failures) => {
                let graph = self.env.inner.graph.lock();
                let name = graph.node(self.upstream.node).map(|node| node.name.clone());
                let name = name.unwrap_or_default();
                let failures = failures.iter().map(|failure| (name.clone(), failure.to_string()));
                Err(JobError::NotReleased { failures: failures.collect() })
            }
            Deletion::Pending | Deletion::Done => Ok(()),
        }
    }

    /// Keeps it from being evicted for others (`execution.cache.max-bytes`).
    pub fn pin(&self) {
        self.env.data_sets().set_pinned(self.data_set, true);
    }

    /// It may be evicted for others.
    pub fn unpin(&self) {
        self.env.data_sets().set_pinned(self.data_set, false);
    }

    /// Runs a job that counts the records.
    ///
    /// # Errors
    ///
    /// [`JobError`]: what could not be planned, started or finished, by name.
    pub fn count(&self) -> Result<u64, JobError> {
        let counted = self.map(|_| 0_u8).key_by(|one| *one).count().execute_and_collect()?;
        Ok(counted.first().map_or(0, |(_, count)| *count))
    }

    stream_methods!(T, (&self) => self.stream());
}

impl<T: Record + Clone> From<&CachedDataStream<T>> for DataStream<T> {
    fn from(cached: &CachedDataStream<T>) -> Self {
        cached.stream()
    }
}

impl<T: Record + Clone> From<CachedDataStream<T>> for DataStream<T> {
    fn from(cached: CachedDataStream<T>) -> Self {
        cached.stream()
    }
}
