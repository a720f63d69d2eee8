//! Ends of jobs and programs, good and bad: savepoints and drains, suspension, signals, `kill -9`,
//! and what a job finds when it goes on, at another parallelism or in another mode.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod durable;
mod ends;
mod kill;
mod program;
mod rescale;
mod savepoints;
mod signals;
#[path = "../flip_327/support.rs"]
#[allow(dead_code, reason = "shared with the tests of FLIP-327, which use other parts of it")]
mod support;
