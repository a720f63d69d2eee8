//! Backlog, then stream, by whole programs: cases, several inputs, checkpoints, crashes, restores.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod blocking;
mod cases;
mod inputs;
mod kill;
mod recovery;
mod savepoints;
mod schemas;
mod support;
#[cfg(feature = "rocksdb")]
mod tables;
