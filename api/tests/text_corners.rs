//! Corners of text input: line ends and marks, bytes that are no text, compressed files that are odd or
//! damaged, and fields whose text says more than their type can hold.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use slackwater::prelude::*;
use slackwater::{
    BadRecord, ByteSize, CsvSource, Decimal, FileError, JsonSource, OnBadRecord, Source, TextSource,
};

fn file(folder: &tempfile::TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// What a source reads, in order.
fn read<S: Source>(source: S, parallelism: u32) -> Result<Vec<S::Item>, Error>
where
    S::Item: Record,
{
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(parallelism));
    let rows = env.from_source(source, WatermarkStrategy::none(), "file");
    Ok(rows.execute_and_collect()?.into_vec())
}

/// Good rows, and the bad ones by line.
fn sorted_out<S: Source>(source: S, bad: &SideTag<BadRecord>) -> (Vec<S::Item>, Vec<BadRecord>)
where
    S::Item: Record,
{
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    let rows = env.from_source(source, WatermarkStrategy::none(), "file");
    let aside = rows.side_output(bad).map(|bad| (None, Some(bad)));
    let all = rows.map(|row| (Some(row), None)).union(aside).execute_and_collect().unwrap();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (row, defect) in all {
        good.extend(row);
        bad.extend(defect);
    }
    bad.sort_by_key(|bad: &BadRecord| bad.line);
    (good, bad)
}

#[test]
fn line_ends_marks_and_nul_are_read_the_same_whatever_the_splits() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        ("\n", &[""]),
        ("\n\n", &["", ""]),
        ("\r\n", &[""]),
        ("\r", &["\r"]),
        ("a\rb\rc", &["a\rb\rc"]),
        ("a\r\r\nb\n\rc", &["a\r", "b", "\rc"]),
        ("\u{feff}", &[]),
        ("\u{feff}\n", &[""]),
        ("\u{feff}\u{feff}a", &["\u{feff}a"]),
        ("a\n\u{feff}b\r\n", &["a", "\u{feff}b"]),
        ("a\0b\n\0\n", &["a\0b", "\0"]),
        ("\u{2028}a\u{b}b\u{85}c\n", &["\u{2028}a\u{b}b\u{85}c"]),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (at, (text, lines)) in table.iter().enumerate() {
        let path = file(&folder, &at.to_string(), text);
        for (parallelism, split) in [(1, 1), (1, 2), (1, 3), (1, 1 << 20), (3, 1)] {
            let source =
                TextSource::new(&path).split_size(ByteSize(split)).buffer_size(ByteSize(1));
            let (mut found, mut lines) = (read(source, parallelism).unwrap(), lines.to_vec());
            if parallelism > 1 {
                found.sort();
                lines.sort_unstable();
            }
            assert_eq!(found, lines, "{text:?} in splits of {split}");
        }
    }
}

