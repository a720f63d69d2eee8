//! Scheduling units: what must be deployed together.
//!
//! Tasks joined by pipelined edges run at once, so a region is a unit; a region of one vertex has no
//! such edge, so each of its subtasks is a unit of its own and few slots will do (T2).

use element::{SubtaskIndex, VertexId};

use crate::checkpoint::Participant;
use crate::factory::ExecutionPlan;

/// Tasks that are deployed together.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Its tasks, consumers before producers, so that channels find their readers.
    pub(super) tasks: Vec<Participant>,
    /// Slots it needs: the highest parallelism among its vertices.
    pub(super) slots: u32,
}

/// The units of a plan, in an order in which they can be deployed.
pub(super) fn units_of(plan: &ExecutionPlan) -> Vec<Unit> {
    let mut units = Vec::new();
    for vertices in &plan.regions {
        let parallelism = |id: &VertexId| plan.vertex(*id).map_or(1, |vertex| vertex.parallelism);
        let subtasks = |id: VertexId| (0..parallelism(&id)).map(move |i| (id, SubtaskIndex(i)));
        if let [only] = vertices.as_slice() {
            units.extend(subtasks(*only).map(|task| Unit { tasks: vec![task], slots: 1 }));
        } else {
            let tasks = vertices.iter().rev().flat_map(|id| subtasks(*id)).collect();
            let slots = vertices.iter().map(parallelism).max().unwrap_or(1);
            units.push(Unit { tasks, slots });
        }
    }
    units
}
