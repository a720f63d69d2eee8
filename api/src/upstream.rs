//! [`Upstream`]: where a stream's records come from, and how they reach the next operator.

use element::{NodeId, Record};
use graph::{InputEdge, OutputTag, Partitioner};
use runtime::exchange::{BytesEdge, LocalEdge};
use runtime::factory::EdgePayload;
use std::sync::Arc;

/// One producer of a stream. A union has several.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) node: NodeId,
    pub(crate) output: OutputTag,
    pub(crate) partitioner: Partitioner,
    pub(crate) edge: EdgePayload,
    pub(crate) bytes: bool,
}

impl Upstream {
    /// The main output of a node, forwarded.
    pub(crate) fn main<T: Send + 'static>(node: NodeId) -> Self {
        Self::output::<T>(node, OutputTag::Main)
    }

    /// An output of a node, forwarded within the process.
    pub(crate) fn output<T: Send + 'static>(node: NodeId, output: OutputTag) -> Self {
        let edge = EdgePayload(Arc::new(LocalEdge::<T>::plain()));
        Self { node, output, partitioner: Partitioner::Forward, edge, bytes: false }
    }

    /// The same records by another way, over an edge whose records can become bytes.
    pub(crate) fn by<T: Record>(&self, partitioner: Partitioner, edge: BytesEdge<T>) -> Self {
        Self {
            node: self.node,
            output: self.output.clone(),
            partitioner,
            edge: EdgePayload(Arc::new(edge)),
            bytes: true,
        }
    }

    /// The edge as the graph has it.
    pub(crate) fn input(&self) -> InputEdge<EdgePayload> {
        InputEdge {
            from: self.node,
            output: self.output.clone(),
            partitioner: self.partitioner,
            payload: self.edge.clone(),
            bytes: self.bytes,
        }
    }
}
