//! The reader of sorted runs: garbage records under right checksums, and changed files.
//!
//! Run by `cargo fuzz run -s none sort_run`, or on nightly without `-s none`. What counts as wrong is
//! said in the crate's `fuzzing.rs`; the same two functions run under proptest in every test run.

#![no_main]

use libfuzzer_sys::fuzz_target;
use slackwater_sort::{drain_damaged_run, read_garbage_records};

fuzz_target!(|bytes: &[u8]| {
    let _ = read_garbage_records(bytes);
    if let Err(error) = drain_damaged_run(bytes) {
        assert!(error.is_damaged_or_missing(), "{error}");
    }
});
