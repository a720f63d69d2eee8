//! What a sort costs, in counts: memory, files, passes, bytes, comparisons.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Place, Row, drain, expected, mix, rows, sort, sort_with};
use element::ByteSize;
use slackwater_sort::{BlockCompression, ExternalSorter, NO_TIMESTAMP};

fn uniform(count: u64) -> Vec<Row> {
    rows(count, |n| mix(n).to_be_bytes().to_vec(), |_| NO_TIMESTAMP)
}

#[test]
fn a_sort_that_fits_writes_nothing_and_a_sort_that_does_not_writes_once() {
    let input = uniform(10_000);
    let (_, stats) = sort(Place::new(1 << 22).options(), &input).unwrap();
    assert_eq!((stats.runs, stats.passes, stats.spilled_written), (0, 0, 0));
    assert_eq!(stats.deep_comparisons, 0, "the prefix decides alone");
    let (_, stats) = sort(Place::new(100_000).options(), &input).unwrap();
    assert_eq!(stats.passes, 1);
    assert_eq!(stats.spilled_raw, 10_000 * (4 + 16), "four bytes a record beside key and payload");
    let overhead = stats.spilled_written - stats.spilled_raw;
    assert!(overhead < stats.spilled_raw / 20, "{overhead} bytes of heads");
}

#[test]
fn the_budget_holds_for_records_of_any_size() {
    let shapes: [(u64, &dyn Fn(u64) -> usize); 5] = [
        (20_000, &|_| 0),
        (2_000, &|n| (mix(n) % 100) as usize),
        (300, &|n| (mix(n) % 5_000) as usize),
        (2_000, &|n| if n.is_multiple_of(100) { 20_000 } else { 3 }),
        (60, &|_| 40_000),
    ];
    for (count, length) in shapes {
        for memory in [1, 700, 10_000, 100_000] {
            for fan_in in [2, 7, 128] {
                let input: Vec<Row> = (0..count.min(400 + memory))
                    .map(|n| (mix(n).to_be_bytes()[..4].to_vec(), 0, vec![n as u8; length(n)]))
                    .collect();
                let largest = input.iter().map(|row| row.2.len() as u64 + 40).max().unwrap();
                for sort in [sort, sort_with] {
                    let place = Place::new(memory);
                    let options = place.options().with_fan_in(fan_in);
                    let (sorted, stats) = sort(options, &input).unwrap();
                    assert!(sorted == expected(&input));
                    // One record a run while merging, and the merge's output.
                    let beyond = largest * (fan_in as u64 + 1).min(stats.runs + 1);
                    assert!(
                        stats.peak_bytes <= memory + beyond,
                        "{} of {memory} and {beyond}",
                        stats.peak_bytes
                    );
                    assert_eq!(place.budget.peak(), ByteSize(stats.peak_bytes));
                    place.assert_clean();
                }
            }
        }
    }
}

#[test]
fn an_exhausted_shared_budget_means_spilling() {
    let place = Place::new(10_000);
    let others = place.budget.borrow(10_000).unwrap();
    let input = uniform(300);
    let (sorted, stats) = sort(place.options(), &input).unwrap();
    assert_eq!(sorted, expected(&input));
    assert!(stats.runs > 100);
    drop(others);
    place.assert_clean();
}

/// tS1: every option reaches the sorter: its effect shows in the counts.
#[test]
fn options_have_their_effect_in_the_counts() {
    let input = rows(3_000, |n| mix(n).to_be_bytes().to_vec(), |_| 0);
    let place = Place::new(20_000);
    for fan_in in [2_u64, 3, 8, 100] {
        let (_, stats) = sort(place.options().with_fan_in(fan_in as usize), &input).unwrap();
        let fewest = (1..).find(|passes| fan_in.saturating_pow(*passes) >= stats.runs).unwrap();
        assert_eq!(stats.passes, u64::from(fewest), "{} runs, fan-in {fan_in}", stats.runs);
        assert!(stats.peak_open_files <= fan_in + 1);
    }
    let (_, all) = sort(place.options(), &input).unwrap();
    let (_, half) = sort(place.options().with_memory(5_000), &input).unwrap();
    assert!(half.runs > 2 * all.runs && half.peak_bytes <= 5_100);
    let same = rows(3_000, |_| vec![7; 40], |_| 0);
    let lz4 = place.options().with_fan_in(4).with_compression(BlockCompression::Lz4);
    let (_, packed) = sort(lz4, &same).unwrap();
    assert!(packed.spilled_written < packed.spilled_raw / 2);
}

