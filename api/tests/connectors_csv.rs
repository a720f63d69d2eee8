//! CSV files to typed rows: what is read, what is refused, and where a restored reader goes on.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use slackwater::prelude::*;
use slackwater::{
    BadRecord, ByteSize, CsvSource, OnBadRecord, ReaderContext, ReaderPoll, Source, SourceSides,
    SubtaskIndex,
};

#[derive(serde::Deserialize, Record, Clone, Debug, PartialEq)]
struct Flight {
    carrier: String,
    delay: Option<i32>,
    distance: f64,
}

fn flight(carrier: &str, delay: Option<i32>, distance: f64) -> Flight {
    Flight { carrier: carrier.to_owned(), delay, distance }
}

fn write(folder: &tempfile::TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn read(source: CsvSource<Flight>) -> Result<Vec<Flight>, Error> {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    let rows = env.from_source(source, WatermarkStrategy::none(), "flights");
    Ok(rows.execute_and_collect()?.into_vec())
}

fn bad_record(error: &Error) -> BadRecord {
    error.chain().find_map(|cause| cause.downcast_ref::<BadRecord>()).expect("a bad record").clone()
}

#[test]
fn columns_go_to_fields_by_name_and_empty_cells_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\u{feff}distance,extra,carrier,delay\r\n\
                1.5,x,UA,-3\r\n\
                \r\n\
                2,\"a \"\"b\"\", c\",\"B\n6\",\r\n\
                3,,NA,NA\n\
                4,,DL,7";
    let path = write(&folder, "flights.csv", text);
    let rows = read(CsvSource::new(path).null_values(["NA"])).unwrap();
    let expected = [
        flight("UA", Some(-3), 1.5),
        flight("B\n6", None, 2.0),
        flight("NA", None, 3.0),
        flight("DL", Some(7), 4.0),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_bad_cell_fails_the_job_with_file_line_column_and_text() {
    let folder = tempfile::tempdir().unwrap();
    let text = "carrier,delay,distance\r\n\"U\nA\",1,2\r\n\r\nUA,12x,2\r\nUA,1,2\r\n";
    let path = write(&folder, "flights.csv", text);
    let error = read(CsvSource::new(&path)).unwrap_err();
    let bad = bad_record(&error);
    assert_eq!(bad.file, path.to_str().unwrap());
    assert_eq!(bad.line, 5);
    assert_eq!(bad.column.as_deref(), Some("`delay`"));
    assert_eq!(bad.text, "UA,12x,2");
    assert!(bad.reason.contains("`12x` is no i32"), "{}", bad.reason);
    let message = format!("{error:#}");
    assert!(message.contains("line 5, column `delay`: `12x` is no i32"), "{message}");
}

#[test]
fn bad_rows_are_skipped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        &folder,
        "flights.csv",
        b"carrier,delay,distance\nUA,1,2\nUA,1\nUA,1,2,3\nU\xffA,1,2\nUA,,x\nUA,2147483648,1\nDL,2,3\n",
    );
    let env = StreamExecutionEnvironment::new();
    let source = CsvSource::<Flight>::new(path).on_bad_record(OnBadRecord::SkipAndCount);
    let rows = env
        .from_source(source, WatermarkStrategy::none(), "flights")
        .execute_and_collect()
        .unwrap();
    assert_eq!(rows, [flight("UA", Some(1), 2.0), flight("DL", Some(2), 3.0)]);
    assert_eq!(rows.report().operators[0].skipped, 5);
}

#[test]
fn bad_rows_go_to_a_side_output_or_are_counted_when_nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let text = "carrier,delay,distance\nUA,1,2\nUA,1\n\nUA,y,1\nDL,2,3\n\"AA,1,2\nB6,1,2\n";
    let path = write(&folder, "flights.csv", text);
    let tag = SideTag::<BadRecord>::new("bad");
    let source =
        || CsvSource::<Flight>::new(&path).on_bad_record(OnBadRecord::SideOutput(tag.clone()));
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    let rows = env.from_source(source(), WatermarkStrategy::none(), "flights");
    let bad = rows.side_output(&tag).map(|bad| (bad.line, bad.reason));
    let good = rows.map(|row| (0, row.carrier));
    let all = good.union(bad).execute_and_collect().unwrap().sorted();
    let lines: Vec<u64> = all.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [0, 0, 3, 5, 7], "{all:?}");
    assert_eq!(all[2].1, "2 cells where the header has 3");
    assert_eq!(all[4].1, "a quote is opened and not closed");
    let rows = env
        .from_source(source(), WatermarkStrategy::none(), "flights")
        .execute_and_collect()
        .unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows.report().operators[0].skipped, 3);
}

