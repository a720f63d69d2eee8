//! What tasks and the JobMaster say to each other.
//!
//! Messages only, each with job, attempt, vertex and subtask, so that they could cross a process and
//! a stale one can be told and dropped. In this process they travel over channels.

use crossbeam_channel::Sender;
use element::{Attempt, Barrier, CheckpointId, SubtaskIndex, Timestamp, VertexId};

use crate::checkpoint::OperatorState;
use crate::cluster::Line;
use crate::error::TaskError;
use crate::source::alignment::AlignmentReport;

/// From which task an event comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// The attempt of the job.
    pub attempt: Attempt,
    /// The vertex.
    pub vertex: VertexId,
    /// The subtask.
    pub subtask: SubtaskIndex,
}

/// What a task says.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskEvent {
    /// It has ended, well or not.
    Ended(Result<TaskEnd, TaskError>),
    /// A source reader wants a split.
    SplitRequest,
    /// A source reader has read all of its splits of this part.
    ReaderEvent(Vec<u8>),
    /// A sorted input has been drained and the task is live.
    Drained,
    /// A sorted input has begun to collect.
    BacklogBegun,
    /// A sorted input of a durable backlog holds about a run that no checkpoint has.
    RunIsDue,
    /// It has written its part of a checkpoint.
    Acknowledged {
        /// The checkpoint.
        id: CheckpointId,
        /// What its operators stored.
        states: Vec<OperatorState>,
    },
    /// Its input has ended and its sinks have prepared their last rows; it waits for
    /// [`TaskMail::Finished`].
    AwaitsLastCommit(Vec<OperatorState>),
    /// Its part of a checkpoint could not be written.
    SnapshotFailed {
        /// The checkpoint.
        id: CheckpointId,
        /// Why.
        reason: String,
    },
    /// It cannot take part in a checkpoint, which is no failure: it has ended, or it is in backlog.
    Declined {
        /// The checkpoint.
        id: CheckpointId,
        /// Why.
        reason: String,
    },
    /// A source is in backlog by the lag of its watermark, or no longer.
    LagBacklog(bool),
    /// How far a source's subtask has come, for its alignment group.
    Alignment(AlignmentReport),
    /// A `take` has all that it wants: the sources may stop.
    Satisfied,
}

/// How a task ended that did not fail.
#[derive(Debug, Default)]
pub struct TaskEnd {
    /// Result partitions that it has finished.
    pub partitions: Vec<FinishedOutput>,
}

/// A blocking partition that a task has finished.
#[derive(Clone, Debug)]
pub struct FinishedOutput {
    /// Which partition it is.
    pub descriptor: shuffle::PartitionDescriptor,
    /// Bytes, rows and checksum.
    pub finished: shuffle::FinishedPartition,
}

/// What a task is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskMail {
    /// Splits to read, as bytes.
    Splits(Vec<Vec<u8>>),
    /// No more splits will come.
    NoMoreSplits,
    /// The source is in backlog, or no longer.
    Backlog(bool),
    /// Something that the enumerator says to its readers.
    ReaderEvent(Vec<u8>),
    /// Begin a checkpoint (sources only).
    Trigger(Barrier),
    /// A checkpoint is complete.
    Complete(CheckpointId),
    /// A checkpoint was given up.
    Aborted(CheckpointId),
    /// All that the sinks of a task that awaits its last commit have prepared is stored for good.
    Finished,
    /// Read no further than this watermark; without one, as far as there is (sources only).
    AlignTo(Option<Timestamp>),
    /// Stop reading; what was read is finished as at the end of input.
    Stop,
}

/// The way from a task to its JobMaster.
#[derive(Clone, Debug)]
pub struct TaskEvents {
    /// Who speaks.
    pub task: TaskId,
    /// The JobMaster's mailbox.
    pub sender: Sender<(TaskId, TaskEvent)>,
    /// What is spoken over.
    pub line: Line,
}

impl TaskEvents {
    /// Sends an event. A JobMaster that is gone no longer listens, and needs not.
    pub fn send(&self, event: TaskEvent) {
        if !self.line.send(&self.sender, self.task, event) {
            tracing::debug!(task = ?self.task, "the job master is gone");
        }
    }
}
