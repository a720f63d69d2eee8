//! The combining sorter: against a map, in counts, within its budget.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeMap;

use common::{Place, mix};
use element::{ByteSize, hash_key_bytes};
use proptest::prelude::*;
use slackwater_sort::{
    CancelFlag, Combiner, CombiningSorter, KeyBlock, Order, SortError, SortStats, SorterOptions,
};

/// Joins texts in order of arrival: associative, but it does not commute.
struct Join;

impl Combiner for Join {
    type Accumulator = String;

    fn merge(&self, into: &mut String, other: String) {
        into.push_str(&other);
    }
}

type Folded = Vec<(Vec<u8>, i64, String)>;

fn join(
    options: SorterOptions,
    rows: &[(Vec<u8>, i64, String)],
) -> Result<(Folded, SortStats), SortError> {
    let mut sorter = CombiningSorter::new(Join, options);
    for (key, timestamp, text) in rows {
        let fold = |joined: Option<&mut String>| match joined {
            Some(joined) => {
                joined.push_str(text);
                None
            }
            None => Some(text.clone()),
        };
        sorter.update(hash_key_bytes(key).0, key, *timestamp, fold)?;
    }
    let mut stream = sorter.finish()?;
    let mut folded = Vec::new();
    while let Some(record) = stream.next()? {
        folded.push((record.key.to_vec(), record.timestamp, record.accumulator));
    }
    Ok((folded, stream.stats()))
}

/// As [`join`], with rows in blocks, whose keys are looked up at once.
fn join_in_blocks(
    options: SorterOptions,
    rows: &[(Vec<u8>, i64, String)],
) -> Result<(Folded, SortStats), SortError> {
    let mut sorter = CombiningSorter::new(Join, options);
    let mut block = KeyBlock::default();
    for rows in rows.chunks(KeyBlock::KEYS) {
        block.clear();
        for (key, _, _) in rows {
            block.push_with(|bytes| {
                bytes.extend_from_slice(key);
                Ok::<_, SortError>(())
            })?;
        }
        block.hash_with(|key| hash_key_bytes(key).0);
        let records = rows.iter().map(|(_, timestamp, text)| (*timestamp, text));
        sorter.update_block(&mut block, records, |joined, text| match joined {
            Some(joined) => {
                joined.push_str(text);
                None
            }
            None => Some(text.clone()),
        })?;
    }
    let mut stream = sorter.finish()?;
    let mut folded = Vec::new();
    while let Some(record) = stream.next()? {
        folded.push((record.key.to_vec(), record.timestamp, record.accumulator));
    }
    Ok((folded, stream.stats()))
}

/// As [`join`], with a number for each key: its place among the keys. Answers how many keys were written
/// out, too.
fn join_by_number(
    options: SorterOptions,
    rows: &[(Vec<u8>, i64, String)],
) -> Result<(Folded, SortStats, u64), SortError> {
    let mut places: Vec<&[u8]> = rows.iter().map(|row| row.0.as_slice()).collect();
    places.sort_unstable();
    places.dedup();
    // Far apart, close together, and 0 among them.
    let number = |key: &[u8]| match places.binary_search(&key).unwrap() as u64 {
        place if place % 2 == 0 => place,
        place => place << 50,
    };
    let mut sorter = CombiningSorter::new(Join, options);
    let mut written = 0;
    for rows in rows.chunks(50) {
        let numbers: Vec<u64> = rows.iter().map(|row| number(&row.0)).collect();
        let records = rows.iter().map(|row| (row.1, row));
        let write = |row: &&(Vec<u8>, i64, String), bytes: &mut Vec<u8>| {
            written += 1;
            bytes.extend_from_slice(&row.0);
            hash_key_bytes(&row.0).0
        };
        sorter.update_numbered(&numbers, records, write, |joined, row| match joined {
            Some(joined) => {
                joined.push_str(&row.2);
                None
            }
            None => Some(row.2.clone()),
        })?;
    }
    let mut stream = sorter.finish()?;
    let mut folded = Vec::new();
    while let Some(record) = stream.next()? {
        folded.push((record.key.to_vec(), record.timestamp, record.accumulator));
    }
    Ok((folded, stream.stats(), written))
}

fn model(rows: &[(Vec<u8>, i64, String)]) -> Folded {
    let mut map: BTreeMap<&[u8], (i64, String)> = BTreeMap::new();
    for (key, timestamp, text) in rows {
        let entry = map.entry(key).or_insert((*timestamp, String::new()));
        entry.0 = entry.0.max(*timestamp);
        entry.1.push_str(text);
    }
    map.into_iter().map(|(key, (timestamp, text))| (key.to_vec(), timestamp, text)).collect()
}

