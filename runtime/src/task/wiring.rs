//! Operators and partition outputs joined into a chain, for one subtask.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use element::{
    Attempt, Clock, Configuration, DataSetId, EdgeId, Generation, JobId, MaxParallelism,
    MemoryBudget, NodeId, PartitionId, SpillStore, SubtaskIndex, VertexId,
};
use graph::{Durability, Exchange, OutputTag};
use parking_lot::Mutex;
use shuffle::{PartitionDescriptor, PartitionIdentity, ShuffleService};
use sort::CancelFlag;

use super::{FinishedOutputs, Task};
use crate::checkpoint::{RestoredOperator, SnapshotWork};
use crate::cluster::Line;
use crate::context::{Deadline, OperatorContext, OperatorSnapshot, TaskContext, TreatmentPlan};
use crate::error::TaskError;
use crate::events::{TaskEvent, TaskEvents, TaskId, TaskMail};
use crate::factory::{
    ExecutionPlan, InputSpec, InputTransport, OutputSpec, OutputTransport, Outputs, Wire,
    reached_consumers,
};
use crate::metrics::OperatorMetrics;
use crate::network::{ChannelKey, Network};
use crate::source::alignment::AlignmentGate;
use crate::stores::StateStores;

/// Where a finished partition is read: who it is, and the service of the place where it lies.
#[derive(Clone, Debug)]
pub struct PartitionLocation {
    /// Which partition, with its checksum.
    pub descriptor: PartitionDescriptor,
    /// Who reads it.
    pub service: Arc<dyn ShuffleService>,
}

/// All that a TaskManager must know to run one subtask. Tasks are named by their ids in the plan, so
/// another process that has built the same plan could run them.
pub struct TaskDeployment {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub job_name: String,
    /// The attempt.
    pub attempt: Attempt,
    /// The plan.
    pub plan: Arc<ExecutionPlan>,
    /// Which vertex.
    pub vertex: VertexId,
    /// Which subtask.
    pub subtask: SubtaskIndex,
    /// The job's options.
    pub config: Configuration,
    /// Channels of the attempt.
    pub network: Arc<Network>,
    /// Finished partitions of blocking inputs, by edge, in order of their producers.
    pub inputs: BTreeMap<EdgeId, Vec<PartitionLocation>>,
    /// Generations of data sets that this subtask writes.
    pub data_sets: BTreeMap<DataSetId, Generation>,
    /// The only output that is written, if lost parts of a data set are to be made again.
    pub only: Option<DataSetId>,
    /// What its operators had stored, by uid.
    pub restored: BTreeMap<String, RestoredOperator>,
    /// For a source: the backlog flag as it stands.
    pub is_backlog: bool,
    /// Counters of its operators, by place in the chain.
    pub metrics: Vec<Arc<OperatorMetrics>>,
    /// Where checkpoints are written.
    pub checkpoints: Arc<dyn SpillStore>,
    /// The JobMaster's mailbox.
    pub events: Sender<(TaskId, TaskEvent)>,
}

/// What the TaskManager adds to a deployment: the place.
pub struct Place {
    /// The one clock.
    pub clock: Arc<dyn Clock>,
    /// Managed memory.
    pub memory: Arc<MemoryBudget>,
    /// Files of sorters.
    pub spill: Arc<dyn SpillStore>,
    /// The TaskManager's directory.
    pub directory: PathBuf,
    /// Where keyed state is opened.
    pub stores: StateStores,
    /// Partitions at rest.
    pub service: Arc<dyn ShuffleService>,
    /// Where snapshots are written.
    pub snapshots: Sender<SnapshotWork>,
    /// What its tasks speak over.
    pub line: Line,
}

struct Wiring<'a> {
    deployment: &'a TaskDeployment,
    place: &'a Place,
    context: Arc<TaskContext>,
    waker: Arc<dyn shuffle::Wake>,
    snapshots: Arc<Mutex<Vec<OperatorSnapshot>>>,
    finished: FinishedOutputs,
}

