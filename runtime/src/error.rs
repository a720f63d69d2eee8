//! Where errors meet: what failed in a task, and what failed in a job.
//!
//! A [`TaskError`] is what one step of a task ends with; a [`TaskFailure`] adds which task; a
//! [`JobError`] is what a caller of `execute` sees. Sources are kept, so that a message names its
//! cause without repeating it.

use std::path::PathBuf;

use element::{Attempt, CheckpointId, ConfigError, DataSetId, SubtaskIndex};

/// Why a step of a task did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// A user's function returned an error.
    #[error("operator `{operator}` failed{}", record.map(|n| format!(" at record {n} of its subtask")).unwrap_or_default())]
    User {
        /// The operator's name.
        operator: String,
        /// Which record of the subtask, from 1, where it is known.
        record: Option<u64>,
        /// What the function returned.
        source: anyhow::Error,
    },
    /// A user's function panicked.
    #[error("operator `{operator}` panicked{}: {message}", record.map(|n| format!(" at record {n} of its subtask")).unwrap_or_default())]
    Panic {
        /// The operator's name.
        operator: String,
        /// Which record of the subtask, from 1, where it is known.
        record: Option<u64>,
        /// The panic's message.
        message: String,
    },
    /// A source could not be read.
    #[error("source `{source_name}` failed")]
    Source {
        /// The source's name.
        source_name: String,
        /// Why.
        source: anyhow::Error,
    },
    /// A sink could not be written.
    #[error("sink `{sink}` failed")]
    Sink {
        /// The sink's name.
        sink: String,
        /// Why.
        source: anyhow::Error,
    },
    /// A sorted input failed.
    #[error("sorted input of `{operator}` failed")]
    Sort {
        /// The operator's name.
        operator: String,
        /// Why.
        source: sort::SortError,
    },
    /// Keyed state failed.
    #[error("state of `{operator}` failed")]
    State {
        /// The operator's name.
        operator: String,
        /// Why.
        source: state::StateError,
    },
    /// An input could not be read.
    #[error("an input could not be read")]
    Read(#[from] shuffle::ReadError),
    /// An output could not be written.
    #[error("an output could not be written")]
    Write(#[from] shuffle::WriteError),
    /// A partition could not be made or opened.
    #[error("a partition could not be opened")]
    Shuffle(#[from] shuffle::ShuffleError),
    /// What an operator had stored in a checkpoint cannot be taken up again.
    #[error("`{operator}` cannot be restored: {reason}")]
    Restore {
        /// The operator's name.
        operator: String,
        /// Why.
        reason: String,
    },
    /// A record that a channel or file carried cannot be decoded.
    #[error("a record of `{operator}` cannot be decoded")]
    Codec {
        /// The operator's name.
        operator: String,
        /// Why.
        source: element::CodecError,
    },
    /// An option has no valid value.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The worker that ran the task is gone.
    #[error("worker {worker} was lost")]
    WorkerLost {
        /// Which one.
        worker: element::TaskManagerId,
    },
    /// The system has no thread for the task.
    #[error("no thread for the task")]
    NoThread(#[source] std::io::Error),
    /// A drain was given up after the source had ended event time: what it read from there on would
    /// all be late.
    #[error("source `{source_name}` has ended event time for savepoint {id}, which was given up")]
    DrainAborted {
        /// The source's name.
        source_name: String,
        /// The savepoint.
        id: CheckpointId,
    },
    /// The task was cancelled; no failure of its own.
    #[error("the task was cancelled")]
    Cancelled,
}

impl TaskError {
    /// Wraps an error of keyed state.
    pub fn state(operator: &str) -> impl Fn(state::StateError) -> Self + '_ {
        move |source| Self::State { operator: operator.to_owned(), source }
    }

    /// Wraps an error of a sorted input.
    pub fn sort(operator: &str) -> impl Fn(sort::SortError) -> Self + '_ {
        move |source| Self::Sort { operator: operator.to_owned(), source }
    }

    /// Wraps what a user's function returned.
    pub fn user(operator: &str) -> impl Fn(anyhow::Error) -> Self + '_ {
        move |source| Self::User { operator: operator.to_owned(), record: None, source }
    }
}

/// A task that failed: which, and why.
#[derive(Debug, thiserror::Error)]
#[error("task `{task}` ({subtask}) failed in attempt {attempt}")]
pub struct TaskFailure {
    /// The vertex's name: its operators.
    pub task: String,
    /// Which of its subtasks.
    pub subtask: SubtaskIndex,
    /// In which attempt of the job.
    pub attempt: Attempt,
    /// Why.
    pub source: TaskError,
}

