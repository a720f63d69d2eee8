//! The cases of the case book that concern sorting, from copies of their input and expectation.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::{Place, Row, drain, sort, sort_with};
use element::{FileRole, Key, MemoryStore, OrderedF64, Record, hash_key_bytes, key_bytes};
use serde_json::{Value, json};
use slackwater_sort::{
    BlockCompression, Combiner, CombiningSorter, ExternalSorter, SorterOptions, TypedSorter,
};

fn read(case: &str, name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(case).join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

#[test]
fn case_13_sort_oversized_records() {
    let case = "13-sort-oversized-records";
    let (input, expected) = (read(case, "input.json"), read(case, "expected.json"));
    let memory = input["sort_memory"].as_u64().unwrap();
    let mut rows: Vec<Row> = Vec::new();
    for record in array(&input["records"]) {
        let [key, length, seed] = [0, 1, 2].map(|at| record[at].as_i64().unwrap());
        let payload = (0..length).map(|n| ((seed + 31 * n) % 251) as u8).collect();
        rows.push((key_bytes(&key), 0, payload));
    }
    let largest = rows.iter().map(|row| row.2.len() as u64).max().unwrap();
    let bound = memory + largest + 4 * input["page"].as_u64().unwrap();
    for compression in [BlockCompression::None, BlockCompression::Lz4] {
        for sort in [sort, sort_with] {
            let place = Place::new(memory);
            let (sorted, stats) =
                sort(place.options().with_compression(compression), &rows).unwrap();
            let found: Vec<Value> = sorted
                .iter()
                .map(|(key, _, payload)| {
                    let key = i64::decode_key(&mut key.as_slice()).unwrap();
                    json!([key, payload.len(), crc32fast::hash(payload)])
                })
                .collect();
            assert_eq!(json!(found), expected["sorted"]);
            assert!(stats.peak_bytes <= bound, "{} of {bound}", stats.peak_bytes);
            assert!(stats.runs > 1);
            place.assert_clean();
        }
    }
}

/// Sums values by key.
struct Sum;

impl Combiner for Sum {
    type Accumulator = i64;

    fn merge(&self, into: &mut i64, other: i64) {
        *into += other;
    }
}

/// Sums by key through the combining sorter; `(key bytes, sum)` in sort order.
fn combined(options: SorterOptions, rows: &[(Vec<u8>, i64)]) -> Vec<(Vec<u8>, i64)> {
    let mut sorter = CombiningSorter::new(Sum, options);
    for (key, value) in rows {
        let fold = |sum: Option<&mut i64>| match sum {
            Some(sum) => {
                *sum += value;
                None
            }
            None => Some(*value),
        };
        sorter.update(hash_key_bytes(key).0, key, 0, fold).unwrap();
    }
    let mut stream = sorter.finish().unwrap();
    let mut sums = Vec::new();
    while let Some(record) = stream.next().unwrap() {
        sums.push((record.key.to_vec(), record.accumulator));
    }
    sums
}

/// The same by sorting all records and adding up each group.
fn grouped(options: SorterOptions, rows: &[(Vec<u8>, i64)]) -> Vec<(Vec<u8>, i64)> {
    let mut sorter = ExternalSorter::new(options);
    for (key, value) in rows {
        sorter.push(key, 0, &value.to_le_bytes()).unwrap();
    }
    let mut groups = sorter.finish().unwrap().groups();
    let mut sums = Vec::new();
    while let Some(mut group) = groups.next().unwrap() {
        let key = group.key().to_vec();
        let mut sum = 0;
        while let Some(record) = group.next().unwrap() {
            sum += i64::decode(&mut &record.payload[..]).unwrap();
        }
        sums.push((key, sum));
    }
    sums
}

#[test]
fn case_14_odd_keys() {
    let case = "14-odd-keys";
    let rows: Vec<(Vec<u8>, i64)> = array(&read(case, "input.json"))
        .iter()
        .map(|row| {
            let bits = u64::from_str_radix(row[0].as_str().unwrap(), 16).unwrap();
            (key_bytes(&OrderedF64::new(f64::from_bits(bits))), row[1].as_i64().unwrap())
        })
        .collect();
    let name = |key: &[u8]| match OrderedF64::decode_key(&mut &key[..]).unwrap().get() {
        nan if nan.is_nan() => "NaN".to_owned(),
        0.0 => "0.0".to_owned(),
        infinite if infinite.is_infinite() => format!("{infinite}"),
        finite => format!("{finite:?}"),
    };
    let expected = &read(case, "expected.json")["preferred"];
    for memory in [64, 1 << 20] {
        for by_key in [combined, grouped] {
            let place = Place::new(memory);
            let sums = by_key(place.options(), &rows);
            let found: Vec<Value> = sums.iter().map(|(key, sum)| json!([name(key), sum])).collect();
            assert_eq!(&json!(found), expected, "{memory} bytes");
            place.assert_clean();
        }
    }
}

/// tS15: encodings are canonical, so that equal keys are one group; bytes compare as keys do.
#[test]
fn case_15_key_order_vs_bytes() {
    let case = "15-key-order-vs-bytes";
    let (input, expected) = (read(case, "input.json"), read(case, "expected.json"));
    let key = |value: &Value| key_bytes(&value.as_str().unwrap().to_owned());
    let text = |bytes: &[u8]| String::decode_key(&mut &bytes[..]).unwrap();
    let left: Vec<(Vec<u8>, i64)> =
        array(&input["left"]).iter().map(|row| (key(&row[0]), row[1].as_i64().unwrap())).collect();
    for memory in [128, 1 << 20] {
        for by_key in [combined, grouped] {
            let place = Place::new(memory);
            let sums = by_key(place.options(), &left);
            let found: Vec<Value> = sums.iter().map(|(key, sum)| json!([text(key), sum])).collect();
            assert_eq!(json!(found), expected["sorted_sums"]);
        }
        assert_eq!(merge_join(memory, &left, &input["right"]), expected["join"]);
    }
}

/// Joins two sorters by their groups, in key order.
fn merge_join(memory: u64, left: &[(Vec<u8>, i64)], right: &Value) -> Value {
    let place = Place::new(memory);
    let mut sorters = [0, 1].map(|_| ExternalSorter::new(place.options()));
    for (key, value) in left {
        sorters[0].push(key, 0, &value.to_le_bytes()).unwrap();
    }
    for row in array(right) {
        let key = key_bytes(&row[0].as_str().unwrap().to_owned());
        sorters[1].push(&key, 0, row[1].as_str().unwrap().as_bytes()).unwrap();
    }
    let [left, right] = sorters.map(|sorter| sorter.finish().unwrap());
    let right: BTreeMap<Vec<u8>, Vec<u8>> =
        drain(right).unwrap().0.into_iter().map(|(key, _, payload)| (key, payload)).collect();
    let mut joined = Vec::new();
    let mut groups = left.groups();
    while let Some(mut group) = groups.next().unwrap() {
        // A group that has no partner is dropped unread.
        let Some(other) = right.get(group.key()) else { continue };
        let key = String::decode_key(&mut group.key()).unwrap();
        while let Some(record) = group.next().unwrap() {
            let value = i64::decode(&mut &record.payload[..]).unwrap();
            joined.push(json!([key, value, String::from_utf8_lossy(other)]));
        }
    }
    joined.sort_by_key(|row| (row[0].as_str().unwrap().to_owned(), row[1].as_i64()));
    json!(joined)
}

#[test]
fn case_16_sort_skew_fan_in() {
    let case = "16-sort-skew-fan-in";
    let input = read(case, "input.json");
    let number = |name: &str| input[name].as_u64().unwrap();
    let mut x = number("seed");
    let mut draw = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x >> 33
    };
    let place = Place::new(number("sort_memory"));
    let options = place.options().with_fan_in(number("merge_width") as usize);
    let mut sorter: TypedSorter<String, u64> = TypedSorter::new(options);
    for row in 0..number("rows") {
        let (a, b) = (draw(), draw());
        let key = if a % 10 == 0 { format!("k{}", a / 10 % 37) } else { "hot".to_owned() };
        sorter.push(&key, Some(element::Timestamp(row as i64)), &(b % 1_000)).unwrap();
    }
    let mut stream = sorter.finish().unwrap();
    let mut found: Vec<(String, u64, u64, u64)> = Vec::new();
    for record in stream.by_ref() {
        let (key, _, value) = record.unwrap();
        if found.last().is_none_or(|last| last.0 != key) {
            found.push((key, 0, 0, 7));
        }
        let last = found.last_mut().unwrap();
        last.1 += 1;
        last.2 += value;
        last.3 = (last.3 * 31 + value) % 1_000_003;
    }
    assert_eq!(json!(found), read(case, "expected.json"));
    let stats = stream.stats();
    assert!(stats.peak_open_files <= number("merge_width") + 1, "{}", stats.peak_open_files);
    assert!(stats.peak_open_files <= number("max_open_files"));
    assert!(stats.passes > 1, "there are several merge passes");
    place.assert_clean();
}

