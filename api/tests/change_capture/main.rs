//! A captured table: its chunks are read while it changes, then its log (FLIP-309; K9, case 12).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod case;
mod jobs;
mod sim;
mod table;
mod worlds;
