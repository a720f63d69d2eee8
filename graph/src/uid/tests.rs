//! Derived uids: what they depend on and what not.
//!
//! State is found again by them, so what they are is golden: a change here loses state of users.

use super::*;
use crate::{InputEdge, Transformation};

type Program = TransformationGraph<(), ()>;

fn add(program: &mut Program, name: &str, from: &[NodeId]) -> NodeId {
    let inputs = from.iter().map(|from| vec![InputEdge::forward(*from, ())]).collect();
    program.add(Transformation::new(name, inputs, ()))
}

fn uids(program: &Program) -> Vec<String> {
    let nodes: Vec<NodeId> = program.iter().map(|(id, _)| id).collect();
    let uids = Uids::new(program, &nodes).unwrap();
    nodes.iter().map(|id| uids.of(*id).to_owned()).collect()
}

#[test]
fn a_derived_uid_is_golden() {
    let mut program = Program::new();
    let source = add(&mut program, "My Source", &[]);
    add(&mut program, "sum", &[source]);
    assert_eq!(uids(&program), ["my-source-458f9c1803715e9e", "sum-c144c55703c684bb"]);
}

#[test]
fn an_unrelated_step_before_leaves_uids_alone() {
    let mut program = Program::new();
    let source = add(&mut program, "source", &[]);
    add(&mut program, "sum", &[source]);
    let plain = uids(&program);

    let mut other = Program::new();
    add(&mut other, "unrelated", &[]);
    let source = add(&mut other, "source", &[]);
    add(&mut other, "sum", &[source]);
    assert_eq!(uids(&other)[1..], plain);
}

#[test]
fn a_uid_given_to_a_neighbour_leaves_the_others_alone() {
    let mut program = Program::new();
    let source = add(&mut program, "source", &[]);
    add(&mut program, "sum", &[source]);
    let plain = uids(&program);
    program.node_mut(source).unwrap().uid = Some("mine".to_owned());
    assert_eq!(uids(&program), ["mine", plain[1].as_str()]);
}

#[test]
fn twins_are_told_apart_by_their_order() {
    let mut program = Program::new();
    let source = add(&mut program, "source", &[]);
    add(&mut program, "sum", &[source]);
    add(&mut program, "sum", &[source]);
    let uids = uids(&program);
    assert_eq!(uids[2], format!("{}-2", uids[1]));
}

#[test]
fn inputs_and_a_union_of_them_are_different_places() {
    let mut program = Program::new();
    let (a, b) = (add(&mut program, "a", &[]), add(&mut program, "b", &[]));
    let joined = add(&mut program, "both", &[a, b]);
    let union = vec![vec![InputEdge::forward(a, ()), InputEdge::forward(b, ())]];
    let union = program.add(Transformation::new("both", union, ()));
    let uids = uids(&program);
    assert_ne!(uids[joined.0 as usize], uids[union.0 as usize]);
    assert!(!uids[union.0 as usize].ends_with("-2"));
}

#[test]
fn a_derived_uid_gives_way_to_a_given_one() {
    let mut program = Program::new();
    let source = add(&mut program, "source", &[]);
    let derived = uids(&program).remove(0);
    add(&mut program, "sum", &[source]);
    program.node_mut(NodeId(1)).unwrap().uid = Some(derived.clone());
    assert_eq!(uids(&program), [format!("{derived}-2"), derived]);
}
