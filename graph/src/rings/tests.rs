//! Rings of pipelined and blocking edges: every one is resolved, the least is changed.
//!
//! One `check` settles a list of edges and compares which of them block and what the regions are.

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
    let vertices = edges.iter().map(|edge| edge.1 + 1).max().unwrap_or(1);
    let settled = settle(&mut flows, vertices);
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
fn a_ring_that_other_blocking_edges_close_is_cut() {
    // Producers 0 and 1, consumers 2 and 3: 0 feeds both, live to 3; 1 feeds both, live to 2.
    let edges = [(0, 2, BLOCKING), (1, 3, BLOCKING), (0, 3, PIPELINED), (1, 2, PIPELINED)];
    check(&edges, &[0, 1, 3], &[&[1], &[0, 3], &[2]]);
}

#[test]
fn many_rings_are_cut_each_by_itself() {
    // Diamonds in a row: source, at end, join; the join is the next source.
    let mut edges = Vec::new();
    for at in (0..200).step_by(2) {
        edges.extend([
            (at, at + 1, PIPELINED),
            (at + 1, at + 2, BLOCKING),
            (at, at + 2, PIPELINED),
        ]);
    }
    let blocking: Vec<usize> = (0..edges.len()).filter(|edge| edge % 3 > 0).collect();
    let regions: Vec<Vec<usize>> =
        (0..200).step_by(2).map(|at| vec![at, at + 1]).chain([vec![200]]).collect();
    check(&edges, &blocking, &regions.iter().map(Vec::as_slice).collect::<Vec<_>>());
}
