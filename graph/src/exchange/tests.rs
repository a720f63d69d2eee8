//! Rings of pipelined and blocking edges: every one is resolved, the least is changed.

use super::*;

const BLOCKING: (bool, bool) = (true, true);
const PIPELINED: (bool, bool) = (false, true);
const ONLY_PIPELINED: (bool, bool) = (false, false);

/// Settles edges `(from, to, (blocking, may block))` and compares which block, and the regions.
#[track_caller]
fn check(edges: &[(usize, usize, (bool, bool))], blocking: &[usize], regions: &[&[usize]]) {
    let mut flows: Vec<Flow> = edges
        .iter()
        .map(|(from, to, (blocking, may_block))| Flow {
            from: *from,
            to: *to,
            blocking: *blocking,
            may_block: *may_block,
        })
        .collect();
    let mut exchanged: Vec<Exchanged> = (0..flows.len())
        .map(|edge| Exchanged { edge, exchange: Exchange::Pipelined, reason: "" })
        .collect();
    let vertices = edges.iter().map(|edge| edge.1 + 1).max().unwrap_or(1);
    let settled = settle(&mut exchanged, &mut flows, vertices);
    let blocks: Vec<usize> = (0..flows.len()).filter(|edge| flows[*edge].blocking).collect();
    assert_eq!(blocks, blocking);
    assert_eq!(settled.0, regions);
}

#[test]
fn regions_end_at_blocking_edges() {
    check(&[(0, 1, PIPELINED), (1, 2, BLOCKING), (2, 3, PIPELINED)], &[1], &[&[0, 1], &[2, 3]]);
}

#[test]
fn independent_regions_are_ordered_by_their_least_vertex() {
    check(&[(0, 2, BLOCKING), (1, 2, BLOCKING)], &[0, 1], &[&[0], &[1], &[2]]);
}

#[test]
fn a_second_path_past_a_blocking_edge_blocks_too() {
    check(&[(0, 1, PIPELINED), (1, 2, BLOCKING), (0, 2, PIPELINED)], &[1, 2], &[&[0, 1], &[2]]);
}

#[test]
fn a_live_stream_beside_a_blocking_edge_stays_pipelined() {
    let edges = [(0, 1, PIPELINED), (1, 3, BLOCKING), (0, 3, PIPELINED), (2, 3, PIPELINED)];
    check(&edges, &[1, 2], &[&[0, 1], &[2, 3]]);
}

#[test]
fn a_second_path_that_cannot_block_makes_the_ring_pipelined() {
    check(&[(0, 1, PIPELINED), (1, 2, BLOCKING), (0, 2, ONLY_PIPELINED)], &[], &[&[0, 1, 2]]);
}

#[test]
fn a_ring_over_two_regions_is_found() {
    // 0 runs with 3 by one path, 1 with 2 by another; 0 blocks before 1, 2 blocks before 3.
    let edges = [(0, 1, BLOCKING), (1, 2, PIPELINED), (2, 3, BLOCKING), (0, 3, PIPELINED)];
    check(&edges, &[0, 2, 3], &[&[0], &[1, 2], &[3]]);
}

#[test]
fn a_ring_that_one_of_its_edges_cannot_resolve_is_resolved_by_another() {
    // Producers 0 and 1, consumers 2 and 3: 0 feeds both, live to 3; 1 feeds both, live to 2.
    let edges = [(0, 2, BLOCKING), (1, 3, BLOCKING), (0, 3, PIPELINED), (1, 2, PIPELINED)];
    let mut regions: Vec<Flow> = Vec::new();
    for (from, to, (blocking, may_block)) in edges {
        regions.push(Flow { from, to, blocking, may_block });
    }
    assert!(Regions::new(&regions, 4).is_err());
    check(&edges, &[0, 1, 2], &[&[0], &[1, 2], &[3]]);
}
