//! Counters by task and operator: atomics that anybody may read at any time.
//!
//! Written by the task's thread once a batch or once a phase; read by progress displays and, at the
//! end, by the job's report. There is nothing here per record.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Counters of one operator's subtask.
#[derive(Debug, Default)]
pub struct OperatorMetrics {
    records_in: AtomicU64,
    records_out: AtomicU64,
    source_records: AtomicU64,
    late: AtomicU64,
    skipped: AtomicU64,
    backlog_records: AtomicU64,
    phases: Mutex<Vec<PhaseReport>>,
    state: Mutex<state::StateCounters>,
}

/// How a backlog phase of one operator's subtask went.
#[derive(Clone, Debug, Default)]
pub struct PhaseReport {
    /// What was done: "sort", "combine" or "stream".
    pub treatment: &'static str,
    /// Why.
    pub reason: String,
    /// Records of the phase, before anything has combined them. Where producers combine, a subtask's
    /// share is a guess; the sum over subtasks is not.
    pub records: u64,
    /// Keys that the phase had; of one that was handed over in parts, of its largest.
    pub keys: u64,
    /// Reads of the store.
    pub state_reads: u64,
    /// Writes to the store.
    pub state_writes: u64,
    /// Bytes that the sorter wrote to files.
    pub bytes_spilled: u64,
    /// Sorted runs that were spilled.
    pub runs: u64,
    /// How often what was held was handed over before the switch, for its keys were few.
    pub hand_overs: u64,
    /// The most memory that the sorter held.
    pub sort_memory: u64,
    /// From the first record to the switch.
    pub collecting: Duration,
    /// From the switch to the last drained record.
    pub draining: Duration,
}

impl OperatorMetrics {
    /// `n` more records came in.
    pub fn records_in(&self, n: usize) {
        self.records_in.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// `n` more records went out.
    pub fn records_out(&self, n: usize) {
        self.records_out.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// `n` more records were read by a source.
    pub fn source_read(&self, n: usize) {
        self.source_records.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// Records read by a source.
    pub(crate) fn source_records(&self) -> u64 {
        self.source_records.load(Ordering::Relaxed)
    }

    /// A record came too late and was dropped or put aside.
    pub fn late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// A malformed input record was skipped.
    pub fn skipped(&self, n: u64) {
        self.skipped.fetch_add(n, Ordering::Relaxed);
    }

    /// `n` more records came in while in backlog.
    pub fn backlog_records(&self, n: usize) {
        self.backlog_records.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// A backlog phase is over.
    pub fn phase(&self, report: PhaseReport) {
        self.phases.lock().push(report);
    }

    /// The store's counters as they stand.
    pub fn set_state(&self, counters: state::StateCounters) {
        *self.state.lock() = counters;
    }

    /// All counters as they stand.
    #[must_use]
    pub fn read(&self) -> OperatorCounts {
        OperatorCounts {
            records_in: self.records_in.load(Ordering::Relaxed),
            records_out: self.records_out.load(Ordering::Relaxed),
            records_read: self.source_records.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
            backlog_records: self.backlog_records.load(Ordering::Relaxed),
            phases: self.phases.lock().clone(),
            state: *self.state.lock(),
        }
    }
}

/// What [`OperatorMetrics::read`] returns.
#[derive(Clone, Debug, Default)]
pub struct OperatorCounts {
    /// Records that came in.
    pub records_in: u64,
    /// Records that went out, where the operator counts them.
    pub records_out: u64,
    /// Records that a source read.
    pub records_read: u64,
    /// Records that came too late.
    pub late: u64,
    /// Malformed input records that were skipped.
    pub skipped: u64,
    /// Records that came in while in backlog.
    pub backlog_records: u64,
    /// Backlog phases, in order.
    pub phases: Vec<PhaseReport>,
    /// Counters of keyed state.
    pub state: state::StateCounters,
}
