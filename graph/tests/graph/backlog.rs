//! What is put between operators and their inputs, in each mode, and why.
//!
//! One `check` plans a program with an operator called `operator` and compares its treatment, the
//! reason and the memory. Left out on purpose: what sorters do (`runtime`).

use std::time::Duration;

use element::ByteSize;
use element::option_table::{BacklogStrategy, RuntimeMode, StateBackendKind};
use slackwater_graph::InputTreatment::{Auto, BatchSort, Combine, Direct, Internal, Sort};
use slackwater_graph::{
    BacklogEmission, Durability, InputTreatment, OperatorAttributes, PlanSettings, ResolvedMode,
};

use crate::program::*;

const COMBINES: OperatorAttributes = OperatorAttributes { combines: true, ..KEYED };
const SORTS: OperatorAttributes = OperatorAttributes { sorts_internally: true, ..KEYED };
const STATELESS: OperatorAttributes = OperatorAttributes { uses_state_or_timers: false, ..KEYED };
const AT_END: OperatorAttributes = OperatorAttributes { output_only_at_end: true, ..KEYED };

fn one_input(attributes: OperatorAttributes) -> Program {
    let mut program = Program::new();
    let source = program.source("source", BOUNDED);
    let edge = if attributes.keyed { keyed(source) } else { forward(source) };
    let operator = program.step("operator", attributes, [edge]);
    program.sink("sink", operator);
    program
}

fn two_inputs(attributes: OperatorAttributes) -> Program {
    let mut program = Program::new();
    let (a, b) = (program.source("a", BOUNDED), program.source("b", BOUNDED));
    let operator = program.step("operator", attributes, [keyed(a), keyed(b)]);
    program.sink("sink", operator);
    program
}

#[track_caller]
fn check(
    program: &Program,
    change: impl FnOnce(&mut PlanSettings<'_>),
    treatment: InputTreatment,
    reason: &str,
) {
    let job = program.plan(change);
    let nodes = || job.vertices.iter().flat_map(|vertex| &vertex.chain);
    let operator = nodes().find(|node| node.name == "operator").expect("it is needed");
    assert_eq!((operator.treatment, operator.reason.as_str()), (treatment, reason));
    let memory = (treatment != Direct).then_some(ByteSize::mib(64));
    assert_eq!(operator.sort_memory, memory);
}

fn strategy(strategy: BacklogStrategy) -> impl FnOnce(&mut PlanSettings<'_>) {
    move |settings| {
        mixed(settings);
        settings.backlog_strategy = strategy;
    }
}

/// M1: on only in streaming with an interval of 0.
#[test]
fn mixed_mode_is_streaming_with_an_interval_of_0_during_backlog() {
    let program = one_input(KEYED);
    assert_eq!(program.plan(mixed).mode, ResolvedMode::Mixed);
    assert_eq!(program.plan(streaming).mode, ResolvedMode::Streaming);
    let positive = |settings: &mut PlanSettings<'_>| {
        streaming(settings);
        settings.interval_during_backlog = Some(Duration::from_secs(60));
    };
    assert_eq!(program.plan(positive).mode, ResolvedMode::Streaming);
    let batch = |settings: &mut PlanSettings<'_>| {
        mixed(settings);
        settings.mode = RuntimeMode::Batch;
    };
    assert_eq!(program.plan(batch).mode, ResolvedMode::Batch);
}

/// T1: automatic is batch if and only if all sources are bounded.
#[test]
fn automatic_is_batch_if_and_only_if_all_sources_are_bounded() {
    let mut program = two_inputs(KEYED);
    let job = program.plan(|_| {});
    assert_eq!(
        (job.mode, job.mode_reason.as_str()),
        (ResolvedMode::Batch, "all sources are bounded")
    );
    let live = program.source("live", UNBOUNDED);
    assert_eq!(program.plan(|_| {}).mode, ResolvedMode::Batch, "no sink needs it");
    program.sink("other", live);
    let job = program.plan(|_| {});
    assert_eq!(job.mode, ResolvedMode::Streaming);
    assert_eq!(job.mode_reason, "source `live` is unbounded");
}

/// R11: a positive interval or none changes nothing.
#[test]
fn plain_streaming_sorts_nothing() {
    let unset =
        "record by record: option `execution.checkpointing.interval-during-backlog` is not set";
    for program in [one_input(KEYED), one_input(COMBINES), one_input(SORTS), two_inputs(SORTS)] {
        check(&program, streaming, Direct, unset);
    }
    let positive = |settings: &mut PlanSettings<'_>| {
        streaming(settings);
        settings.interval_during_backlog = Some(Duration::from_secs(60));
    };
    let not_0 =
        "record by record: option `execution.checkpointing.interval-during-backlog` is not 0";
    check(&one_input(KEYED), positive, Direct, not_0);
}

