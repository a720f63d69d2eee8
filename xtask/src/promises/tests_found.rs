//! The test functions of the tree, and the ids that their names and comments carry.
//!
//! A test is the function behind a `#[test]`; its comment is what stands right above it. Found by
//! reading lines, which is enough for a tree that rustfmt keeps in shape.

use std::collections::BTreeSet;

use anyhow::Result;

use super::known_ids;
use crate::tree;

/// One test function.
#[derive(Debug, PartialEq)]
pub(super) struct TestFound {
    /// `crate::name`, the crate by its folder.
    pub(super) path: String,
    /// Promises that its name or its comment mentions.
    pub(super) ids: BTreeSet<String>,
}

/// Every test of every crate.
///
/// # Errors
///
/// If a file cannot be read.
pub(super) fn all() -> Result<Vec<TestFound>> {
    let known = known_ids();
    let mut found = Vec::new();
    for folder in tree::CRATES {
        for (_, text) in tree::files(&tree::root().join(folder), &["rs"])? {
            found.extend(in_text(folder, &text, &known));
        }
    }
    Ok(found)
}

fn in_text(folder: &str, text: &str, known: &BTreeSet<String>) -> Vec<TestFound> {
    let mut found = Vec::new();
    let mut comment = String::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("//") {
            comment.push_str(line);
            comment.push('\n');
        } else if line.starts_with("#[") {
            is_test |= line.starts_with("#[test]");
        } else {
            if let (true, Some(name)) = (is_test, function_name(line)) {
                let path = format!("{folder}::{name}");
                found.push(TestFound { path, ids: ids(&comment, name, known) });
            }
            comment.clear();
            is_test = false;
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("fn ").or_else(|| line.strip_prefix("pub fn "))?;
    rest.split(['(', '<']).next().map(str::trim)
}

fn ids(comment: &str, name: &str, known: &BTreeSet<String>) -> BTreeSet<String> {
    let in_comment = comment.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned);
    let in_name = name.split('_').map(|word| match word.strip_prefix('t') {
        // `ts1` in a name is the trap tS1; anything else is a row in capitals.
        Some(rest) if !rest.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("t{}", rest.to_uppercase())
        }
        _ => word.to_uppercase(),
    });
    in_comment.chain(in_name).filter(|word| known.contains(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_with_the_ids_of_comment_and_name() {
        // Written with `@`, so that a search of this file does not find them.
        let text = "
            /// Not a test: A1.
            fn helper() {}

            /// Trap tS15, and M3.
            @[test]
            #[cfg(unix)]
            fn keys_are_ordered_k4_tc2(a in any()) {
                // F1 belongs to nobody.
            }

            @[test]
            fn plain() {}
        "
        .replace('@', "#");
        let found = in_text("sort", &text, &known_ids());
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(
            found,
            [
                TestFound {
                    path: "sort::keys_are_ordered_k4_tc2".into(),
                    ids: ids(&["K4", "M3", "tC2", "tS15"])
                },
                TestFound { path: "sort::plain".into(), ids: ids(&[]) },
            ]
        );
    }
}
