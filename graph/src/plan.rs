//! The steps from a program to a job graph, in their order.

use element::NodeId;

use crate::{Describe, JobGraph, PlanError, PlanSettings, TransformationGraph};

/// Plans the job that the sinks ask for.
///
/// # Errors
///
/// [`PlanError`].
pub fn plan<N: Clone + Describe, E: Clone>(
    graph: &TransformationGraph<N, E>,
    sinks: &[NodeId],
    settings: &PlanSettings<'_>,
) -> Result<JobGraph<N, E>, PlanError> {
    let _ = (graph, settings);
    Err(sinks.first().map_or(PlanError::NoSink, |node| PlanError::UnknownNode { node: *node }))
}
