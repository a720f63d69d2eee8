//! Streams that are to be kept: the mark on a program's graph, and what a plan makes of it.
//!
//! The api marks an output with [`TransformationGraph::mark_cached`]; `cache_rules` decides for
//! each job whether the data set is read, written or neither. Left out on purpose: whether a data
//! set is complete. The cluster knows, and [`PlanSettings::available`] asks it.
//!
//! Source: FLIP-205.
//!
//! [`TransformationGraph::mark_cached`]: crate::TransformationGraph::mark_cached
//! [`PlanSettings::available`]: crate::PlanSettings::available

use element::{DataSetId, NodeId, VertexId};

use crate::OutputTag;

/// The wish to keep an output.
#[derive(Clone, Debug)]
pub struct CacheMark<N, E> {
    /// The operator.
    pub node: NodeId,
    /// Its output.
    pub output: OutputTag,
    /// The data set that keeps it.
    pub data_set: DataSetId,
    /// A source that reads the data set.
    pub reader: N,
    /// What writes the output's records to the data set.
    pub writer: E,
}

/// What a job does with a cached stream that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePlan {
    /// The data set.
    pub data_set: DataSetId,
    /// The operator whose output is cached.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Which of its outputs.
    pub output: OutputTag,
    /// Read, written or neither.
    pub decision: CacheDecision,
}

/// What a job does with a cached stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheDecision {
    /// The data set is complete: this vertex reads it, nothing upstream runs.
    Hit {
        /// The vertex of the reading source.
        reader: VertexId,
    },
    /// The data set is missing: this vertex computes the stream and writes it.
    Computed {
        /// The vertex that writes the data set.
        producer: VertexId,
    },
    /// The data set is missing and the job may not make one: computed, not kept (decision D1).
    Uncached {
        /// The vertex that computes the stream.
        producer: VertexId,
    },
}
