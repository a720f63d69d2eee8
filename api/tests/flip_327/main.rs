//! Backlog, then stream, by whole programs: cases, several inputs, checkpoints, crashes, restores.

mod cases;
mod inputs;
mod kill;
mod recovery;
mod savepoints;
mod support;
