//! Records that the buffer deals into parts by the top bits of their prefix: the order, the memory
//! and the counts are those of one part.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::Arc;

use common::{Place, Row, drain, drain_side_by_side, expected, mix, rows, sort, sort_with};
use element::{ByteSize, FaultyStore, Operation};
use slackwater_sort::{ExternalSorter, NO_TIMESTAMP, Order, SortError};

/// The least memory with which records are dealt.
const DEALS: u64 = 4 << 20;

fn hashed(n: u64, keys: u64) -> Vec<u8> {
    let key = mix(n) % keys;
    [mix(key ^ 0x5bd1).to_be_bytes(), key.to_be_bytes()].concat()
}

#[track_caller]
fn check(memory: u64, input: &[Row]) -> u64 {
    let expected = expected(input);
    let largest = input.iter().map(|row| (row.0.len() + row.2.len()) as u64 + 40).max().unwrap();
    let mut runs = 0;
    for sort in [sort, sort_with] {
        let place = Place::new(memory);
        let (sorted, stats) = sort(place.options(), input).unwrap();
        assert!(sorted == expected, "not the standard library's order");
        assert!(stats.peak_bytes <= memory + largest * (stats.runs + 1), "{stats:?}");
        assert_eq!(place.budget.peak(), ByteSize(stats.peak_bytes));
        place.assert_clean();
        runs = stats.runs;
    }
    runs
}

#[test]
fn hashed_keys_come_in_order_whether_they_fit_or_not() {
    for keys in [40, 1_000, 30_000, u64::MAX] {
        let input = rows(120_000, |n| hashed(n, keys), |n| (mix(!n) % 3) as i64);
        assert!(check(DEALS, &input) >= 1, "it spills");
        assert_eq!(check(1 << 25, &input), 0, "it fits");
    }
}

/// Records of several keys with one prefix between those of one, dealt: keys as numbers have them and
/// others, with timestamps, without, and both.
#[test]
fn keys_of_one_prefix_are_told_apart_whatever_their_shape() {
    fn coarse(key: &[u8]) -> u64 {
        key.iter().fold(0, |sum, byte| mix(sum ^ u64::from(*byte))) >> 50 << 50
    }
    let stamps: [fn(u64) -> i64; 3] = [
        |_| NO_TIMESTAMP,
        |n| (mix(n) % 9) as i64,
        |n| if n.is_multiple_of(3) { NO_TIMESTAMP } else { n as i64 },
    ];
    for length in [3, 8, 20] {
        for (kind, timestamp) in stamps.into_iter().enumerate() {
            let key = |n: u64| [(mix(n) % 8_000).to_be_bytes(); 4].concat()[5..5 + length].to_vec();
            let input = rows(30_000, key, timestamp);
            let mut expected = input.clone();
            expected.sort_by(|a, b| (coarse(&a.0), &a.0, a.1).cmp(&(coarse(&b.0), &b.0, b.1)));
            for sort in [sort, sort_with] {
                let options = Place::new(DEALS).options().with_prefix(coarse);
                let sorted = sort(options, &input).unwrap().0;
                assert!(sorted == expected, "{length} bytes, {kind}");
            }
        }
    }
}

/// An answer of the reader's ends a piece; the record behind comes next, from memory and from runs.
#[test]
fn a_reader_that_stops_goes_on_behind_the_record_it_stopped_at() {
    let input = rows(120_000, |n| hashed(n, 1_000), |_| 0);
    for memory in [1 << 25, DEALS, 10_000] {
        let place = Place::new(memory);
        let mut sorter = ExternalSorter::new(place.options());
        for (key, timestamp, payload) in &input {
            sorter.push(key, *timestamp, payload).unwrap();
        }
        let mut stream = sorter.finish().unwrap();
        let mut sorted = Vec::new();
        for stop in (1_u64..).map(|n| mix(n) % 300) {
            let mut left = stop;
            let handed = stream.hand_over(usize::MAX, |record| {
                sorted.push((record.key.to_vec(), record.timestamp, record.payload.to_vec()));
                left = left.checked_sub(1).ok_or(SortError::Cancelled)?;
                Ok(())
            });
            match handed {
                Err(SortError::Cancelled) => {}
                handed => {
                    assert_eq!(handed.unwrap() as u64, stop - left);
                    break;
                }
            }
        }
        assert!(sorted == expected(&input));
        drop(stream);
        place.assert_clean();
    }
}