fn uniform(count: u64, keys: u64, key_bytes: usize) -> Vec<(Vec<u8>, i64, String)> {
    (0..count)
        .map(|n| {
            let mut key = (mix(n) % keys).to_be_bytes().to_vec();
            key.resize(key_bytes, 0);
            (key, (n % 100) as i64, format!("{n},"))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_rows_fold_as_a_map_folds_them(
        rows in prop::collection::vec(
            (prop::collection::vec(0_u8..3, 0..40), -3_i64..3, "[a-z]{0,9}"),
            0..300,
        ),
        budget in prop_oneof![Just(1_u64), 1_u64..3_000, Just(1 << 20)],
        fan_in in 2_usize..6,
    ) {
        let place = Place::new(budget);
        let (folded, stats) = join(place.options().with_fan_in(fan_in), &rows).unwrap();
        prop_assert_eq!(folded, model(&rows));
        prop_assert_eq!(stats.records, rows.len() as u64);
        place.assert_clean();
        let (folded, in_blocks) =
            join_in_blocks(place.options().with_fan_in(fan_in), &rows).unwrap();
        prop_assert_eq!(folded, model(&rows));
        prop_assert_eq!((in_blocks.combined, in_blocks.runs), (stats.combined, stats.runs));
        place.assert_clean();
        let (folded, numbered, _) =
            join_by_number(place.options().with_fan_in(fan_in), &rows).unwrap();
        prop_assert_eq!(folded, model(&rows));
        prop_assert_eq!((numbered.records, numbered.bytes_in), (stats.records, stats.bytes_in));
        place.assert_clean();
    }
}

#[test]
fn a_key_that_is_a_number_is_hardly_ever_written_out() {
    for keys in [1, 100, 3_000] {
        let rows = uniform(50_000, keys, 8);
        let place = Place::new(16 << 20);
        let (folded, stats, written) = join_by_number(place.options(), &rows).unwrap();
        assert_eq!(folded, model(&rows));
        let counts = (stats.records, stats.bytes_in, stats.combined);
        assert_eq!(counts, (50_000, 400_000, 50_000 - keys));
        // Once for each size of a table that grows.
        assert!(written <= 3 * keys + 20, "{written} of {keys} keys");
        place.assert_clean();
    }
}

#[test]
fn what_stands_in_front_of_a_table_leaves_it_the_memory() {
    let rows = uniform(20_000, 900, 8);
    let (mut budget, mut runs) = (16_000, (1, 1));
    while runs != (0, 0) {
        let place = Place::new(budget);
        let (by_bytes, by_bytes_stats) = join(place.options(), &rows).unwrap();
        let (by_number, stats, _) = join_by_number(place.options(), &rows).unwrap();
        assert_eq!(by_number, by_bytes);
        assert!(stats.runs == 0 || by_bytes_stats.runs > 0, "{budget} bytes are enough");
        let beyond = stats.peak_bytes.saturating_sub(budget);
        assert!(beyond < 2_000, "{beyond} bytes beyond the budget");
        place.assert_clean();
        runs = (by_bytes_stats.runs, stats.runs);
        budget += 16_000;
    }
}

#[test]
fn numbers_that_meet_are_told_apart() {
    // What the golden ratio takes to the first place, many times.
    let inverse = (0..6).fold(0x9E37_79B9_7F4A_7C15_u64, |inverse: u64, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(inverse.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    });
    let numbers: Vec<u64> = (0..2_000).map(|n: u64| inverse.wrapping_mul(n % 100)).collect();
    let place = Place::new(1 << 20);
    let mut sorter = CombiningSorter::new(Join, place.options());
    let key = |number: &&u64, bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(&number.to_be_bytes());
        hash_key_bytes(bytes).0
    };
    let records = numbers.iter().map(|number| (0, number));
    let fold = |joined: Option<&mut String>, _| match joined {
        Some(joined) => {
            joined.push('x');
            None
        }
        None => Some("x".to_owned()),
    };
    sorter.update_numbered(&numbers, records, key, fold).unwrap();
    let mut stream = sorter.finish().unwrap();
    let mut keys = 0;
    while let Some(record) = stream.next().unwrap() {
        assert_eq!(record.accumulator.len(), 20);
        keys += 1;
    }
    assert_eq!(keys, 100);
}

#[test]
fn few_keys_are_neither_sorted_nor_spilled() {
    let rows = uniform(50_000, 100, 8);
    let place = Place::new(4 << 20);
    let (folded, stats) = join(place.options(), &rows).unwrap();
    assert_eq!(folded.len(), 100);
    assert_eq!((stats.runs, stats.passes, stats.spilled_written), (0, 0, 0));
    assert_eq!(stats.combined, 50_000 - 100);
    place.assert_clean();
}

#[test]
fn many_keys_spill_partial_results_and_fold_them_again() {
    for key_bytes in [8, 16, 17, 24, 25, 60] {
        let rows = uniform(5_000, 1_000, key_bytes);
        let place = Place::new(20_000);
        let (folded, stats) = join(place.options().with_fan_in(3), &rows).unwrap();
        assert_eq!(folded, model(&rows));
        assert!(stats.runs > 9 && stats.passes > 1);
        assert_eq!(stats.combined, 5_000 - folded.len() as u64);
        // One table of the smallest size and one result a run may go beyond.
        let beyond = stats.peak_bytes.saturating_sub(20_000);
        assert!(beyond < 2_000, "{beyond} bytes beyond the budget");
        place.assert_clean();
    }
}

#[test]
fn results_that_grow_are_counted_and_spill() {
    let rows: Vec<(Vec<u8>, i64, String)> =
        (0..2_000).map(|n| (vec![n as u8 % 3], 0, "x".repeat(50))).collect();
    let place = Place::new(10_000);
    let (folded, stats) = join(place.options(), &rows).unwrap();
    assert_eq!(folded, model(&rows));
    assert!(stats.runs > 1, "texts that grow fill the budget");
    place.assert_clean();
}

#[test]
fn keys_of_one_hash_are_told_apart() {
    let place = Place::new(1 << 20);
    let mut sorter = CombiningSorter::new(Join, place.options().with_order(Order::Descending));
    for n in 0..600_u16 {
        let mut key = (n % 300).to_be_bytes().to_vec();
        key.resize(if n % 2 == 0 { 2 } else { 40 }, 9);
        let text = n.to_string();
        let fold = |joined: Option<&mut String>| match joined {
            Some(joined) => {
                joined.push_str(&text);
                None
            }
            None => Some(text.clone()),
        };
        sorter.update(7, &key, 0, fold).unwrap();
    }
    let mut stream = sorter.finish().unwrap();
    let mut expected = 300_u16;
    while let Some(record) = stream.next().unwrap() {
        expected -= 1;
        assert_eq!(record.key[..2], expected.to_be_bytes());
        assert_eq!(record.accumulator, format!("{expected}{}", expected + 300));
    }
    assert_eq!(expected, 0);
}

#[test]
fn a_fold_that_answers_nothing_leaves_the_key_out() {
    let place = Place::new(1 << 20);
    let mut sorter = CombiningSorter::new(Join, place.options());
    sorter.update(1, b"a", 0, |_| None).unwrap();
    sorter.update(2, b"b", 5, |_| Some("b".to_owned())).unwrap();
    let mut stream = sorter.finish().unwrap();
    let only = stream.next().unwrap().unwrap();
    assert_eq!((only.key, only.timestamp, only.accumulator), (&b"b"[..], 5, "b".to_owned()));
    assert!(stream.next().unwrap().is_none());
    place.assert_clean();
}

#[test]
fn a_combining_sort_that_is_cancelled_or_dropped_leaves_nothing() {
    for memory in [3_000, 1 << 20] {
        let rows = uniform(30_000, 500, 8);
        let place = Place::new(memory);
        let cancel = CancelFlag::new();
        cancel.cancel();
        let cancelled = join(place.options().with_cancel(cancel), &rows);
        assert!(matches!(cancelled, Err(SortError::Cancelled)));
        place.assert_clean();
        let mut sorter = CombiningSorter::new(Join, place.options());
        for (key, timestamp, text) in &rows[..2_000] {
            let fold = |joined: Option<&mut String>| joined.is_none().then(|| text.clone());
            sorter.update(hash_key_bytes(key).0, key, *timestamp, fold).unwrap();
        }
        let mut stream = sorter.finish().unwrap();
        stream.next().unwrap();
        drop(stream);
        place.assert_clean();
        assert_eq!(place.budget.used(), ByteSize(0));
    }
}

/// The memory refuses the first key already, so there is neither a table nor a run before the end.
#[test]
fn a_single_key_beyond_the_budget_is_not_lost() {
    let rows = vec![(Vec::new(), 7, "only".to_owned())];
    let place = Place::new(1);
    assert_eq!(join(place.options(), &rows).unwrap().0, model(&rows));
    place.assert_clean();
}

/// A table that is looked into by the block folds as one that is looked into key by key, whether it
/// grows, spills or stays as it is meanwhile.
#[test]
fn many_keys_in_blocks_fold_as_keys_one_by_one() {
    for budget in [1 << 20, 64 << 20] {
        let rows = uniform(60_000, 20_000, 8);
        let place = Place::new(budget);
        let (folded, stats) = join(place.options(), &rows).unwrap();
        let (in_blocks, of_blocks) = join_in_blocks(place.options(), &rows).unwrap();
        assert!(folded == in_blocks && folded == model(&rows), "{stats:?}");
        assert_eq!((of_blocks.combined, of_blocks.runs), (stats.combined, stats.runs));
        place.assert_clean();
    }
}

/// Where keys hardly repeat within the memory, records are sorted one by one and folded in merges: of
/// every key each record once, in order, whether keys come back later or never.
#[test]
fn keys_that_hardly_repeat_are_folded_in_merges() {
    for keys in [3_000, 20_000] {
        let rows: Vec<(Vec<u8>, i64, String)> = (0..20_000_u64)
            .map(|n| (mix(n % keys).to_be_bytes().to_vec(), n as i64, format!("{n},")))
            .collect();
        let place = Place::new(40_000);
        for fan_in in [3, 64] {
            let (folded, stats) = join(place.options().with_fan_in(fan_in), &rows).unwrap();
            assert_eq!(folded, model(&rows));
            assert_eq!(stats.combined, 20_000 - keys);
            assert!(stats.peak_bytes < 42_000, "{stats:?}");
            place.assert_clean();
        }
    }
}
