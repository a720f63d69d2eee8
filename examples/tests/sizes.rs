//! Programs stay short: what a user types is counted, for the examples that everybody reads first.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

/// Lines of a program that are neither blank, nor comments, nor imports.
fn body(name: &str) -> usize {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name).with_extension("rs");
    let text = fs::read_to_string(file).unwrap();
    let counts = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("//") && !line.starts_with("use ")
    };
    text.lines().filter(counts).count()
}

#[test]
fn the_first_programs_are_short() {
    for (name, most) in [
        ("word_count", 12),
        ("windowed_join", 20),
        ("interval_join", 20),
        ("keyed_timer", 20),
        ("cached_jobs", 12),
    ] {
        assert!(body(name) <= most, "{name}: {} lines, {most} are wanted", body(name));
    }
}

#[test]
fn there_are_fourteen_examples_and_each_asserts_its_output() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut examples = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains("assert"), "{} asserts nothing", path.display());
            examples += 1;
        }
    }
    assert!(examples >= 14, "{examples} examples");
}
