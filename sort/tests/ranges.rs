//! Parts of one sort, drained side by side: together they are the whole, in order.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::thread;

use common::{Place, Row, drain, expected, mix, rows};
use slackwater_sort::{BlockCompression, CancelFlag, ExternalSorter, SortedStream, SorterOptions};

fn parts(options: SorterOptions, input: &[Row], ways: usize) -> Vec<SortedStream> {
    let mut sorter = ExternalSorter::new(options);
    for (key, timestamp, payload) in input {
        sorter.push(key, *timestamp, payload).unwrap();
    }
    sorter.finish_ranges(ways).unwrap()
}

#[track_caller]
fn check(memory: u64, input: &[Row], ways: usize) -> Vec<usize> {
    let place = Place::new(memory);
    let options = place.options().with_fan_in(64).with_compression(BlockCompression::Lz4);
    let streams = parts(options, input, ways);
    assert!(streams.len() <= ways.max(1));
    let drained: Vec<Vec<Row>> = thread::scope(|scope| {
        let threads: Vec<_> = streams
            .into_iter()
            .map(|stream| scope.spawn(move || drain(stream).unwrap().0))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(drained.concat() == expected(input), "the parts are not the whole");
    let keys: Vec<_> =
        drained.iter().filter_map(|part| Some((part.first()?, part.last()?))).collect();
    assert!(keys.windows(2).all(|pair| pair[0].1.0 < pair[1].0.0), "a key is in two parts");
    place.assert_clean();
    drained.iter().map(Vec::len).collect()
}

#[test]
fn parts_drained_by_threads_are_the_whole_in_order() {
    let uniform = rows(60_000, |n| mix(n).to_be_bytes().to_vec(), |_| 0);
    for memory in [400_000, 1 << 24] {
        for ways in [1, 2, 3, 4] {
            let sizes = check(memory, &uniform, ways);
            assert_eq!(sizes.len(), ways);
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(most - least < 20_000, "{sizes:?}");
        }
    }
}

#[test]
fn one_key_is_never_cut_and_few_keys_make_few_parts() {
    for memory in [100_000, 1 << 24] {
        assert!(check(memory, &rows(20_000, |_| vec![7; 12], |_| 0), 4).contains(&20_000));
        check(memory, &rows(20_000, |n| vec![(mix(n) % 3) as u8], |n| n as i64 % 5), 8);
        check(memory, &[], 4);
        check(memory, &rows(3, |n| vec![n as u8], |_| 0), 8);
    }
}

#[test]
fn parts_dropped_early_leave_nothing() {
    let uniform = rows(20_000, |n| mix(n).to_be_bytes().to_vec(), |_| 0);
    for memory in [200_000, 1 << 24] {
        let place = Place::new(memory);
        let cancel = CancelFlag::new();
        let options = place.options().with_fan_in(64).with_cancel(cancel.clone());
        let mut streams = parts(options, &uniform, 3);
        assert_eq!(streams.len(), 3);
        streams[1].next().unwrap();
        drop(streams.remove(0));
        assert!(streams[0].next().unwrap().is_some(), "the others go on");
        cancel.cancel();
        streams.into_iter().for_each(|stream| assert!(drain(stream).is_err() || memory > 1 << 20));
        place.assert_clean();
    }
}

#[test]
fn parts_together_open_no_more_files_than_the_fan_in() {
    let uniform = rows(20_000, |n| mix(n).to_be_bytes().to_vec(), |_| 0);
    let place = Place::new(200_000);
    let streams = parts(place.options().with_fan_in(16), &uniform, 8);
    let stats = streams[0].stats();
    assert!(stats.runs > 4 && stats.peak_open_files <= 17, "{stats:?}");
    assert!(streams.len() < 8);
}
