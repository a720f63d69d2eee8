//! Factories: how typed operators and edges are made from an untyped plan.
//!
//! The api puts a [`NodePayload`] behind each transformation and an [`EdgePayload`] behind each edge;
//! both know their types, the plan does not. When a task is wired, each factory is called once and
//! typed links pass between them inside a [`Wire`]. Nothing here is called per record.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use element::SubtaskIndex;
use graph::{Describe, OperatorAttributes, OutputTag, Partitioner};
use shuffle::{PartitionDescriptor, ShuffleService};
use state::StateDescriptor;

use crate::context::{OperatorContext, TaskContext};
use crate::error::TaskError;
use crate::network::{ChannelKey, Network};
use crate::operator::side_output::{SideConnector, SideOutputs};
use crate::output::{Discard, Output};
use crate::source::ErasedSource;
use crate::task::Driver;

/// A typed [`Output`], its type erased between factories.
pub struct Wire(Box<dyn Any + Send>);

impl Wire {
    /// Erases an output.
    #[must_use]
    pub fn new<T: Send + 'static>(output: Box<dyn Output<T>>) -> Self {
        Self(Box::new(output))
    }

    /// The output again.
    ///
    /// # Panics
    ///
    /// If it has another type: the api makes both ends of each edge for one type.
    #[must_use]
    pub fn open<T: Send + 'static>(self) -> Box<dyn Output<T>> {
        *self.0.downcast().expect("both ends of an edge are made for one type")
    }

    /// Erases anything else that a head passes to its driver.
    #[must_use]
    pub fn of<X: Send + 'static>(head: X) -> Self {
        Self(Box::new(head))
    }

    /// What [`Wire::of`] erased.
    ///
    /// # Panics
    ///
    /// If it has another type: one factory makes both.
    #[must_use]
    pub fn take<X: Send + 'static>(self) -> X {
        *self.0.downcast().expect("one factory makes a head and its driver")
    }
}

/// The outputs of an operator that somebody listens to.
#[derive(Default)]
pub struct Outputs {
    /// The main output.
    pub main: Option<Wire>,
    /// Side outputs.
    pub side: SideOutputs,
}

impl Outputs {
    /// The main output; what nobody listens to is dropped.
    pub fn main<T: Send + 'static>(&mut self) -> Box<dyn Output<T>> {
        self.main.take().map_or_else(|| Box::new(Discard) as Box<dyn Output<T>>, Wire::open)
    }
}

/// Gates of a head's inputs, their types erased: each an `InputGate` of the edge's type.
pub type Gates = Vec<Box<dyn Any + Send>>;

/// Makes the subtasks of one transformation. Shared by all of them.
pub trait NodeFactory: Send + Sync {
    /// What planning needs to know.
    fn attributes(&self) -> OperatorAttributes;

    /// Makes the operator of one subtask, joined to what follows it.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if its state cannot be opened, or the user's factory fails.
    fn link(&self, context: &Arc<OperatorContext>, outputs: Outputs) -> Result<Wire, TaskError>;

    /// Makes the driver of a chain that this operator is the head of.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if a source cannot be opened.
    fn driver(
        &self,
        context: &Arc<OperatorContext>,
        head: Wire,
        gates: Gates,
    ) -> Result<Box<dyn Driver>, TaskError>;

    /// The keyed states that the operator binds when it opens, found without opening a task: on an
    /// empty backend in memory. Called by the JobMaster before it restores. Empty if the operator has
    /// no keyed state, or binds it only later.
    ///
    /// # Errors
    ///
    /// What the user's function says; the task that opens it will say the same.
    fn states(&self) -> anyhow::Result<Vec<StateDescriptor>> {
        Ok(Vec::new())
    }

    /// The source, if it is one: its enumerator runs beside the JobMaster.
    fn source(&self) -> Option<Arc<dyn ErasedSource>> {
        None
    }
}

/// Gives the records of one output to several consumers. Made where the api knows that they clone.
pub trait TeeFactory: Send + Sync {
    /// One output that feeds all of `wires`.
    fn tee(&self, wires: Vec<Wire>) -> Wire;
}

/// What stands behind a transformation in the plan.
#[derive(Clone)]
pub struct NodePayload {
    /// Makes its subtasks.
    pub factory: Arc<dyn NodeFactory>,
    /// How outputs with several consumers are copied.
    pub tees: BTreeMap<OutputTag, Arc<dyn TeeFactory>>,
    /// How side outputs are connected, by tag: who listens knows the type.
    pub sides: BTreeMap<String, SideConnector>,
}

