//! Parts that are written as they are and sorted once: the order, the counts, every fault, every damage.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::ErrorKind;
use std::sync::Arc;

use common::{
    Place, Row, drain, drain_in_pieces, drain_side_by_side, expected, mix, rows, sort, sort_with,
};
use element::{FaultPlan, FaultyStore, MemoryStore, Operation};
use slackwater_sort::{
    BlockCompression, CancelFlag, ExternalSorter, NO_TIMESTAMP, Order, SortError, SorterOptions,
};

/// The least memory with which records are dealt into parts: sixty-four of them.
const DEALS: u64 = 4 << 20;

const PARTS: u64 = 64;

fn spread(count: u64) -> Vec<Row> {
    rows(count, |n| (mix(n % 9_000)).to_be_bytes().to_vec(), |n| (mix(n) % 3) as i64)
}

fn pushed(options: SorterOptions, input: &[Row]) -> Result<ExternalSorter, SortError> {
    let mut sorter = ExternalSorter::new(options);
    for (key, timestamp, payload) in input {
        sorter.push(key, *timestamp, payload)?;
    }
    Ok(sorter)
}

#[test]
fn every_record_is_written_and_read_once_and_nothing_is_merged() {
    let input = spread(300_000);
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let place = Place::over(DEALS, Arc::new(store.clone()));
    let (sorted, stats) = sort_with(place.options(), &input).unwrap();
    assert!(sorted == expected(&input));
    assert!(stats.runs > 4, "{stats:?}");
    assert_eq!(stats.passes, 1);
    assert!(stats.spilled_raw < 300_000 * (4 + 8 + 8 + 8), "no record is written twice");
    assert!(store.count(Operation::Read) <= PARTS * stats.runs, "a part costs one read a run");
    assert!(stats.peak_bytes <= DEALS && stats.peak_open_files <= stats.runs, "{stats:?}");
    place.assert_clean();
}

#[test]
fn packed_and_descending_parts_come_in_order() {
    let input = spread(200_000);
    let place = Place::new(DEALS);
    let options = place.options().with_compression(BlockCompression::Lz4);
    assert!(sort(options, &input).unwrap().0 == expected(&input));
    let options = place.options().with_order(Order::Descending);
    let mut falling = input.clone();
    falling.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    assert!(sort_with(options, &input).unwrap().0 == falling);
    place.assert_clean();
}

/// Too many runs for the fan-in, or a part that grows too long: one sorted run is made of them, and the sort
/// goes on with sorted ones.
#[test]
fn parts_that_cannot_be_sorted_at_once_are_merged() {
    let input = spread(400_000);
    for fan_in in [2, 3, 5] {
        let place = Place::new(DEALS);
        let (sorted, stats) = sort_with(place.options().with_fan_in(fan_in), &input).unwrap();
        assert!(sorted == expected(&input));
        assert!(stats.passes > 1 && stats.peak_open_files <= fan_in as u64 + 1, "{stats:?}");
        place.assert_clean();
    }
    // Spread at first; then nine of ten records have one key.
    let key = |n: u64| if n > 150_000 && !n.is_multiple_of(10) { 7 } else { mix(n) };
    let input = rows(400_000, |n| key(n).to_be_bytes().to_vec(), |_| NO_TIMESTAMP);
    let place = Place::new(DEALS);
    let (sorted, stats) = sort(place.options(), &input).unwrap();
    assert!(sorted == expected(&input));
    assert_eq!(stats.passes, 2, "{stats:?}");
    assert!(stats.peak_bytes <= DEALS);
    place.assert_clean();
}

#[test]
fn ranges_of_parts_are_drained_side_by_side() {
    let input = spread(200_000);
    for ways in [1, 2, 3] {
        let place = Place::new(DEALS);
        let streams = pushed(place.options(), &input).unwrap().finish_ranges(ways).unwrap();
        assert_eq!(streams.len(), ways);
        let drained = drain_side_by_side(streams);
        assert!(drained.iter().all(|part| part.len() > 30_000), "the parts are about equal");
        assert!(drained.concat() == expected(&input));
        place.assert_clean();
    }
}

#[test]
fn a_stream_that_is_dropped_or_cancelled_leaves_nothing() {
    let input = spread(150_000);
    for taken in [0, 1, 70_000, 149_999] {
        let place = Place::new(DEALS);
        let mut stream = pushed(place.options(), &input).unwrap().finish().unwrap();
        assert_eq!(stream.hand_over(taken, |_| Ok::<_, SortError>(())).unwrap(), taken);
        drop(stream);
        place.assert_clean();
        let cancel = CancelFlag::new();
        let options = place.options().with_cancel(cancel.clone());
        let mut stream = pushed(options, &input).unwrap().finish().unwrap();
        stream.hand_over(taken, |_| Ok::<_, SortError>(())).unwrap();
        cancel.cancel();
        let rest = stream.hand_over(usize::MAX, |_| Ok::<_, SortError>(()));
        assert!(matches!(rest, Err(SortError::Cancelled)) || taken == 149_999, "{rest:?}");
        drop(stream);
        place.assert_clean();
    }
}

