//! Chains, partitioners, exchanges and regions.
//!
//! Plans are compared edge by edge and by the names of their vertices, which show their chains.
//! Rings of exchanges have table tests next to the code (`rings`).

use element::option_table::BatchShuffleMode;
use element::{EdgeId, NodeId, VertexId};
use slackwater_graph::{
    ChainingPolicy, Exchange, InputEdge, JobGraph, OperatorAttributes, OutputTag, Partitioner,
    PlanSettings,
};

use crate::program::*;

const AT_END: OperatorAttributes = OperatorAttributes { output_only_at_end: true, ..KEYED };

/// `from vertex -> to vertex: partitioner, exchange`, edge by edge.
fn edges(job: &JobGraph<Stub, Label>) -> Vec<String> {
    let name = |vertex: VertexId| job.vertex(vertex).expect("edges name vertices").name.clone();
    job.edges
        .iter()
        .map(|edge| {
            format!(
                "{} => {}: {}, {}",
                name(edge.from.vertex),
                name(edge.to.vertex),
                edge.partitioner,
                edge.exchange
            )
        })
        .collect()
}

fn line(attributes: [OperatorAttributes; 3]) -> Program {
    let mut program = Program::new();
    let a = program.source("a", attributes[0]);
    let b = program.step("b", attributes[1], [forward(a)]);
    program.step("c", attributes[2], [forward(b)]);
    program
}

#[test]
fn neighbours_share_a_task() {
    let job = line([BOUNDED, PLAIN, SINK]).plan(|_| {});
    assert_eq!(names(&job), ["a -> b -> c"]);
    let links: Vec<_> = job.vertices[0]
        .links
        .iter()
        .map(|link| (link.from, link.to, link.payload.as_str()))
        .collect();
    assert_eq!(links, [(NodeId(0), NodeId(1), "from 0"), (NodeId(1), NodeId(2), "from 1")]);
}

#[test]
fn chaining_can_be_turned_off() {
    let job = line([BOUNDED, PLAIN, SINK]).plan(|settings| settings.chaining = false);
    assert_eq!(names(&job), ["a", "b", "c"]);
    assert_eq!(edges(&job), ["a => b: forward, blocking", "b => c: forward, blocking"]);
}

#[test]
fn operators_may_start_a_chain_or_stand_alone() {
    let with = |chaining| OperatorAttributes { chaining, ..PLAIN };
    let job = line([BOUNDED, with(ChainingPolicy::Head), SINK]).plan(|_| {});
    assert_eq!(names(&job), ["a", "b -> c"]);
    let job = line([BOUNDED, with(ChainingPolicy::Never), SINK]).plan(|_| {});
    assert_eq!(names(&job), ["a", "b", "c"]);
}

#[test]
fn unlike_key_groups_do_not_share_a_task() {
    let mut program = line([BOUNDED, PLAIN, SINK]);
    program.graph.node_mut(NodeId(1)).unwrap().max_parallelism = Some(128);
    assert_eq!(names(&program.plan(|_| {})), ["a", "b", "c"]);
}

#[test]
fn a_fan_out_is_a_tree_and_a_second_input_ends_it() {
    let mut program = Program::new();
    let a = program.source("a", BOUNDED);
    let b = program.step("b", PLAIN, [forward(a)]);
    program.sink("c", b);
    program.sink("d", b);
    let e = program.steps("e", PLAIN, vec![vec![forward(a), side(b, "late")]]);
    program.sink("f", e);
    let job = program.plan(|_| {});
    assert_eq!(names(&job), ["a -> b -> (c, d)", "e -> f"]);
    assert_eq!(job.vertices[1].inputs, [[EdgeId(0), EdgeId(1)]]);
    assert_eq!(job.edges[1].from.output, OutputTag::Side("late".to_owned()));
    assert_eq!(job.edges[1].from.node, b);
}

/// tF18: the two edges of a union of a stream with itself are distinct.
#[test]
fn a_union_of_a_stream_with_itself_has_two_edges() {
    let mut program = Program::new();
    let a = program.source("a", UNBOUNDED);
    program.steps("twice", SINK, vec![vec![forward(a), forward(a)]]);
    let job = program.plan(|_| {});
    assert_eq!(job.vertices[1].inputs, [[EdgeId(0), EdgeId(1)]]);
    assert_eq!(edges(&job), ["a => twice: forward, pipelined"; 2]);
}

