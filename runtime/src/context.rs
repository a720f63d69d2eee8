//! What a task and its operators may reach: identity, clock, memory, files, counters.
//!
//! A [`TaskContext`] is made per task and attempt by the TaskManager; each operator gets an
//! [`OperatorContext`] that adds its own name, uid and counters. Both are shared by `Arc` and touched
//! by the task's thread, but for the counters, which anybody may read.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use element::{
    Attempt, ByteSize, Clock, Configuration, JobId, KeyGroups, MaxParallelism, MemoryBudget,
    SpillStore, SubtaskIndex, Timestamp, VertexId,
};
use graph::{InputTreatment, ResolvedMode};
use parking_lot::Mutex;
use sort::CancelFlag;

use crate::checkpoint::{RestoredOperator, SealedBacklog};
use crate::events::{TaskEvent, TaskEvents};
use crate::metrics::OperatorMetrics;
use crate::source::alignment::AlignmentGate;
use crate::stores::StateStores;

/// What all operators of one task share.
#[derive(Debug)]
pub struct TaskContext {
    /// The job.
    pub job: JobId,
    /// The job's name.
    pub job_name: String,
    /// The attempt of the job.
    pub attempt: Attempt,
    /// The vertex that the task belongs to.
    pub vertex: VertexId,
    /// The vertex's name.
    pub vertex_name: String,
    /// Which of the vertex's subtasks it is.
    pub subtask: SubtaskIndex,
    /// How many subtasks the vertex has.
    pub parallelism: u32,
    /// Key groups of the vertex.
    pub max_parallelism: MaxParallelism,
    /// How the job runs.
    pub mode: ResolvedMode,
    /// The job's options.
    pub config: Configuration,
    /// The one clock.
    pub clock: Arc<dyn Clock>,
    /// Managed memory of the TaskManager.
    pub memory: Arc<MemoryBudget>,
    /// Files that end with the task: sort runs.
    pub spill: Arc<dyn SpillStore>,
    /// Where its checkpoints are written.
    pub checkpoints: Arc<dyn SpillStore>,
    /// A directory of the task's own, for stores on disk.
    pub directory: PathBuf,
    /// Where keyed state on disk is opened.
    pub stores: StateStores,
    /// The way to the JobMaster.
    pub events: TaskEvents,
    /// Set when the task is to end early; sorters and drains look at it.
    pub cancelled: CancelFlag,
    /// The next processing time at which an operator of this task wants to be called.
    pub deadline: Deadline,
    /// Of a source: whether it may read on.
    pub alignment: AlignmentGate,
}

/// The earliest processing time that any operator of a task waits for, and the way to wake the task
/// before it.
pub struct Deadline {
    next: AtomicI64,
    waker: Option<Arc<dyn shuffle::Wake>>,
}

impl Default for Deadline {
    fn default() -> Self {
        Self { next: AtomicI64::new(i64::MAX), waker: None }
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deadline").field(&self.next()).finish()
    }
}

impl Deadline {
    /// Wakes a task by `waker` from here on.
    #[must_use]
    pub fn waking(waker: Arc<dyn shuffle::Wake>) -> Self {
        Self { waker: Some(waker), ..Self::default() }
    }

    /// Lets the task run again soon: something that it waits for has come, on another thread.
    pub fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }

    /// Asks to be called at `time`.
    pub fn at(&self, time: Timestamp) {
        self.next.fetch_min(time.0, Ordering::Relaxed);
    }

    /// The earliest time asked for; operators ask again when they are called.
    pub fn take_due(&self, now: Timestamp) -> bool {
        let due = self.next.load(Ordering::Relaxed) <= now.0;
        if due {
            self.next.store(i64::MAX, Ordering::Relaxed);
        }
        due
    }

    /// The earliest time asked for, if any.
    pub fn next(&self) -> Option<Timestamp> {
        Some(self.next.load(Ordering::Relaxed)).filter(|time| *time != i64::MAX).map(Timestamp)
    }
}

/// What one operator of a task may reach.
#[derive(Debug)]
pub struct OperatorContext {
    /// The task's part.
    pub task: Arc<TaskContext>,
    /// The operator's name.
    pub name: String,
    /// The operator's uid: its identity in checkpoints.
    pub uid: String,
    /// How its keyed input is treated in backlog and batch, and why.
    pub treatment: TreatmentPlan,
    /// Counters.
    pub metrics: Arc<OperatorMetrics>,
    /// What it had stored when the checkpoint was taken that the job starts from.
    pub restored: Mutex<Option<RestoredOperator>>,
    /// Snapshots taken for the barrier at hand, collected by the task.
    pub snapshots: Arc<Mutex<Vec<OperatorSnapshot>>>,
    /// For a source: the backlog flag as it stands at the start.
    pub is_backlog: bool,
}

/// What the plan decided about an operator's keyed input.
#[derive(Clone, Debug)]
pub struct TreatmentPlan {
    /// What is put in front of it.
    pub treatment: InputTreatment,
    /// Why.
    pub reason: String,
    /// Memory of its sorter.
    pub memory: Option<ByteSize>,
    /// Whether its records combine.
    pub combines: bool,
    /// Whether it emits nothing before its input ends (FLIP-331).
    pub output_only_at_end: bool,
    /// Whether its sealed runs survive a crash.
    pub durable: bool,
}

impl OperatorContext {
    /// The key groups of this subtask.
    #[must_use]
    pub fn key_groups(&self) -> KeyGroups {
        self.task.max_parallelism.groups_of(self.task.subtask, self.task.parallelism)
    }

    /// Tells the JobMaster something.
    pub fn tell(&self, event: TaskEvent) {
        self.task.events.send(event);
    }

    /// A name for files of this operator that no other task or process uses.
    #[must_use]
    pub fn file_prefix(&self) -> String {
        let task = &self.task;
        format!("job-{}.{}-{}-{}", task.job, task.attempt, task.vertex, task.subtask)
    }
}

/// What an operator stores in a checkpoint.
#[derive(Debug, Default)]
pub struct OperatorSnapshot {
    /// The operator's uid.
    pub uid: String,
    /// Its keyed state and timers, still to be written.
    pub keyed: Option<state::PendingSnapshot>,
    /// Items of its own, spread over the subtasks on restore: split positions, pending commits.
    pub items: Vec<Vec<u8>>,
    /// Its watermark, so that a restored operator does not start below it.
    pub watermark: Option<Timestamp>,
    /// What it has collected of a durable backlog.
    pub backlog: Option<SealedBacklog>,
}
