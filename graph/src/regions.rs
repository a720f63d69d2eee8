//! What is scheduled together, and in which order.
//!
//! A region is a set of vertices connected by pipelined edges; it fails and restarts as one. It
//! comes after every region whose blocking results it reads; of regions that could come next, the
//! one with the least vertex does, so the order is always the same. Source: FLIP-148, "scheduling".

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An edge between two vertices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) blocking: bool,
    /// Whether its records can become bytes.
    pub(crate) may_block: bool,
}

/// Regions in schedulable order, each with its vertices in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Regions(pub(crate) Vec<Vec<usize>>);

impl Regions {
    /// Groups and orders the vertices; `None` if a region would wait for itself. `flows` lead from
    /// lesser to greater vertices.
    pub(crate) fn new(flows: &[Flow], vertices: usize) -> Option<Self> {
        let region = components(flows, vertices);
        let order = order(flows, &region);
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); vertices];
        for (vertex, region) in region.iter().enumerate() {
            members[*region].push(vertex);
        }
        let regions = members.iter().filter(|members| !members.is_empty()).count();
        (order.len() == regions)
            .then(|| Self(order.into_iter().map(|at| std::mem::take(&mut members[at])).collect()))
    }
}

/// The region of each vertex, named by its least vertex.
fn components(flows: &[Flow], vertices: usize) -> Vec<usize> {
    let mut parent: Vec<usize> = (0..vertices).collect();
    for flow in flows.iter().filter(|flow| !flow.blocking) {
        let (a, b) = (root(&mut parent, flow.from), root(&mut parent, flow.to));
        parent[a.max(b)] = a.min(b);
    }
    (0..vertices).map(|vertex| root(&mut parent, vertex)).collect()
}

/// The representative of a vertex; halves the path to it.
fn root(parent: &mut [usize], mut vertex: usize) -> usize {
    while parent[vertex] != vertex {
        parent[vertex] = parent[parent[vertex]];
        vertex = parent[vertex];
    }
    vertex
}

/// The regions that can be ordered, in order; all of them if there is no ring.
fn order(flows: &[Flow], region: &[usize]) -> Vec<usize> {
    let mut waits = vec![0_usize; region.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); region.len()];
    for flow in flows.iter().filter(|flow| flow.blocking) {
        waits[region[flow.to]] += 1;
        readers[region[flow.from]].push(region[flow.to]);
    }
    let roots = (0..region.len()).filter(|vertex| region[*vertex] == *vertex);
    let mut ready: BinaryHeap<Reverse<usize>> =
        roots.filter(|root| waits[*root] == 0).map(Reverse).collect();
    let mut order = Vec::new();
    while let Some(Reverse(next)) = ready.pop() {
        order.push(next);
        for reader in &readers[next] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                ready.push(Reverse(*reader));
            }
        }
    }
    order
}
