//! Every file operation that can fail, made to fail; cancel at every stage; panics.
//!
//! Whatever happens: a typed error that names the file's role, no memory, and no file left but one
//! whose deletion is what failed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use common::{Place, Row, drain, expected, mix, rows, sort};
use element::{ByteSize, FaultPlan, FaultyStore, FileRole, MemoryStore, Operation, hash_key_bytes};
use slackwater_sort::{
    CancelFlag, Combiner, CombiningSorter, ExternalSorter, SortError, SorterOptions,
};

/// 600 records in some 30 runs, with two passes before the last merge.
fn input() -> Vec<Row> {
    rows(600, |n| (mix(n) % 200).to_be_bytes().to_vec(), |n| (n % 3) as i64)
}

fn by_sorting(options: SorterOptions) -> Result<u64, SortError> {
    let (rows, _) = sort(options.with_fan_in(3), &input())?;
    assert!(rows == expected(&input()), "a sort that ends well has all records");
    Ok(rows.len() as u64)
}

#[derive(Clone)]
struct Sum;

impl Combiner for Sum {
    type Accumulator = u64;

    fn merge(&self, into: &mut u64, other: u64) {
        *into += other;
    }
}

fn by_combining(options: SorterOptions) -> Result<u64, SortError> {
    let mut sorter = CombiningSorter::new(Sum, options.with_fan_in(3));
    for (key, timestamp, _) in &input() {
        let fold = |sum: Option<&mut u64>| match sum {
            Some(sum) => {
                *sum += 1;
                None
            }
            None => Some(1),
        };
        sorter.update(hash_key_bytes(key).0, key, *timestamp, fold)?;
    }
    let mut stream = sorter.finish()?;
    let mut sum = 0;
    while let Some(record) = stream.next()? {
        sum += record.accumulator;
    }
    assert_eq!(sum, 600, "a sort that ends well has all records");
    Ok(sum)
}

#[track_caller]
fn check_every_fault(scenario: fn(SorterOptions) -> Result<u64, SortError>) {
    let operations =
        [Operation::Create, Operation::Open, Operation::Write, Operation::Read, Operation::Delete];
    let faulty = FaultyStore::new(Arc::new(MemoryStore::new()));
    let place = Place::over(1_500, Arc::new(faulty.clone()));
    scenario(place.options()).unwrap();
    let counts = operations.map(|operation| faulty.count(operation));
    for (operation, count) in operations.into_iter().zip(counts) {
        assert!(count > 5, "the scenario has {count} of {operation}");
        for nth in 1..=count {
            for (kind, and_after) in
                [(ErrorKind::PermissionDenied, false), (ErrorKind::StorageFull, true)]
            {
                faulty.plan(Some(FaultPlan { operation, nth, and_after, kind }));
                let result = scenario(place.options());
                let Err(error) = result else { panic!("{operation} {nth} went unnoticed") };
                check_error(&error, operation, kind);
                faulty.plan(None);
                place.is_left_clean(operation);
            }
        }
    }
}

#[track_caller]
fn check_error(error: &SortError, operation: Operation, kind: ErrorKind) {
    let source = match error {
        SortError::NoRoom(source) => {
            assert_eq!(kind, ErrorKind::StorageFull);
            source
        }
        SortError::Store(source) => source,
        other => panic!("{operation}: {other}"),
    };
    assert_eq!((source.operation, source.role), (operation, FileRole::SortRun));
    assert!(source.to_string().contains("sort run"));
}

#[test]
fn every_operation_of_a_sort_can_fail() {
    check_every_fault(by_sorting);
}

#[test]
fn every_operation_of_a_combining_sort_can_fail() {
    check_every_fault(by_combining);
}

/// tS2: memory and files are given back whenever a sorter is dropped.
#[test]
fn a_sorter_dropped_at_any_stage_gives_everything_back() {
    let input = input();
    for memory in [1_500, 1 << 20] {
        let place = Place::new(memory);
        for stage in (0..=600).step_by(60) {
            let mut sorter = ExternalSorter::new(place.options().with_fan_in(3));
            for (key, timestamp, payload) in &input[..stage] {
                sorter.push(key, *timestamp, payload).unwrap();
            }
            drop(sorter);
            place.assert_clean();
            let mut sorter = ExternalSorter::new(place.options().with_fan_in(3));
            for (key, timestamp, payload) in &input {
                sorter.push(key, *timestamp, payload).unwrap();
            }
            let mut stream = sorter.finish().unwrap();
            for _ in 0..stage {
                stream.next().unwrap();
            }
            if stage % 120 == 0 {
                stream.close().unwrap();
            } else {
                drop(stream);
            }
            place.assert_clean();
        }
    }
}

/// tS3: cancelled at a thousand points, each time everything is given back once.
#[test]
fn a_cancel_at_any_point_ends_the_sort_and_leaves_nothing() {
    let input = input();
    for point in 0..1_000 {
        let place = Place::new(if point % 4 == 0 { 1 << 20 } else { 1_500 });
        let cancel = CancelFlag::new();
        let options = place.options().with_fan_in(3).with_cancel(cancel.clone());
        let run = || -> Result<usize, SortError> {
            let mut sorter = ExternalSorter::new(options);
            for (n, (key, timestamp, payload)) in input.iter().enumerate() {
                if n == point {
                    cancel.cancel();
                }
                sorter.push(key, *timestamp, payload)?;
            }
            if point < 700 {
                cancel.cancel();
            }
            let mut stream = sorter.finish()?;
            let mut count = 0;
            while stream.next()?.is_some() {
                count += 1;
                if count + 700 == point {
                    cancel.cancel();
                }
            }
            Ok(count)
        };
        match run() {
            Err(SortError::Cancelled) => assert!(place.budget.used() == ByteSize(0)),
            Ok(count) => assert!(count == 600 && point >= 700),
            Err(other) => panic!("{other}"),
        }
        place.assert_clean();
    }
}