/// M3: a keyed operator with one input is sorted in mixed mode.
#[test]
fn a_keyed_operator_with_state_is_sorted_or_decides_at_run_time() {
    let program = one_input(KEYED);
    let sort = "option `execution.backlog.strategy` is sort";
    check(&program, strategy(BacklogStrategy::Sort), Sort, sort);
    let auto = "heap state: record by record, its accesses cost less than a sort";
    check(&program, strategy(BacklogStrategy::Auto), Auto, auto);
    let on_disk = |settings: &mut PlanSettings<'_>| {
        mixed(settings);
        settings.state_backend = StateBackendKind::Disk;
    };
    check(
        &program,
        on_disk,
        Auto,
        "disk state: held and sorted, spilled only if its keys are many",
    );
    let stream = "record by record: option `execution.backlog.strategy` is stream";
    check(&program, strategy(BacklogStrategy::Stream), Direct, stream);
}

/// D9: an aggregate that is to emit every update is not combined in mixed mode; in batch mode it is.
#[test]
fn an_aggregate_that_emits_every_update_is_sorted() {
    let backlog_emission = BacklogEmission::EveryUpdate;
    let program = one_input(OperatorAttributes { backlog_emission, ..COMBINES });
    let sort = "option `execution.backlog.strategy` is sort";
    check(&program, strategy(BacklogStrategy::Sort), Sort, sort);
    let combine = "batch mode, associative: partial results are combined before any sort";
    check(&program, |_| {}, Combine, combine);
}

/// M5: an operator that is not keyed sees records as they arrive.
#[test]
fn an_operator_that_is_not_keyed_is_direct_in_every_mode() {
    let program = one_input(PLAIN);
    check(&program, strategy(BacklogStrategy::Sort), Direct, "not keyed");
    check(&program, streaming, Direct, "not keyed");
    check(&program, |_| {}, Direct, "not keyed");
}

#[test]
fn a_keyed_operator_without_state_and_timers_is_never_sorted() {
    let program = one_input(STATELESS);
    let reason = "keyed, but keeps neither state nor timers";
    check(&program, strategy(BacklogStrategy::Sort), Direct, reason);
    check(&program, |_| {}, Direct, reason);
}

/// Associative aggregates sort nothing that they can combine first.
#[test]
fn an_associative_aggregate_combines() {
    let program = one_input(COMBINES);
    let mixed_reason = "associative: its backlog is combined before any sort";
    check(&program, strategy(BacklogStrategy::Auto), Combine, mixed_reason);
    check(&program, strategy(BacklogStrategy::Sort), Combine, mixed_reason);
    let stream = "record by record: option `execution.backlog.strategy` is stream";
    check(&program, strategy(BacklogStrategy::Stream), Direct, stream);
    let batch = "batch mode, associative: partial results are combined before any sort";
    check(&program, |_| {}, Combine, batch);
}

/// Producers combine wherever their consumer does, if both can; nowhere else.
#[test]
fn producers_combine_where_their_consumer_does() {
    let precombines = OperatorAttributes { producers_combine: true, ..COMBINES };
    let every =
        OperatorAttributes { backlog_emission: BacklogEmission::EveryUpdate, ..precombines };
    let combined = |attributes, change: fn(&mut PlanSettings<'_>)| {
        let job = one_input(attributes).plan(change);
        job.edges.iter().filter(|edge| edge.combined).count()
    };
    let stream = |settings: &mut PlanSettings<'_>| {
        mixed(settings);
        settings.backlog_strategy = BacklogStrategy::Stream;
    };
    assert_eq!((combined(precombines, mixed), combined(precombines, |_| {})), (1, 1));
    assert_eq!((combined(precombines, streaming), combined(precombines, stream)), (0, 0));
    assert_eq!((combined(every, mixed), combined(every, |_| {})), (0, 1));
    assert_eq!((combined(COMBINES, mixed), combined(KEYED, mixed)), (0, 0));
}

/// M6: several inputs are not sorted by the sorter for one.
#[test]
fn several_inputs_without_a_sorter_of_their_own_are_direct() {
    let reason = "several inputs and no sorter of its own";
    check(&two_inputs(KEYED), strategy(BacklogStrategy::Sort), Direct, reason);
}

