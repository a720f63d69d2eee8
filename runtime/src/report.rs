//! [`JobReport`]: what a job did, in counts.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use element::DataSetId;
use graph::ResolvedMode;

use crate::cluster::JobProgress;
use crate::metrics::{OperatorCounts, PhaseReport};

pub use crate::cluster::CompletedCheckpoint;

/// An error and its sources, on one line.
#[must_use]
pub fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a string does not fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

/// What a job did.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// The job's name.
    pub job: String,
    /// How it ran.
    pub mode: ResolvedMode,
    /// From the first deployment to the end.
    pub took: Duration,
    /// Operators, in the order of the plan.
    pub operators: Vec<OperatorReport>,
    /// Cached streams.
    pub caches: Vec<CacheReport>,
    /// Checkpoints completed.
    pub checkpoints: Vec<CompletedCheckpoint>,
    /// Failures that were recovered from, as text.
    pub recovered: Vec<String>,
    /// Tasks started, those of failed attempts and of repairs of cached streams included.
    pub tasks: u64,
    /// The most memory that the process has held so far, in bytes; 0 where the system does not say.
    pub peak_memory: u64,
}

/// What one operator did, all subtasks together.
#[derive(Clone, Debug)]
pub struct OperatorReport {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Records that came in; for a source, that it read.
    pub records_in: u64,
    /// Records that came too late.
    pub late: u64,
    /// Malformed input records that were skipped.
    pub skipped: u64,
    /// Backlog phases: the n-th of all subtasks added up.
    pub phases: Vec<PhaseReport>,
    /// Reads of its store.
    pub state_reads: u64,
    /// Writes to its store.
    pub state_writes: u64,
}

/// What became of one cached stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheReport {
    /// The data set.
    pub data_set: DataSetId,
    /// The stream's name.
    pub name: String,
    /// Read, made, or made again.
    pub outcome: CacheOutcome,
    /// Bytes of the data set, where known.
    pub bytes: u64,
    /// Rows of the data set, where known.
    pub rows: u64,
    /// For a hit: what the job took that made the data set, which this one did not do again. An
    /// estimate from above.
    pub saved: Option<Duration>,
}

impl CacheReport {
    /// Whether the job read the cache and ran nothing above it.
    #[must_use]
    pub fn is_hit(&self) -> bool {
        self.outcome == CacheOutcome::Hit
    }
}

/// What became of a cached stream in one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    /// Read.
    Hit,
    /// Made.
    Computed,
    /// Lost or damaged, and made again.
    Recomputed {
        /// Why.
        reason: String,
    },
    /// Some of its parts were lost or damaged; their producers alone made them again, and the job then
    /// read it (`execution.cache.recovery`).
    Repaired {
        /// Why.
        reason: String,
        /// How many parts were made again.
        parts: u32,
    },
    /// Computed and not kept, as the options say.
    Uncached,
}

impl JobReport {
    pub(crate) fn of_operators(progress: &JobProgress) -> Vec<OperatorReport> {
        progress
            .operators()
            .into_iter()
            .map(|operator| OperatorReport {
                name: operator.name,
                uid: operator.uid,
                records_in: operator
                    .subtasks
                    .iter()
                    .map(|s| s.records_in.max(s.records_read))
                    .sum(),
                late: operator.subtasks.iter().map(|s| s.late).sum(),
                skipped: operator.subtasks.iter().map(|s| s.skipped).sum(),
                phases: add_up(&operator.subtasks),
                state_reads: operator.subtasks.iter().map(|s| s.state.store_reads).sum(),
                state_writes: operator.subtasks.iter().map(|s| s.state.store_writes).sum(),
            })
            .collect()
    }

    /// An operator by name.
    #[must_use]
    pub fn operator(&self, name: &str) -> Option<&OperatorReport> {
        self.operators.iter().find(|operator| operator.name == name)
    }

    /// A cached stream by name.
    #[must_use]
    pub fn cache(&self, name: &str) -> Option<&CacheReport> {
        self.caches.iter().find(|cache| cache.name == name)
    }

