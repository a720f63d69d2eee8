//! Whether sorted runs of a backlog can survive a crash, operator by operator.
//!
//! A sealed run stands for a range of source positions only if everything between the sources and
//! the sorter keeps no state: then the records of the run are a function of those positions alone,
//! and a restart may skip them. Beyond FLIP-327.

use crate::stream_graph::StreamGraph;
use crate::{InputTreatment, PlanSettings};

/// What becomes of an operator's sorted runs after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// They are lost and made again: option `execution.backlog.durable` is false, or there are none.
    Lost,
    /// Sealed runs are kept with the source positions that they cover.
    Kept,
    /// They would be kept, but something between the sources and the sorter keeps state.
    Refused {
        /// The nearest operator upstream that keeps state.
        stateful: String,
    },
}

/// Decides for each node. `sorted` is what is put before it.
pub(crate) fn durability<N, E>(
    graph: &StreamGraph<'_, N, E>,
    sorted: impl Iterator<Item = InputTreatment>,
    settings: &PlanSettings<'_>,
) -> Vec<Durability> {
    let stateful = stateful_upstream(graph);
    let decide = |(at, treatment): (usize, InputTreatment)| match (treatment, stateful[at]) {
        _ if !settings.backlog_durable => Durability::Lost,
        (InputTreatment::Direct | InputTreatment::Internal | InputTreatment::BatchSort, _) => {
            Durability::Lost
        }
        (_, None) => Durability::Kept,
        (_, Some(node)) => Durability::Refused { stateful: graph.nodes[node].name.clone() },
    };
    sorted.enumerate().map(decide).collect()
}

/// For each node, an operator upstream that keeps state: of the first input that has one, the
/// nearest.
fn stateful_upstream<N, E>(graph: &StreamGraph<'_, N, E>) -> Vec<Option<usize>> {
    let mut stateful: Vec<Option<usize>> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let found = node.inputs.iter().flatten().find_map(|edge| {
            let from = graph.edges[*edge].from;
            if graph.nodes[from].attributes.uses_state_or_timers {
                Some(from)
            } else {
                stateful[from]
            }
        });
        stateful.push(found);
    }
    stateful
}
