//! Live records of more keys than caches hold: their entries are looked at a block ahead, and nothing that
//! comes out shows it.

use std::collections::HashMap;

use slackwater_runtime::operator::process::Process;

use crate::harness::{Harness, Row, Setting};
use crate::phases::Sum;

const KEYS: u32 = 60_000;

/// Pushes rows, and holds what comes out against sums made by hand.
#[track_caller]
fn check(
    harness: &mut Harness<Process<Sum, Row>, Row>,
    sums: &mut HashMap<u32, i64>,
    rows: &[Row],
) {
    harness.push(rows);
    let expected: Vec<Row> = rows
        .iter()
        .map(|(key, value)| {
            let sum = sums.entry(*key).or_default();
            *sum += value;
            (*key, *sum)
        })
        .collect();
    assert_eq!(harness.take_records(), expected);
}

#[test]
fn more_keys_than_caches_hold_give_each_record_its_sum() {
    let mut harness = Harness::new(Setting::streaming(), Process::new(Sum::new()));
    let mut sums = HashMap::new();
    let mut next = 0_u32;
    for batch in 0..400 {
        // Batches around the size of a block; keys that are new, that repeat, and that follow themselves.
        let size = [1_000, 64, 63, 1, 129][batch % 5];
        let row = |at| {
            next = next.wrapping_add(if at % 7 == 0 { 0 } else { 0x9E37_79B1 });
            (next % KEYS, at)
        };
        let rows: Vec<Row> = (0..size).map(row).collect();
        check(&mut harness, &mut sums, &rows);
        if batch % 100 == 99 {
            // Shards are shared from here on, until a record changes them.
            assert!(harness.barrier(batch as u64).is_some());
        }
    }
    let all: Vec<Row> = (0..KEYS).map(|key| (key, 1)).collect();
    for rows in all.chunks(1_000).chain(all.chunks(1_024)) {
        check(&mut harness, &mut sums, rows);
    }
    assert_eq!(sums.len(), KEYS as usize);
}
