//! Which neighbours run in one task.
//!
//! Two neighbours do if records go forward between them, one to one, with the same parallelism and
//! key groups, nothing else feeds the second, nothing is put before it, and both agree. So a chain
//! is a tree: its head alone reads edges. An output that is kept does not end a chain: the data set
//! is written beside the consumers, never by them (A13).

use crate::backlog_rules::Treated;
use crate::stream_graph::{StreamEdge, StreamGraph};
use crate::{ChainingPolicy, InputTreatment, Partitioner, PlanSettings};

/// Chains: which edges lie within them, and where each node belongs.
pub(crate) struct Chains {
    /// Whether an edge is a link within a chain.
    pub(crate) is_link: Vec<bool>,
    /// The vertex of each node.
    pub(crate) vertex: Vec<usize>,
    /// The nodes of each vertex in topological order, the head first.
    pub(crate) members: Vec<Vec<usize>>,
}

/// Joins neighbours; vertices are numbered by their heads, in topological order.
pub(crate) fn chain<N, E>(
    graph: &StreamGraph<'_, N, E>,
    treated: &[Treated],
    settings: &PlanSettings<'_>,
) -> Chains {
    let mut chains = Chains {
        is_link: vec![false; graph.edges.len()],
        vertex: Vec::with_capacity(graph.nodes.len()),
        members: Vec::new(),
    };
    for (at, (node, treated)) in graph.nodes.iter().zip(treated).enumerate() {
        let link = node.only_edge().filter(|edge| {
            settings.chaining
                && treated.treatment == InputTreatment::Direct
                && may_link(graph, &graph.edges[*edge])
        });
        let vertex = match link {
            Some(edge) => {
                chains.is_link[edge] = true;
                chains.vertex[graph.edges[edge].from]
            }
            None => {
                chains.members.push(Vec::new());
                chains.members.len() - 1
            }
        };
        chains.vertex.push(vertex);
        chains.members[vertex].push(at);
    }
    chains
}

fn may_link<N, E>(graph: &StreamGraph<'_, N, E>, edge: &StreamEdge<'_, E>) -> bool {
    let (from, to) = (&graph.nodes[edge.from], &graph.nodes[edge.to]);
    edge.partitioner == Partitioner::Forward
        && from.max_parallelism == to.max_parallelism
        && from.attributes.chaining != ChainingPolicy::Never
        && to.attributes.chaining == ChainingPolicy::Always
}
