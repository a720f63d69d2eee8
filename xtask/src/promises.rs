//! The promises in `docs`, held against the tests that show them.
//!
//! A table row is `| id | promise | test |`; its test is `not yet`, or one or more
//! `` `crate::test_name` `` separated by commas, where the crate is its folder's name. Reads
//! `docs/behaviours.md` and `docs/traps.md`; [`fill`] writes them.

mod tests_found;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};

use crate::tree;
use tests_found::TestFound;

const NOT_YET: &str = "not yet";

/// Tests that [`fill`] names in one row.
const MAX_TESTS: usize = 6;

/// Each table, and how many rows each of its families has.
const TABLES: &[(&str, &[(&str, usize)])] = &[
    (
        "docs/behaviours.md",
        &[
            ("D", 20),
            ("A", 29),
            ("P", 12),
            ("K", 17),
            ("R", 11),
            ("M", 36),
            ("F", 10),
            ("L", 7),
            ("E", 9),
            ("T", 19),
        ],
    ),
    ("docs/traps.md", &[("tC", 17), ("tB", 18), ("tS", 19), ("tF", 20), ("tK", 24), ("tW", 26)]),
];

/// One row of a table.
#[derive(Debug, PartialEq)]
struct Row {
    id: String,
    promise: String,
    test: String,
}

/// One finding for each row that is missing, doubled, or names a test that does not exist.
///
/// # Errors
///
/// If a table or a source file cannot be read.
pub(crate) fn check() -> Result<Vec<String>> {
    let tests = tests_found::all()?;
    let mut findings = Vec::new();
    for (file, families) in TABLES {
        let rows = rows(&read(file)?);
        findings.extend(check_ids(file, families, &rows));
        for row in rows {
            findings.extend(check_tests(file, &row, &tests));
        }
    }
    Ok(findings)
}

/// The rows without a test, with their promise.
///
/// # Errors
///
/// If a table cannot be read.
pub(crate) fn open_rows() -> Result<Vec<String>> {
    let mut open = Vec::new();
    for (file, _) in TABLES {
        let rows = rows(&read(file)?).into_iter();
        let not_yet = rows.filter(|row| row.test.starts_with(NOT_YET));
        open.extend(not_yet.map(|row| format!("{:5} {}", row.id, row.promise)));
    }
    Ok(open)
}

/// Adds tests whose name or comment carries an id to the row of that id. Answers how many rows grew.
///
/// # Errors
///
/// If a file cannot be read or written.
pub(crate) fn fill() -> Result<usize> {
    let tests = tests_found::all()?;
    let mut filled = 0;
    for (file, _) in TABLES {
        let text = read(file)?;
        let mut lines = Vec::new();
        for line in text.lines() {
            let new = row(line).and_then(|row| filled_row(&row, &tests));
            filled += usize::from(new.is_some());
            lines.push(new.unwrap_or_else(|| line.to_owned()));
        }
        fs::write(tree::root().join(file), lines.join("\n") + "\n")?;
    }
    Ok(filled)
}

/// The row with the tests that carry its id behind those that it names; `None` if none is new.
fn filled_row(row: &Row, tests: &[TestFound]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    if !row.test.starts_with(NOT_YET) {
        names.extend(row.test.split(',').map(|name| name.trim().to_owned()));
    }
    let before = names.len();
    let carrying = tests.iter().filter(|test| test.ids.contains(&row.id));
    for name in carrying.map(|test| format!("`{}`", test.path)) {
        if !names.contains(&name) && names.len() < MAX_TESTS.max(before) {
            names.push(name);
        }
    }
    let Row { id, promise, .. } = row;
    (names.len() > before).then(|| format!("| {id} | {promise} | {} |", names.join(", ")))
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(tree::root().join(file)).with_context(|| file.to_owned())
}

fn rows(text: &str) -> Vec<Row> {
    text.lines().filter_map(row).collect()
}

/// A line as a row, if it is one: three cells, the first an id.
fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
    let [id, promise, test] = cells[..] else { return None };
    let row = |text: &str| text.trim().to_owned();
    let found = Row { id: row(id), promise: row(promise), test: row(test) };
    known_ids().contains(&found.id).then_some(found)
}

/// Every id that a table must have.
fn known_ids() -> BTreeSet<String> {
    let families = TABLES.iter().flat_map(|(_, families)| families.iter());
    families.flat_map(|(prefix, count)| ids_of(prefix, *count)).collect()
}

fn ids_of(prefix: &str, count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(move |number| format!("{prefix}{number}"))
}

fn check_ids(file: &str, families: &[(&str, usize)], rows: &[Row]) -> Vec<String> {
    let expected = families.iter().flat_map(|(prefix, count)| ids_of(prefix, *count));
    let count = |id: &str| rows.iter().filter(|row| row.id == id).count();
    expected
        .filter_map(|id| match count(&id) {
            1 => None,
            0 => Some(format!("{file}: no row for {id}")),
            many => Some(format!("{file}: {many} rows for {id}")),
        })
        .collect()
}

fn check_tests(file: &str, row: &Row, tests: &[TestFound]) -> Vec<String> {
    let id = &row.id;
    if row.test == NOT_YET || row.test.starts_with("not yet (") {
        return Vec::new();
    }
    row.test
        .split(',')
        .map(|name| name.trim().trim_matches('`'))
        .filter(|name| !tests.iter().any(|test| test.path == *name))
        .map(|name| format!("{file}: {id} names `{name}`, which is no test"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_names_a_test_that_exists_or_says_not_yet() {
        assert_eq!(check().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_row_that_is_missing_doubled_or_wrong_is_found() {
        let rows = rows(
            "| id | promise | test |\n|---|---|---|\n| L1 | a | not yet |\n| L1 | b | `sort::gone`, `sort::here` |\n",
        );
        assert_eq!(rows.len(), 2);
        assert_eq!(check_ids("f", &[("L", 2)], &rows), ["f: 2 rows for L1", "f: no row for L2"]);
        let here = TestFound { path: "sort::here".into(), ids: BTreeSet::from(["L1".to_owned()]) };
        assert_eq!(check_tests("f", &rows[0], &[]), Vec::<String>::new());
        assert_eq!(
            check_tests("f", &rows[1], std::slice::from_ref(&here)),
            ["f: L1 names `sort::gone`, which is no test"]
        );
        let filled = filled_row(&rows[0], &[here]);
        assert_eq!(filled.as_deref(), Some("| L1 | a | `sort::here` |"));
    }
}