#[test]
fn files_come_in_order_of_path_each_with_its_header() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "in/b.csv", "delay,distance,carrier\n1,1,b\n");
    write(&folder, "in/a.csv", "carrier,distance,delay\na,1,1\n");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, b"carrier,distance,delay\nc,1,1\nd,1,1").unwrap();
    write(&folder, "in/deep/c.csv.gz", gzip.finish().unwrap());
    write(&folder, "in/.part-0.inprogress", "half a row");
    write(&folder, "in/_SUCCESS", "");
    let carriers = |path: PathBuf| {
        let rows = read(CsvSource::new(path)).unwrap();
        rows.into_iter().map(|row| row.carrier).collect::<String>()
    };
    assert_eq!(carriers(folder.path().join("in")), "abcd");
    assert_eq!(carriers(folder.path().join("in/*.csv")), "ab");
    assert_eq!(carriers(folder.path().join("**/*.gz")), "cd");
    assert_eq!(carriers(folder.path().join("i?/[b-z]*")), "bcd");
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    for (path, expected) in [
        ("/nowhere/flights.csv", "cannot open `/nowhere/flights.csv`: No such file"),
        ("/nowhere/*.csv", "no file matches `/nowhere/*.csv`"),
    ] {
        let error = read(CsvSource::new(path)).unwrap_err();
        assert!(error.downcast_ref::<slackwater::JobError>().is_some());
        assert!(error.chain().any(|cause| cause.is::<slackwater::FileError>()));
        assert!(format!("{error:#}").contains(expected), "{error:#}");
    }
}

#[test]
fn a_restored_reader_goes_on_with_the_next_row() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "carrier,delay,distance\r\n".to_owned();
    for i in 0..5_000 {
        text += &format!("\"c{i}\r\n,\",{i},1\r\n");
    }
    let plain = write(&folder, "flights.csv", &text);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    let gzip = write(&folder, "flights.csv.gz", gzip.finish().unwrap());
    let context = ReaderContext {
        subtask: SubtaskIndex(0),
        parallelism: 1,
        clock: Arc::new(slackwater::ManualClock::default()),
        metrics: Arc::default(),
        sides: SourceSides::default(),
    };
    for path in [plain, gzip] {
        let source = CsvSource::<Flight>::new(&path);
        let mut splits = vec![slackwater::FileSplit::whole(path.to_str().unwrap())];
        let mut delays = Vec::new();
        while !splits.is_empty() {
            let mut reader = source.reader(&context).unwrap();
            splits.into_iter().for_each(|split| reader.add_split(split));
            let ReaderPoll::Batch(batch) = reader.poll().unwrap() else { panic!("no batch") };
            delays.extend(batch.values().iter().filter_map(|row| row.delay));
            splits = reader.snapshot();
        }
        assert_eq!(delays, (0..5_000).collect::<Vec<i32>>());
    }
}

#[test]
fn splits_inside_a_file_read_each_row_once() {
    let folder = tempfile::tempdir().unwrap();
    for end in ["\n", "\r\n"] {
        let mut text = format!("carrier,delay,distance{end}");
        for i in 0..40 {
            text += &format!("c,{},1{end}", i * 7);
        }
        let path = write(&folder, "flights.csv", &text);
        for size in 1..60 {
            let source = CsvSource::new(&path).split_inside_files().split_size(ByteSize(size));
            let delays: Vec<i32> =
                read(source).unwrap().into_iter().filter_map(|row| row.delay).collect();
            assert_eq!(delays, (0..40).map(|i| i * 7).collect::<Vec<i32>>(), "size {size}");
        }
    }
}

#[test]
fn files_without_header_go_by_place_or_by_given_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, "flights.csv", "UA; 1 ;2\nDL;;3\n");
    let source = || CsvSource::<Flight>::new(&path).delimiter(b';').trim();
    let expected = [flight("UA", Some(1), 2.0), flight("DL", None, 3.0)];
    assert_eq!(read(source().without_header()).unwrap(), expected);
    assert_eq!(read(source().columns(["carrier", "delay", "distance"])).unwrap(), expected);
}