#[test]
fn forward_between_unlike_parallelisms_becomes_rescale_or_rebalance() {
    for (parallelism, partitioner) in
        [(1, Partitioner::Rescale), (4, Partitioner::Rescale), (3, Partitioner::Rebalance)]
    {
        let mut program = line([BOUNDED, PLAIN, SINK]);
        program.parallelism(NodeId(0), parallelism);
        let job = program.plan(|_| {});
        assert_eq!(job.edges[0].partitioner, partitioner);
        assert_eq!(job.edges[0].pointwise, partitioner == Partitioner::Rescale);
    }
}

#[test]
fn a_demanded_forward_between_like_parallelisms_is_forward() {
    let mut program = Program::new();
    let a = program.source("a", BOUNDED);
    program.step("b", SINK, [by(Partitioner::ForwardStrict, a)]);
    assert_eq!(names(&program.plan(|_| {})), ["a -> b"]);
}

#[test]
fn other_partitioners_end_a_chain_whatever_the_parallelism() {
    for partitioner in [
        Partitioner::KeyGroup,
        Partitioner::Rebalance,
        Partitioner::Rescale,
        Partitioner::Shuffle,
        Partitioner::Broadcast,
        Partitioner::Global,
        Partitioner::Custom,
    ] {
        let mut program = Program::new();
        let a = program.source("a", BOUNDED);
        program.step("b", SINK, [by(partitioner, a)]);
        let job = program.plan(|settings| settings.default_parallelism = 1);
        assert_eq!(edges(&job), [format!("a => b: {partitioner}, blocking")]);
    }
}

/// T2: a blocking exchange ends a region, and regions come in the order of their results.
#[test]
fn batch_exchanges_block_and_part_regions() {
    let mut program = Program::new();
    let a = program.source("a", BOUNDED);
    let b = program.step("b", KEYED, [keyed(a)]);
    let c = program.step("c", KEYED, [keyed(b)]);
    program.sink("d", c);
    let job = program.plan(|_| {});
    assert_eq!(job.regions, [[VertexId(0)], [VertexId(1)], [VertexId(2)]]);
    let pipelined = program.plan(|settings| {
        settings.batch_shuffle_mode = BatchShuffleMode::AllExchangesPipelined;
    });
    assert_eq!(pipelined.regions, [[VertexId(0), VertexId(1), VertexId(2)]]);
}

#[test]
fn records_that_cannot_become_bytes_are_pipelined_in_batch_mode() {
    let mut program = Program::new();
    let a = program.source("a", BOUNDED);
    let edge = InputEdge { bytes: false, ..by(Partitioner::Rebalance, a) };
    program.step("b", SINK, [edge]);
    let job = program.plan(|_| {});
    assert_eq!(edges(&job), ["a => b: rebalance, pipelined"]);
    assert_eq!(job.edges[0].reason, "its records cannot become bytes");
}

/// M2: in mixed mode every exchange is pipelined and there is one region.
#[test]
fn mixed_exchanges_are_all_pipelined() {
    let mut program = Program::new();
    let a = program.source("a", UNBOUNDED);
    let b = program.step("b", KEYED, [keyed(a)]);
    let c = program.step("c", KEYED, [keyed(b)]);
    program.sink("d", c);
    let job = program.plan(mixed);
    assert!(job.edges.iter().all(|edge| edge.exchange == Exchange::Pipelined));
    assert_eq!(job.regions, [[VertexId(0), VertexId(1), VertexId(2)]]);
}

/// E2, D6: the chain's output blocks, its input stays pipelined.
#[test]
fn what_is_emitted_at_the_end_blocks_and_its_upstream_does_not() {
    let mut program = Program::new();
    let a = program.source("a", BOUNDED);
    let b = program.step("b", AT_END, [keyed(a)]);
    let c = program.step("c", PLAIN, [forward(b)]);
    let d = program.step("d", KEYED, [keyed(c)]);
    program.sink("e", d);
    for mode in [streaming, mixed] {
        let job = program.plan(mode);
        assert_eq!(
            edges(&job),
            ["a => b -> c: key group, pipelined", "b -> c => d -> e: key group, blocking"]
        );
        assert_eq!(job.regions, [vec![VertexId(0), VertexId(1)], vec![VertexId(2)]]);
    }
}

