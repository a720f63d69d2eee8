//! Sources: their readers and enumerators by hand, and the driver that reads them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod driver;
mod hand;
mod hybrid;
mod stage;
mod time;
