//! How records get from one vertex to the next: while they are written, or once they are complete.
//!
//! A blocking exchange ends what runs at once and bounds what runs again after a failure. In batch
//! mode all exchanges block; in streaming only the outputs of operators that emit nothing before
//! the end of their input do (FLIP-331, decision D6), with what follows them in their chain.
//! Records that cannot become bytes are always pipelined.
//!
//! A vertex cannot wait for a blocking result of tasks that it must run together with:
//!
//! ```text
//!   source ----> at end ==blocking==> join        the second path makes the join run with the
//!      \------------ pipelined -------^           source: that path has to block too
//! ```
//!
//! [`settle`] finds such rings and makes their pipelined paths block; where records cannot become
//! bytes it makes the ring pipelined instead. Source: FLIP-148, FLIP-331.

use std::collections::BTreeSet;

use element::option_table::BatchShuffleMode;

use crate::chain::Chains;
use crate::regions::{Flow, Regions};
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
    let regions = settle(&mut exchanged, &mut flows, chains.members.len());
    (exchanged, regions)
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
        (false, _) if graph.mode == ResolvedMode::Batch => {
            (Exchange::Pipelined, "option `execution.batch-shuffle-mode`")
        }
        (false, _) => (Exchange::Pipelined, "streaming"),
    };
    Exchanged { edge, exchange, reason }
}

/// Changes exchanges until no vertex waits for a blocking result of its own region.
///
/// Each round makes some pipelined edges block for good, or one blocking edge pipelined for good, so
/// there are at most two rounds an edge; a plan without a ring costs one walk.
fn settle(exchanged: &mut [Exchanged], flows: &mut [Flow], vertices: usize) -> Regions {
    loop {
        let rings = match Regions::new(flows, vertices) {
            Ok(regions) => return regions,
            Err(rings) => rings,
        };
        let crossing = rings.iter().map(|ring| crossing(flows, vertices, *ring));
        let resolvable = crossing
            .into_iter()
            .find(|edges| !edges.is_empty() && edges.iter().all(|edge| flows[*edge].may_block));
        match (resolvable, rings.first()) {
            (Some(edges), _) => {
                for edge in edges {
                    flows[edge].blocking = true;
                    exchanged[edge].exchange = Exchange::Blocking;
                    exchanged[edge].reason = "its consumer also waits for a blocking result";
                }
            }
            (None, Some(ring)) => {
                flows[*ring].blocking = false;
                flows[*ring].may_block = false;
                exchanged[*ring].exchange = Exchange::Pipelined;
                exchanged[*ring].reason =
                    "producer and consumer share a path that can only be pipelined";
            }
            (None, None) => unreachable!("regions that cannot be ordered have a ring"),
        }
    }
}

/// The pipelined edges that lead from what runs with the producer of a blocking edge to what must
/// run after it.
fn crossing(flows: &[Flow], vertices: usize, ring: usize) -> Vec<usize> {
    let late = spread(vertices, flows[ring].to, |vertex, next| {
        next.extend(flows.iter().filter(|flow| flow.from == vertex).map(|flow| flow.to));
    });
    let early = spread(vertices, flows[ring].from, |vertex, next| {
        for flow in flows.iter().filter(|flow| !flow.blocking) {
            match (flow.from == vertex, flow.to == vertex) {
                (true, _) if !late.contains(&flow.to) => next.push(flow.to),
                (_, true) if !late.contains(&flow.from) => next.push(flow.from),
                _ => {}
            }
        }
    });
    let crosses =
        |flow: &Flow| !flow.blocking && early.contains(&flow.from) && late.contains(&flow.to);
    (0..flows.len()).filter(|edge| crosses(&flows[*edge])).collect()
}

/// All vertices reached from one.
fn spread(
    vertices: usize,
    start: usize,
    mut neighbours: impl FnMut(usize, &mut Vec<usize>),
) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([start]);
    let mut stack = Vec::with_capacity(vertices);
    stack.push(start);
    let mut next = Vec::new();
    while let Some(vertex) = stack.pop() {
        neighbours(vertex, &mut next);
        stack.extend(next.drain(..).filter(|vertex| reached.insert(*vertex)));
    }
    reached
}

#[cfg(test)]
mod tests;
