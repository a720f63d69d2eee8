//! [`RepairScope`]: what must run so that lost parts of a data set are made again, and nothing else.
//!
//! ```text
//!   source ---> map ===(key group)==> sum ----> data set, of 4 parts
//!   all tasks of what is above        only the subtasks whose parts are lost
//! ```
//!
//! A part can be made by itself if what its subtask reads is the same every time: records come to it
//! by key, by a function of theirs, or all of them; or it begins with a source, and reads the splits
//! that it read when the part was first made. Everything above runs whole, for its results are gone
//! with the job that made them. Left out on purpose: user functions that answer otherwise the next
//! time. Whoever sets `execution.cache.recovery = partitions` says that there are none.

use std::collections::{BTreeMap, BTreeSet};

use element::{DataSetId, SubtaskIndex, VertexId};
use graph::{Exchange, OperatorKind, Partitioner};

use super::units::{Unit, units_of};
use crate::checkpoint::Participant;
use crate::factory::ExecutionPlan;

/// The splits that a source's subtasks have read, as bytes.
pub type SplitsRead = BTreeMap<SubtaskIndex, Vec<Vec<u8>>>;

/// The part of a plan that a repair runs.
#[derive(Clone, Debug)]
pub struct RepairScope {
    /// The vertex that writes the data set.
    pub(super) producer: VertexId,
    /// The data set.
    pub(super) data_set: DataSetId,
    /// Every task that runs.
    pub(super) tasks: BTreeSet<Participant>,
    /// What the producer's subtasks read, if it begins with a source.
    pub(super) splits: Option<SplitsRead>,
    /// The number of the first attempt: earlier ones have written parts of this making.
    pub(super) first_attempt: u32,
}

/// What is known of a data set of which some parts are lost.
#[derive(Clone, Debug)]
pub struct Damage {
    /// Which parts.
    pub lost: BTreeSet<SubtaskIndex>,
    /// How many parts it has.
    pub of: u32,
    /// Why they are lost.
    pub reason: String,
    /// What the subtasks that made it read, if they began with a source.
    pub splits: SplitsRead,
    /// The greatest attempt that has written a part of this making.
    pub attempt: u32,
}

impl RepairScope {
    /// Cuts the tasks out of a plan that makes the data set.
    ///
    /// # Errors
    ///
    /// Why lost parts cannot be made by themselves, as a clause.
    pub(crate) fn of(
        plan: &ExecutionPlan,
        data_set: DataSetId,
        producer: VertexId,
        damage: &Damage,
    ) -> Result<Self, &'static str> {
        let vertex = plan.vertex(producer).ok_or("the plan does not make it")?;
        if vertex.parallelism != damage.of {
            return Err("its producer has another parallelism than before");
        }
        let splits = match repeatable(plan, producer)? {
            Input::Records => None,
            Input::Splits => {
                let is_known = |lost| damage.splits.contains_key(lost);
                if !damage.lost.iter().all(is_known) {
                    return Err("it is not known what its subtasks have read");
                }
                Some(damage.splits.clone())
            }
        };
        let mut tasks: BTreeSet<Participant> =
            damage.lost.iter().map(|subtask| (producer, *subtask)).collect();
        for above in above(plan, producer) {
            let parallelism = plan.vertex(above).map_or(1, |vertex| vertex.parallelism);
            tasks.extend((0..parallelism).map(|subtask| (above, SubtaskIndex(subtask))));
        }
        let scope = Self { producer, data_set, tasks, splits, first_attempt: damage.attempt + 1 };
        let units = scope.units(plan);
        let mut above = units.iter().flat_map(|unit| &unit.tasks).filter(|(v, _)| *v != producer);
        if above.any(|(vertex, _)| has_sink(plan, *vertex)) {
            return Err("a sink would be written again");
        }
        Ok(scope)
    }

    /// What is deployed: the producer's subtasks each by itself, without what reads from them; above
    /// them whole units, for their tasks wait for each other.
    pub(super) fn units(&self, plan: &ExecutionPlan) -> Vec<Unit> {
        let is_wanted = |unit: &Unit| unit.tasks.iter().any(|task| self.tasks.contains(task));
        let (producing, mut units): (Vec<Unit>, Vec<Unit>) = units_of(plan)
            .into_iter()
            .filter(is_wanted)
            .partition(|unit| unit.tasks.iter().any(|(vertex, _)| *vertex == self.producer));
        let tasks = producing.into_iter().flat_map(|unit| unit.tasks);
        let own = tasks.filter(|task| task.0 == self.producer && self.tasks.contains(task));
        units.extend(own.map(|task| Unit { tasks: vec![task], slots: 1 }));
        units
    }
}

/// What a subtask makes its part of.
enum Input {
    Records,
    Splits,
}

/// Whether each subtask of a vertex reads the same every time.
fn repeatable(plan: &ExecutionPlan, producer: VertexId) -> Result<Input, &'static str> {
    let inputs: Vec<_> = plan.edges.iter().filter(|edge| edge.to.vertex == producer).collect();
    if inputs.is_empty() {
        let reads_a_cache = plan.caches.iter().any(|cache| {
            matches!(cache.decision, graph::CacheDecision::Hit { reader } if reader == producer)
        });
        return if reads_a_cache { Err("it is made of another cache") } else { Ok(Input::Splits) };
    }
    let fixed = |partitioner| {
        use Partitioner::{Broadcast, Custom, Global, KeyGroup};
        matches!(partitioner, Broadcast | Custom | Global | KeyGroup)
    };
    if !inputs.iter().all(|edge| fixed(edge.partitioner)) {
        return Err("records come to its producer in turn, and not by what they are");
    }
    if !inputs.iter().all(|edge| edge.exchange == Exchange::Blocking) {
        return Err("its producer runs together with other tasks");
    }
    Ok(Input::Records)
}

/// Every vertex from which something comes to this one.
fn above(plan: &ExecutionPlan, vertex: VertexId) -> BTreeSet<VertexId> {
    let mut found = BTreeSet::new();
    let mut left = vec![vertex];
    while let Some(next) = left.pop() {
        for edge in plan.edges.iter().filter(|edge| edge.to.vertex == next) {
            if found.insert(edge.from.vertex) {
                left.push(edge.from.vertex);
            }
        }
    }
    found
}

fn has_sink(plan: &ExecutionPlan, vertex: VertexId) -> bool {
    let chain = plan.vertex(vertex).map(|vertex| vertex.chain.as_slice()).unwrap_or_default();
    chain.iter().any(|node| node.attributes.kind == OperatorKind::Sink)
}
