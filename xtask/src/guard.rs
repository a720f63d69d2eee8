//! `cargo xtask bench-guard`: counted costs of small fixed cases against numbers kept in the repository.
//!
//! Runs `guard` of the package `slackwater-benches` (release build) and reads its counts; where valgrind
//! is installed, each case also runs under callgrind for its instructions. Both are held against
//! `benches/guard.json`: counts must be equal, instructions may move by five in a hundred, and only
//! numbers of one compiler are compared. `--update` writes the file anew.
//!
//! Left out on purpose: times. They are for people, in `benches`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use crate::tree;

/// By how much instructions may move, in parts of a hundred.
const TOLERANCE: f64 = 5.0;

/// What instructions are called among the counts.
const INSTRUCTIONS: &str = "instructions";

/// Case and count to value.
type Counts = BTreeMap<(String, String), u64>;

/// What is kept: counts, and the compiler that instructions were counted with.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kept {
    compiler: String,
    counts: Counts,
}

/// Runs all cases and compares, or writes the file if `update` is set. Prints what moved.
///
/// # Errors
///
/// What moved beyond its tolerance, or what could not be run.
pub(crate) fn run(update: bool) -> Result<()> {
    let binary = build()?;
    let mut found = Kept { compiler: compiler()?, counts: counts(&binary)? };
    let cases: Vec<String> = found.counts.keys().map(|(case, _)| case.clone()).collect();
    if has_valgrind() {
        for case in cases {
            let key = (case.clone(), INSTRUCTIONS.to_owned());
            if !found.counts.contains_key(&key) && !case.starts_with("job-") {
                found.counts.insert(key, instructions(&binary, &case)?);
            }
        }
    } else {
        println!("bench-guard: no valgrind, so instructions are not counted");
    }
    let path = tree::root().join("benches/guard.json");
    if update {
        std::fs::write(&path, render(&found)).with_context(|| tree::shown(&path))?;
        println!("bench-guard: {} counts written", found.counts.len());
        return Ok(());
    }
    let text = std::fs::read_to_string(&path).with_context(|| tree::shown(&path))?;
    let findings = compare(&parse(&text)?, &found);
    findings.iter().for_each(|finding| println!("bench-guard: {}", finding.text));
    let breaches = findings.iter().filter(|finding| finding.is_breach).count();
    ensure!(breaches == 0, "{breaches} counted costs moved; `--update` takes them over");
    println!("bench-guard: {} counts hold", found.counts.len());
    Ok(())
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(tree::root());
    command
}

/// Builds the runner and says where it is.
fn build() -> Result<PathBuf> {
    let output = cargo()
        .args(["build", "--release", "--package", "slackwater-benches", "--bin", "guard"])
        .args(["--message-format", "json-render-diagnostics"])
        .output()
        .context("running cargo build")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    };
    let messages = String::from_utf8(output.stdout)?;
    messages.lines().filter_map(executable).next_back().context("cargo names no executable")
}

fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output().context("running rustc")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn counts(binary: &Path) -> Result<Counts> {
    let output = Command::new(binary).output().context("running the cases")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)?.lines().map(count_of).collect()
}

/// A line of the runner: case, count, value, tabs between.
fn count_of(line: &str) -> Result<((String, String), u64)> {
    let mut fields = line.split('\t');
    let (Some(case), Some(count), Some(value)) = (fields.next(), fields.next(), fields.next())
    else {
        bail!("`{line}` is no count");
    };
    Ok(((case.to_owned(), count.to_owned()), value.parse().with_context(|| line.to_owned())?))
}

fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Instructions of one case, from the summary that callgrind prints.
fn instructions(binary: &Path, case: &str) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([binary.as_os_str(), case.as_ref()])
        .output()
        .context("running valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{text}");
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, number) = collected.with_context(|| format!("callgrind says nothing of {case}"))?;
    Ok(number.trim().parse()?)
}

/// Something that moved.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    text: String,
    is_breach: bool,
}

