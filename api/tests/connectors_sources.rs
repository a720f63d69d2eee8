//! Lines from sockets, bad UTF-8, damaged gzip, and the generator at a rate.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{
    BadRecord, Boundedness, FileError, GeneratorSource, HybridSource, ManualClock, OnBadRecord,
    ReaderContext, ReaderPoll, Source, SourceReader, SourceSides, SubtaskIndex, TcpError,
    TcpSource, TextSource,
};

fn serve(text: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        for byte in text.chunks(3) {
            socket.write_all(byte).unwrap();
        }
    });
    address
}

#[test]
fn lines_of_a_socket_come_until_the_server_closes_it() {
    let env = StreamExecutionEnvironment::new();
    let source = TcpSource::<String>::new(serve(b"one\r\ntwo\n\nthree"));
    assert_eq!(source.boundedness(), Boundedness::Unbounded);
    let lines =
        env.from_source(source, WatermarkStrategy::none(), "tcp").execute_and_collect().unwrap();
    assert_eq!(lines, ["one", "two", "", "three"]);
}

#[test]
fn lines_of_a_socket_are_parsed_behind_a_history() {
    let env = StreamExecutionEnvironment::new();
    let live = TcpSource::<u64>::new(serve(b"3\nx\n4\n")).on_bad_record(OnBadRecord::SkipAndCount);
    let history = slackwater::CollectionSource::new([1_u64, 2]);
    let source = HybridSource::starting_with(history).then(live);
    let numbers = env
        .from_source(source, WatermarkStrategy::none(), "numbers")
        .execute_and_collect()
        .unwrap();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(numbers.report().operators[0].skipped, 1);
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_names_it() {
    let env = StreamExecutionEnvironment::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let source = TcpSource::<String>::new(address.clone());
    let error = env
        .from_source(source, WatermarkStrategy::none(), "tcp")
        .execute_and_collect()
        .unwrap_err();
    let error = Error::from(error);
    assert!(error.chain().any(|cause| cause.is::<TcpError>()));
    assert!(format!("{error:#}").contains(&format!("cannot connect to `{address}`")), "{error:#}");
}

#[test]
fn a_line_that_is_not_utf8_goes_by_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    std::fs::write(&path, b"one\ntw\xffo\r\nthree\r").unwrap();
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    let read = |source: TextSource| {
        env.from_source(source, WatermarkStrategy::none(), "text").execute_and_collect()
    };
    let error = Error::from(read(TextSource::new(&path)).unwrap_err());
    let bad = error.chain().find_map(|cause| cause.downcast_ref::<BadRecord>()).unwrap();
    assert_eq!((bad.line, bad.column.as_deref(), bad.text.as_str()), (2, Some("3"), "tw\u{fffd}o"));
    let skipped = TextSource::new(&path).on_bad_record(OnBadRecord::SkipAndCount);
    let skipped = read(skipped).unwrap();
    assert_eq!(skipped, ["one", "three\r"]);
    assert_eq!(skipped.report().operators[0].skipped, 1);
    let replaced = read(TextSource::new(&path).replace_bad_utf8()).unwrap();
    assert_eq!(replaced, ["one", "tw\u{fffd}o", "three\r"]);
}

#[test]
fn a_cut_gzip_file_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all("a line\n".repeat(10_000).as_bytes()).unwrap();
    let bytes = gzip.finish().unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error =
        StreamExecutionEnvironment::new().read_text_file(&path).execute_and_collect().unwrap_err();
    let error = Error::from(error);
    let read = error.chain().find_map(|cause| cause.downcast_ref::<FileError>()).unwrap();
    assert!(matches!(read, FileError::Read { .. }), "{read:?}");
    assert!(format!("{error:#}").contains(path.to_str().unwrap()), "{error:#}");
}

/// Polls until a reader has nothing for now; what it has given.
fn read<S: Record>(reader: &mut dyn SourceReader<u64, S>) -> Vec<u64> {
    let mut values = Vec::new();
    while let ReaderPoll::Batch(batch) = reader.poll().unwrap() {
        values.extend_from_slice(batch.values());
    }
    values
}

#[test]
fn a_generator_at_a_rate_keeps_its_order_and_goes_on_where_it_was() {
    let clock = ManualClock::default();
    let context = ReaderContext {
        subtask: SubtaskIndex(0),
        parallelism: 1,
        clock: Arc::new(clock.clone()),
        metrics: Arc::default(),
        sides: SourceSides::default(),
    };
    let source = GeneratorSource::bounded(2_500, |i| (i, None)).records_per_second(1_000.0);
    let mut reader = source.reader(&context).unwrap();
    (0..64).for_each(|i| reader.add_split((i, 2_500, 64)));
    assert_eq!(read(&mut *reader), [0]);
    clock.advance(Duration::from_millis(100));
    assert_eq!(read(&mut *reader), (1..=100).collect::<Vec<u64>>());
    let stored = reader.snapshot();
    let mut reader = source.reader(&context).unwrap();
    stored.into_iter().for_each(|split| reader.add_split(split));
    assert_eq!(read(&mut *reader), [101]);
    clock.advance(Duration::from_secs(10));
    assert_eq!(read(&mut *reader), (102..2_500).collect::<Vec<u64>>());
}
