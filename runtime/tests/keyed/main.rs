//! A keyed operator through its phases: order, state, time, timers, restores.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod auto;
mod generators;
mod harness;
mod lag;
mod many_keys;
mod phases;
mod restores;
mod timers;
