//! The guide's chapter of options, held against the table of options.
//!
//! `UPDATE_GOLDEN=1` writes the chapter's table anew; a change of it is read like code.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use element::{ByteSize, Configuration, OptionValue, all_options};

const BEGIN: &str = "<!-- options begin -->\n";
const END: &str = "<!-- options end -->\n";

/// A default as a file would spell it.
fn spelled(default: &str, expected: &str) -> String {
    if matches!(default, "none" | "unset") && !expected.contains(&format!("`{default}`")) {
        return "unset".to_owned();
    }
    if expected == Duration::EXPECTED {
        let duration = Duration::parse(default).unwrap();
        return match (duration.as_secs(), duration.subsec_millis()) {
            (0, 0) => "0".to_owned(),
            (seconds, 0) if seconds % 60 == 0 => format!("{}min", seconds / 60),
            (seconds, 0) => format!("{seconds}s"),
            _ => format!("{}ms", duration.as_millis()),
        };
    }
    if expected == ByteSize::EXPECTED {
        let bytes = ByteSize::parse(default).unwrap().0;
        return format!("{}mb", bytes >> 20);
    }
    default.to_owned()
}

fn table() -> String {
    let mut text =
        "\n| option | default | a value is | what it does |\n|---|---|---|---|\n".to_owned();
    for option in all_options() {
        let default = spelled(&(option.default)(), option.expected);
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
        let default = spelled(&(option.default)(), option.expected);
        let mut config = Configuration::new();
        config.set_text(option.key, &default).unwrap();
    }
}