fn compare(kept: &Kept, found: &Kept) -> Vec<Finding> {
    let same_compiler = kept.compiler == found.compiler;
    let mut findings = Vec::new();
    for ((case, count), was) in &kept.counts {
        let is_instructions = count == INSTRUCTIONS;
        let Some(is) = found.counts.get(&(case.clone(), count.clone())) else {
            if !is_instructions {
                let text = format!("{case}: {count} is no longer counted, was {was}");
                findings.push(Finding { text, is_breach: true });
            }
            continue;
        };
        let percent = (*is as f64 - *was as f64) / (*was as f64).max(1.0) * 100.0;
        let is_equal = if is_instructions { percent.abs() <= TOLERANCE } else { is == was };
        if !is_equal {
            let mut text = format!("{case}: {count} {was} -> {is} ({percent:+.1} %)");
            if is_instructions && !same_compiler {
                text.push_str(&format!(", by {} instead of {}", found.compiler, kept.compiler));
            }
            findings.push(Finding { text, is_breach: !is_instructions || same_compiler });
        }
    }
    for ((case, count), is) in &found.counts {
        if !kept.counts.contains_key(&(case.clone(), count.clone())) {
            let text = format!("{case}: {count} {is} is not kept yet");
            findings.push(Finding { text, is_breach: count != INSTRUCTIONS });
        }
    }
    findings
}

fn render(kept: &Kept) -> String {
    let mut cases = Map::new();
    for ((case, count), value) in &kept.counts {
        let entry = cases.entry(case.clone()).or_insert_with(|| Value::Object(Map::new()));
        if let Some(counts) = entry.as_object_mut() {
            counts.insert(count.clone(), Value::from(*value));
        }
    }
    let mut all = Map::new();
    all.insert("compiler".to_owned(), Value::from(kept.compiler.clone()));
    all.insert("cases".to_owned(), Value::Object(cases));
    format!("{:#}\n", Value::Object(all))
}

fn parse(text: &str) -> Result<Kept> {
    let all: Value = serde_json::from_str(text)?;
    let compiler = all["compiler"].as_str().context("no compiler")?.to_owned();
    let mut counts = Counts::new();
    for (case, of_case) in all["cases"].as_object().context("no cases")? {
        for (count, value) in of_case.as_object().with_context(|| case.clone())? {
            let value = value.as_u64().with_context(|| format!("{case}: {count}"))?;
            counts.insert((case.clone(), count.clone()), value);
        }
    }
    Ok(Kept { compiler, counts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(compiler: &str, counts: &[(&str, u64)]) -> Kept {
        let key = |count: &str| ("case".to_owned(), count.to_owned());
        let counts = counts.iter().map(|(count, value)| (key(count), *value)).collect();
        Kept { compiler: compiler.to_owned(), counts }
    }

    #[track_caller]
    fn check(was: &Kept, is: &Kept, expected: &[(&str, bool)]) {
        let found = compare(was, is);
        let found: Vec<_> = found.iter().map(|f| (f.text.as_str(), f.is_breach)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn counts_must_be_equal_and_instructions_near() {
        let was = kept("a", &[("runs", 7), (INSTRUCTIONS, 1_000)]);
        check(&was, &kept("a", &[("runs", 7), (INSTRUCTIONS, 1_050)]), &[]);
        let moved = kept("a", &[("runs", 8), (INSTRUCTIONS, 1_060)]);
        let (runs, instructions) =
            ("case: runs 7 -> 8 (+14.3 %)", "case: instructions 1000 -> 1060 (+6.0 %)");
        check(&was, &moved, &[(instructions, true), (runs, true)]);
    }

    #[test]
    fn instructions_of_another_compiler_are_told_and_not_held() {
        let was = kept("a", &[(INSTRUCTIONS, 1_000)]);
        let text = "case: instructions 1000 -> 2000 (+100.0 %), by b instead of a";
        check(&was, &kept("b", &[(INSTRUCTIONS, 2_000)]), &[(text, false)]);
        check(&was, &kept("b", &[]), &[]);
    }

    #[test]
    fn a_count_that_comes_or_goes_is_a_breach() {
        let one = kept("a", &[("runs", 7)]);
        let none = kept("a", &[]);
        check(&one, &none, &[("case: runs is no longer counted, was 7", true)]);
        check(&none, &one, &[("case: runs 7 is not kept yet", true)]);
    }

    #[test]
    fn what_is_written_reads_back() {
        let kept = kept("a", &[("runs", 7), (INSTRUCTIONS, 1_000)]);
        assert_eq!(parse(&render(&kept)).unwrap(), kept);
    }
}
