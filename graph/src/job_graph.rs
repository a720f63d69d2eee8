//! The plan of a job: vertices and edges that can be scheduled.
//!
//! Made by [`plan`](crate::plan()); read by the scheduler, by tasks that wire their chain, and by
//! people through [`JobGraph::explain`]. The same program and settings give the same plan, to the
//! byte. Left out on purpose: slots, attempts and places.

use element::{ByteSize, DataSetId, EdgeId, NodeId, VertexId};

use crate::{CachePlan, Durability, OperatorAttributes, OutputTag, Partitioner};

/// How a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResolvedMode {
    /// Record by record.
    Streaming,
    /// As streaming, but without checkpoints in backlog, so that backlogs may be sorted (M1).
    Mixed,
    /// Stage by stage over bounded input.
    Batch,
}

/// How records get from one vertex to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// Read while it is written.
    Pipelined,
    /// Read after it is finished.
    Blocking,
}

/// What is put between an operator and its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputTreatment {
    /// Nothing: records as they come.
    Direct,
    /// A sorter for each backlog phase (FLIP-327).
    Sort,
    /// A combining table that spills sorted partial aggregates.
    Combine,
    /// Direct or a sorter for each backlog phase, as keys, store and budget turn out.
    Auto,
    /// The operator sorts by itself and gets the memory (M8).
    Internal,
    /// A sorter over the whole input; several inputs are merged by key (FLIP-140).
    BatchSort,
}

/// A job that can be scheduled.
#[derive(Clone, Debug)]
pub struct JobGraph<N, E> {
    /// How it runs.
    pub mode: ResolvedMode,
    /// Why it runs so, as a clause.
    pub mode_reason: String,
    /// Chains of operators, in topological order; the id is the index.
    pub vertices: Vec<JobVertex<N, E>>,
    /// What connects them, by consumer, input and place in the union; the id is the index.
    pub edges: Vec<JobEdge<E>>,
    /// Vertices connected by pipelined edges, scheduled together; a region comes after those whose
    /// blocking results it reads. Within a region the vertices are in topological order.
    pub regions: Vec<Vec<VertexId>>,
    /// What becomes of the cached streams that the job needs, in the order of their marks.
    pub caches: Vec<CachePlan>,
}

/// One chain of operators, run by as many subtasks as its parallelism.
#[derive(Clone, Debug)]
pub struct JobVertex<N, E> {
    /// Its index in [`JobGraph::vertices`].
    pub id: VertexId,
    /// The names of its operators, as a tree.
    pub name: String,
    /// Its subtasks.
    pub parallelism: u32,
    /// Its key groups.
    pub max_parallelism: u32,
    /// Its operators in topological order; the first is the head and alone reads edges.
    pub chain: Vec<ChainNode<N>>,
    /// What connects its operators, a tree from the head, by consumer.
    pub links: Vec<ChainLink<E>>,
    /// Outputs that its subtasks write to data sets.
    pub persistent: Vec<PersistentOutput<E>>,
    /// The edges of each input of the head; several edges at one input are a union.
    pub inputs: Vec<Vec<EdgeId>>,
}

/// An operator within a vertex.
#[derive(Clone, Debug)]
pub struct ChainNode<N> {
    /// Its transformation; for the reader of a data set, an id past those of the program.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Under which its state is found again: as given, or derived from its name and its place.
    pub uid: String,
    /// What the runtime makes it of.
    pub payload: N,
    /// What it said of itself.
    pub attributes: OperatorAttributes,
    /// What is put between it and its input.
    pub treatment: InputTreatment,
    /// Why, as a clause.
    pub reason: String,
    /// Memory of each of its sorted inputs, a subtask; none if nothing is sorted or combined.
    pub sort_memory: Option<ByteSize>,
    /// Whether its sorted runs survive a crash.
    pub durability: Durability,
}

