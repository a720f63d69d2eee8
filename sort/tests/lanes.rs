//! Runs that threads write: the same order, the same bounds, the same errors, and no thread left.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use common::{Place, Row, drain, expected, mix, rows, sort};
use element::{ByteSize, FaultPlan, FaultyStore, FileRole, MemoryStore, Operation};
use slackwater_sort::{
    BlockCompression, CancelFlag, ExternalSorter, SortError, SortedStream, SorterOptions,
};

/// Records of about 2 KB: some twenty of them fill the buffer of one of three in 192 KiB.
fn input(count: u64) -> Vec<Row> {
    (0..count)
        .map(|n| {
            let mut payload = vec![n as u8; 1_900 + (mix(n) % 100) as usize];
            payload.extend_from_slice(&n.to_le_bytes());
            ((mix(n) % 200).to_be_bytes().to_vec(), (n % 3) as i64, payload)
        })
        .collect()
}

const MEMORY: u64 = 192 << 10;

fn drained(parts: Vec<SortedStream>) -> Result<Vec<Row>, SortError> {
    let records: u64 = parts.iter().map(SortedStream::records).sum();
    let mut all = Vec::new();
    for part in parts {
        let (records, before) = (part.records(), all.len());
        all.extend(drain(part)?.0);
        assert_eq!(records, (all.len() - before) as u64, "a part knows its length");
    }
    assert_eq!(records, all.len() as u64);
    Ok(all)
}

#[test]
fn any_number_of_threads_gives_the_same_order_within_the_budget() {
    let input = input(800);
    for memory in [1, 3_000, 60_000, MEMORY, 1 << 20, 1 << 24] {
        for threads in [1, 2, 3, 5] {
            for compression in [BlockCompression::None, BlockCompression::Lz4] {
                let place = Place::new(memory);
                let options = place.options().with_threads(threads).with_compression(compression);
                let (sorted, stats) = sort(options, &input).unwrap();
                assert!(sorted == expected(&input), "{memory} {threads}");
                // One record a run while merging, and the merge's output.
                let beyond = 2_100 * 2 * (stats.runs + 1).min(129);
                assert!(stats.peak_bytes <= memory + beyond, "{} of {memory}", stats.peak_bytes);
                assert!(place.budget.peak() <= ByteSize(memory + beyond));
                assert_eq!(stats.records, 800);
                let raw: usize = input.iter().map(|row| row.0.len() + row.2.len() + 12).sum();
                assert!(stats.runs == 0 || stats.spilled_raw >= raw as u64);
                assert_eq!(stats.runs == 0, memory == 1 << 24);
                place.assert_clean();
            }
        }
    }
}

/// The counts of a sort are the same each time, whatever the threads' pace.
#[test]
fn the_same_input_makes_the_same_runs() {
    let input = input(800);
    let mut counts = Vec::new();
    for _ in 0..3 {
        let place = Place::new(MEMORY);
        let (_, stats) = sort(place.options().with_threads(2), &input).unwrap();
        counts.push((stats.runs, stats.spilled_written, stats.peak_bytes));
    }
    assert!(counts[0].0 > 10 && counts.windows(2).all(|pair| pair[0] == pair[1]), "{counts:?}");
}

#[test]
fn parts_of_runs_know_how_many_records_they_have() {
    let input = input(800);
    for memory in [MEMORY, 1 << 24] {
        for ways in [1, 2, 3] {
            let place = Place::new(memory);
            let mut sorter = ExternalSorter::new(place.options().with_threads(2));
            for (key, timestamp, payload) in &input {
                sorter.push(key, *timestamp, payload).unwrap();
            }
            let parts = sorter.finish_ranges(ways).unwrap();
            assert_eq!(parts.len(), ways);
            assert!(drained(parts).unwrap() == expected(&input));
            place.assert_clean();
        }
    }
}

/// Keys that are dealt into parts, of which one thread would write the upper ones alone: whoever writes the runs,
/// and however they are read, each record comes once.
#[test]
fn keys_that_are_dealt_into_parts_lose_no_record_to_threads() {
    let key = |n| mix(mix(n) % 9_000).to_be_bytes().to_vec();
    let input: Vec<Row> =
        (0..250_000).map(|n| (key(n), 0, vec![n as u8; 4 + (n % 8) as usize])).collect();
    let expected = expected(&input);
    for threads in [1, 2, 3] {
        let place = Place::new(4 << 20);
        let options = place.options().with_threads(threads);
        let (sorted, stats) = sort(options.clone(), &input).unwrap();
        assert!(sorted == expected, "{threads} threads");
        assert!(stats.runs > 1);
        let mut sorter = ExternalSorter::new(options);
        for (key, timestamp, payload) in &input {
            sorter.push(key, *timestamp, payload).unwrap();
        }
        assert!(
            drained(sorter.finish_ranges(2).unwrap()).unwrap() == expected,
            "{threads} threads"
        );
        place.assert_clean();
    }
}