/// E3: with chaining off only the operator's own output blocks.
#[test]
fn without_chaining_only_the_operators_own_output_blocks() {
    let mut program = Program::new();
    let a = program.source("a", BOUNDED);
    let b = program.step("b", AT_END, [keyed(a)]);
    let c = program.step("c", PLAIN, [forward(b)]);
    program.sink("d", c);
    let job = program.plan(|settings| {
        streaming(settings);
        settings.chaining = false;
    });
    assert_eq!(
        edges(&job),
        ["a => b: key group, pipelined", "b => c: forward, blocking", "c => d: forward, pipelined"]
    );
}

/// E3: what stands before the operator in its chain is not held up.
#[test]
fn outputs_before_the_operator_in_its_chain_stay_pipelined() {
    let at_end = OperatorAttributes { output_only_at_end: true, ..PLAIN };
    let mut program = Program::new();
    let a = program.source("a", BOUNDED);
    let b = program.step("b", at_end, [forward(a)]);
    program.step("c", SINK, [by(Partitioner::Rebalance, b)]);
    program.step("d", SINK, [by(Partitioner::Rebalance, a)]);
    let job = program.plan(streaming);
    assert_eq!(
        edges(&job),
        ["a -> b => c: rebalance, blocking", "a -> b => d: rebalance, pipelined"]
    );
}

/// E5: a consumer that must wait does not hold up a source that its producer needs.
#[test]
fn a_second_path_past_what_is_emitted_at_the_end_blocks_too() {
    let mut program = Program::new();
    let a = program.source("a", BOUNDED);
    let b = program.step("b", AT_END, [keyed(a)]);
    let live = program.source("live", UNBOUNDED);
    let c = program.steps("c", KEYED, vec![vec![keyed(b)], vec![keyed(a), keyed(live)]]);
    program.sink("d", c);
    let job = program.plan(streaming);
    assert_eq!(
        edges(&job),
        [
            "a => b: key group, pipelined",
            "b => c -> d: key group, blocking",
            "a => c -> d: key group, blocking",
            "live => c -> d: key group, pipelined",
        ]
    );
    assert_eq!(job.edges[2].reason, "its consumer also waits for a blocking result");
    assert_eq!(job.regions, [[VertexId(0), VertexId(1)], [VertexId(2), VertexId(3)]]);
}

#[test]
fn only_what_sinks_need_runs_and_a_sink_named_twice_runs_once() {
    let mut program = line([BOUNDED, PLAIN, SINK]);
    let unused = program.source("unused", UNBOUNDED);
    program.step("unused too", PLAIN, [forward(unused)]);
    program.sinks.extend(program.sinks.clone());
    assert_eq!(names(&program.plan(|_| {})), ["a -> b -> c"]);
}

#[test]
fn helpers_find_what_belongs_together() {
    let mut program = line([BOUNDED, PLAIN, SINK]);
    program.parallelism(NodeId(2), 5);
    let job = program.plan(|_| {});
    assert_eq!(job.greatest_parallelism(), 5);
    assert_eq!(job.vertex_of(NodeId(2)).unwrap().id, VertexId(1));
    let outputs: Vec<EdgeId> = job.outputs_of(VertexId(0)).map(|edge| edge.id).collect();
    assert_eq!(outputs, [EdgeId(0)]);
    assert_eq!(job.region_of(VertexId(1)), Some(1));
}

#[test]
fn settings_follow_the_options() {
    use element::{ByteSize, Configuration};
    let mut configuration = Configuration::new();
    configuration.set_text("execution.sorted-inputs.memory", "1mb").unwrap();
    configuration.set_text("pipeline.operator-chaining.enabled", "false").unwrap();
    let settings = PlanSettings::from_configuration(&configuration, 6, &|_| false).unwrap();
    assert_eq!(settings.default_parallelism, 6);
    assert_eq!(settings.sorted_inputs_memory, ByteSize::mib(1));
    assert!(!settings.chaining);
}
