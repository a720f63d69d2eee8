//! Text input to the letter: decoding (O28), splits and compression (O29), typed fields (O30).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use slackwater::prelude::*;
use slackwater::{
    BadRecord, ByteSize, Decimal, FileSplit, JsonSource, OnBadRecord, ReaderContext, ReaderPoll,
    Source, SourceReader, SubtaskIndex, TextSource,
};

fn file(case: &str, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(case).join(name)
}

fn expected(case: &str) -> Value {
    serde_json::from_slice(&std::fs::read(file(case, "expected.json")).unwrap()).unwrap()
}

fn env(parallelism: u32) -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(parallelism));
    env
}

fn strings(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

/// O28.
#[test]
fn a_file_from_a_spreadsheet_is_read_line_by_line() {
    let case = "28-text-decoding";
    let lines = strings(&expected(case));
    for (parallelism, split) in [(1, 16 << 20), (3, 16 << 20), (1, 1), (3, 1), (3, 5)] {
        let source = TextSource::new(file(case, "input.bin")).split_size(ByteSize(split));
        let read = env(parallelism)
            .from_source(source, WatermarkStrategy::none(), "lines")
            .execute_and_collect()
            .unwrap();
        if parallelism == 1 {
            assert_eq!(read, lines, "splits of {split} bytes");
        } else {
            let mut lines = lines.clone();
            lines.sort();
            assert_eq!(read.sorted(), lines, "splits of {split} bytes");
        }
    }
}

fn reader(source: &TextSource) -> Box<dyn SourceReader<String, FileSplit>> {
    let context = ReaderContext {
        subtask: SubtaskIndex(0),
        parallelism: 1,
        clock: Arc::new(slackwater::ManualClock::default()),
        metrics: Arc::default(),
        sides: slackwater::SourceSides::default(),
    };
    source.reader(&context).unwrap()
}

fn read_split(source: &TextSource, split: FileSplit) -> Vec<String> {
    let mut reader = reader(source);
    reader.add_split(split);
    let mut lines = Vec::new();
    while let ReaderPoll::Batch(batch) = reader.poll().unwrap() {
        lines.extend(batch.into_records().map(|(line, _)| line));
    }
    lines
}

/// O29, part 1.
#[test]
fn each_line_belongs_to_the_split_in_which_it_begins() {
    let case = "29-splits-and-gzip";
    let expected = expected(case);
    let lines = strings(&expected["lines"]);
    let path = file(case, "input.txt");
    let bytes = path.metadata().unwrap().len();
    let path = path.to_str().unwrap();
    let source = TextSource::new(path).buffer_size(ByteSize(4));
    for cut in 0..=bytes {
        let first = read_split(&source, FileSplit::part(path, 0, cut));
        let second = read_split(&source, FileSplit::part(path, cut, bytes));
        let count = expected["first_split_lines_by_offset"][usize::try_from(cut).unwrap()].as_u64();
        assert_eq!(Some(first.len() as u64), count, "cut at {cut}");
        assert_eq!([first, second].concat(), lines, "cut at {cut}");
    }
}

/// Lines as the rules say: a mark at the front goes, LF ends a line, a CR just before it goes too.
fn model(text: &[u8]) -> Vec<String> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    let mut lines: Vec<String> = lines
        .into_iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    if !last.is_empty() {
        lines.push(String::from_utf8_lossy(last).into_owned());
    }
    lines
}

