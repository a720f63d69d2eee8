//! The sorter against the standard library's stable sort: random rows, sizes around every boundary,
//! every option.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Place, Row, expected, mix, rows, sort, sort_with};
use proptest::prelude::*;
use slackwater_sort::{BlockCompression, NO_TIMESTAMP, Order, Ties};

#[track_caller]
fn check(place: &Place, fan_in: usize, input: &[Row]) {
    let expected = expected(input);
    for compression in [BlockCompression::None, BlockCompression::Lz4] {
        let options = place.options().with_fan_in(fan_in).with_compression(compression);
        let (sorted, stats) = sort(options.clone(), input).unwrap();
        assert!(sorted == expected, "pushed rows come in another order");
        assert_eq!(stats.records, input.len() as u64);
        let (sorted, _) = sort_with(options, input).unwrap();
        assert!(sorted == expected, "written rows come in another order");
        place.assert_clean();
    }
}

fn any_row() -> impl Strategy<Value = Row> {
    let key = prop_oneof![
        prop::collection::vec(0_u8..3, 0..12),
        prop::collection::vec(any::<u8>(), 8..17),
        Just(b"the same key, longer than a prefix".to_vec()),
    ];
    let timestamp = prop_oneof![Just(NO_TIMESTAMP), -3_i64..3, any::<i64>()];
    (key, timestamp, prop::collection::vec(any::<u8>(), 0..40))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_rows_come_as_the_standard_stable_sort_has_them(
        input in prop::collection::vec(any_row(), 0..400),
        budget in prop_oneof![Just(1_u64), 1_u64..500, 500_u64..20_000, Just(1 << 20)],
        fan_in in 2_usize..9,
    ) {
        check(&Place::new(budget), fan_in, &input);
    }
}

/// A hash that keeps nothing of the order of keys, with many keys of one hash.
fn hash(key: &[u8]) -> u64 {
    mix(key.iter().map(|byte| u64::from(*byte)).sum::<u64>() % 50)
}

/// Equal keys stay together, in order, whatever the prefix is: also those that share a hash.
#[test]
fn a_hash_as_prefix_orders_by_hash_and_then_by_key() {
    for length in [0, 3, 8, 9, 40] {
        let key = |n| [vec![7; length], (mix(n) % 300).to_be_bytes()[6..].to_vec()].concat();
        let input = rows(3_000, key, |n| (n % 4) as i64);
        for order in [Order::Ascending, Order::Descending] {
            let mut expected = input.clone();
            expected.sort_by(|a, b| {
                let keys = (hash(&a.0), &a.0).cmp(&(hash(&b.0), &b.0));
                let keys = if order == Order::Ascending { keys } else { keys.reverse() };
                keys.then(a.1.cmp(&b.1))
            });
            for memory in [8_000, 1 << 20] {
                let place = Place::new(memory);
                let options = place.options().with_prefix(hash).with_order(order).with_fan_in(5);
                assert!(sort_with(options, &input).unwrap().0 == expected, "{length} {memory}");
            }
        }
    }
}

#[test]
fn sizes_around_fan_in_and_its_square_come_in_order() {
    // With a budget of one byte each record is a run, so counts of records are counts of runs.
    for fan_in in [2, 3, 4] {
        for around in [1, fan_in, fan_in * fan_in, fan_in * fan_in * fan_in] {
            for count in around - 1..=around + 1 {
                let input = rows(count, |n| (mix(n) % 5).to_be_bytes().to_vec(), |_| 0);
                let place = Place::new(1);
                check(&place, fan_in as usize, &input);
            }
        }
    }
}

/// tS5: records that end at a page's border, one byte before and one behind, from every offset.
#[test]
fn records_around_a_page_border_read_back_whole() {
    // A budget of 4,096 bytes has pages of 256.
    for first in 0..40 {
        for second in 200..260 {
            let input: Vec<Row> = [first, second, 3, 250, 1]
                .iter()
                .enumerate()
                .map(|(n, len)| (vec![9 - n as u8], 0, (0..*len).map(|b| b as u8).collect()))
                .collect();
            let place = Place::new(4_096);
            let (sorted, _) = sort(place.options(), &input).unwrap();
            assert_eq!(sorted, expected(&input), "{first} {second}");
            let (sorted, _) = sort_with(place.options(), &input).unwrap();
            assert_eq!(sorted, expected(&input), "{first} {second}");
        }
    }
}

