//! [`DataSets`]: all cached results of an environment, as its ResourceManager knows them.
//!
//! TaskManagers say what they keep, in whole reports; which data sets are complete follows from
//! them alone, and no client keeps a copy. What is to be kept or dropped goes to the TaskManagers as
//! messages with a request id, and the request is done when each of them has answered or is gone.
//!
//! ```text
//!   JobMaster -- settle --> DataSets -- settle, release --> TaskManagers
//!   api -- list, delete -->    ^                                |
//!                              '---------- WorkerReport --------'
//! ```
//!
//! Source: FLIP-67, "ResourceManager"; FLIP-36, "Cluster partitions".

mod budget;
mod deletion;
mod listing;
mod losses;
mod named;
mod repairs;
mod reports;
mod settle;

pub use deletion::{Deletion, RequestId};
pub use listing::DataSetListing;
pub use reports::{ReleaseFailure, WorkerReport};
pub use settle::Settlement;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use element::option_table::CacheRecovery;
use element::{DataSetId, Generation, TaskManagerId};
use graph::{CacheDecision, OutputTag};
use parking_lot::Mutex;
use shuffle::{PartitionDescriptor, PartitionIdentity, ShuffleError, ShuffleService};

use super::data_set::ClusterDataSet;
use super::repair::SplitsRead;
use super::shelf::{Fingerprint, Shelf};
use super::task_manager::TaskManagerHandle;
use crate::executor::{Executor, Waiting};
use crate::factory::ExecutionPlan;
use deletion::Requests;
use named::Named;

/// The cached results of one environment.
pub struct DataSets {
    state: Mutex<State>,
    /// Notified when a request or a data set has changed.
    changed: Waiting,
    /// The upper half of every id: other environments have another one.
    salt: u64,
    next_id: AtomicU64,
}

#[derive(Default)]
struct State {
    sets: BTreeMap<DataSetId, Entry>,
    workers: BTreeMap<TaskManagerId, Worker>,
    /// Readers of partitions, kept when their worker is gone: some partitions outlive it.
    services: BTreeMap<TaskManagerId, Arc<dyn ShuffleService>>,
    requests: Requests,
    /// Counts uses, for eviction.
    uses: u64,
    /// Where named ones lie.
    shelf: Option<Arc<Shelf>>,
}

struct Worker {
    handle: TaskManagerHandle,
    /// The number of its last report; earlier ones that come late are dropped.
    sequence: u64,
    heartbeat: u64,
    tasks: usize,
}

#[derive(Default)]
struct Entry {
    name: String,
    life: ClusterDataSet,
    /// The making handed out last.
    last: Generation,
    /// Why it was lost, until it is made again or invalidated.
    lost: Option<String>,
    named: Option<Named>,
    pinned: bool,
    /// What the job took that made it.
    made_in: Duration,
    /// Whether lost parts alone are made again, as the job said that made it.
    mends: bool,
    /// What the source's subtasks read that made it, if they wrote it themselves.
    splits: SplitsRead,
    /// The greatest attempt that has written a part of this making.
    attempt: u32,
    used: u64,
    /// Jobs that read it.
    readers: u32,
}

/// One data set that a job makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Making {
    /// Which making.
    pub generation: Generation,
    /// How many parts it will have.
    pub parts: u32,
    /// Why the one before was lost.
    pub lost: Option<String>,
    /// For a named one: what it is made of.
    pub fingerprint: Option<Fingerprint>,
}

/// What a job reads and makes, as [`DataSets::begin`] has noted it.
#[derive(Clone, Debug, Default)]
pub struct JobDataSets {
    /// Read by it.
    pub reads: Vec<DataSetId>,
    /// Made by it.
    pub makes: BTreeMap<DataSetId, Making>,
}

impl JobDataSets {
    /// The making of each data set that is written.
    #[must_use]
    pub fn generations(&self) -> BTreeMap<DataSetId, Generation> {
        self.makes.iter().map(|(id, making)| (*id, making.generation)).collect()
    }
}

