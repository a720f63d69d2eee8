//! Streams kept between jobs (FLIP-205) and the partitions that keep them (FLIP-67), through the api.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batch;
mod budget;
mod cache;
mod cases;
mod cluster;
mod compression;
mod fallback;
mod heartbeats;
mod modes;
mod named;
mod recovery;
mod restarts;
mod script;
mod support;