/// What is kept for a merge leaves each run its block: runs are written by blocks, however many there are.
#[test]
fn every_run_of_dealt_records_is_written_by_blocks() {
    let place = Place::new(DEALS);
    for records in [100_000, 200_000, 400_000, 800_000] {
        let store = FaultyStore::new(Arc::clone(&place.store));
        let counted = Place { budget: Arc::clone(&place.budget), store: Arc::new(store.clone()) };
        let mut sorter = ExternalSorter::new(counted.options());
        for n in 0..records {
            sorter.push(&mix(n).to_be_bytes(), NO_TIMESTAMP, &n.to_le_bytes()).unwrap();
        }
        let mut sorted = sorter.finish().unwrap();
        let mut left = records;
        while sorted.next().unwrap().is_some() {
            left -= 1;
        }
        assert_eq!(left, 0);
        let (writes, stats) = (store.count(Operation::Write), sorted.stats());
        let blocks = stats.spilled_written / (DEALS / 131);
        assert!(writes <= 2 * (blocks + 3 * stats.runs), "{writes} writes of {blocks}: {stats:?}");
        place.assert_clean();
    }
}

#[test]
fn an_even_sample_may_be_followed_by_anything() {
    let uniform = |n: u64| n < 5_000;
    // One key for the rest; keys in descending order; records longer than a page of a part.
    let one = |n: u64| if uniform(n) { mix(n) } else { 7 }.to_be_bytes().to_vec();
    check(DEALS, &rows(150_000, one, |_| NO_TIMESTAMP));
    let falling = |n: u64| if uniform(n) { mix(n) } else { !n }.to_be_bytes().to_vec();
    check(DEALS, &rows(150_000, falling, |_| 0));
    let mut long = rows(8_000, |n| hashed(n, u64::MAX), |_| 0);
    for (n, row) in long.iter_mut().enumerate().skip(5_000).filter(|(n, _)| n % 10 == 0) {
        row.2 = vec![n as u8; (mix(n as u64) % 20_000) as usize];
    }
    check(DEALS, &long);
}

#[test]
fn keys_that_are_not_spread_stay_in_one_part() {
    let words = |n: u64| format!("https://{}", mix(n) % 70_000).into_bytes();
    check(DEALS, &rows(120_000, words, |_| 0));
    check(DEALS, &rows(120_000, |n| n.to_be_bytes().to_vec(), |_| 0));
}

#[test]
fn descending_order_is_dealt_alike() {
    let input = rows(20_000, |n| hashed(n, 3_000), |_| 0);
    let place = Place::new(1 << 25);
    let (sorted, _) = sort(place.options().with_order(Order::Descending), &input).unwrap();
    let mut expected = input;
    expected.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    assert!(sorted == expected);
    place.assert_clean();
}

#[test]
fn a_shared_budget_without_room_for_parts_goes_on_in_one() {
    // What others hold leaves room for the sample, but not for the first pages of all parts.
    for left in [200_000, 300_000, 400_000, 500_000] {
        let place = Place::new(DEALS);
        let others = place.budget.borrow(DEALS - left).unwrap();
        let input = rows(60_000, |n| hashed(n, u64::MAX), |_| 0);
        let mut sorter = ExternalSorter::new(place.options());
        for (key, timestamp, payload) in &input {
            sorter.push(key, *timestamp, payload).unwrap();
        }
        assert!(sorter.stats().runs > 3);
        assert!(place.budget.peak() <= ByteSize(DEALS + 100), "{:?}", sorter.stats());
        assert!(drain(sorter.finish().unwrap()).unwrap().0 == expected(&input));
        drop(others);
        place.assert_clean();
    }
}

