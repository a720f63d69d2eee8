//! The rules that cargo does not know: `cargo xtask tidy`, `list`, `fill` and `bench-guard`.
//!
//! `tidy` checks the arrows between crates, the shape of source files, that each promise in `docs`
//! names a test that exists, and that the guide in `docs/book` is whole. `list` prints the promises
//! without a test, `fill` writes tests whose name or comment carries an id into the tables. The same
//! checks are tests: `cargo test -p xtask` runs them. Left out on purpose: all that rustc, clippy and
//! rustfmt check.

#![forbid(unsafe_code)]

mod book;
mod guard;
mod layers;
mod promises;
mod tidy;
mod tree;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy_all(),
        Some("list") => {
            promises::open_rows()?.iter().for_each(|row| println!("{row}"));
            Ok(())
        }
        Some("fill") => {
            let filled = promises::fill().context("filling the tables")?;
            println!("{filled} rows filled");
            Ok(())
        }
        Some("bench-guard") => guard::run(std::env::args().any(|argument| argument == "--update")),
        _ => bail!("usage: cargo xtask tidy | list | fill | bench-guard [--update]"),
    }
}

/// Runs every check and prints every finding, not the first alone.
fn tidy_all() -> Result<()> {
    let mut findings = layers::check()?;
    findings.extend(tidy::check()?);
    findings.extend(promises::check()?);
    findings.extend(book::check()?);
    findings.iter().for_each(|finding| println!("{finding}"));
    if findings.is_empty() {
        println!("tidy: nothing to say");
        Ok(())
    } else {
        bail!("{} findings", findings.len())
    }
}
