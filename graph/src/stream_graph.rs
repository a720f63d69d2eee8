//! What a job needs of a program, settled: every uid, parallelism and partitioner is known.
//!
//! Made by [`translate`](crate::translate::translate); read by the rules that follow. Payloads are
//! borrowed from the program until the job graph is put together. Nodes and edges are named by
//! their index here; a producer always has a lesser index than its consumers.

use element::NodeId;

use crate::cache::CacheMark;
use crate::{OperatorAttributes, OutputTag, Partitioner, ResolvedMode};

/// The settled program of one job.
pub(crate) struct StreamGraph<'g, N, E> {
    pub(crate) mode: ResolvedMode,
    pub(crate) mode_reason: String,
    /// In topological order.
    pub(crate) nodes: Vec<StreamNode<'g, N>>,
    /// By consumer, input, and place in the union.
    pub(crate) edges: Vec<StreamEdge<'g, E>>,
    /// In the order of their marks.
    pub(crate) caches: Vec<StreamCache<'g, N, E>>,
}

/// A step of the program, or the reader of a data set in place of one.
pub(crate) struct StreamNode<'g, N> {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) parallelism: u32,
    pub(crate) max_parallelism: u32,
    pub(crate) attributes: OperatorAttributes,
    pub(crate) payload: &'g N,
    /// Edges by input; several at one input are a union.
    pub(crate) inputs: Vec<Vec<usize>>,
    /// Edges that read any of its outputs.
    pub(crate) outputs: Vec<usize>,
}

/// An edge between two steps.
pub(crate) struct StreamEdge<'g, E> {
    pub(crate) from: usize,
    pub(crate) output: &'g OutputTag,
    pub(crate) to: usize,
    pub(crate) input: usize,
    /// Never [`Partitioner::ForwardStrict`]; forward only between like parallelisms.
    pub(crate) partitioner: Partitioner,
    pub(crate) payload: &'g E,
    pub(crate) bytes: bool,
}

/// A cached stream that the job needs.
pub(crate) struct StreamCache<'g, N, E> {
    pub(crate) mark: &'g CacheMark<N, E>,
    /// The reader if `Hit`, the producer otherwise.
    pub(crate) node: usize,
    pub(crate) name: String,
    pub(crate) outcome: CacheOutcome,
}

/// What the job does with a cached stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheOutcome {
    /// Reads the data set.
    Hit,
    /// Computes and keeps it.
    Keep,
    /// Computes it and does not keep it.
    Uncached,
}

impl<N> StreamNode<'_, N> {
    /// The only edge that it reads, if it reads one.
    pub(crate) fn only_edge(&self) -> Option<usize> {
        match self.inputs.as_slice() {
            [input] => match input.as_slice() {
                [edge] => Some(*edge),
                _ => None,
            },
            _ => None,
        }
    }
}
