//! Watermark alignment of sources (FLIP-182): who is too far ahead reads no further.
//!
//! ```text
//!   subtask: timestamps -- watermark, idle or ended, every interval --> JobMaster: least of the group
//!            driver     <-- limit, when it has changed --------------
//! ```
//!
//! The driver reads no records while the subtask's watermark is above the limit; flags, barriers and
//! words of the enumerator pass. Nothing but the subtask's own report needs a timer.

use std::time::Duration;

use element::Timestamp;
use parking_lot::Mutex;

/// How a source keeps pace with its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatermarkAlignment {
    /// The group's name, one for all sources of a job that are to keep pace.
    pub group: String,
    /// How far a watermark may be ahead of the least of the group.
    pub max_drift: Duration,
    /// Between two reports of a subtask.
    pub update_interval: Duration,
}

/// How far a subtask has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignmentState {
    /// It has no watermark yet, nor perhaps a split; holds nobody back.
    NoWatermark,
    /// Its watermark.
    At(Timestamp),
    /// It has had nothing to read for long, or waits for its enumerator; holds nobody back.
    Idle,
    /// It reads no more; holds nobody back.
    Ended,
}

/// What a subtask says to its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignmentReport {
    /// The group's name.
    pub group: String,
    /// How far the subtask may be ahead.
    pub max_drift: Duration,
    /// How far it has come.
    pub state: AlignmentState,
}

/// Whether a source's subtask may read on. Shared by its driver and its timestamps, both on the task's
/// thread.
#[derive(Debug, Default)]
pub struct AlignmentGate(Mutex<Marks>);

#[derive(Debug, Default)]
struct Marks {
    /// The greatest watermark made.
    reached: Option<Timestamp>,
    /// Above it nothing is read; `None`: no limit.
    limit: Option<Timestamp>,
    /// Whether it waits for its enumerator, with nothing to read.
    waits: bool,
}

impl AlignmentGate {
    /// The subtask's watermark has come to `watermark`.
    pub fn reached(&self, watermark: Timestamp) {
        self.0.lock().reached = Some(watermark);
    }

    /// The group lets the subtask go as far as `limit`; as far as it likes with none.
    pub fn set_limit(&self, limit: Option<Timestamp>) {
        self.0.lock().limit = limit;
    }

    /// The subtask has nothing to read until its enumerator answers, or it has again.
    pub fn set_waits(&self, waits: bool) {
        self.0.lock().waits = waits;
    }

    /// Whether the subtask has nothing to read until its enumerator answers.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.0.lock().waits
    }

    /// Whether the subtask is to wait for its group.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        let marks = self.0.lock();
        marks.limit.is_some_and(|limit| marks.reached > Some(limit))
    }
}