impl NodePayload {
    /// A payload without tees.
    #[must_use]
    pub fn new(factory: impl NodeFactory + 'static) -> Self {
        Self { factory: Arc::new(factory), tees: BTreeMap::new(), sides: BTreeMap::new() }
    }
}

impl Describe for NodePayload {
    fn attributes(&self) -> OperatorAttributes {
        self.factory.attributes()
    }
}

impl fmt::Debug for NodePayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodePayload({:?})", self.attributes())
    }
}

/// What an edge's factory must know to make the writing end for one producer subtask.
pub struct OutputSpec<'a> {
    /// The producer.
    pub context: &'a Arc<TaskContext>,
    /// Which subtask each record goes to.
    pub partitioner: Partitioner,
    /// Subtasks of the consumer.
    pub consumers: u32,
    /// Key groups of the consumer.
    pub consumer_groups: element::MaxParallelism,
    /// How its channels are reached.
    pub transport: OutputTransport,
    /// The name of the consuming operator, if the producers combine for it.
    pub combines_for: Option<&'a str>,
}

/// The writing end of an edge.
pub enum OutputTransport {
    /// Channels within this process, one for each consumer that this producer reaches.
    Pipelined {
        /// Where the other ends are found.
        network: Arc<Network>,
        /// One key a channel, by consumer.
        channels: Vec<ChannelKey>,
        /// Wakes this task.
        waker: Arc<dyn shuffle::Wake>,
    },
    /// A partition at rest.
    Blocking {
        /// Who writes it.
        service: Arc<dyn ShuffleService>,
        /// Which partition.
        descriptor: PartitionDescriptor,
        /// Whether its end is reported under this data set.
        finished: crate::task::FinishedOutputs,
    },
}

/// One channel of an input, as its reader sees it.
pub enum InputTransport {
    /// A channel within this process.
    Pipelined(ChannelKey),
    /// Subpartitions of a partition at rest.
    Blocking {
        /// Who reads it: the service of the place where it lies.
        service: Arc<dyn ShuffleService>,
        /// Which partition.
        descriptor: PartitionDescriptor,
        /// Which of its subpartitions.
        subpartitions: std::ops::Range<u32>,
    },
}

/// What an edge's factory must know to make the gate of one consumer subtask.
pub struct InputSpec<'a> {
    /// The consumer.
    pub context: &'a Arc<TaskContext>,
    /// Where channels within this process are found.
    pub network: &'a Arc<Network>,
    /// Wakes this task.
    pub waker: Arc<dyn shuffle::Wake>,
    /// The channels, in order of edge and producer.
    pub channels: Vec<InputTransport>,
    /// Whether the producers combine what they write.
    pub combined: bool,
}

/// Makes both ends of an edge. Shared by all subtasks.
pub trait EdgeFactory: Send + Sync {
    /// The writing end for one producer subtask.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if a partition cannot be made.
    fn output(&self, spec: OutputSpec<'_>) -> Result<Wire, TaskError>;

    /// The gate of one input of one consumer subtask, over the channels of all its edges.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if a partition cannot be opened.
    fn gate(&self, spec: InputSpec<'_>) -> Result<Box<dyn Any + Send>, TaskError>;

    /// An output that writes records to a data set and hands them on.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the partition cannot be made.
    fn persistent(&self, spec: OutputSpec<'_>, next: Option<Wire>) -> Result<Wire, TaskError>;
}

/// What stands behind an edge in the plan.
#[derive(Clone)]
pub struct EdgePayload(pub Arc<dyn EdgeFactory>);

impl fmt::Debug for EdgePayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EdgePayload")
    }
}

/// The plan of a job with the runtime's payloads.
pub type ExecutionPlan = graph::JobGraph<NodePayload, EdgePayload>;

/// Which consumers a producer subtask reaches, and under which subpartition number of its own.
#[must_use]
pub fn reached_consumers(
    pointwise: bool,
    producer: SubtaskIndex,
    producers: u32,
    consumers: u32,
) -> std::ops::Range<u32> {
    if pointwise {
        shuffle::pointwise_consumers(producer, producers, consumers)
    } else {
        0..consumers
    }
}