#[test]
fn threads_share_the_parts_and_the_memory() {
    let input = rows(100_000, |n| hashed(n, 20_000), |_| 0);
    let place = Place::new(1 << 25);
    let mut sorter = ExternalSorter::new(place.options());
    for (key, timestamp, payload) in &input {
        sorter.push(key, *timestamp, payload).unwrap();
    }
    let streams = sorter.finish_ranges(4).unwrap();
    assert_eq!(streams.len(), 4);
    let drained = drain_side_by_side(streams);
    assert!(drained.iter().all(|part| part.len() > 20_000), "the parts are about equal");
    assert!(drained.concat() == expected(&input));
    place.assert_clean();
}

/// What of the records is written follows what does not fit: the lower parts of the order stay.
#[test]
fn a_buffer_that_overflows_by_little_writes_little() {
    let input = rows(220_000, |n| hashed(n, 30_000), |_| NO_TIMESTAMP);
    let all = 220_000 * (4 + 16 + 8);
    for (memory, share) in [(DEALS, 65), (5 << 20, 50), (6 << 20, 26)] {
        for sort in [sort, sort_with] {
            let place = Place::new(memory);
            let (sorted, stats) = sort(place.options(), &input).unwrap();
            assert!(sorted == expected(&input));
            let percent = stats.spilled_raw * 100 / all;
            assert!((1..=share).contains(&percent), "{percent} % of {memory}: {stats:?}");
            assert_eq!(stats.passes, 1);
            assert!(stats.peak_bytes <= memory && stats.peak_open_files <= stats.runs);
            place.assert_clean();
        }
    }
}

#[test]
fn a_buffer_that_overflows_often_is_written_as_a_whole() {
    let mut input = rows(250_000, |n| hashed(n, 3_000), |_| NO_TIMESTAMP);
    input.iter_mut().for_each(|row| row.2.resize(100, 0));
    for fan_in in [3, 128] {
        let place = Place::new(DEALS);
        let (sorted, stats) = sort_with(place.options().with_fan_in(fan_in), &input).unwrap();
        assert!(sorted == expected(&input));
        assert!(stats.runs < 25, "{stats:?}");
        assert!(stats.peak_bytes <= DEALS);
        place.assert_clean();
    }
}

/// Subtasks have a share of all hashes each: it is dealt as all of them are.
#[test]
fn prefixes_of_a_range_are_dealt_within_it_and_others_come_in_order_too() {
    let share = 5 << 60..=(6 << 60) - 1;
    let inside = |n: u64| (mix(n) >> 4) | (5 << 60);
    let input = rows(220_000, |n| inside(n).to_be_bytes().to_vec(), |_| NO_TIMESTAMP);
    for order in [Order::Ascending, Order::Descending] {
        let place = Place::new(DEALS);
        let options = place.options().with_prefix_range(share.clone()).with_order(order);
        let (mut sorted, stats) = sort(options, &input).unwrap();
        let percent = stats.spilled_raw * 100 / (220_000 * (4 + 8 + 8));
        assert!((1..=65).contains(&percent) && stats.passes == 1, "{percent} %: {stats:?}");
        if order == Order::Descending {
            sorted.reverse();
        }
        assert!(sorted == expected(&input), "keys come once, so that turning them round is all");
    }
    for (outside, seldom) in [(0_u64, 9), (u64::MAX, 9), (u64::MAX, 2), (0, 2)] {
        let key = |n: u64| {
            let is_outside = n > 5_000 && n.is_multiple_of(seldom);
            if is_outside { outside ^ (mix(n) >> 6) } else { inside(n) }
        };
        let input = rows(150_000, |n| key(n).to_be_bytes().to_vec(), |n| (n % 2) as i64);
        let place = Place::new(DEALS);
        let options = place.options().with_prefix_range(share.clone());
        assert!(sort_with(options, &input).unwrap().0 == expected(&input), "{outside} {seldom}");
        place.assert_clean();
    }
}
