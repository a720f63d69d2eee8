//! Blocking edges whose consumer would have to run together with their producer.
//!
//! ```text
//!   source ----> at end ==blocking==> join        the second path makes the join run with the
//!      \------------ pipelined -------^           source: that path has to block too
//! ```
//!
//! A knot is a set of vertices that each have to run no later than the others: pipelined edges tie
//! both ends, blocking edges order them. A blocking edge within a knot is a ring. [`settle`] makes
//! pipelined edges of each knot block until none is left; where their records cannot become bytes
//! it makes the ring pipelined instead.

use std::collections::BTreeSet;

use crate::regions::{Flow, Regions};

/// Changes `flows` until no vertex waits for a blocking result of its own region.
///
/// Each round makes some pipelined edges block for good, or one blocking edge pipelined for good, so
/// there are at most two rounds an edge; a round costs a walk over the graph for each ring. Without
/// a ring there is no round.
pub(crate) fn settle(flows: &mut [Flow], vertices: usize) -> Regions {
    let web = Web::new(flows, vertices);
    loop {
        if let Some(regions) = Regions::new(flows, vertices) {
            return regions;
        }
        let knots = web.knots(flows);
        let within = |flow: &Flow| flow.blocking && knots[flow.from] == knots[flow.to];
        let rings: Vec<usize> = (0..flows.len()).filter(|edge| within(&flows[*edge])).collect();
        let cuts = rings
            .iter()
            .map(|ring| web.least_cut(flows, *ring))
            .chain(rings.iter().map(|ring| web.cut(flows, *ring, &knots)));
        let may_block = |edge: &usize| flows[*edge].may_block;
        let cut = cuts.into_iter().find(|cut| !cut.is_empty() && cut.iter().all(may_block));
        match cut {
            Some(cut) => cut.into_iter().for_each(|edge| flows[edge].blocking = true),
            None => {
                let ring = *rings.first().expect("regions that cannot be ordered have a ring");
                flows[ring].blocking = false;
                flows[ring].may_block = false;
            }
        }
    }
}

/// The edges of each vertex; which of them block is up to the flows.
struct Web {
    out: Vec<Vec<usize>>,
    into: Vec<Vec<usize>>,
}

impl Web {
    fn new(flows: &[Flow], vertices: usize) -> Self {
        let mut web = Self { out: vec![Vec::new(); vertices], into: vec![Vec::new(); vertices] };
        for (edge, flow) in flows.iter().enumerate() {
            web.out[flow.from].push(edge);
            web.into[flow.to].push(edge);
        }
        web
    }

    /// The knot of each vertex: strongly connected components, pipelined edges leading both ways
    /// (Kosaraju).
    fn knots(&self, flows: &[Flow]) -> Vec<usize> {
        let vertices = self.out.len();
        let mut seen = vec![false; vertices];
        let mut finished = Vec::with_capacity(vertices);
        for start in 0..vertices {
            let mut stack = vec![(start, false)];
            while let Some((vertex, done)) = stack.pop() {
                if done {
                    finished.push(vertex);
                } else if !std::mem::replace(&mut seen[vertex], true) {
                    stack.push((vertex, true));
                    stack.extend(self.after(flows, vertex).map(|next| (next, false)));
                }
            }
        }
        let mut knots = vec![usize::MAX; vertices];
        for start in finished.into_iter().rev() {
            let mut stack = vec![start];
            while let Some(vertex) = stack.pop() {
                if knots[vertex] == usize::MAX {
                    knots[vertex] = start;
                    stack.extend(self.before(flows, vertex));
                }
            }
        }
        knots
    }

    /// What must not run before a vertex.
    fn after<'a>(&'a self, flows: &'a [Flow], vertex: usize) -> impl Iterator<Item = usize> + 'a {
        let tied = self.into[vertex].iter().filter(|edge| !flows[**edge].blocking);
        self.out[vertex].iter().map(|edge| flows[*edge].to).chain(tied.map(|e| flows[*e].from))
    }

    /// What must not run after a vertex.
    fn before<'a>(&'a self, flows: &'a [Flow], vertex: usize) -> impl Iterator<Item = usize> + 'a {
        let tied = self.out[vertex].iter().filter(|edge| !flows[**edge].blocking);
        self.into[vertex].iter().map(|edge| flows[*edge].from).chain(tied.map(|e| flows[*e].to))
    }

    /// All that reads, at any distance, what a ring's consumer writes; itself too.
    fn late(&self, flows: &[Flow], ring: usize) -> BTreeSet<usize> {
        spread(flows[ring].to, |vertex| self.out[vertex].iter().map(|edge| flows[*edge].to))
    }

    /// The pipelined edges from what runs with a ring's producer to what is late. Empty if the ring
    /// is closed by other blocking edges.
    fn least_cut(&self, flows: &[Flow], ring: usize) -> Vec<usize> {
        let late = self.late(flows, ring);
        let early = spread(flows[ring].from, |vertex| {
            let (out, into) = (self.out[vertex].iter(), self.into[vertex].iter());
            let ends = out.map(|e| (e, flows[*e].to)).chain(into.map(|e| (e, flows[*e].from)));
            ends.filter(|(edge, end)| !flows[**edge].blocking && !late.contains(end))
                .map(|(_, end)| end)
        });
        crossing(flows, |vertex| early.contains(&vertex), &late)
    }

    /// The pipelined edges of the ring's knot that lead to what is late. Never empty: without one,
    /// nothing late would lead back to the ring's producer, which reads nothing late.
    fn cut(&self, flows: &[Flow], ring: usize, knots: &[usize]) -> Vec<usize> {
        let late = self.late(flows, ring);
        let knotted = |vertex: usize| knots[vertex] == knots[flows[ring].from];
        crossing(flows, |vertex| knotted(vertex) && !late.contains(&vertex), &late)
    }
}

fn crossing(flows: &[Flow], early: impl Fn(usize) -> bool, late: &BTreeSet<usize>) -> Vec<usize> {
    let crosses = |flow: &Flow| !flow.blocking && early(flow.from) && late.contains(&flow.to);
    (0..flows.len()).filter(|edge| crosses(&flows[*edge])).collect()
}

/// All vertices reached from one, itself too.
fn spread<I: Iterator<Item = usize>>(
    start: usize,
    neighbours: impl Fn(usize) -> I,
) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([start]);
    let mut stack = vec![start];
    while let Some(vertex) = stack.pop() {
        stack.extend(neighbours(vertex).filter(|next| reached.insert(*next)));
    }
    reached
}

#[cfg(test)]
mod tests;
