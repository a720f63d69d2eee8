//! The steps from a program to a job graph, in their order.
//!
//! Called by the api and the runtime for each job. Decides nothing itself: each step has a file.

use element::NodeId;

use crate::assemble::{Decisions, assemble};
use crate::backlog_rules::treat;
use crate::chain::chain;
use crate::durable::durability;
use crate::exchange::exchange;
use crate::translate::translate;
use crate::{Describe, JobGraph, PlanError, PlanSettings, TransformationGraph};

/// Plans the job that the sinks ask for.
///
/// Everything that the sinks need runs, and nothing else; the same program, sinks and settings give
/// the same plan. Costs a few visits of each step and edge that is reached, and one clone of each
/// payload that runs. Asks each step once for its attributes, and once for each mark whether its
/// data set is complete.
///
/// # Errors
///
/// [`PlanError`], naming the step and the option; nothing was changed anywhere.
///
/// ```
/// use slackwater_graph::{
///     Describe, InputEdge, OperatorAttributes, PlanSettings, Transformation, TransformationGraph, plan,
/// };
///
/// #[derive(Clone)]
/// struct Step(OperatorAttributes);
///
/// impl Describe for Step {
///     fn attributes(&self) -> OperatorAttributes {
///         self.0
///     }
/// }
///
/// let mut program = TransformationGraph::new();
/// let numbers = Step(OperatorAttributes::bounded_source());
/// let numbers = program.add(Transformation::new("numbers", vec![], numbers));
/// let sum = vec![vec![InputEdge::keyed(numbers, ())]];
/// let sum = program.add(Transformation::new("sum", sum, Step(OperatorAttributes::keyed())));
/// let print = vec![vec![InputEdge::forward(sum, ())]];
/// let print = program.add(Transformation::new("print", print, Step(OperatorAttributes::sink())));
///
/// let job = plan(&program, &[print], &PlanSettings::default())?;
/// assert_eq!(job.vertices.len(), 2);
/// assert_eq!(job.vertices[1].name, "sum -> print");
/// # Ok::<(), slackwater_graph::PlanError>(())
/// ```
pub fn plan<N: Clone + Describe, E: Clone>(
    graph: &TransformationGraph<N, E>,
    sinks: &[NodeId],
    settings: &PlanSettings<'_>,
) -> Result<JobGraph<N, E>, PlanError> {
    let stream = translate(graph, sinks, settings)?;
    let treated: Vec<_> = stream
        .nodes
        .iter()
        .map(|node| treat(&node.attributes, node.inputs.len(), stream.mode, settings))
        .collect();
    let treatments = treated.iter().map(|treated| treated.treatment);
    let durability = durability(&stream, treatments, settings);
    let chains = chain(&stream, &treated, settings);
    let (exchanged, regions) = exchange(&stream, &chains, settings);
    Ok(assemble(&stream, &Decisions { treated, durability, chains, exchanged, regions }))
}