#[test]
fn every_operation_on_parts_can_fail() {
    let input = spread(240_000);
    let scenario = |options: SorterOptions| -> Result<(), SortError> {
        let stream = pushed(options, &input)?.finish()?;
        let rows = stream.records();
        // The stream's end says what could not be deleted.
        let mut handed = 0;
        stream.for_each(|_| {
            handed += 1;
            Ok::<_, SortError>(())
        })?;
        assert_eq!((handed, rows), (240_000, 240_000), "a sort that ends well has all records");
        Ok(())
    };
    let faulty = FaultyStore::new(Arc::new(MemoryStore::new()));
    let place = Place::over(DEALS, Arc::new(faulty.clone()));
    scenario(place.options()).unwrap();
    let operations =
        [Operation::Create, Operation::Open, Operation::Write, Operation::Read, Operation::Delete];
    let counts = operations.map(|operation| faulty.count(operation));
    for (operation, count) in operations.into_iter().zip(counts) {
        assert!(count >= 2, "the scenario has {count} of {operation}");
        // Each of the few, and some of the many.
        for nth in (1..=count).step_by(1 + count as usize / 4).chain([count]) {
            let kind = ErrorKind::PermissionDenied;
            faulty.plan(Some(FaultPlan { operation, nth, and_after: false, kind }));
            let error = scenario(place.options()).unwrap_err();
            let SortError::Store(source) = &error else { panic!("{operation} {nth}: {error}") };
            assert_eq!(source.operation, operation);
            faulty.plan(None);
            place.is_left_clean(operation);
        }
    }
    scenario(place.options()).unwrap();
    place.assert_clean();
}

/// One byte of each block and of each head, every cut, and files that changed places: none is taken for right.
#[test]
fn damaged_parts_are_noticed() {
    let input = spread(100_000);
    let damages: [fn(&mut Vec<u8>, u64); 4] = [
        |bytes, n| {
            let at = (mix(n) % bytes.len() as u64) as usize;
            bytes[at] ^= 1 << (n % 8);
        },
        |bytes, n| bytes.truncate((mix(n) % bytes.len() as u64) as usize),
        |bytes, n| {
            let at = (mix(n) % bytes.len() as u64) as usize;
            let end = bytes.len().min(at + 64);
            bytes[at..end].fill(0);
        },
        // The head of the first block: its lengths and its form.
        |bytes, n| bytes[(n % 20) as usize] ^= 0x41,
    ];
    for compression in [BlockCompression::None, BlockCompression::Lz4] {
        for n in 0..16 {
            let damage = damages[n as usize % damages.len()];
            let store = MemoryStore::new();
            // Half of it has room: two runs and more.
            let place = Place::over(DEALS, Arc::new(store.clone()));
            let others = place.budget.borrow(DEALS / 2).unwrap();
            let options = place.options().with_compression(compression);
            let stream = pushed(options, &input).unwrap().finish().unwrap();
            let names = place.files();
            assert!(names.len() >= 2);
            let mut before = Vec::new();
            assert!(store.damage(&names[n as usize % names.len()], |bytes| {
                before.clone_from(bytes);
                damage(bytes, n / 4);
                assert_ne!(*bytes, before);
            }));
            match drain_in_pieces(stream) {
                Err(error) => assert!(error.is_damaged_or_missing(), "{n}: {error}"),
                Ok(_) => panic!("damage {n} went unnoticed"),
            }
            drop(others);
            place.assert_clean();
        }
    }
}

#[test]
fn runs_that_changed_places_are_noticed() {
    let input = spread(240_000);
    let store = MemoryStore::new();
    let place = Place::over(DEALS, Arc::new(store.clone()));
    let stream = pushed(place.options(), &input).unwrap().finish().unwrap();
    let names = place.files();
    let mut first = Vec::new();
    assert!(store.damage(&names[0], |bytes| first.clone_from(bytes)));
    assert!(store.damage(&names[1], |bytes| std::mem::swap(bytes, &mut first)));
    assert!(drain(stream).unwrap_err().is_damaged_or_missing());
    place.assert_clean();
}

/// Hot keys anywhere in the order, from anywhere on; any memory, fan-in and number of ways.
#[test]
fn whatever_comes_after_an_even_sample_keeps_order_and_budget() {
    for seed in 0..seeds() {
        let draw = |what: u64, of: u64| mix(seed * 16 + what) % of;
        let (hot, from, of) =
            (mix(draw(0, 3)) << draw(1, 8), 5_000 + draw(2, 150_000), 1 + draw(3, 5));
        let key =
            |n: u64| if n > from && n % 6 >= of { hot ^ (n % (1 + draw(4, 3))) } else { mix(n) };
        let length = draw(5, 3) as usize * 9;
        let mut input = rows(
            160_000 + draw(6, 90_000),
            |n| key(n).to_be_bytes().to_vec(),
            |n| (mix(n) % 2) as i64,
        );
        input.iter_mut().for_each(|row| row.2.resize(8 + length, 7));
        let memory = DEALS + (draw(7, 4) << 20);
        let place = Place::new(memory);
        let fan_in = [2, 3, 6, 128][draw(8, 4) as usize];
        let streams = pushed(place.options().with_fan_in(fan_in), &input).unwrap();
        let streams = streams.finish_ranges(1 + draw(9, 3) as usize).unwrap();
        let mut sorted = Vec::new();
        for stream in streams {
            sorted.extend(drain_in_pieces(stream).unwrap().0);
        }
        assert!(sorted == expected(&input), "seed {seed}");
        // A record a run beyond it, while merging.
        let beyond = place.budget.peak().0.saturating_sub(memory);
        assert!(
            beyond <= 60 * (fan_in + 1) as u64,
            "seed {seed}: {beyond} beyond {memory}, {fan_in}"
        );
        place.assert_clean();
    }
}

fn seeds() -> u64 {
    std::env::var("SORT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(12)
}
