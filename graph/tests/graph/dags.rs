//! Random programs: whatever the program, the plan is whole and can be scheduled.
//!
//! Drafts are lists of numbers that always make a right program, so that shrinking works. Covers
//! all modes, chains on and off, records that cannot become bytes, and a complete cache.

use std::collections::{BTreeMap, BTreeSet};

use element::option_table::RuntimeMode;
use element::{NodeId, VertexId};
use proptest::prelude::*;
use slackwater_graph::{
    ChainingPolicy, Exchange, InputEdge, InputTreatment, JobGraph, OperatorAttributes, Partitioner,
};

use crate::program::*;

/// One step, as numbers that are taken modulo what is there.
#[derive(Clone, Debug)]
struct Draft {
    inputs: Vec<Vec<(usize, u8, bool)>>,
    shape: u8,
    parallelism: u8,
}

fn draft() -> impl Strategy<Value = Draft> {
    let edge = (any::<usize>(), any::<u8>(), proptest::bool::weighted(0.8));
    let inputs = prop::collection::vec(prop::collection::vec(edge, 1..3), 0..3);
    (inputs, any::<u8>(), any::<u8>()).prop_map(|(inputs, shape, parallelism)| Draft {
        inputs,
        shape,
        parallelism,
    })
}

fn partitioner(number: u8) -> Partitioner {
    match number % 10 {
        0 => Partitioner::KeyGroup,
        1 => Partitioner::Rebalance,
        2 => Partitioner::Broadcast,
        3 => Partitioner::Custom,
        _ => Partitioner::Forward,
    }
}

fn attributes(shape: u8, source: bool) -> OperatorAttributes {
    if source {
        return if shape.is_multiple_of(4) { UNBOUNDED } else { BOUNDED };
    }
    OperatorAttributes {
        keyed: shape & 1 > 0,
        uses_state_or_timers: shape & 2 > 0,
        sorts_internally: shape & 12 == 12,
        combines: shape & 20 == 20,
        output_only_at_end: shape & 96 == 96,
        chaining: match shape % 9 {
            0 => ChainingPolicy::Head,
            1 => ChainingPolicy::Never,
            _ => ChainingPolicy::Always,
        },
        ..PLAIN
    }
}

/// Writes the drafts down; every step that nothing reads gets a sink.
fn program(drafts: &[Draft]) -> Program {
    let mut program = Program::new();
    let mut read = BTreeSet::new();
    for (at, draft) in drafts.iter().enumerate() {
        let inputs: Vec<Vec<_>> = if at == 0 { vec![] } else { draft.inputs.clone() }
            .into_iter()
            .map(|input| {
                input
                    .into_iter()
                    .map(|(from, number, bytes)| {
                        let from = NodeId((from % at) as u32);
                        read.insert(from);
                        InputEdge { bytes, ..by(partitioner(number), from) }
                    })
                    .collect()
            })
            .collect();
        let attributes = attributes(draft.shape, inputs.is_empty());
        let node = program.steps(&format!("n{at}"), attributes, inputs);
        program.parallelism(node, 1 + u32::from(draft.parallelism % 4));
    }
    for id in (0..drafts.len() as u32).map(NodeId).filter(|id| !read.contains(id)) {
        program.sink("sink", id);
    }
    program
}

fn vertex_of(job: &JobGraph<Stub, Label>) -> BTreeMap<NodeId, VertexId> {
    let pairs = job.vertices.iter().flat_map(|v| v.chain.iter().map(|n| (n.node, v.id)));
    pairs.collect()
}

/// Every step that is needed is in one chain; links and edges are the edges of the program.
fn is_whole(program: &Program, job: &JobGraph<Stub, Label>) {
    let mut nodes: Vec<NodeId> =
        job.vertices.iter().flat_map(|v| v.chain.iter().map(|node| node.node)).collect();
    nodes.sort();
    assert_eq!(nodes, program.graph.iter().map(|(id, _)| id).collect::<Vec<_>>());
    let mut planned: Vec<(NodeId, NodeId, usize)> =
        job.edges.iter().map(|edge| (edge.from.node, edge.to.node, edge.to.input)).collect();
    planned.extend(job.vertices.iter().flat_map(|v| v.links.iter().map(|l| (l.from, l.to, 0))));
    planned.sort();
    let mut written: Vec<(NodeId, NodeId, usize)> = Vec::new();
    for (id, step) in program.graph.iter() {
        for (input, edges) in step.inputs.iter().enumerate() {
            written.extend(edges.iter().map(|edge| (edge.from, id, input)));
        }
    }
    written.sort();
    assert_eq!(planned, written);
}