/// How a suspended job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suspension {
    /// With a checkpoint of its own: nothing is read again.
    FinalCheckpoint(CheckpointId),
    /// Without one: what was read since the last checkpoint, if there is any, is read again.
    WithoutCheckpoint {
        /// Why.
        reason: String,
    },
}

impl std::fmt::Display for Suspension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::FinalCheckpoint(id) => write!(f, "with checkpoint {id}"),
            Self::WithoutCheckpoint { reason } => write!(f, "without a final checkpoint: {reason}"),
        }
    }
}

/// Why a job did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The plan is not valid.
    #[error("the job cannot be planned")]
    Plan(#[from] graph::PlanError),
    /// An option is unknown, has no valid value, or contradicts another.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A task failed, and the restart strategy gave up.
    #[error("job `{job}` failed after {attempts} attempt{}", if *attempts == 1 { "" } else { "s" })]
    Failed {
        /// The job's name.
        job: String,
        /// Attempts made.
        attempts: u32,
        /// The task that failed last.
        source: Box<TaskFailure>,
    },
    /// Cached data sets that the job reads are lost or damaged, and were lost again after they had
    /// been made anew.
    #[error("job `{job}` lost the cached data set{} {}", if data_sets.len() == 1 { "" } else { "s" }, data_sets.iter().map(|(_, name)| format!("`{name}`")).collect::<Vec<_>>().join(", "))]
    CacheLost {
        /// The job's name.
        job: String,
        /// Ids and stream names.
        data_sets: Vec<(DataSetId, String)>,
        /// What the reading task said.
        source: Box<TaskFailure>,
    },
    /// Cached results that the job makes find no room (`execution.cache.over-budget = error`).
    #[error(
        "job `{job}` makes {bytes} bytes of the cached data set `{name}` and others, and {room} are free of `execution.cache.max-bytes`"
    )]
    CacheOverBudget {
        /// The job's name.
        job: String,
        /// The stream whose part found no room.
        name: String,
        /// Bytes of all cached results that the job has made by then.
        bytes: u64,
        /// The budget without what may not be evicted.
        room: u64,
    },
    /// The job was cancelled.
    #[error("job `{job}` was cancelled")]
    Cancelled {
        /// The job's name.
        job: String,
    },
    /// The job was suspended: it can go on from its last checkpoint.
    #[error("job `{job}` was suspended {ended}")]
    Suspended {
        /// The job's name.
        job: String,
        /// With which checkpoint.
        ended: Suspension,
    },
    /// There are too few slots.
    #[error(
        "job `{job}` needs {needed} slots at once and {available} are there (taskmanager.numberOfTaskSlots)"
    )]
    TooFewSlots {
        /// The job's name.
        job: String,
        /// Slots that must be free at once.
        needed: u32,
        /// Slots of all TaskManagers.
        available: u32,
    },
    /// The environment has been closed.
    #[error("the environment is closed")]
    Closed,
    /// Cached results could not be removed; all others were.
    #[error("cached results are not removed: {}", failures.iter().map(|(name, reason)| format!("`{name}`: {reason}")).collect::<Vec<_>>().join("; "))]
    NotReleased {
        /// Stream names, and why.
        failures: Vec<(String, String)>,
    },
    /// A named cache cannot be had.
    #[error("named cache `{name}`: {reason}")]
    NamedCache {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A directory cannot be used.
    #[error("directory `{}` cannot be used", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A checkpoint or savepoint could not be taken or restored.
    #[error("checkpoint {id} of job `{job}`: {reason}")]
    Checkpoint {
        /// The job's name.
        job: String,
        /// The checkpoint.
        id: CheckpointId,
        /// Why.
        reason: String,
    },
    /// No savepoint can be taken at this moment; the job goes on (decision D13).
    #[error("job `{job}` takes no savepoint: {reason}")]
    SavepointDeclined {
        /// The job's name.
        job: String,
        /// Why.
        reason: String,
    },
    /// A savepoint cannot be restored.
    #[error("cannot restore from {path}: {reason}")]
    Restore {
        /// The savepoint.
        path: String,
        /// Why.
        reason: String,
    },
    /// Stored state does not fit the program. No task was started.
    #[error("operator `{operator}` cannot be restored from {path}")]
    RestoreState {
        /// The savepoint.
        path: String,
        /// The operator's uid.
        operator: String,
        /// The state, and what of it does not fit.
        #[source]
        source: Box<state::StateError>,
    },
    /// The engine's own invariant is broken.
    #[error("internal error: {0}")]
    Internal(String),
}
