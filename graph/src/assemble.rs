//! Puts the job graph together from what the rules have decided. Decides nothing itself.

use element::{EdgeId, VertexId};

use crate::backlog_rules::Treated;
use crate::chain::Chains;
use crate::exchange::Exchanged;
use crate::regions::Regions;
use crate::stream_graph::{CacheOutcome, StreamGraph};
use crate::{
    CacheDecision, CachePlan, ChainLink, ChainNode, Durability, EdgeSource, EdgeTarget,
    InputTreatment, JobEdge, JobGraph, JobVertex, Partitioner, PersistentOutput,
};

/// What the rules have decided about a stream graph.
pub(crate) struct Decisions {
    pub(crate) treated: Vec<Treated>,
    pub(crate) durability: Vec<Durability>,
    pub(crate) chains: Chains,
    pub(crate) exchanged: Vec<Exchanged>,
    pub(crate) regions: Regions,
}

/// The job graph; payloads are cloned here, once each.
pub(crate) fn assemble<N: Clone, E: Clone>(
    graph: &StreamGraph<'_, N, E>,
    decisions: &Decisions,
) -> JobGraph<N, E> {
    let mut vertices: Vec<JobVertex<N, E>> =
        (0..decisions.chains.members.len()).map(|at| vertex(graph, decisions, at)).collect();
    let edges = edges(graph, decisions);
    for edge in &edges {
        vertices[edge.to.vertex.0 as usize].inputs[edge.to.input].push(edge.id);
    }
    JobGraph {
        mode: graph.mode,
        mode_reason: graph.mode_reason.clone(),
        vertices,
        edges,
        regions: decisions
            .regions
            .0
            .iter()
            .map(|region| region.iter().map(|vertex| vertex_id(*vertex)).collect())
            .collect(),
        caches: caches(graph, decisions),
    }
}

/// Vertices and edges are counted by 32 bits because steps of a program are.
fn narrow(at: usize) -> u32 {
    u32::try_from(at).expect("a job has less than 2^32 vertices and edges")
}

fn vertex_id(at: usize) -> VertexId {
    VertexId(narrow(at))
}

fn vertex<N: Clone, E: Clone>(
    graph: &StreamGraph<'_, N, E>,
    decisions: &Decisions,
    at: usize,
) -> JobVertex<N, E> {
    let members = &decisions.chains.members[at];
    let head = &graph.nodes[members[0]];
    JobVertex {
        id: vertex_id(at),
        name: name(graph, decisions, members[0]),
        parallelism: head.parallelism,
        max_parallelism: head.max_parallelism,
        chain: members.iter().map(|node| chain_node(graph, decisions, *node)).collect(),
        links: members.iter().skip(1).filter_map(|node| link(graph, *node)).collect(),
        persistent: persistent(graph, decisions, at),
        inputs: vec![Vec::new(); head.inputs.len()],
    }
}

fn chain_node<N: Clone, E>(
    graph: &StreamGraph<'_, N, E>,
    decisions: &Decisions,
    at: usize,
) -> ChainNode<N> {
    let (node, treated) = (&graph.nodes[at], &decisions.treated[at]);
    ChainNode {
        node: node.id,
        name: node.name.clone(),
        uid: node.uid.clone(),
        payload: node.payload.clone(),
        attributes: node.attributes,
        treatment: treated.treatment,
        reason: treated.reason.clone(),
        sort_memory: treated.memory,
        durability: decisions.durability[at].clone(),
    }
}

fn link<N, E: Clone>(graph: &StreamGraph<'_, N, E>, at: usize) -> Option<ChainLink<E>> {
    let edge = &graph.edges[graph.nodes[at].only_edge()?];
    Some(ChainLink {
        from: graph.nodes[edge.from].id,
        output: edge.output.clone(),
        to: graph.nodes[at].id,
        payload: edge.payload.clone(),
    })
}

fn persistent<N, E: Clone>(
    graph: &StreamGraph<'_, N, E>,
    decisions: &Decisions,
    vertex: usize,
) -> Vec<PersistentOutput<E>> {
    graph
        .caches
        .iter()
        .filter(|cache| cache.outcome == CacheOutcome::Keep)
        .filter(|cache| decisions.chains.vertex[cache.node] == vertex)
        .map(|cache| PersistentOutput {
            node: cache.mark.node,
            output: cache.mark.output.clone(),
            data_set: cache.mark.data_set,
            payload: cache.mark.writer.clone(),
        })
        .collect()
}

fn edges<N, E: Clone>(graph: &StreamGraph<'_, N, E>, decisions: &Decisions) -> Vec<JobEdge<E>> {
    let edge = |(at, exchanged): (u32, &Exchanged)| {
        let edge = &graph.edges[exchanged.edge];
        JobEdge {
            id: EdgeId(at),
            from: EdgeSource {
                vertex: vertex_id(decisions.chains.vertex[edge.from]),
                node: graph.nodes[edge.from].id,
                output: edge.output.clone(),
            },
            to: EdgeTarget {
                vertex: vertex_id(decisions.chains.vertex[edge.to]),
                node: graph.nodes[edge.to].id,
                input: edge.input,
            },
            partitioner: edge.partitioner,
            exchange: exchanged.exchange,
            reason: exchanged.reason,
            pointwise: edge.partitioner.is_pointwise(),
            combined: edge.partitioner == Partitioner::KeyGroup
                && graph.nodes[edge.to].attributes.producers_combine
                && decisions.treated[edge.to].treatment == InputTreatment::Combine,
            payload: edge.payload.clone(),
        }
    };
    (0..).zip(&decisions.exchanged).map(edge).collect()
}

fn caches<N, E>(graph: &StreamGraph<'_, N, E>, decisions: &Decisions) -> Vec<CachePlan> {
    graph
        .caches
        .iter()
        .map(|cache| {
            let vertex = vertex_id(decisions.chains.vertex[cache.node]);
            CachePlan {
                data_set: cache.mark.data_set,
                node: cache.mark.node,
                name: cache.name.clone(),
                output: cache.mark.output.clone(),
                decision: match cache.outcome {
                    CacheOutcome::Hit => CacheDecision::Hit { reader: vertex },
                    CacheOutcome::Keep => CacheDecision::Computed { producer: vertex },
                    CacheOutcome::Uncached => CacheDecision::Uncached { producer: vertex },
                },
            }
        })
        .collect()
}

/// The names of a chain as a tree: `source -> map -> (filter -> sink, sink)`. Works on a stack of
/// its own, whatever the depth of the chain.
fn name<N, E>(graph: &StreamGraph<'_, N, E>, decisions: &Decisions, head: usize) -> String {
    enum Part {
        Node(usize),
        Text(&'static str),
    }
    let mut name = String::new();
    let mut parts = vec![Part::Node(head)];
    while let Some(part) = parts.pop() {
        let node = match part {
            Part::Text(text) => {
                name.push_str(text);
                continue;
            }
            Part::Node(at) => &graph.nodes[at],
        };
        name.push_str(&node.name);
        let links = node.outputs.iter().filter(|edge| decisions.chains.is_link[**edge]);
        let next: Vec<usize> = links.map(|edge| graph.edges[*edge].to).collect();
        if next.is_empty() {
            continue;
        }
        let branches = next.len() > 1;
        parts.push(Part::Text(if branches { ")" } else { "" }));
        for (place, to) in next.into_iter().enumerate().rev() {
            parts.push(Part::Node(to));
            parts.push(Part::Text(if place > 0 { ", " } else { "" }));
        }
        parts.push(Part::Text(if branches { " -> (" } else { " -> " }));
    }
    name
}
