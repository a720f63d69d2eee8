//! What planning costs, in counts: each step is asked once and cloned once, whatever the depth.
//!
//! Payloads count; times are left to the bench.

use std::cell::Cell;
use std::rc::Rc;

use element::{DataSetId, NodeId};
use slackwater_graph::{
    Describe, InputEdge, OperatorAttributes, OutputTag, PlanSettings, Transformation,
    TransformationGraph, plan,
};

use crate::program::{BOUNDED, PLAIN, SINK, mixed};

#[derive(Default)]
struct Counts {
    asked: Cell<usize>,
    cloned: Cell<usize>,
}

struct Counted(OperatorAttributes, Rc<Counts>);

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.1.cloned.set(self.1.cloned.get() + 1);
        Self(self.0, Rc::clone(&self.1))
    }
}

impl Describe for Counted {
    fn attributes(&self) -> OperatorAttributes {
        self.1.asked.set(self.1.asked.get() + 1);
        self.0
    }
}

/// A line of `length` steps between a source and a sink.
fn line(length: usize, counts: &Rc<Counts>) -> (TransformationGraph<Counted, ()>, NodeId) {
    let mut graph = TransformationGraph::new();
    let payload = |attributes| Counted(attributes, Rc::clone(counts));
    let mut last = graph.add(Transformation::new("source", vec![], payload(BOUNDED)));
    for _ in 0..length {
        let inputs = vec![vec![InputEdge::forward(last, ())]];
        last = graph.add(Transformation::new("step", inputs, payload(PLAIN)));
    }
    let inputs = vec![vec![InputEdge::forward(last, ())]];
    let sink = graph.add(Transformation::new("sink", inputs, payload(SINK)));
    (graph, sink)
}

#[test]
fn each_step_is_asked_once_and_cloned_once() {
    let counts = Rc::new(Counts::default());
    let (graph, sink) = line(98, &counts);
    let job = plan(&graph, &[sink, sink], &PlanSettings::default()).unwrap();
    assert_eq!((counts.asked.get(), counts.cloned.get()), (100, 100));
    assert_eq!(job.vertices.len(), 1);
}

#[test]
fn what_a_complete_cache_cuts_is_never_cloned() {
    let counts = Rc::new(Counts::default());
    let (mut graph, sink) = line(98, &counts);
    let reader = Counted(BOUNDED, Rc::clone(&counts));
    graph.mark_cached(NodeId(98), OutputTag::Main, DataSetId(1), reader, ());
    let settings = PlanSettings { available: &|_| true, ..PlanSettings::default() };
    let job = plan(&graph, &[sink], &settings).unwrap();
    assert_eq!(job.vertices[0].name, "cached step -> sink");
    assert_eq!(counts.cloned.get(), 2);
}

#[test]
fn the_depth_of_a_program_is_not_bounded_by_the_stack() {
    let (graph, sink) = line(30_000, &Rc::default());
    let mut settings = PlanSettings::default();
    assert_eq!(plan(&graph, &[sink], &settings).unwrap().vertices[0].chain.len(), 30_002);
    settings.chaining = false;
    mixed(&mut settings);
    assert_eq!(plan(&graph, &[sink], &settings).unwrap().regions[0].len(), 30_002);
}