fn scenario(options: SorterOptions) -> Result<(), SortError> {
    let input = input(300);
    let mut sorter = ExternalSorter::new(options.with_threads(2).with_fan_in(4));
    for (key, timestamp, payload) in &input {
        sorter.push(key, *timestamp, payload)?;
    }
    let sorted = drained(sorter.finish_ranges(2)?)?;
    assert!(sorted == expected(&input), "a sort that ends well has all records");
    Ok(())
}

/// The kth operation fails on whichever thread does it, and the sorter's caller has the error.
#[test]
fn every_operation_of_a_thread_can_fail() {
    let operations =
        [Operation::Create, Operation::Open, Operation::Write, Operation::Read, Operation::Delete];
    let faulty = FaultyStore::new(Arc::new(MemoryStore::new()));
    let place = Place::over(96 << 10, Arc::new(faulty.clone()));
    scenario(place.options()).unwrap();
    let counts = operations.map(|operation| faulty.count(operation));
    for (operation, count) in operations.into_iter().zip(counts) {
        assert!(count > 5, "the scenario has {count} of {operation}");
        for nth in 1..=count {
            let kind = ErrorKind::PermissionDenied;
            faulty.plan(Some(FaultPlan { operation, nth, and_after: false, kind }));
            let result = scenario(place.options());
            let Err(SortError::Store(error)) = result else {
                panic!("{operation} {nth}: {result:?}")
            };
            assert_eq!((error.operation, error.role), (operation, FileRole::SortRun));
            faulty.plan(None);
            place.is_left_clean(operation);
        }
    }
}

#[test]
fn a_sorter_dropped_or_cancelled_while_threads_write_leaves_nothing() {
    let input = input(300);
    for stage in (0..300).step_by(7) {
        let place = Place::new(MEMORY);
        let cancel = CancelFlag::new();
        let options = place.options().with_threads(2).with_cancel(cancel.clone());
        let mut sorter = ExternalSorter::new(options);
        for (key, timestamp, payload) in &input[..stage] {
            sorter.push(key, *timestamp, payload).unwrap();
        }
        if stage % 2 == 0 {
            cancel.cancel();
            assert!(matches!(sorter.finish(), Err(SortError::Cancelled)));
        } else {
            drop(sorter);
        }
        place.assert_clean();
    }
}

/// The user's prefix is called on the threads, too: its panic reaches the caller.
#[test]
fn a_panic_on_a_thread_is_the_callers_and_leaves_nothing() {
    let place = Place::new(MEMORY);
    let input = input(300);
    let of_user = |key: &[u8]| {
        let is_worker = std::thread::current().name() == Some("sort-run");
        assert!(!is_worker, "the user's code fails");
        key.first_chunk().map_or(0, |word| u64::from_be_bytes(*word))
    };
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        sort(place.options().with_threads(2).with_prefix(of_user), &input)
    }));
    assert!(panicked.is_err());
    place.assert_clean();
}

#[test]
fn durable_runs_of_threads_are_sealed_and_resumed() {
    let input = input(400);
    let place = Place::new(MEMORY);
    let options = place.options().with_threads(2).with_durable_runs();
    let mut sorter = ExternalSorter::new(options.clone());
    let mut sealed = Vec::new();
    for (n, (key, timestamp, payload)) in input.iter().enumerate() {
        sorter.push(key, *timestamp, payload).unwrap();
        if n == 150 || n == 399 {
            sealed.extend(sorter.seal().unwrap());
        }
    }
    drop(sorter);
    let resumed = ExternalSorter::resume(options, sealed.clone()).unwrap();
    let (sorted, _) = drain(resumed.finish().unwrap()).unwrap();
    assert!(sorted == expected(&input), "runs are described in order of arrival");
    for run in sealed {
        run.delete(&*place.store).unwrap();
    }
    place.assert_clean();
}

#[test]
fn few_records_start_no_thread() {
    let place = Place::new(1 << 20);
    let (sorted, stats) =
        sort(place.options().with_threads(4), &rows(100, |n| vec![n as u8], |_| 0)).unwrap();
    assert_eq!((sorted.len(), stats.runs), (100, 0));
}