#[test]
fn a_character_that_a_split_cuts_is_whole_and_a_broken_one_is_bad_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "text", b"d\xc3\xbcne\nab\xffc\r\n\xe2\x82\nend\xf0\x9f");
    for split in 1..20 {
        let tag = SideTag::new("bad");
        let source = TextSource::new(&path)
            .split_size(ByteSize(split))
            .on_bad_record(OnBadRecord::SideOutput(tag.clone()));
        let (good, bad) = sorted_out(source, &tag);
        assert_eq!(good, ["d\u{fc}ne"], "splits of {split}");
        let bad: Vec<(u64, &str)> =
            bad.iter().map(|bad| (bad.line, bad.column.as_deref().unwrap())).collect();
        assert_eq!(bad, [(2, "3"), (3, "1"), (4, "4")], "splits of {split}");
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn members_of_a_gzip_file_are_joined_before_lines_are_cut_empty_ones_too() {
    let folder = tempfile::tempdir().unwrap();
    let table: &[(&[&str], &[&str])] = &[
        (&[""], &[]),
        (&["", ""], &[]),
        (&["", "a\nb", "", "c\n", ""], &["a", "bc"]),
        (&["a\r", "\nb"], &["a", "b"]),
        (&["\u{feff}a", "\n\u{feff}b"], &["a", "\u{feff}b"]),
    ];
    for (at, (members, lines)) in table.iter().enumerate() {
        let bytes: Vec<u8> = members.iter().flat_map(|text| gzip(text)).collect();
        for name in [format!("{at}.gz"), format!("{at}.GZ"), format!("{at}.gzip")] {
            let source = TextSource::new(file(&folder, &name, &bytes)).split_size(ByteSize(3));
            assert_eq!(read(source, 2).unwrap(), *lines, "{members:?} in {name}");
        }
    }
}

#[test]
fn a_gzip_file_that_is_cut_or_changed_anywhere_is_an_error_and_never_less() {
    let folder = tempfile::tempdir().unwrap();
    let first = gzip("one\ntwo\n");
    let bytes = [first.clone(), gzip("three\nfour\n")].concat();
    let failed = |bytes: &[u8]| {
        let path = file(&folder, "text.gz", bytes);
        let source = TextSource::new(&path);
        let mut reader = source.reader(&context()).unwrap();
        reader.add_split(slackwater::FileSplit::whole(path.to_str().unwrap()));
        loop {
            match reader.poll() {
                Ok(slackwater::ReaderPoll::Batch(_)) => {}
                Ok(_) => return false,
                Err(error) => return error.downcast_ref::<FileError>().is_some(),
            }
        }
    };
    for end in 0..bytes.len() {
        // Cut between its members, a file is a whole one.
        assert_eq!(failed(&bytes[..end]), end != first.len(), "cut at {end}");
    }
    let mut changed = bytes.clone();
    let crc = bytes.len() - 8;
    changed[crc] ^= 1;
    assert!(failed(&changed), "a wrong sum");
    assert!(failed(&[&bytes[..], b"garbage"].concat()), "what follows is no member");
    assert!(failed(b"plain text\n"), "not gzip at all");
}

fn context() -> slackwater::ReaderContext {
    slackwater::ReaderContext {
        subtask: slackwater::SubtaskIndex(0),
        parallelism: 1,
        clock: std::sync::Arc::new(slackwater::ManualClock::default()),
        metrics: std::sync::Arc::default(),
        sides: slackwater::SourceSides::default(),
    }
}

#[derive(serde::Deserialize, Record, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Buy,
    Sell,
}

#[derive(serde::Deserialize, Record, Clone, Debug, PartialEq)]
struct Place {
    row: u8,
    tags: Vec<String>,
}

/// A row of everything.
#[derive(serde::Deserialize, Record, Clone, Debug, Default, PartialEq)]
#[serde(default)]
struct Row {
    id: i64,
    big: u64,
    amount: Option<Decimal>,
    rate: Option<f64>,
    kind: Option<Kind>,
    place: Option<Place>,
}

fn decimal(text: &str) -> Option<Decimal> {
    Some(text.parse().unwrap())
}