proptest::proptest! {
    /// Whatever the text, the splits and the buffer: a reader that is restored behind each poll reads
    /// each line once.
    #[test]
    fn any_splits_and_any_buffer_read_each_line_once(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec!["\n", "\r\n", "\r", "a", "\u{feff}", "\u{fc}", "long line"]),
            0..60,
        ),
        many in 1_usize..40,
        split in 1_u64..50,
        buffer in 1_u64..40,
    ) {
        let text = pieces.concat().repeat(many);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, &text).unwrap();
        let path = path.to_str().unwrap();
        let source = TextSource::new(path).buffer_size(ByteSize(buffer));
        let bytes = text.len() as u64;
        let mut lines = Vec::new();
        for start in (0..bytes).step_by(usize::try_from(split * many as u64).unwrap()) {
            let end = bytes.min(start + split * many as u64);
            let mut splits = vec![FileSplit::part(path, start, end)];
            while !splits.is_empty() {
                let mut reader = reader(&source);
                splits.into_iter().for_each(|split| reader.add_split(split));
                if let ReaderPoll::Batch(batch) = reader.poll().unwrap() {
                    lines.extend(batch.into_records().map(|(line, _)| line));
                }
                splits = reader.snapshot();
            }
        }
        proptest::prop_assert_eq!(lines, model(text.as_bytes()));
    }
}

/// O29, part 2.
#[test]
fn a_gzip_file_of_two_members_is_one_text() {
    let case = "29-splits-and-gzip";
    for parallelism in [1, 3] {
        let source = TextSource::new(file(case, "input.gz")).split_size(ByteSize(10));
        let lines = env(parallelism)
            .from_source(source, WatermarkStrategy::none(), "lines")
            .execute_and_collect()
            .unwrap();
        let found: Vec<(usize, u32)> =
            lines.iter().map(|line| (line.len(), crc32(line.as_bytes()))).collect();
        let found = serde_json::to_value(found).unwrap();
        assert_eq!(found, expected(case)["gzip_lines"]);
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// A row whose amount is exact.
#[derive(serde::Deserialize)]
struct Amount {
    id: i64,
    amt: Decimal,
}

/// O30.
#[test]
fn integers_that_do_not_fit_are_put_aside_by_line() {
    let case = "30-typed-fields";
    for parallelism in [1, 3] {
        let env = env(parallelism);
        let bad = SideTag::<BadRecord>::new("bad");
        let source = JsonSource::<Amount>::new(file(case, "input.jsonl"))
            .split_size(ByteSize(64))
            .on_bad_record(OnBadRecord::SideOutput(bad.clone()));
        let rows = env.from_source(source, WatermarkStrategy::none(), "rows");
        let errors = rows.side_output(&bad).map(|bad| (Some(bad), None));
        let amounts = rows.map(|row| (None, Some((row.id, row.amt))));
        let all = amounts.union(errors).execute_and_collect().unwrap();
        let mut sums = BTreeMap::new();
        let mut lines = Vec::new();
        for row in all {
            match row {
                (Some(bad), _) => lines.push(bad.line),
                (_, Some((id, amount))) => {
                    let sum = sums.entry(id).or_insert(Decimal::default());
                    *sum = sum.checked_add(amount).unwrap();
                }
                _ => {}
            }
        }
        lines.sort_unstable();
        let expected = expected(case);
        assert_eq!(serde_json::to_value(lines).unwrap(), expected["errors"]);
        let sums: BTreeMap<String, String> =
            sums.into_iter().map(|(id, sum)| (id.to_string(), sum.to_string())).collect();
        assert_eq!(serde_json::to_value(sums).unwrap(), expected["sums"]);
    }
}

/// O30, the strict setting.
#[test]
fn the_first_integer_that_does_not_fit_fails_a_strict_job() {
    let path = file("30-typed-fields", "input.jsonl");
    let error =
        env(1).read_json::<Amount>(&path).map(|row| row.id).execute_and_collect().unwrap_err();
    let error = Error::from(error);
    let bad = error.chain().find_map(|cause| cause.downcast_ref::<BadRecord>()).unwrap();
    assert_eq!(bad.line, 5);
    assert_eq!(bad.file, path.to_str().unwrap());
    assert_eq!(bad.text, r#"{"id": 9223372036854775808, "amt": 16}"#);
    assert!(bad.reason.contains("9223372036854775808"), "{}", bad.reason);
}
