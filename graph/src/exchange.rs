//! How records get from one vertex to the next: while they are written, or once they are complete.
//!
//! A blocking exchange ends what runs at once and bounds what runs again after a failure. In batch
//! mode all exchanges block; in streaming only the outputs of operators that emit nothing before
//! the end of their input do (FLIP-331, decision D6), with what follows them in their chain.
//! Records that cannot become bytes are always pipelined.
//!
//! A vertex cannot wait for a blocking result of tasks that it must run together with; `rings` has
//! the last word about those. Source: FLIP-148, FLIP-331.

use element::option_table::BatchShuffleMode;

use crate::chain::Chains;
use crate::regions::{Flow, Regions};
use crate::rings::settle;
use crate::stream_graph::StreamGraph;
use crate::{Exchange, PlanSettings, ResolvedMode};

/// The exchange of an edge, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchanged {
    pub(crate) edge: usize,
    pub(crate) exchange: Exchange,
    pub(crate) reason: &'static str,
}

/// The exchanges of all edges between vertices, in the order of edges, and the regions they leave.
pub(crate) fn exchange<N, E>(
    graph: &StreamGraph<'_, N, E>,
    chains: &Chains,
    settings: &PlanSettings<'_>,
) -> (Vec<Exchanged>, Regions) {
    let at_end = emits_at_end(graph, chains);
    let mut exchanged: Vec<Exchanged> = (0..graph.edges.len())
        .filter(|edge| !chains.is_link[*edge])
        .map(|edge| wish(graph, edge, &at_end, settings))
        .collect();
    let mut flows: Vec<Flow> = exchanged
        .iter()
        .map(|exchanged| {
            let edge = &graph.edges[exchanged.edge];
            Flow {
                from: chains.vertex[edge.from],
                to: chains.vertex[edge.to],
                blocking: exchanged.exchange == Exchange::Blocking,
                may_block: edge.bytes,
            }
        })
        .collect();
    let regions = settle(&mut flows, chains.members.len());
    for (exchanged, flow) in exchanged.iter_mut().zip(&flows) {
        if let Some((exchange, reason)) = settled(exchanged.exchange, flow) {
            (exchanged.exchange, exchanged.reason) = (exchange, reason);
        }
    }
    (exchanged, regions)
}

/// What an edge has become if the rings did not leave it as it was wished.
fn settled(wished: Exchange, flow: &Flow) -> Option<(Exchange, &'static str)> {
    match (wished, flow.blocking) {
        (Exchange::Pipelined, true) => {
            Some((Exchange::Blocking, "its consumer also waits for a blocking result"))
        }
        (Exchange::Blocking, false) => {
            Some((Exchange::Pipelined, "another path between both cannot become bytes"))
        }
        _ => None,
    }
}

/// Which nodes emit nothing before the end of input: those that say so, and what follows in a chain.
fn emits_at_end<N, E>(graph: &StreamGraph<'_, N, E>, chains: &Chains) -> Vec<bool> {
    let mut at_end: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let inherited = node
            .only_edge()
            .is_some_and(|edge| chains.is_link[edge] && at_end[graph.edges[edge].from]);
        at_end.push(inherited || node.attributes.output_only_at_end);
    }
    at_end
}

fn wish<N, E>(
    graph: &StreamGraph<'_, N, E>,
    edge: usize,
    at_end: &[bool],
    settings: &PlanSettings<'_>,
) -> Exchanged {
    let blocking_batch = graph.mode == ResolvedMode::Batch
        && settings.batch_shuffle_mode == BatchShuffleMode::AllExchangesBlocking;
    let ends = graph.mode != ResolvedMode::Batch && at_end[graph.edges[edge].from];
    let (exchange, reason) = match (blocking_batch || ends, graph.edges[edge].bytes) {
        (true, false) => (Exchange::Pipelined, "its records cannot become bytes"),
        (true, true) if blocking_batch => (Exchange::Blocking, "batch mode"),
        (true, true) => (Exchange::Blocking, "its producer emits only at the end of its input"),
        (false, _) if graph.mode == ResolvedMode::Batch => (
            Exchange::Pipelined,
            "option `execution.batch-shuffle-mode` is all-exchanges-pipelined",
        ),
        (false, _) => (Exchange::Pipelined, "all tasks run at once"),
    };
    Exchanged { edge, exchange, reason }
}
