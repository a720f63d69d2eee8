//! JobMasters, TaskManagers and what they say to each other.
//!
//! ```text
//!   Session -- submit --> JobMaster (a thread a job) -- deploy, mail, cancel --> TaskManager (a thread,
//!      |                       ^                                                  one more a task)
//!      |                       '-------------- events of tasks ---------------------'
//! ```
//!
//! They meet only through messages ([`crate::events`]) that carry job, attempt and subtask; stale ones
//! are dropped.

mod alignment;
mod data_set;
mod data_sets;
mod enumerators;
mod heartbeats;
mod hosted;
mod job_master;
mod line;
mod progress;
mod repair;
mod restart;
mod shelf;
mod task_manager;
mod units;

pub(crate) use data_set::place_of;
pub use data_set::{ClusterDataSet, DataSetPart, Parts, Reported};
pub use data_sets::{
    DataSetListing, DataSets, Deletion, JobDataSets, Making, ReleaseFailure, RequestId, Settlement,
    WorkerReport,
};
pub(crate) use heartbeats::Heartbeats;
pub(crate) use job_master::lost_partition;
pub use job_master::{CompletedCheckpoint, JobCommand, JobMaster, JobOutcome, JobRequest};
pub use line::Line;
pub use progress::{JobProgress, OperatorProgress};
pub use repair::{Damage, RepairScope, SplitsRead};
pub use restart::RestartPolicy;
pub(crate) use shelf::ShelvingShuffle;
pub use shelf::{Fingerprint, NamedCache, Shelf, ShelfError, hash_file};
pub use task_manager::{TaskManager, TaskManagerHandle, TaskManagerMessage};
