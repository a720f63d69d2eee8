//! The derived record codec against a copy loop written by hand over the same fields.
//!
//! Shape: 10,000 flights (two texts of 3 bytes, two integers, one optional float; 31 bytes encoded).
//! The figure is the ratio of the two in one run: the derive is to cost no more than the hand.
//! `SLACKWATER_BENCH_SMOKE` makes it 10 records and the shortest measurement.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use derive::{Key, Record};
use element::{Record as _, hash_key_bytes};

#[derive(Clone, Record)]
#[record(crate = "element")]
struct Flight {
    carrier: String,
    origin: String,
    number: u32,
    departure: i64,
    delay: Option<f64>,
}

#[derive(Clone, PartialEq, Eq, Key)]
#[key(crate = "element")]
struct Route {
    carrier: String,
    origin: String,
}

fn flights(count: usize) -> Vec<Flight> {
    (0..count)
        .map(|n| Flight {
            carrier: format!("C{:02}", n % 16),
            origin: ["EWR", "JFK", "LGA"][n % 3].to_owned(),
            number: n as u32,
            departure: n as i64 * 1_000,
            delay: (n % 40 != 0).then_some(n as f64),
        })
        .collect()
}

fn encode_by_hand(flight: &Flight, out: &mut Vec<u8>) {
    out.extend_from_slice(&(flight.carrier.len() as u32).to_le_bytes());
    out.extend_from_slice(flight.carrier.as_bytes());
    out.extend_from_slice(&(flight.origin.len() as u32).to_le_bytes());
    out.extend_from_slice(flight.origin.as_bytes());
    out.extend_from_slice(&flight.number.to_le_bytes());
    out.extend_from_slice(&flight.departure.to_le_bytes());
    match flight.delay {
        None => out.push(0),
        Some(delay) => {
            out.push(1);
            out.extend_from_slice(&delay.to_le_bytes());
        }
    }
}

fn take_text(bytes: &[u8], at: &mut usize) -> Option<String> {
    let len = u32::from_le_bytes(bytes.get(*at..*at + 4)?.try_into().ok()?) as usize;
    let text = String::from_utf8(bytes.get(*at + 4..*at + 4 + len)?.to_vec()).ok()?;
    *at += 4 + len;
    Some(text)
}

fn decode_by_hand(bytes: &[u8], at: &mut usize) -> Option<Flight> {
    let carrier = take_text(bytes, at)?;
    let origin = take_text(bytes, at)?;
    let number = u32::from_le_bytes(bytes.get(*at..*at + 4)?.try_into().ok()?);
    let departure = i64::from_le_bytes(bytes.get(*at + 4..*at + 12)?.try_into().ok()?);
    let some = *bytes.get(*at + 12)? == 1;
    *at += 13;
    let delay = if some {
        let delay = f64::from_le_bytes(bytes.get(*at..*at + 8)?.try_into().ok()?);
        *at += 8;
        Some(delay)
    } else {
        None
    };
    Some(Flight { carrier, origin, number, departure, delay })
}

fn encoding(group: &mut BenchmarkGroup<'_, WallTime>, flights: &[Flight]) {
    let mut out = Vec::new();
    group.bench_function("encode, derived", |bencher| {
        bencher.iter(|| {
            out.clear();
            black_box(flights).iter().for_each(|flight| flight.encode(&mut out));
            out.len()
        });
    });
    group.bench_function("encode, by hand", |bencher| {
        bencher.iter(|| {
            out.clear();
            black_box(flights).iter().for_each(|flight| encode_by_hand(flight, &mut out));
            out.len()
        });
    });
}

fn decoding(group: &mut BenchmarkGroup<'_, WallTime>, flights: &[Flight]) {
    let mut bytes = Vec::new();
    flights.iter().for_each(|flight| flight.encode(&mut bytes));
    group.bench_function("decode, derived", |bencher| {
        bencher.iter(|| {
            let mut rest = black_box(bytes.as_slice());
            while !rest.is_empty() {
                black_box(Flight::decode(&mut rest).expect("encoded above"));
            }
        });
    });
    group.bench_function("decode, by hand", |bencher| {
        bencher.iter(|| {
            let (bytes, mut at) = (black_box(bytes.as_slice()), 0);
            while at < bytes.len() {
                black_box(decode_by_hand(bytes, &mut at).expect("encoded above"));
            }
        });
    });
}

/// Key bytes and hash, as routing pays for each record, against the hash alone.
fn keying(group: &mut BenchmarkGroup<'_, WallTime>, flights: &[Flight]) {
    let route = |f: &Flight| Route { carrier: f.carrier.clone(), origin: f.origin.clone() };
    let routes: Vec<Route> = flights.iter().map(route).collect();
    let mut out = Vec::new();
    group.bench_function("key bytes and hash, derived", |bencher| {
        bencher.iter(|| {
            black_box(&routes).iter().fold(0, |sum, route| {
                out.clear();
                element::Key::encode_key(route, &mut out);
                sum ^ hash_key_bytes(&out).0
            })
        });
    });
    let encoded: Vec<Vec<u8>> = routes.iter().map(element::key_bytes).collect();
    group.bench_function("hash of ready bytes", |bencher| {
        bencher.iter(|| {
            black_box(&encoded).iter().fold(0, |sum, bytes| sum ^ hash_key_bytes(bytes).0)
        });
    });
}

fn main() {
    let smoke = std::env::var_os("SLACKWATER_BENCH_SMOKE").is_some();
    let flights = flights(if smoke { 10 } else { 10_000 });
    let mut criterion = Criterion::default().without_plots().configure_from_args();
    let mut group = criterion.benchmark_group("codec");
    group.throughput(Throughput::Elements(flights.len() as u64));
    if smoke {
        let short = Duration::from_millis(1);
        group.sample_size(10).warm_up_time(short).measurement_time(short);
    } else {
        group
            .sample_size(20)
            .warm_up_time(Duration::from_millis(300))
            .measurement_time(Duration::from_secs(1));
    }
    encoding(&mut group, &flights);
    decoding(&mut group, &flights);
    keying(&mut group, &flights);
    group.finish();
    criterion.final_summary();
}
