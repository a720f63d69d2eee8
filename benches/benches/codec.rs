//! The encodings on the backlog's path: key bytes with their hash, and records into bytes and back.
//!
//! The reference copies the same bytes by hand. `element/benches` times derived records of a user.

mod common;

use common::Comparison;
use criterion::Criterion;
use element::{Key, Record, hash_key_bytes};
use slackwater_benches::generator::{mix, val, word};
use slackwater_benches::{Order, Shape, records};

fn shape(key_bytes: u64, value_bytes: u64) -> Shape {
    let records = records(5_000_000);
    let order = Order::Counted;
    let distinct_keys = records;
    Shape { records, key_bytes, value_bytes, distinct_keys, order, parallelism: 1, budget: None }
}

/// Numbers as keys: canonical bytes and their hash.
fn keys(criterion: &mut Criterion) {
    let shape = shape(8, 0);
    let by_hand = move || {
        (0..shape.records)
            .fold(0_u64, |sum, i| sum.wrapping_add(hash_key_bytes(&mix(i).to_be_bytes()).0))
    };
    let ours = move || {
        let mut bytes = Vec::new();
        (0..shape.records).fold(0_u64, |sum, i| {
            bytes.clear();
            mix(i).encode_key(&mut bytes);
            sum.wrapping_add(hash_key_bytes(&bytes).0)
        })
    };
    Comparison::new("codec, keys with hash", shape)
        .with("big-endian by hand", by_hand)
        .with("encode_key", ours)
        .run(criterion);
}

/// Pairs of numbers, a thousand to a buffer, there and back.
fn pairs(criterion: &mut Criterion) {
    let shape = shape(8, 8);
    let batches = shape.records.div_ceil(1_000);
    let batch =
        move |b: u64| (b * 1_000..((b + 1) * 1_000).min(shape.records)).map(|i| (i, val(i)));
    let by_hand = move || {
        let mut bytes = Vec::new();
        (0..batches).fold(0_u64, |mut sum, b| {
            bytes.clear();
            for (key, value) in batch(b) {
                bytes.extend_from_slice(&key.to_le_bytes());
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            for pair in bytes.as_chunks::<16>().0 {
                let pair = u128::from_le_bytes(*pair);
                sum = sum.wrapping_add(pair as u64 ^ (pair >> 64) as u64);
            }
            sum
        })
    };
    let ours = move || {
        let mut bytes = Vec::new();
        (0..batches).fold(0_u64, |mut sum, b| {
            bytes.clear();
            for pair in batch(b) {
                pair.encode(&mut bytes);
            }
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (key, value) = <(u64, u64)>::decode(&mut rest).expect("it was encoded here");
                sum = sum.wrapping_add(key ^ value);
            }
            sum
        })
    };
    Comparison::new("codec, pairs of numbers", shape)
        .with("little-endian by hand", by_hand)
        .with("Record", ours)
        .run(criterion);
}

/// Words of 4 to 8 letters as keys, hashed.
fn words(criterion: &mut Criterion) {
    let shape = shape(7, 0);
    let words: Vec<String> = (0..1_024)
        .map(|rank| {
            let mut letters = Vec::new();
            word(rank, &mut letters);
            String::from_utf8(letters).expect("words are ASCII")
        })
        .collect();
    let words = &words;
    let nth = move |i: u64| &words[(i % 1_024) as usize];
    Comparison::new("codec, words with hash", shape)
        .with("bytes and an end by hand", move || {
            let mut bytes = Vec::new();
            (0..shape.records).fold(0_u64, |sum, i| {
                bytes.clear();
                bytes.extend_from_slice(nth(i).as_bytes());
                sum.wrapping_add(u64::from(hash_key_bytes(&bytes).0 != 0))
            })
        })
        .with("encode_key", move || {
            let mut bytes = Vec::new();
            (0..shape.records).fold(0_u64, |sum, i| {
                bytes.clear();
                nth(i).encode_key(&mut bytes);
                sum.wrapping_add(u64::from(hash_key_bytes(&bytes).0 != 0))
            })
        })
        .run(criterion);
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    keys(&mut criterion);
    pairs(&mut criterion);
    words(&mut criterion);
    criterion.final_summary();
}
