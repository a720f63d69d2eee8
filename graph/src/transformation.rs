//! The program as it was written: transformations, appended one by one.
//!
//! Written by the fluent api; read by `translate`. Inputs name earlier nodes, so the order of ids
//! is a topological order and a cycle cannot be written.
//!
//! ```text
//!  source            inputs: []
//!  map               inputs: [[edge]]
//!  map of a union    inputs: [[edge, edge]]       one input, fed by several streams
//!  connect, join     inputs: [[edge], [edge]]     two inputs
//!  side output       InputEdge { output: Side(name), .. }
//! ```

use element::{DataSetId, NodeId};

use crate::{CacheMark, OutputTag, Partitioner};

/// An edge, as its consumer declares it.
#[derive(Clone, Debug)]
pub struct InputEdge<E> {
    /// The producer.
    pub from: NodeId,
    /// Which of its outputs.
    pub output: OutputTag,
    /// Which subtask each record goes to.
    pub partitioner: Partitioner,
    /// What the runtime needs to build the edge.
    pub payload: E,
    /// Whether records can become bytes; otherwise the edge can only be pipelined.
    pub bytes: bool,
}

impl<E> InputEdge<E> {
    /// A forward edge from a main output, whose records can become bytes.
    pub fn forward(from: NodeId, payload: E) -> Self {
        Self {
            from,
            output: OutputTag::Main,
            partitioner: Partitioner::Forward,
            payload,
            bytes: true,
        }
    }

    /// An edge by key from a main output, whose records can become bytes.
    pub fn keyed(from: NodeId, payload: E) -> Self {
        Self { partitioner: Partitioner::KeyGroup, ..Self::forward(from, payload) }
    }
}

/// One step of a program: a source, an operator or a sink.
#[derive(Clone, Debug)]
pub struct Transformation<N, E> {
    /// Its name in plans and reports.
    pub name: String,
    /// The id under which its state is found again; derived from its place if not given.
    pub uid: Option<String>,
    /// Its subtasks; the job's default if not given.
    pub parallelism: Option<u32>,
    /// Its key groups; the job's default if not given.
    pub max_parallelism: Option<u32>,
    /// One list for each input; a list of several edges is a union.
    pub inputs: Vec<Vec<InputEdge<E>>>,
    /// What the runtime makes subtasks of.
    pub payload: N,
}

impl<N, E> Transformation<N, E> {
    /// A step with a name and inputs, everything else left to the job.
    pub fn new(name: impl Into<String>, inputs: Vec<Vec<InputEdge<E>>>, payload: N) -> Self {
        Self {
            name: name.into(),
            uid: None,
            parallelism: None,
            max_parallelism: None,
            inputs,
            payload,
        }
    }
}

/// All steps of a program, in the order in which they were written.
#[derive(Clone, Debug)]
pub struct TransformationGraph<N, E> {
    nodes: Vec<Transformation<N, E>>,
    marks: Vec<CacheMark<N, E>>,
}

impl<N, E> Default for TransformationGraph<N, E> {
    fn default() -> Self {
        Self { nodes: Vec::new(), marks: Vec::new() }
    }
}

impl<N, E> TransformationGraph<N, E> {
    /// A program without steps.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a step; ids count up from 0.
    ///
    /// # Panics
    ///
    /// If there are 2^32 steps already.
    pub fn add(&mut self, transformation: Transformation<N, E>) -> NodeId {
        let id = u32::try_from(self.nodes.len()).expect("a program has less than 2^32 steps");
        self.nodes.push(transformation);
        NodeId(id)
    }

    /// A step.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Transformation<N, E>> {
        self.nodes.get(id.0 as usize)
    }

    /// A step, to set its name, uid or parallelism after it was added.
    pub fn node_mut(&mut self, id: NodeId) -> Option<&mut Transformation<N, E>> {
        self.nodes.get_mut(id.0 as usize)
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All steps, by id.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Transformation<N, E>)> {
        (0..).map(NodeId).zip(&self.nodes)
    }

    /// Wishes an output to be kept, and returns the data set that keeps it: the one given, or the
    /// one of an earlier wish for the same output. All consumers of the output read the data set
    /// once it is complete, also those that were added before. Runs nothing (A1).
    ///
    /// Source: FLIP-205, "cache".
    pub fn mark_cached(
        &mut self,
        node: NodeId,
        output: OutputTag,
        data_set: DataSetId,
        reader: N,
        writer: E,
    ) -> DataSetId {
        if let Some(mark) = self.mark_of(node, &output) {
            return mark.data_set;
        }
        self.marks.push(CacheMark { node, output, data_set, reader, writer });
        data_set
    }

    /// The wish to keep an output, if there is one.
    #[must_use]
    pub fn mark_of(&self, node: NodeId, output: &OutputTag) -> Option<&CacheMark<N, E>> {
        self.marks.iter().find(|mark| mark.node == node && mark.output == *output)
    }

    /// All wishes to keep an output, in the order in which they were made.
    #[must_use]
    pub fn marks(&self) -> &[CacheMark<N, E>] {
        &self.marks
    }
}
