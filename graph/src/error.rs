//! Why a program cannot be planned: every error names the node, and the option if there is one.
//!
//! Made by the rules of this crate; wrapped by the errors of `runtime` and shown to users. A program
//! that is refused has run nothing.

use element::{DataSetId, NodeId};

use crate::OutputTag;

/// Why a program cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Nothing takes records out.
    #[error("the job has no sink, so nothing would run")]
    NoSink,
    /// A sink was named that the program does not have.
    #[error("the program has no node {node}")]
    UnknownNode {
        /// The node named.
        node: NodeId,
    },
    /// An input names a node that is not there or comes later.
    #[error("`{name}` (node {node}) reads node {from}, which does not come before it")]
    UnknownInput {
        /// The consumer.
        node: NodeId,
        /// Its name.
        name: String,
        /// The producer named.
        from: NodeId,
    },
    /// An input that is a union of no streams.
    #[error("input {input} of `{name}` (node {node}) is a union of nothing")]
    EmptyInput {
        /// The consumer.
        node: NodeId,
        /// Its name.
        name: String,
        /// Which input, from 0.
        input: usize,
    },
    /// An operator or sink without inputs.
    #[error("`{name}` (node {node}) has no input and is not a source")]
    NoInput {
        /// The operator.
        node: NodeId,
        /// Its name.
        name: String,
    },
    /// A source with inputs.
    #[error("source `{name}` (node {node}) has an input")]
    SourceWithInput {
        /// The source.
        node: NodeId,
        /// Its name.
        name: String,
    },
    /// A sink whose output is read.
    #[error("`{name}` (node {node}) reads sink `{sink}`, which has no output")]
    ReadsSink {
        /// The consumer.
        node: NodeId,
        /// Its name.
        name: String,
        /// The sink.
        sink: String,
    },
    /// A parallelism out of range.
    #[error("parallelism {parallelism} of `{name}` (node {node}) is not within 1 to {max}")]
    Parallelism {
        /// The operator.
        node: NodeId,
        /// Its name.
        name: String,
        /// The parallelism asked for.
        parallelism: u32,
        /// Its max parallelism.
        max: u32,
    },
    /// A max parallelism out of range.
    #[error("max parallelism {max} of `{name}` (node {node}) is not within 1 to 32768")]
    MaxParallelism {
        /// The operator.
        node: NodeId,
        /// Its name.
        name: String,
        /// The max parallelism asked for.
        max: u32,
    },
    /// A forward exchange was demanded between unlike parallelisms.
    #[error(
        "forward exchange from `{from}` (parallelism {from_parallelism}) to `{to}` (parallelism \
         {to_parallelism}): give both the same parallelism, or use rescale or rebalance"
    )]
    ForwardMismatch {
        /// The producer's name.
        from: String,
        /// Its parallelism.
        from_parallelism: u32,
        /// The consumer's name.
        to: String,
        /// Its parallelism.
        to_parallelism: u32,
    },
    /// Two operators with the same uid.
    #[error(
        "uid `{uid}` belongs to `{first}` (node {first_node}) and to `{second}` (node {second_node})"
    )]
    DuplicateUid {
        /// The uid.
        uid: String,
        /// The first operator's name.
        first: String,
        /// The first operator.
        first_node: NodeId,
        /// The second operator's name.
        second: String,
        /// The second operator.
        second_node: NodeId,
    },
    /// Batch mode was asked for over input that does not end (T1).
    #[error(
        "source `{name}` (node {node}) is unbounded, but option `execution.runtime-mode` is batch"
    )]
    UnboundedBatch {
        /// The source.
        node: NodeId,
        /// Its name.
        name: String,
    },
    /// A cache cannot be made by this job (decision D1).
    #[error(
        "stream `{name}` (node {node}, {output} output, data set {data_set}) cannot be cached: \
         option `{option}` is `{value}`; a cache is made in batch mode with blocking exchanges \
         (option `execution.cache.outside-batch` = `recompute` runs without one)"
    )]
    CacheOutsideBatch {
        /// The operator.
        node: NodeId,
        /// Its name.
        name: String,
        /// Which output.
        output: OutputTag,
        /// The data set.
        data_set: DataSetId,
        /// The option that stands against it.
        option: &'static str,
        /// The value that it has, or amounts to.
        value: &'static str,
    },
    /// State of one key at a time, but inputs that are not sorted (T11).
    #[error(
        "`{name}` (node {node}) keeps keyed state in batch mode one key at a time, which needs \
         sorted inputs, but option `execution.sorted-inputs.enabled` is false"
    )]
    UnsortedOneKey {
        /// The operator.
        node: NodeId,
        /// Its name.
        name: String,
    },
}
