//! The guide's chapter of options, held against the table of options.
//!
//! `UPDATE_GOLDEN=1` writes the chapter's table anew; a change of it is read like code.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use element::{Configuration, all_options};

const BEGIN: &str = "<!-- options begin -->\n";
const END: &str = "<!-- options end -->\n";

fn table() -> String {
    let mut text =
        "\n| option | default | a value is | what it does |\n|---|---|---|---|\n".to_owned();
    for option in all_options() {
        let default = (option.default)();
        let (key, expected, doc) = (option.key, option.expected, option.doc.trim());
        writeln!(text, "| `{key}` | `{default}` | {expected} | {doc} |").unwrap();
    }
    text.push('\n');
    text
}

#[test]
fn the_chapter_of_options_is_the_table_of_options() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/book/src/options.md");
    let chapter = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = chapter.split_once(BEGIN).unwrap();
    let (written, behind) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{behind}", table())).unwrap();
    } else {
        assert_eq!(written, table(), "{} differs; UPDATE_GOLDEN=1 rewrites it", path.display());
    }
}

#[test]
fn a_default_in_the_chapter_is_a_value_that_a_file_may_have() {
    for option in all_options() {
        let default = (option.default)();
        let mut config = Configuration::new();
        config.set_text(option.key, &default).unwrap();
    }
}
