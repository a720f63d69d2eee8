//! Programs for tests: payloads that are nothing but attributes and labels, and a short hand to
//! write steps down.
//!
//! Used by all modules beside it. Data sets are complete if the test says so.

use std::collections::BTreeSet;

use element::{ByteSize, DataSetId, NodeId};
use slackwater_graph::{
    Describe, InputEdge, JobGraph, JobVertex, OperatorAttributes, OutputTag, Partitioner,
    PlanError, PlanSettings, Transformation, TransformationGraph, plan,
};

/// A payload of a node: what it says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Stub(pub(crate) OperatorAttributes);

impl Describe for Stub {
    fn attributes(&self) -> OperatorAttributes {
        self.0
    }
}

/// A payload of an edge: a label.
pub(crate) type Label = String;

/// A program under test.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) graph: TransformationGraph<Stub, Label>,
    pub(crate) sinks: Vec<NodeId>,
    pub(crate) complete: BTreeSet<DataSetId>,
}

pub(crate) const BOUNDED: OperatorAttributes = OperatorAttributes::bounded_source();
pub(crate) const UNBOUNDED: OperatorAttributes = OperatorAttributes::unbounded_source();
pub(crate) const PLAIN: OperatorAttributes = OperatorAttributes::operator();
pub(crate) const KEYED: OperatorAttributes = OperatorAttributes::keyed();
pub(crate) const SINK: OperatorAttributes = OperatorAttributes::sink();

/// An edge that goes forward from a main output.
pub(crate) fn forward(from: NodeId) -> InputEdge<Label> {
    InputEdge::forward(from, format!("from {from}"))
}

/// An edge by key from a main output.
pub(crate) fn keyed(from: NodeId) -> InputEdge<Label> {
    InputEdge::keyed(from, format!("from {from} by key"))
}

/// An edge that goes forward from a side output.
pub(crate) fn side(from: NodeId, tag: &str) -> InputEdge<Label> {
    InputEdge { output: OutputTag::Side(tag.to_owned()), ..forward(from) }
}

/// An edge by another partitioner.
pub(crate) fn by(partitioner: Partitioner, from: NodeId) -> InputEdge<Label> {
    InputEdge { partitioner, ..forward(from) }
}

impl Program {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a step with one edge an input.
    pub(crate) fn step<const I: usize>(
        &mut self,
        name: &str,
        attributes: OperatorAttributes,
        inputs: [InputEdge<Label>; I],
    ) -> NodeId {
        self.steps(name, attributes, inputs.map(|edge| vec![edge]).into())
    }

    /// Adds a step with any inputs; a sink is run.
    pub(crate) fn steps(
        &mut self,
        name: &str,
        attributes: OperatorAttributes,
        inputs: Vec<Vec<InputEdge<Label>>>,
    ) -> NodeId {
        let id = self.graph.add(Transformation::new(name, inputs, Stub(attributes)));
        if attributes.kind == SINK.kind {
            self.sinks.push(id);
        }
        id
    }

    pub(crate) fn source(&mut self, name: &str, attributes: OperatorAttributes) -> NodeId {
        self.step(name, attributes, [])
    }

    pub(crate) fn sink(&mut self, name: &str, from: NodeId) -> NodeId {
        self.step(name, SINK, [forward(from)])
    }

    pub(crate) fn parallelism(&mut self, node: NodeId, parallelism: u32) {
        self.graph.node_mut(node).expect("the step was added").parallelism = Some(parallelism);
    }

    /// Marks an output as cached.
    pub(crate) fn cache(&mut self, node: NodeId, output: OutputTag, data_set: u128) -> DataSetId {
        let reader = Stub(OperatorAttributes::bounded_source());
        self.graph.mark_cached(node, output, DataSetId(data_set), reader, "writer".to_owned())
    }

    /// Says that a data set is complete.
    pub(crate) fn complete(&mut self, data_set: u128) {
        self.complete.insert(DataSetId(data_set));
    }

    pub(crate) fn try_plan(
        &self,
        change: impl FnOnce(&mut PlanSettings<'_>),
    ) -> Result<JobGraph<Stub, Label>, PlanError> {
        let available = |data_set| self.complete.contains(&data_set);
        let mut settings = PlanSettings {
            default_parallelism: 2,
            sorted_inputs_memory: ByteSize::mib(64),
            available: &available,
            ..PlanSettings::default()
        };
        change(&mut settings);
        plan(&self.graph, &self.sinks, &settings)
    }

    pub(crate) fn plan(&self, change: impl FnOnce(&mut PlanSettings<'_>)) -> JobGraph<Stub, Label> {
        self.try_plan(change).expect("the program is right")
    }
}

/// Names of the vertices of a job.
pub(crate) fn names(job: &JobGraph<Stub, Label>) -> Vec<&str> {
    job.vertices.iter().map(|vertex| vertex.name.as_str()).collect()
}

/// The vertex with this name.
#[track_caller]
pub(crate) fn vertex<'a>(job: &'a JobGraph<Stub, Label>, name: &str) -> &'a JobVertex<Stub, Label> {
    let found = job.vertices.iter().find(|vertex| vertex.name == name);
    found.unwrap_or_else(|| panic!("no vertex `{name}` among {:?}", names(job)))
}

/// Streaming with an interval of 0 during backlog.
pub(crate) fn mixed(settings: &mut PlanSettings<'_>) {
    settings.mode = element::option_table::RuntimeMode::Streaming;
    settings.interval_during_backlog = Some(std::time::Duration::ZERO);
}

/// Streaming with options at their defaults.
pub(crate) fn streaming(settings: &mut PlanSettings<'_>) {
    settings.mode = element::option_table::RuntimeMode::Streaming;
}
