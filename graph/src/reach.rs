//! Which steps of a program a job needs: a walk from the sinks to the sources.
//!
//! Walked twice: over the whole program, to check it and derive uids, and with the complete data
//! sets cut out. Uses a stack of its own, so the depth of a program is not bounded by the thread's.

use element::NodeId;

use crate::{InputEdge, PlanError, TransformationGraph};

/// The steps that the sinks need, by id, which is a topological order.
///
/// `enter` is asked for each edge once; where it answers false the producer is not needed by that
/// edge. Costs one visit of each step and each edge that is reached.
///
/// # Errors
///
/// [`PlanError::NoSink`], [`PlanError::UnknownNode`], [`PlanError::UnknownInput`].
pub(crate) fn reach<'g, N, E>(
    graph: &'g TransformationGraph<N, E>,
    sinks: &[NodeId],
    mut enter: impl FnMut(&'g InputEdge<E>) -> bool,
) -> Result<Vec<NodeId>, PlanError> {
    if sinks.is_empty() {
        return Err(PlanError::NoSink);
    }
    let mut needed = vec![false; graph.len()];
    let mut stack: Vec<NodeId> = Vec::new();
    for sink in sinks {
        let slot = needed.get_mut(sink.0 as usize).ok_or(PlanError::UnknownNode { node: *sink })?;
        if !std::mem::replace(slot, true) {
            stack.push(*sink);
        }
    }
    while let Some(id) = stack.pop() {
        let step = graph.node(id).ok_or(PlanError::UnknownNode { node: id })?;
        for edge in step.inputs.iter().flatten() {
            if edge.from >= id {
                return Err(PlanError::UnknownInput {
                    node: id,
                    name: step.name.clone(),
                    from: edge.from,
                });
            }
            if enter(edge) && !std::mem::replace(&mut needed[edge.from.0 as usize], true) {
                stack.push(edge.from);
            }
        }
    }
    Ok((0..).map(NodeId).zip(needed).filter(|(_, needed)| *needed).map(|(id, _)| id).collect())
}
