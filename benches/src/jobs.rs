//! The jobs, written as a user of the engine would write them.
//!
//! Each job's function runs it once and returns an [`Outcome`]; what it must come to stands in
//! [`expected`].

pub mod cache;
pub mod co_group;
pub mod distinct_groups;
pub mod exchange;
pub mod keyed_fold;
pub mod keyed_reduce;
pub mod latency;
pub mod running_sum;
pub mod word_count;

use slackwater::JobReport;

/// What one run of a job came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The checksum over all outputs.
    pub checksum: u64,
    /// The outputs.
    pub outputs: u64,
    /// The engine's own account.
    pub report: JobReport,
}

/// Checksums that were computed elsewhere, by every program that runs these jobs.
pub mod expected {
    /// The running sum over 20,000,000 records: number of keys, checksum of an output a record, and of
    /// an output a key.
    pub const RUNNING_SUM: [(u64, u64, u64); 3] = [
        (1_000, 0x244d_3b05_a23c_b9a3, 0x2382_c1c0_463e_5488),
        (1_000_000, 0xb143_728a_cde0_6dc1, 0x335a_9665_ab75_9bf0),
        (20_000_000, 0x1cb7_c86e_b2e4_9ab1, 0xcee1_d8ce_bb4c_e707),
    ];
    /// Records of [`RUNNING_SUM`].
    pub const RUNNING_SUM_RECORDS: u64 = 20_000_000;
    /// The co-group over 10,000,000 records a side and 1,000,000 keys.
    pub const CO_GROUP: u64 = 0x8de1_912d_1721_c145;
}