/// A connection within a chain.
#[derive(Clone, Debug)]
pub struct ChainLink<E> {
    /// The producer.
    pub from: NodeId,
    /// Which of its outputs.
    pub output: OutputTag,
    /// The consumer, by its only input.
    pub to: NodeId,
    /// What the runtime needs to build it.
    pub payload: E,
}

/// An output that is kept: written by the producer's own subtasks, each its part (A14). Written to
/// its end even if all consumers stop early (decision D18).
#[derive(Clone, Debug)]
pub struct PersistentOutput<E> {
    /// The operator, any of the chain.
    pub node: NodeId,
    /// Which of its outputs.
    pub output: OutputTag,
    /// Where it is kept.
    pub data_set: DataSetId,
    /// What writes it.
    pub payload: E,
}

/// A connection between two vertices.
#[derive(Clone, Debug)]
pub struct JobEdge<E> {
    /// Its index in [`JobGraph::edges`].
    pub id: EdgeId,
    /// Who writes it.
    pub from: EdgeSource,
    /// Who reads it.
    pub to: EdgeTarget,
    /// Which subtask each record goes to.
    pub partitioner: Partitioner,
    /// How records get there.
    pub exchange: Exchange,
    /// Why, as a clause.
    pub reason: &'static str,
    /// Whether a producer subtask reaches only some consumer subtasks.
    pub pointwise: bool,
    /// Whether producers combine what they write: the consumer combines, and both ends know how.
    pub combined: bool,
    /// What the runtime needs to build it.
    pub payload: E,
}

/// Who writes an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeSource {
    /// The vertex.
    pub vertex: VertexId,
    /// The operator in it, any of the chain.
    pub node: NodeId,
    /// Which of its outputs.
    pub output: OutputTag,
}

/// Who reads an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeTarget {
    /// The vertex.
    pub vertex: VertexId,
    /// Its head.
    pub node: NodeId,
    /// Which input of the head, from 0.
    pub input: usize,
}

impl<N, E> JobVertex<N, E> {
    /// Memory that the sorted inputs of one subtask ask for together.
    #[must_use]
    pub fn sort_memory(&self) -> ByteSize {
        // Only the head is sorted; each of its inputs has a sorter of its own.
        let head = self.chain.first().and_then(|head| head.sort_memory).unwrap_or(ByteSize(0));
        ByteSize(head.0.saturating_mul(self.inputs.len() as u64))
    }
}

impl<N, E> JobGraph<N, E> {
    /// A vertex.
    #[must_use]
    pub fn vertex(&self, id: VertexId) -> Option<&JobVertex<N, E>> {
        self.vertices.get(id.0 as usize)
    }

    /// An edge.
    #[must_use]
    pub fn edge(&self, id: EdgeId) -> Option<&JobEdge<E>> {
        self.edges.get(id.0 as usize)
    }

    /// The vertex that runs an operator. Costs a walk over all operators.
    #[must_use]
    pub fn vertex_of(&self, node: NodeId) -> Option<&JobVertex<N, E>> {
        self.vertices.iter().find(|vertex| vertex.chain.iter().any(|link| link.node == node))
    }

    /// The edges that a vertex writes, by id. Costs a walk over all edges.
    pub fn outputs_of(&self, vertex: VertexId) -> impl Iterator<Item = &JobEdge<E>> {
        self.edges.iter().filter(move |edge| edge.from.vertex == vertex)
    }

    /// The place of a vertex's region in [`JobGraph::regions`]. Costs a walk over all vertices.
    #[must_use]
    pub fn region_of(&self, vertex: VertexId) -> Option<usize> {
        self.regions.iter().position(|region| region.contains(&vertex))
    }

    /// The greatest parallelism of a vertex: the slots that a job needs when they are shared.
    #[must_use]
    pub fn greatest_parallelism(&self) -> u32 {
        self.vertices.iter().map(|vertex| vertex.parallelism).max().unwrap_or(0)
    }
}