/// tS6: a record of more than 10 MiB, without a spill, both ways in.
#[test]
fn a_record_of_eleven_mib_reads_back_from_memory() {
    let place = Place::new(64 << 20);
    let input: Vec<Row> = vec![
        (b"b".to_vec(), 0, vec![1; 10]),
        (b"a".to_vec(), 0, (0..11 << 20).map(|n| (n % 251) as u8).collect()),
        (b"c".to_vec(), 0, vec![2; 10]),
    ];
    for sort in [sort, sort_with] {
        let (sorted, stats) = sort(place.options(), &input).unwrap();
        assert!(sorted == expected(&input));
        assert_eq!(stats.runs, 0);
    }
    place.assert_clean();
}

/// tS13: records without a timestamp come before all others of their key, in order of arrival.
#[test]
fn records_without_a_timestamp_come_first_and_as_they_arrived() {
    for budget in [1, 400, 1 << 20] {
        let timestamp = |n: u64| if n.is_multiple_of(3) { NO_TIMESTAMP } else { -(n as i64) };
        let input = rows(200, |n| vec![(n % 4) as u8], timestamp);
        check(&Place::new(budget), 3, &input);
    }
}

/// tS14: wide rows with narrow keys, and the other way round.
#[test]
fn wide_rows_with_narrow_keys_keep_both() {
    let mut input = Vec::new();
    for n in 0..300 {
        input.push((vec![mix(n) as u8; 1 + n as usize % 3], n as i64, vec![n as u8; 900]));
        input.push((mix(n).to_be_bytes().repeat(30), n as i64, vec![n as u8]));
    }
    check(&Place::new(30_000), 4, &input);
}

#[test]
fn inputs_of_every_shape_come_in_order() {
    let hot = |n: u64| if n.is_multiple_of(10) { mix(n) } else { 7 };
    let shapes: [&dyn Fn(u64) -> Vec<u8>; 8] = [
        &|n| n.to_be_bytes().to_vec(),
        &|n| (!n).to_be_bytes().to_vec(),
        &|_| b"all the same".to_vec(),
        &|_| Vec::new(),
        &|n| hot(n).to_be_bytes().to_vec(),
        &|n| [&[b'p'; 200][..], &mix(n).to_be_bytes()].concat(),
        &|n| vec![0; (mix(n) % 20) as usize],
        &|n| [b"prefix".repeat((mix(n) % 9) as usize), vec![n as u8]].concat(),
    ];
    for shape in shapes {
        for (budget, count) in [(1 << 20, 5_000), (20_000, 5_000)] {
            check(&Place::new(budget), 4, &rows(count, shape, |n| (mix(n) % 7) as i64));
        }
    }
}

#[test]
fn descending_keys_keep_timestamps_and_arrival_ascending() {
    for budget in [1, 3_000, 1 << 20] {
        let input =
            rows(500, |n| (0..mix(n) % 12).map(|b| (b % 2) as u8).collect(), |n| -(n as i64 % 5));
        let mut expected = input.clone();
        expected.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let place = Place::new(budget);
        let options = place.options().with_order(Order::Descending).with_fan_in(5);
        assert_eq!(sort(options, &input).unwrap().0, expected);
    }
}

#[test]
fn ties_by_arrival_leave_timestamps_alone() {
    for budget in [1, 3_000, 1 << 20] {
        let input = rows(500, |n| vec![(mix(n) % 5) as u8], |n| -(n as i64));
        let mut expected = input.clone();
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        let place = Place::new(budget);
        let options = place.options().with_ties(Ties::Arrival).with_fan_in(5);
        assert_eq!(sort(options, &input).unwrap().0, expected);
    }
}

#[test]
fn a_prefix_of_the_users_own_serves_as_well() {
    // Keys share their first eight bytes; the user knows better where they differ.
    fn behind_the_name(key: &[u8]) -> u64 {
        key.get(12..20).and_then(|part| part.try_into().ok()).map_or(0, u64::from_be_bytes)
    }
    let input = rows(2_000, |n| [b"twelve bytes", &mix(n).to_be_bytes()[..]].concat(), |_| 0);
    let place = Place::new(1 << 20);
    let (sorted, stats) = sort(place.options().with_prefix(behind_the_name), &input).unwrap();
    assert_eq!(sorted, expected(&input));
    assert_eq!(stats.deep_comparisons, 0, "the prefix decides alone");
}