#[test]
fn case_17_damaged_spill() {
    let case = "17-damaged-spill";
    let (input, expected) = (read(case, "input.json"), read(case, "expected.json"));
    for compression in [BlockCompression::None, BlockCompression::Lz4] {
        for fault in array(&input["faults"]) {
            let fault = fault.as_str().unwrap();
            let store = MemoryStore::new();
            let place = Place::over(4_000, Arc::new(store.clone()));
            let mut sorter =
                ExternalSorter::new(place.options().with_compression(compression).with_fan_in(50));
            for n in 0..input["rows"].as_u64().unwrap() {
                let value = n * n % 101;
                sorter.push(format!("p{}", n % 9).as_bytes(), 0, &value.to_le_bytes()).unwrap();
            }
            let stream = sorter.finish().unwrap();
            let largest = place.files().into_iter().max_by_key(|name| len_of(&place, name));
            damage(&store, &largest.unwrap(), fault);
            let verdict = match drain(stream) {
                Ok((rows, _)) => {
                    assert_eq!(counts_and_sums(&rows), expected["full"]);
                    "full"
                }
                Err(error) => {
                    assert!(error.is_damaged_or_missing(), "{error}");
                    "typed error: damaged or missing"
                }
            };
            let accepted = array(&expected["verdict"][fault]);
            assert!(accepted.contains(&json!(verdict)), "{fault}: {verdict}");
            assert_eq!(fault == "none", verdict == "full", "damage is noticed, not read over");
            assert_eq!(place.budget.used().0, 0);
        }
    }
}

fn len_of(place: &Place, name: &str) -> u64 {
    place.store.open(FileRole::SortRun, name).unwrap().len().unwrap()
}

fn damage(store: &MemoryStore, name: &str, fault: &str) {
    let change = |bytes: &mut Vec<u8>| match fault {
        "cut_last_byte" => bytes.truncate(bytes.len() - 1),
        "flip_bit_at_half" => {
            let half = bytes.len() / 2;
            bytes[half] ^= 1;
        }
        "zero_second_half" => {
            let half = bytes.len() / 2;
            bytes[half..].fill(0);
        }
        // The reader has the file open: what is left of it is nothing.
        "remove" => bytes.clear(),
        _ => {}
    };
    assert!(store.damage(name, change));
}

fn counts_and_sums(rows: &[Row]) -> Value {
    let mut by_key: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (key, _, payload) in rows {
        let entry = by_key.entry(String::from_utf8_lossy(key).into_owned()).or_default();
        entry[0] += 1;
        entry[1] += u64::from_le_bytes(payload.as_slice().try_into().unwrap());
    }
    json!(by_key)
}