    /// What was sorted, combined or streamed in backlog, and why, as text.
    #[must_use]
    pub fn backlog(&self) -> String {
        let mut text = String::new();
        for operator in &self.operators {
            for (i, phase) in operator.phases.iter().enumerate() {
                let _ = writeln!(text, "{}, phase {}: {phase}", operator.name, i + 1);
            }
        }
        text
    }
}

/// The n-th phases of all subtasks as one.
fn add_up(subtasks: &[OperatorCounts]) -> Vec<PhaseReport> {
    let most = subtasks.iter().map(|subtask| subtask.phases.len()).max().unwrap_or(0);
    (0..most)
        .map(|i| {
            let mut sum = PhaseReport::default();
            for phase in subtasks.iter().filter_map(|subtask| subtask.phases.get(i)) {
                sum.treatment = phase.treatment;
                sum.reason.clone_from(&phase.reason);
                sum.records += phase.records;
                sum.keys += phase.keys;
                sum.state_reads += phase.state_reads;
                sum.state_writes += phase.state_writes;
                sum.bytes_spilled += phase.bytes_spilled;
                sum.runs += phase.runs;
                sum.hand_overs += phase.hand_overs;
                sum.sort_memory += phase.sort_memory;
                sum.collecting = sum.collecting.max(phase.collecting);
                sum.draining = sum.draining.max(phase.draining);
            }
            sum
        })
        .collect()
}

/// The report as a few lines, without an end of the last: the job, its operators, what was sorted or
/// combined ([`JobReport::backlog`]), caches, checkpoints and recoveries.
impl fmt::Display for JobReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (job, mode, took) = (&self.job, self.mode, self.took.as_secs_f64());
        write!(f, "job `{job}`, {mode} mode: {} tasks, {took:.2} s", self.tasks)?;
        self.operators.iter().try_for_each(|operator| write!(f, "\n  {operator}"))?;
        self.backlog().lines().try_for_each(|line| write!(f, "\n  {line}"))?;
        self.caches.iter().try_for_each(|cache| write!(f, "\n  {cache}"))?;
        if !self.checkpoints.is_empty() {
            write!(f, "\n  checkpoints: {}", self.checkpoints.len())?;
        }
        self.recovered.iter().try_for_each(|failure| write!(f, "\n  recovered from: {failure}"))
    }
}

impl fmt::Display for OperatorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} records", self.name, self.records_in)?;
        for (count, what) in [(self.late, "late"), (self.skipped, "skipped")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if self.state_reads + self.state_writes > 0 {
            write!(f, ", {} state reads and {} writes", self.state_reads, self.state_writes)?;
        }
        Ok(())
    }
}

impl fmt::Display for CacheReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, rows, bytes) = (&self.name, self.rows, self.bytes);
        write!(f, "cache `{name}` {}: {rows} rows, {bytes} bytes", self.outcome)
    }
}

impl fmt::Display for CacheOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hit => f.write_str("was read"),
            Self::Computed => f.write_str("was made"),
            Self::Recomputed { reason } => write!(f, "was made again ({reason})"),
            Self::Repaired { reason, parts } => {
                write!(f, "was read, {parts} parts made again ({reason})")
            }
            Self::Uncached => f.write_str("was not kept"),
        }
    }
}

impl fmt::Display for PhaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}): {} records of {} keys, {} state reads and {} writes, {} bytes spilled in {} \
             runs, collected in {:.2} s, drained in {:.2} s",
            self.treatment,
            self.reason,
            self.records,
            self.keys,
            self.state_reads,
            self.state_writes,
            self.bytes_spilled,
            self.runs,
            self.collecting.as_secs_f64(),
            self.draining.as_secs_f64(),
        )
    }
}

/// The most memory that this process has held, in bytes; 0 where the system does not say.
#[must_use]
pub fn peak_memory() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map_or(0, |kib| kib * 1_024)
}
