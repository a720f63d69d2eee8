//! The shape of source files: a header, a size, plain ASCII, nothing left for later.

use std::path::Path;

use anyhow::Result;

use crate::tree;

/// Lines that a source file may have.
const MAX_LINES: usize = 500;

/// What must not stand in a source file. Put together here, so that this file does not hold it.
const LEFTOVERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("db", "g!(")];

/// One finding a breach.
///
/// # Errors
///
/// If a file cannot be read.
pub(crate) fn check() -> Result<Vec<String>> {
    let root = tree::root();
    let mut findings = Vec::new();
    for folder in tree::CRATES.iter().chain(&["tools"]).map(|folder| root.join(folder)) {
        if folder.is_dir() {
            for (path, text) in tree::files(&folder, &["rs", "toml", "py"])? {
                findings.extend(check_file(&path, &text));
            }
        }
    }
    Ok(findings)
}

fn check_file(path: &Path, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let shown = tree::shown(path);
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    if is_rust && !text.starts_with("//!") {
        findings.push(format!("{shown}: no `//!` header"));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        findings.push(format!("{shown}: {lines} lines, {MAX_LINES} are allowed"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        if !line.is_ascii() {
            findings.push(format!("{shown}:{number}: not ASCII"));
        }
        for leftover in LEFTOVERS.iter().filter(|leftover| line.contains(**leftover)) {
            findings.push(format!("{shown}:{number}: `{leftover}` left in the code"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_file_is_tidy() {
        assert_eq!(check().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_breach_is_found_with_its_place() {
        let long = "//! x\n".repeat(MAX_LINES + 1);
        assert_eq!(check_file(Path::new("a.rs"), &long), ["a.rs: 501 lines, 500 are allowed"]);
        let text = format!("use x;\n// {}\n// \u{e4}\n", LEFTOVERS[0]);
        assert_eq!(
            check_file(Path::new("a.rs"), &text),
            [
                "a.rs: no `//!` header".to_owned(),
                format!("a.rs:2: `{}` left in the code", LEFTOVERS[0]),
                "a.rs:3: not ASCII".to_owned(),
            ]
        );
        assert!(check_file(Path::new("a.toml"), "[x]\n").is_empty());
    }
}