impl Default for DataSets {
    fn default() -> Self {
        Self::new()
    }
}

impl DataSets {
    /// No data set.
    #[must_use]
    pub fn new() -> Self {
        // Seeds of a fresh hasher differ from process to process and from call to call.
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
        Self {
            state: Mutex::default(),
            changed: Waiting::default(),
            salt: seed,
            next_id: AtomicU64::new(1),
        }
    }

    /// Has this executor give turns while somebody waits for workers.
    pub fn run_by(&self, executor: &Executor) {
        self.changed.run_by(executor);
    }

    /// An id that no other data set has.
    #[must_use]
    pub fn new_id(&self) -> DataSetId {
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        DataSetId(u128::from(self.salt) << 64 | u128::from(number))
    }

    /// Whether jobs may read a data set. The cluster's word, not a copy of it.
    #[must_use]
    pub fn is_complete(&self, data_set: DataSetId) -> bool {
        self.state.lock().sets.get(&data_set).is_some_and(|entry| entry.life.is_complete())
    }

    /// Where the parts of a complete data set lie, by producer; an empty result has parts too.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Lost`] if it is not complete.
    pub fn locate(
        &self,
        data_set: DataSetId,
    ) -> Result<Vec<(TaskManagerId, PartitionDescriptor)>, ShuffleError> {
        let state = self.state.lock();
        match state.sets.get(&data_set).map(|entry| &entry.life) {
            Some(ClusterDataSet::Kept { parts, .. }) => {
                Ok(parts.values().map(|part| (part.worker, part.descriptor.clone())).collect())
            }
            _ => Err(ShuffleError::Lost {
                partition: PartitionIdentity::DataSet {
                    data_set,
                    generation: Generation::default(),
                    attempt: element::Attempt(0),
                    producer: element::SubtaskIndex(0),
                },
            }),
        }
    }

    /// Who reads the partitions that a worker wrote.
    #[must_use]
    pub fn service(&self, worker: TaskManagerId) -> Option<Arc<dyn ShuffleService>> {
        self.state.lock().services.get(&worker).map(Arc::clone)
    }

    /// Notes what a job reads, and hands out a making for each data set that it makes.
    pub fn begin(&self, plan: &ExecutionPlan, recovery: CacheRecovery) -> JobDataSets {
        let mut state = self.state.lock();
        let mut job = JobDataSets::default();
        let mut rest = Vec::new();
        for cache in &plan.caches {
            state.uses += 1;
            let used = state.uses;
            let entry = state.sets.entry(cache.data_set).or_default();
            entry.name = stream_name(&cache.name, &cache.output);
            entry.used = used;
            match cache.decision {
                CacheDecision::Hit { .. } => {
                    entry.readers += 1;
                    job.reads.push(cache.data_set);
                }
                CacheDecision::Computed { producer } => {
                    entry.mends = recovery == CacheRecovery::Partitions;
                    if matches!(entry.life, ClusterDataSet::Damaged { .. }) {
                        rest.push(entry.life.give_up());
                    }
                    entry.last = Generation(entry.last.0 + 1);
                    entry.life.begin(entry.last);
                    let parts = plan.vertex(producer).map_or(1, |vertex| vertex.parallelism);
                    let fingerprint = entry.named.as_ref().map(Named::wanted);
                    let (generation, lost) = (entry.last, entry.lost.clone());
                    let making = Making { generation, parts, lost, fingerprint };
                    job.makes.insert(cache.data_set, making);
                }
                CacheDecision::Uncached { .. } => {}
            }
        }
        for parts in rest {
            state.release(parts);
        }
        job
    }
}

/// A stream's name, with the tag if it is a side output.
pub(crate) fn stream_name(name: &str, output: &OutputTag) -> String {
    match output {
        OutputTag::Main => name.to_owned(),
        OutputTag::Side(tag) => format!("{name}/{tag}"),
    }
}