/// Makes the task of a deployment at a place.
///
/// # Errors
///
/// [`TaskError`] if state, a partition or a source cannot be opened.
pub fn wire(
    deployment: &TaskDeployment,
    place: &Place,
    mail: Receiver<TaskMail>,
    cancelled: CancelFlag,
    waker: Arc<dyn shuffle::Wake>,
) -> Result<Task, TaskError> {
    let context = Arc::new(task_context(deployment, place, cancelled, Arc::clone(&waker)));
    let wiring = Wiring {
        deployment,
        place,
        context: Arc::clone(&context),
        waker,
        snapshots: Arc::default(),
        finished: FinishedOutputs::default(),
    };
    let vertex = wiring.vertex()?;
    let Some(head) = vertex.chain.first() else {
        return Err(internal("a vertex without operators"));
    };
    let gates = wiring.gates()?;
    let (head_context, wire) = wiring.link(head.node)?;
    let driver = head.payload.factory.driver(&head_context, wire, gates)?;
    Ok(Task {
        context,
        driver,
        mail,
        snapshots: wiring.snapshots,
        finished: wiring.finished,
        writer: place.snapshots.clone(),
        stopping: None,
        stopped: false,
        done: false,
        outstanding: Arc::default(),
    })
}

fn internal(what: &str) -> TaskError {
    TaskError::User { operator: "plan".to_owned(), record: None, source: anyhow::anyhow!("{what}") }
}

fn task_context(
    deployment: &TaskDeployment,
    place: &Place,
    cancelled: CancelFlag,
    waker: Arc<dyn shuffle::Wake>,
) -> TaskContext {
    let vertex = deployment.plan.vertex(deployment.vertex);
    let TaskDeployment { job, attempt, vertex: id, subtask, .. } = *deployment;
    TaskContext {
        job,
        job_name: deployment.job_name.clone(),
        attempt,
        vertex: id,
        vertex_name: vertex.map(|vertex| vertex.name.clone()).unwrap_or_default(),
        subtask,
        parallelism: vertex.map_or(1, |vertex| vertex.parallelism),
        max_parallelism: groups_of(vertex.map_or(1, |vertex| vertex.max_parallelism)),
        mode: deployment.plan.mode,
        config: deployment.config.clone(),
        clock: Arc::clone(&place.clock),
        memory: Arc::clone(&place.memory),
        spill: Arc::clone(&place.spill),
        checkpoints: Arc::clone(&deployment.checkpoints),
        directory: place.directory.join(format!("job-{job}.{attempt}-{id}-{subtask}")),
        stores: place.stores.clone(),
        events: TaskEvents {
            task: TaskId { attempt, vertex: id, subtask },
            sender: deployment.events.clone(),
            line: place.line.clone(),
        },
        cancelled,
        deadline: Deadline::waking(waker),
        alignment: AlignmentGate::default(),
    }
}

/// The plan has checked the bounds.
fn groups_of(groups: u32) -> MaxParallelism {
    MaxParallelism::new(groups).unwrap_or(MaxParallelism::DEFAULT)
}