/// M7, M8: a sorter of its own suppresses the runtime's and gets the memory.
#[test]
fn an_operator_that_sorts_by_itself_gets_the_memory() {
    for program in [one_input(SORTS), two_inputs(SORTS)] {
        check(&program, strategy(BacklogStrategy::Auto), Internal, "sorts its backlog by itself");
        check(&program, |_| {}, Internal, "batch mode, sorts by itself");
    }
}

/// M34: two keyed operators in a row sort each its own input, in vertices of their own.
#[test]
fn two_keyed_operators_in_a_row_are_sorted_each() {
    let mut program = Program::new();
    let source = program.source("source", UNBOUNDED);
    let first = program.step("first", KEYED, [keyed(source)]);
    let second = program.step("second", KEYED, [keyed(first)]);
    program.sink("sink", second);
    let job = program.plan(strategy(BacklogStrategy::Sort));
    assert_eq!(names(&job), ["source", "first", "second -> sink"]);
    assert!(job.vertices[1..].iter().all(|vertex| vertex.chain[0].treatment == Sort));
}

/// M6: a union is one input.
#[test]
fn a_union_is_one_input() {
    let mut program = Program::new();
    let (a, b) = (program.source("a", UNBOUNDED), program.source("b", UNBOUNDED));
    let operator = program.steps("operator", KEYED, vec![vec![keyed(a), keyed(b)]]);
    program.sink("sink", operator);
    let reason = "option `execution.backlog.strategy` is sort";
    check(&program, strategy(BacklogStrategy::Sort), Sort, reason);
}

/// T8, T9: keyed inputs are sorted in batch mode, several merged by key.
#[test]
fn keyed_inputs_are_sorted_in_batch_mode() {
    for program in [one_input(KEYED), two_inputs(KEYED)] {
        check(&program, |_| {}, BatchSort, "batch mode, sorted by key");
    }
}

/// E4: keyed input sorted with batch settings though the mode is streaming.
#[test]
fn an_operator_that_emits_at_the_end_sorts_in_every_mode() {
    let reason = "emits only at the end of its input, sorted by key";
    for program in [one_input(AT_END), two_inputs(AT_END)] {
        check(&program, streaming, BatchSort, reason);
        check(&program, strategy(BacklogStrategy::Stream), BatchSort, reason);
    }
    let combines = OperatorAttributes { combines: true, ..AT_END };
    let reason = "emits only at the end of its input, associative: partial results are combined \
                  before any sort";
    check(&one_input(combines), streaming, Combine, reason);
}

/// E4: what is not keyed passes through.
#[test]
fn an_operator_without_key_that_emits_at_the_end_is_direct() {
    let program = one_input(OperatorAttributes { output_only_at_end: true, ..PLAIN });
    check(&program, streaming, Direct, "not keyed");
}

/// Durable runs hold where the path from the sources to the sorter keeps no state; elsewhere the
/// plan says why not.
#[test]
fn durable_runs_need_a_path_without_state() {
    let mut program = Program::new();
    let source = program.source("source", UNBOUNDED);
    let map = program.step("map", PLAIN, [forward(source)]);
    let first = program.step("first", KEYED, [keyed(map)]);
    let tidy = program.step("tidy", PLAIN, [forward(first)]);
    let second = program.step("second", COMBINES, [keyed(tidy)]);
    let both = program.step("both", SORTS, [keyed(second), keyed(map)]);
    program.sink("sink", both);
    let durable = |settings: &mut PlanSettings<'_>| {
        mixed(settings);
        settings.backlog_durable = true;
    };
    let of = |node: element::NodeId, change: fn(&mut PlanSettings<'_>)| {
        let job = program.plan(change);
        let nodes = job.vertex_of(node).unwrap().chain.iter();
        nodes.filter(|link| link.node == node).map(|link| link.durability.clone()).next().unwrap()
    };
    assert_eq!(of(first, durable), Durability::Kept);
    assert_eq!(of(second, durable), Durability::Refused { stateful: "first".to_owned() });
    assert_eq!(of(both, durable), Durability::Lost, "its sorters are its own");
    assert_eq!(of(map, durable), Durability::Lost, "nothing is sorted");
    assert_eq!(of(first, mixed), Durability::Lost);
    crate::plans::golden("mixed_durable.txt", &program.plan(durable).explain());
}

/// M8: each input of an operator that sorts by itself has the memory of a sorted input.
#[test]
fn the_sort_memory_of_a_vertex_counts_its_inputs() {
    let job = two_inputs(SORTS).plan(mixed);
    assert_eq!(vertex(&job, "operator -> sink").sort_memory(), ByteSize::mib(128));
    assert_eq!(vertex(&job, "a").sort_memory(), ByteSize(0));
}
