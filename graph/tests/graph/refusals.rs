//! Programs that cannot be planned: each refusal names the step, and the option if there is one.
//!
//! One `check` plans a program and compares the message. Refused caches are in `caches`.

use element::NodeId;
use element::option_table::RuntimeMode;
use slackwater_graph::{BatchState, OperatorAttributes, Partitioner, PlanError, PlanSettings};

use crate::program::*;

#[track_caller]
fn check(program: &Program, change: impl FnOnce(&mut PlanSettings<'_>), message: &str) {
    let error = program.try_plan(change).expect_err("the program must be refused");
    assert_eq!(error.to_string(), message);
}

fn line() -> (Program, NodeId, NodeId) {
    let mut program = Program::new();
    let source = program.source("numbers", BOUNDED);
    let map = program.step("double", PLAIN, [forward(source)]);
    program.sink("print", map);
    (program, source, map)
}

#[test]
fn a_job_without_a_sink_is_refused() {
    let mut program = Program::new();
    program.source("numbers", BOUNDED);
    check(&program, |_| {}, "the job has no sink, so nothing would run");
}

#[test]
fn a_sink_that_is_not_there_is_refused() {
    let (mut program, ..) = line();
    program.sinks.push(NodeId(9));
    check(&program, |_| {}, "the program has no node 9");
}

#[test]
fn parallelism_0_is_refused_by_name() {
    let (mut program, _, map) = line();
    program.parallelism(map, 0);
    check(&program, |_| {}, "parallelism 0 of `double` (node 1) is not within 1 to 32768");
}

#[test]
fn a_default_parallelism_of_0_is_refused_by_name() {
    let (program, ..) = line();
    check(
        &program,
        |settings| settings.default_parallelism = 0,
        "parallelism 0 of `numbers` (node 0) is not within 1 to 32768",
    );
}

#[test]
fn parallelism_above_max_parallelism_is_refused_by_name() {
    let (mut program, _, map) = line();
    program.graph.node_mut(map).unwrap().max_parallelism = Some(4);
    program.parallelism(map, 5);
    check(&program, |_| {}, "parallelism 5 of `double` (node 1) is not within 1 to 4");
}

#[test]
fn a_max_parallelism_out_of_range_is_refused_by_name() {
    for max in [0, 32_769] {
        let (mut program, _, map) = line();
        program.graph.node_mut(map).unwrap().max_parallelism = Some(max);
        let message =
            format!("max parallelism {max} of `double` (node 1) is not within 1 to 32768");
        check(&program, |_| {}, &message);
    }
}

#[test]
fn equal_uids_are_refused_with_both_names() {
    let (mut program, source, map) = line();
    for node in [source, map] {
        program.graph.node_mut(node).unwrap().uid = Some("same".to_owned());
    }
    check(&program, |_| {}, "uid `same` belongs to `numbers` (node 0) and to `double` (node 1)");
}

#[test]
fn equal_uids_in_parts_that_do_not_run_together_are_allowed() {
    let (mut program, source, _) = line();
    program.graph.node_mut(source).unwrap().uid = Some("same".to_owned());
    let other = program.source("other", BOUNDED);
    program.graph.node_mut(other).unwrap().uid = Some("same".to_owned());
    assert!(program.try_plan(|_| {}).is_ok());
}

#[test]
fn a_union_of_nothing_is_refused_by_name() {
    let mut program = Program::new();
    let source = program.source("numbers", BOUNDED);
    let both = program.steps("both", PLAIN, vec![vec![forward(source)], vec![]]);
    program.sink("print", both);
    check(&program, |_| {}, "input 1 of `both` (node 1) is a union of nothing");
}

#[test]
fn an_operator_without_input_and_a_source_with_one_are_refused_by_name() {
    let mut program = Program::new();
    let map = program.step("double", PLAIN, []);
    program.sink("print", map);
    check(&program, |_| {}, "`double` (node 0) has no input and is not a source");

    let (mut program, source, _) = line();
    let odd = program.step("odd", BOUNDED, [forward(source)]);
    program.sink("print", odd);
    check(&program, |_| {}, "source `odd` (node 3) has an input");
}

#[test]
fn reading_a_sink_or_a_later_step_is_refused_by_name() {
    let (mut program, ..) = line();
    program.step("more", SINK, [forward(NodeId(2))]);
    check(&program, |_| {}, "`more` (node 3) reads sink `print`, which has no output");

    let mut program = Program::new();
    program.step("print", SINK, [forward(NodeId(0))]);
    check(&program, |_| {}, "`print` (node 0) reads node 0, which does not come before it");
}

#[test]
fn a_demanded_forward_between_unlike_parallelisms_is_refused_with_both_names() {
    let mut program = Program::new();
    let source = program.source("numbers", BOUNDED);
    let map = program.step("double", PLAIN, [by(Partitioner::ForwardStrict, source)]);
    program.parallelism(map, 3);
    program.sink("print", map);
    check(
        &program,
        |_| {},
        "forward exchange from `numbers` (parallelism 2) to `double` (parallelism 3): give both \
         the same parallelism, or use rescale or rebalance",
    );
}

/// T1: unbounded + BATCH is refused by name.
#[test]
fn an_unbounded_source_in_batch_mode_is_refused_by_name() {
    let mut program = Program::new();
    let source = program.source("live", UNBOUNDED);
    program.sink("print", source);
    check(
        &program,
        |settings| settings.mode = RuntimeMode::Batch,
        "source `live` (node 0) is unbounded, but option `execution.runtime-mode` is batch",
    );
}

/// T11: the batch backend without sorted inputs is refused by name.
#[test]
fn one_key_state_without_sorted_inputs_is_refused_by_name() {
    for attributes in [KEYED, OperatorAttributes { combines: true, ..KEYED }] {
        let mut program = Program::new();
        let source = program.source("numbers", BOUNDED);
        let sum = program.step("sum", attributes, [keyed(source)]);
        program.sink("print", sum);
        check(
            &program,
            |settings| settings.sorted_inputs = false,
            "`sum` (node 1) keeps keyed state in batch mode one key at a time, which needs sorted \
             inputs, but option `execution.sorted-inputs.enabled` is false",
        );
        let elsewhere = program.try_plan(|settings| {
            settings.sorted_inputs = false;
            settings.batch_state = BatchState::Configured;
        });
        assert!(elsewhere.is_ok());
        let in_streaming = program.try_plan(|settings| {
            settings.sorted_inputs = false;
            streaming(settings);
        });
        assert!(in_streaming.is_ok());
    }
}

#[test]
fn a_refusal_can_be_matched_by_its_parts() {
    let (mut program, _, map) = line();
    program.parallelism(map, 0);
    let error = program.try_plan(|_| {}).unwrap_err();
    assert!(matches!(error, PlanError::Parallelism { node, parallelism: 0, .. } if node == map));
}