#[test]
fn fields_of_json_are_exact_or_their_line_is_bad() {
    let row = Row::default();
    let digits = "12345678901234567890.123456789012345678";
    let table: Vec<(String, Option<Row>)> = vec![
        (r#"{"id": -9223372036854775808}"#.into(), Some(Row { id: i64::MIN, ..row.clone() })),
        (r#"{"big": 18446744073709551615}"#.into(), Some(Row { big: u64::MAX, ..row.clone() })),
        (r#"{"big": 18446744073709551616}"#.into(), None),
        (r#"{"big": -1}"#.into(), None),
        (r#"{"id": 1e2}"#.into(), None),
        (r#"{"id": "7"}"#.into(), None),
        (r#"{"id": true}"#.into(), None),
        (r#"{"id": null}"#.into(), None),
        (r#"{"id": 01}"#.into(), None),
        (r#"{"id": 1, "id": 2}"#.into(), None),
        (r#"{"id": 1} x"#.into(), None),
        (r#"{"amount": 0.10}"#.into(), Some(Row { amount: decimal("0.1"), ..row.clone() })),
        (r#"{"amount": "-0.10"}"#.into(), Some(Row { amount: decimal("-0.1"), ..row.clone() })),
        (r#"{"amount": 25e-1}"#.into(), Some(Row { amount: decimal("2.5"), ..row.clone() })),
        (
            format!(r#"{{"amount": {digits}}}"#),
            Some(Row { amount: decimal(digits), ..row.clone() }),
        ),
        (format!(r#"{{"amount": {digits}9}}"#), None),
        (r#"{"amount": 1e400}"#.into(), None),
        (r#"{"amount": "12,5"}"#.into(), None),
        (r#"{"amount": [1]}"#.into(), None),
        (r#"{"amount": null, "rate": null, "kind": null}"#.into(), Some(row.clone())),
        (r#"{"rate": 1e400}"#.into(), None),
        (r#"{"rate": NaN}"#.into(), None),
        (r#"{"rate": 3}"#.into(), Some(Row { rate: Some(3.0), ..row.clone() })),
        (r#"{"kind": "sell"}"#.into(), Some(Row { kind: Some(Kind::Sell), ..row.clone() })),
        (r#"{"kind": "Sell"}"#.into(), None),
        (r#"{"kind": ""}"#.into(), None),
        (
            r#"{"place": {"row": 255, "tags": ["a", "\u00fc\ud83d\ude00", ""], "more": {"x": 1}}}"#
                .into(),
            Some(Row {
                place: Some(Place {
                    row: 255,
                    tags: vec!["a".into(), "\u{fc}\u{1f600}".into(), String::new()],
                }),
                ..row.clone()
            }),
        ),
        (r#"{"place": {"row": 256, "tags": []}}"#.into(), None),
        (r#"{"place": {"row": 1}}"#.into(), None),
        (r#"{"unknown": [1, {"id": 5}], "id": 3}"#.into(), Some(Row { id: 3, ..row.clone() })),
        (format!(r#"{{"unknown": {}}}"#, "[".repeat(10_000)), None),
        (r#"{"kind": "\ud800"}"#.into(), None),
        ("null".into(), None),
        ("{}".into(), Some(row.clone())),
    ];
    let folder = tempfile::tempdir().unwrap();
    let text: Vec<&str> = table.iter().map(|(line, _)| line.as_str()).collect();
    let path = file(&folder, "rows.jsonl", format!("\u{feff}{}", text.join("\r\n")));
    let tag = SideTag::new("bad");
    let source = JsonSource::<Row>::new(path).on_bad_record(OnBadRecord::SideOutput(tag.clone()));
    let (good, bad) = sorted_out(source, &tag);
    let wanted: Vec<Row> = table.iter().filter_map(|(_, row)| row.clone()).collect();
    assert_eq!(good, wanted);
    let lines = (1..).zip(&table).filter(|(_, (_, row))| row.is_none());
    let wanted: Vec<(u64, &str)> = lines.map(|(at, (line, _))| (at, line.as_str())).collect();
    let found: Vec<(u64, &str)> = bad.iter().map(|bad| (bad.line, bad.text.as_str())).collect();
    assert_eq!(found, wanted);
}

/// The fields of a row that a cell can hold.
#[derive(serde::Deserialize, Record, Clone, Debug, PartialEq)]
struct Flat {
    id: i64,
    amount: Option<Decimal>,
    rate: Option<f64>,
    kind: Kind,
}

#[test]
fn cells_of_csv_are_exact_or_their_row_is_bad() {
    let flat = |id, amount, rate| Some(Flat { id, amount, rate, kind: Kind::Buy });
    let digits = "99999999999999999999999999999999999999";
    let table = [
        ("9223372036854775807,0.1,0.5,buy".to_owned(), flat(i64::MAX, decimal("0.1"), Some(0.5))),
        ("9223372036854775808,0.1,0.5,buy".to_owned(), None),
        ("1.0,,,buy".to_owned(), None),
        (" 1,,,buy".to_owned(), None),
        ("+1,,,buy".to_owned(), flat(1, None, None)),
        (",,,buy".to_owned(), None),
        (format!("2,-{digits},,buy"), flat(2, decimal(&format!("-{digits}")), None)),
        (format!("2,{digits}0,,buy"), None),
        ("3,\"1.50\",inf,buy".to_owned(), flat(3, decimal("1.5"), Some(f64::INFINITY))),
        ("4,1.5.0,,buy".to_owned(), None),
        ("5,.,,buy".to_owned(), None),
        ("6,,,Buy".to_owned(), None),
        ("7,,,".to_owned(), None),
        ("8,,1e400,buy".to_owned(), None),
        ("9,,-infinity,buy".to_owned(), flat(9, None, Some(f64::NEG_INFINITY))),
    ];
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<&str> = table.iter().map(|(row, _)| row.as_str()).collect();
    let text = format!("id,amount,rate,kind\r\n{}", rows.join("\r\n"));
    let path = file(&folder, "rows.csv", text);
    let tag = SideTag::new("bad");
    let source = CsvSource::<Flat>::new(path).on_bad_record(OnBadRecord::SideOutput(tag.clone()));
    let (good, bad) = sorted_out(source, &tag);
    let wanted: Vec<Flat> = table.iter().filter_map(|(_, row)| row.clone()).collect();
    assert_eq!(good, wanted);
    let lines = (2..).zip(&table).filter(|(_, (_, row))| row.is_none());
    let wanted: Vec<u64> = lines.map(|(line, _)| line).collect();
    assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), wanted);
}

#[test]
fn a_decimal_keeps_its_digits_and_compares_as_a_number() {
    let parse = |text: &str| text.parse::<Decimal>();
    for text in ["0", "0.00", "-0.05", "12", "-12.340", "0.00000000000000000000000000000000000001"]
    {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
    for (text, shown) in [
        ("+5", "5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1000"),
        ("-25E-4", "-0.0025"),
        ("0e99", "0"),
    ] {
        assert_eq!(parse(text).unwrap().to_string(), shown);
    }
    for text in
        ["", "-", ".", "e5", "1e", "1e+-2", "--1", "1_0", " 1", "0x1", "NaN", "1e39", "1e-39"]
    {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(parse("1e-99999999999999999999").is_err());
    assert!(parse("1e99999999999999999999").is_err());
    let largest = Decimal::new(10_i128.pow(38) - 1, 0).unwrap();
    let least = Decimal::new(1, 38).unwrap();
    assert_eq!(Decimal::new(10_i128.pow(38), 0), None);
    assert_eq!(largest.checked_add(Decimal::from(1)), None);
    assert_eq!(largest.checked_add(least), None, "not rounded");
    assert_eq!(parse("0.1").unwrap().checked_add(parse("0.20").unwrap()), parse("0.3").ok());
    assert_eq!(parse("0.1").unwrap().checked_sub(parse("0.2").unwrap()), parse("-0.1").ok());
    let ordered =
        ["-2", "-1.5", "-1.49", "0", "0.001", "0.01", "1", "1.5"].map(|n| parse(n).unwrap());
    assert!(ordered.is_sorted_by(|a, b| a < b));
    assert!(least < largest && least > Decimal::default());
    assert_eq!(parse("1.5").unwrap(), parse("1.500").unwrap());
    let set = std::collections::HashSet::from(["1.5", "1.50"].map(|n| parse(n).unwrap()));
    assert_eq!(set.len(), 1, "equal numbers hash alike");
    let row = serde_json::to_string(&parse("1.50").unwrap()).unwrap();
    assert_eq!(row, "\"1.50\"");
    assert_eq!(serde_json::from_str::<Decimal>(&row).unwrap().to_string(), "1.50");
}