/// tS4: buffers that hold nothing but records larger than a page, or than the budget.
#[test]
fn buffers_of_long_records_alone_give_no_empty_run() {
    let input: Vec<Row> = (0..20).map(|n| (vec![20 - n], 0, vec![n; 5_000])).collect();
    let place = Place::new(1_000);
    let (sorted, stats) = sort(place.options(), &input).unwrap();
    assert_eq!(sorted, expected(&input));
    assert_eq!(stats.runs, 20);
    place.assert_clean();
}

#[test]
fn one_pass_more_costs_no_more_than_the_excess() {
    // Nine runs at a fan-in of eight: two are merged, seven are left alone.
    let input = uniform(9);
    let (_, stats) = sort(Place::new(1).options().with_fan_in(8), &input).unwrap();
    assert_eq!((stats.runs, stats.passes), (9, 2));
    assert_eq!(stats.spilled_raw, (9 + 2) * (4 + 16));
}

#[test]
fn sorted_reversed_equal_and_skewed_input_stays_linear() {
    let count = 20_000_u64;
    let hot = |n: u64| if n.is_multiple_of(10) { mix(n) } else { 7 };
    let shapes: [&dyn Fn(u64) -> u64; 4] = [&|n| n, &|n| !n, &|_| 7, &hot];
    for key in shapes {
        let input = rows(count, |n| key(n).to_be_bytes().to_vec(), |_| 0);
        let (sorted, stats) = sort(Place::new(1 << 24).options(), &input).unwrap();
        assert!(sorted == expected(&input));
        assert!(stats.deep_comparisons <= 2 * count, "{}", stats.deep_comparisons);
    }
}

#[test]
fn a_long_shared_beginning_costs_a_few_readings_a_key() {
    let count = 20_000_u64;
    let input = rows(count, |n| [&[b'p'; 200][..], &mix(n).to_be_bytes()].concat(), |_| 0);
    let (sorted, stats) = sort(Place::new(1 << 24).options(), &input).unwrap();
    assert!(sorted == expected(&input));
    assert!(stats.deep_comparisons <= 3 * count, "{}", stats.deep_comparisons);
}

#[test]
fn a_group_dropped_half_way_is_skipped_and_the_next_is_whole() {
    for memory in [2_000, 1 << 20] {
        let input = rows(1_000, |n| vec![b'k'; 1 + (mix(n) % 10) as usize], |n| n as i64);
        let place = Place::new(memory);
        let mut sorter = ExternalSorter::new(place.options());
        for (key, timestamp, payload) in &input {
            sorter.push(key, *timestamp, payload).unwrap();
        }
        let mut groups = sorter.finish().unwrap().groups();
        let mut seen = 0;
        while let Some(mut group) = groups.next().unwrap() {
            seen += 1;
            assert_eq!(group.key().len(), seen);
            let all: Vec<&Row> = input.iter().filter(|row| row.0.len() == seen).collect();
            // None, a few, all but one, all, and asked again after the end.
            let wanted = [0, 3, all.len() - 1, all.len(), all.len() + 2][seen % 5];
            for n in 0..wanted {
                let record = group.next().unwrap().map(|record| record.payload.to_vec());
                assert_eq!(record.as_ref(), all.get(n).map(|row| &row.2));
            }
        }
        assert_eq!(seen, 10);
        place.assert_clean();
    }
}

#[test]
fn an_empty_sort_and_an_empty_key_are_ordinary() {
    let place = Place::new(1_000);
    let (sorted, stats) = drain(ExternalSorter::new(place.options()).finish().unwrap()).unwrap();
    assert!(sorted.is_empty() && stats.runs == 0);
    let mut sorter = ExternalSorter::new(place.options());
    sorter.push(b"", 5, b"").unwrap();
    let mut groups = sorter.finish().unwrap().groups();
    let mut group = groups.next().unwrap().unwrap();
    assert!(group.key().is_empty());
    assert!(group.next().unwrap().is_some() && group.next().unwrap().is_none());
    assert!(groups.next().unwrap().is_none() && groups.next().unwrap().is_none());
}
