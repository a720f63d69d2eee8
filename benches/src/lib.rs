//! What the benches share: the generator, the jobs, references written by hand, and measuring in turns.
//!
//! The jobs (J1 to J7) are those that the peers in `benches/peers` run, over the same generator, so
//! checksums of equal jobs are equal across programs. The benches themselves stand in `benches/`;
//! `src/bin/guard.rs` runs small fixed cases whose costs are counted.

#![forbid(unsafe_code)]

pub mod by_hand;
pub mod generator;
pub mod jobs;
pub mod measure;
pub mod nexmark;
pub mod setting;
pub mod shape;
pub mod sinks;

pub use measure::{Measured, median, peak_memory, reset_peak_memory, resident_memory};
pub use setting::{Mode, Setting, Store};
pub use shape::{Order, Shape, is_smoke, records};