/// Ids are indexes; chains are trees whose head alone reads edges and may be sorted.
fn is_well_formed(job: &JobGraph<Stub, Label>) {
    let vertex_of = vertex_of(job);
    for (at, vertex) in job.vertices.iter().enumerate() {
        assert_eq!(vertex.id.0 as usize, at);
        assert_eq!(vertex.links.len() + 1, vertex.chain.len());
        for (at, (link, node)) in vertex.links.iter().zip(&vertex.chain[1..]).enumerate() {
            assert_eq!(link.to, node.node);
            assert_eq!(node.treatment, InputTreatment::Direct);
            assert!(vertex.chain[..=at].iter().any(|before| before.node == link.from));
        }
        let inputs: BTreeSet<_> = vertex.inputs.iter().flatten().collect();
        let edges: BTreeSet<_> =
            job.edges.iter().filter(|e| e.to.vertex == vertex.id).map(|e| &e.id).collect();
        assert_eq!(inputs, edges);
    }
    for (at, edge) in job.edges.iter().enumerate() {
        assert_eq!(edge.id.0 as usize, at);
        assert_eq!(vertex_of[&edge.from.node], edge.from.vertex);
        assert_eq!(job.vertices[edge.to.vertex.0 as usize].chain[0].node, edge.to.node);
    }
}

/// Regions part the vertices; pipelined edges stay within, blocking ones lead to later regions.
fn can_be_scheduled(job: &JobGraph<Stub, Label>) {
    let mut region = BTreeMap::new();
    for (at, vertices) in job.regions.iter().enumerate() {
        assert!(vertices.is_sorted());
        for vertex in vertices {
            assert_eq!(region.insert(*vertex, at), None);
        }
    }
    assert_eq!(region.len(), job.vertices.len());
    for edge in &job.edges {
        let (from, to) = (region[&edge.from.vertex], region[&edge.to.vertex]);
        match edge.exchange {
            Exchange::Pipelined => assert_eq!(from, to),
            Exchange::Blocking => assert!(from < to),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn every_program_has_a_whole_plan_that_can_be_scheduled(
        drafts in prop::collection::vec(draft(), 1..24),
        chaining in any::<bool>(),
        mode in prop_oneof![Just("automatic"), Just("streaming"), Just("mixed")],
    ) {
        let program = program(&drafts);
        let plan = || program.plan(|settings| {
            settings.chaining = chaining;
            match mode {
                "automatic" => settings.mode = RuntimeMode::Automatic,
                "streaming" => streaming(settings),
                _ => mixed(settings),
            }
        });
        let job = plan();
        is_whole(&program, &job);
        is_well_formed(&job);
        can_be_scheduled(&job);
        let again = plan();
        prop_assert_eq!(job.explain(), again.explain());
        prop_assert_eq!(job.fingerprint(), again.fingerprint());
    }

    #[test]
    fn a_complete_cache_cuts_exactly_what_only_it_needs(
        drafts in prop::collection::vec(draft(), 2..24),
        cached in any::<prop::sample::Index>(),
    ) {
        let mut program = program(&drafts);
        let cached = NodeId(cached.index(drafts.len()) as u32);
        program.cache(cached, slackwater_graph::OutputTag::Main, 9);
        program.complete(9);
        let job = program.plan(streaming);
        is_well_formed(&job);
        can_be_scheduled(&job);
        let planned: BTreeSet<NodeId> = vertex_of(&job).into_keys().collect();
        let mut needed: BTreeSet<NodeId> = program.sinks.iter().copied().collect();
        let mut stack = program.sinks.clone();
        while let Some(id) = stack.pop() {
            for edge in program.graph.node(id).unwrap().inputs.iter().flatten() {
                if edge.from != cached && needed.insert(edge.from) {
                    stack.push(edge.from);
                }
            }
        }
        needed.insert(NodeId(program.graph.len() as u32));
        prop_assert_eq!(planned, needed);
    }
}