impl Wiring<'_> {
    fn vertex(
        &self,
    ) -> Result<
        &graph::JobVertex<crate::factory::NodePayload, crate::factory::EdgePayload>,
        TaskError,
    > {
        self.deployment
            .plan
            .vertex(self.deployment.vertex)
            .ok_or_else(|| internal("the plan has no such vertex"))
    }

    /// The operators between the head and the only output that is written; `None` for all.
    fn nodes_wanted(
        &self,
        vertex: &graph::JobVertex<crate::factory::NodePayload, crate::factory::EdgePayload>,
    ) -> Option<BTreeSet<NodeId>> {
        let only = self.deployment.only?;
        let mut wanted = BTreeSet::new();
        let mut next =
            vertex.persistent.iter().find(|output| output.data_set == only).map(|o| o.node);
        while let Some(node) = next {
            wanted.insert(node);
            next = vertex.links.iter().find(|link| link.to == node).map(|link| link.from);
        }
        Some(wanted)
    }

    /// An operator with everything behind it, furthest first.
    fn link(&self, node: NodeId) -> Result<(Arc<OperatorContext>, Wire), TaskError> {
        let vertex = self.vertex()?;
        let (position, chained) = vertex
            .chain
            .iter()
            .enumerate()
            .find(|(_, chained)| chained.node == node)
            .ok_or_else(|| internal("a link to an operator outside of the chain"))?;
        let mut by_tag: BTreeMap<OutputTag, Vec<Wire>> = BTreeMap::new();
        let wanted = self.nodes_wanted(vertex);
        let is_wanted = |link: &&graph::ChainLink<_>| {
            link.from == node && wanted.as_ref().is_none_or(|wanted| wanted.contains(&link.to))
        };
        for link in vertex.links.iter().filter(is_wanted) {
            by_tag.entry(link.output.clone()).or_default().push(self.link(link.to)?.1);
        }
        let reads = |edge: &&graph::JobEdge<_>| edge.from.node == node && wanted.is_none();
        for edge in self.deployment.plan.outputs_of(vertex.id).filter(reads) {
            by_tag.entry(edge.from.output.clone()).or_default().push(self.output(edge)?);
        }
        let mut outputs = Outputs::default();
        // A repair makes one data set, and leaves the others of its plan alone.
        let is_made = |output: &&graph::PersistentOutput<_>| {
            output.node == node && self.deployment.data_sets.contains_key(&output.data_set)
        };
        for output in vertex.persistent.iter().filter(is_made) {
            by_tag.entry(output.output.clone()).or_default();
        }
        for (tag, mut wires) in by_tag {
            let mut wire = match wires.len() {
                0 => None,
                1 => wires.pop(),
                _ => {
                    let tee = chained.payload.tees.get(&tag).ok_or_else(|| {
                        internal("an output with several consumers whose records do not clone")
                    })?;
                    Some(tee.tee(wires))
                }
            };
            for output in
                vertex.persistent.iter().filter(is_made).filter(|output| output.output == tag)
            {
                wire = Some(self.persistent(output, wire)?);
            }
            match tag {
                OutputTag::Main => outputs.main = wire,
                OutputTag::Side(name) => {
                    if let (Some(wire), Some(connect)) = (wire, chained.payload.sides.get(&name)) {
                        connect(&mut outputs.side, &name, wire);
                    }
                }
            }
        }
        let context = Arc::new(OperatorContext {
            task: Arc::clone(&self.context),
            name: chained.name.clone(),
            uid: chained.uid.clone(),
            treatment: TreatmentPlan {
                treatment: chained.treatment,
                reason: chained.reason.clone(),
                memory: chained.sort_memory,
                combines: chained.attributes.combines,
                output_only_at_end: chained.attributes.output_only_at_end,
                durable: chained.durability == Durability::Kept,
            },
            metrics: self.deployment.metrics.get(position).cloned().unwrap_or_default(),
            restored: Mutex::new(self.deployment.restored.get(&chained.uid).cloned()),
            snapshots: Arc::clone(&self.snapshots),
            is_backlog: self.deployment.is_backlog,
        });
        let wire = chained.payload.factory.link(&context, outputs)?;
        Ok((context, wire))
    }

    fn output(
        &self,
        edge: &graph::JobEdge<crate::factory::EdgePayload>,
    ) -> Result<Wire, TaskError> {
        let consumer = self.deployment.plan.vertex(edge.to.vertex);
        let consumers = consumer.map_or(1, |vertex| vertex.parallelism);
        let producer = self.context.subtask;
        let reached =
            reached_consumers(edge.pointwise, producer, self.context.parallelism, consumers);
        let transport = match edge.exchange {
            Exchange::Pipelined => OutputTransport::Pipelined {
                network: Arc::clone(&self.deployment.network),
                channels: reached
                    .map(|consumer| ChannelKey {
                        edge: edge.id,
                        producer,
                        consumer: SubtaskIndex(consumer),
                    })
                    .collect(),
                waker: Arc::clone(&self.waker),
            },
            Exchange::Blocking => {
                let id = PartitionId {
                    job: self.deployment.job,
                    attempt: self.deployment.attempt,
                    edge: edge.id,
                    producer,
                };
                OutputTransport::Blocking {
                    service: Arc::clone(&self.place.service),
                    descriptor: PartitionDescriptor::new(
                        id,
                        u32::try_from(reached.len()).unwrap_or(1),
                    )
                    .compressed(
                        self.context.config.get(&element::option_table::SHUFFLE_COMPRESSION)?,
                    ),
                    finished: Arc::clone(&self.finished),
                }
            }
        };
        edge.payload.0.output(OutputSpec {
            context: &self.context,
            partitioner: edge.partitioner,
            consumers,
            consumer_groups: groups_of(consumer.map_or(1, |vertex| vertex.max_parallelism)),
            transport,
            combines_for: consumer
                .filter(|_| edge.combined)
                .and_then(|vertex| vertex.chain.first())
                .map(|node| node.name.as_str()),
        })
    }

    fn persistent(
        &self,
        output: &graph::PersistentOutput<crate::factory::EdgePayload>,
        next: Option<Wire>,
    ) -> Result<Wire, TaskError> {
        let generation =
            self.deployment.data_sets.get(&output.data_set).copied().unwrap_or_default();
        let identity = PartitionIdentity::DataSet {
            data_set: output.data_set,
            generation,
            attempt: self.context.attempt,
            producer: self.context.subtask,
        };
        let spec = OutputSpec {
            context: &self.context,
            partitioner: graph::Partitioner::Forward,
            consumers: 1,
            consumer_groups: MaxParallelism::DEFAULT,
            transport: OutputTransport::Blocking {
                service: Arc::clone(&self.place.service),
                descriptor: PartitionDescriptor::new(identity, 1).compressed(
                    self.context.config.get(&element::option_table::CACHE_COMPRESSION)?,
                ),
                finished: Arc::clone(&self.finished),
            },
            combines_for: None,
        };
        output.payload.0.persistent(spec, next)
    }

    fn gates(&self) -> Result<Vec<Box<dyn std::any::Any + Send>>, TaskError> {
        let vertex = self.vertex()?;
        vertex
            .inputs
            .iter()
            .map(|edges| {
                let mut channels = Vec::new();
                let mut factory = None;
                let mut combined = false;
                for id in edges {
                    let edge = self
                        .deployment
                        .plan
                        .edge(*id)
                        .ok_or_else(|| internal("an input without an edge"))?;
                    channels.extend(self.channels(edge)?);
                    factory.get_or_insert(&edge.payload);
                    combined |= edge.combined;
                }
                let factory = factory.ok_or_else(|| internal("an input without edges"))?;
                factory.0.gate(InputSpec {
                    context: &self.context,
                    network: &self.deployment.network,
                    waker: Arc::clone(&self.waker),
                    channels,
                    combined,
                })
            })
            .collect()
    }

    /// The channels of one edge that this subtask reads, in order of their producers.
    fn channels(
        &self,
        edge: &graph::JobEdge<crate::factory::EdgePayload>,
    ) -> Result<Vec<InputTransport>, TaskError> {
        let producers =
            self.deployment.plan.vertex(edge.from.vertex).map_or(1, |vertex| vertex.parallelism);
        let me = self.context.subtask;
        let mut channels = Vec::new();
        for producer in 0..producers {
            let producer = SubtaskIndex(producer);
            let reached =
                reached_consumers(edge.pointwise, producer, producers, self.context.parallelism);
            if !reached.contains(&me.0) {
                continue;
            }
            let subpartition = me.0 - reached.start;
            channels.push(match edge.exchange {
                Exchange::Pipelined => {
                    InputTransport::Pipelined(ChannelKey { edge: edge.id, producer, consumer: me })
                }
                Exchange::Blocking => {
                    let location = self
                        .deployment
                        .inputs
                        .get(&edge.id)
                        .and_then(|partitions| partitions.get(producer.0 as usize))
                        .ok_or_else(|| {
                            internal("a blocking input whose producer has not finished")
                        })?;
                    InputTransport::Blocking {
                        service: Arc::clone(&location.service),
                        descriptor: location.descriptor.clone(),
                        subpartitions: subpartition..subpartition + 1,
                    }
                }
            });
        }
        Ok(channels)
    }
}