#[test]
fn a_cancelled_stream_answers_within_a_bounded_number_of_records() {
    for memory in [20_000, 1 << 22] {
        let place = Place::new(memory);
        let cancel = CancelFlag::new();
        let mut sorter = ExternalSorter::new(place.options().with_cancel(cancel.clone()));
        for n in 0..20_000_u64 {
            sorter.push(&mix(n).to_be_bytes(), 0, &[]).unwrap();
        }
        let mut stream = sorter.finish().unwrap();
        stream.next().unwrap();
        cancel.cancel();
        let more = (0..20_000).take_while(|_| stream.next().is_ok()).count();
        assert!(more <= 1_024, "{more} records after the cancel");
        assert!(stream.next().unwrap().is_none(), "a stream that failed has ended");
        drop(stream);
        place.assert_clean();
    }
}

#[test]
fn a_sorter_that_has_failed_says_so_from_then_on() {
    let faulty = FaultyStore::new(Arc::new(MemoryStore::new()));
    let place = Place::over(1_500, Arc::new(faulty.clone()));
    let kind = ErrorKind::PermissionDenied;
    faulty.plan(Some(FaultPlan { operation: Operation::Write, nth: 2, and_after: false, kind }));
    let mut sorter = ExternalSorter::new(place.options());
    let input = input();
    let failed = input.iter().position(|row| sorter.push(&row.0, 0, &row.2).is_err()).unwrap();
    assert!(failed > 0);
    place.assert_clean();
    assert!(matches!(sorter.push(b"key", 0, b"more"), Err(SortError::Failed)));
    assert!(matches!(sorter.finish(), Err(SortError::Failed)));
    place.assert_clean();
}

#[test]
fn a_panic_of_the_caller_leaves_nothing() {
    let place = Place::new(1_500);
    let input = input();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut sorter = ExternalSorter::new(place.options().with_fan_in(3));
        for (n, (key, timestamp, payload)) in input.iter().enumerate() {
            let write_payload = |out: &mut Vec<u8>| {
                assert!(n < 500, "the user's code fails");
                out.extend_from_slice(payload);
            };
            sorter.push_with(*timestamp, |out| out.extend_from_slice(key), write_payload).unwrap();
        }
    }));
    assert!(panicked.is_err());
    place.assert_clean();
}

/// A record is written where it stays: one whose writer panics half way is taken out again, long or
/// short, and the sorter goes on.
#[test]
fn a_record_whose_writer_panics_is_left_out_and_nothing_else() {
    for memory in [1_500, 1 << 20] {
        let place = Place::new(memory);
        let mut sorter = ExternalSorter::new(place.options());
        let input = rows(300, |n| mix(n).to_be_bytes().to_vec(), |_| 0);
        for (n, (key, timestamp, payload)) in input.iter().enumerate() {
            let length = [0, 7, 300, 5_000][n % 4];
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                sorter.push_with(
                    0,
                    |out| out.extend_from_slice(b"left out"),
                    |out| {
                        out.resize(out.len() + length, 1);
                        panic!("the user's code fails");
                    },
                )
            }));
            assert!(panicked.is_err());
            let write_key = |out: &mut Vec<u8>| out.extend_from_slice(key);
            sorter.push_with(*timestamp, write_key, |out| out.extend_from_slice(payload)).unwrap();
        }
        let (drained, stats) = drain(sorter.finish().unwrap()).unwrap();
        assert_eq!(drained, expected(&input));
        assert_eq!(stats.records, 300);
        place.assert_clean();
    }
}

#[test]
fn a_writer_that_takes_other_bytes_than_its_own_fails_the_sorter() {
    let place = Place::new(1 << 20);
    let mut sorter = ExternalSorter::new(place.options());
    sorter.push(b"key", 0, b"payload").unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| sorter.push_with(0, |_| {}, Vec::clear)));
    assert!(panicked.is_err());
    assert!(matches!(sorter.finish(), Err(SortError::Failed)));
    place.assert_clean();
}

#[test]
fn a_swapped_or_stale_run_is_noticed() {
    for stale in [false, true] {
        let store = MemoryStore::new();
        let place = Place::over(1_500, Arc::new(store.clone()));
        let fill = || {
            let mut sorter = ExternalSorter::new(place.options().with_fan_in(100));
            for (key, timestamp, payload) in &input() {
                sorter.push(key, *timestamp, payload).unwrap();
            }
            sorter.finish().unwrap()
        };
        let earlier = fill();
        let names = place.files();
        let mut first = Vec::new();
        store.damage(&names[0], |bytes| first = bytes.clone());
        let stream = if stale { fill() } else { earlier };
        let target = place
            .files()
            .into_iter()
            .find(|name| if stale { !names.contains(name) } else { *name == names[1] });
        store.damage(&target.unwrap(), |bytes| *bytes = first);
        assert!(drain(stream).unwrap_err().is_damaged_or_missing());
    }
}
