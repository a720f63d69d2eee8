//! [`Session`]: what outlives jobs: workers, their directories, kept data sets, the clock.
//!
//! An environment of the api owns one. Jobs are planned by the api and run here; closing a session
//! ends its jobs and workers and removes what they left on disk.

mod attempts;
mod job_run;
mod jobs;
mod resource_manager;
mod workers;

pub use attempts::Replan;
pub use workers::PausedWorker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender};
use element::{
    ByteSize, CheckpointId, Clock, Configuration, DirectoryStore, JobId, SystemClock,
    TaskManagerId, option_table,
};
use parking_lot::Mutex;
use shuffle::ShuffleService;
use state::ByteStoreFactory;

use crate::checkpoint::{CheckpointStorage, DirectoryStorage, SnapshotWriter};
use crate::cluster::{DataSets, JobCommand, JobOutcome, JobProgress};
use crate::error::JobError;
use crate::executor::{Executor, Running};
use crate::factory::ExecutionPlan;
use crate::report::{JobReport, peak_memory};
use crate::stores::StateStores;
use crate::temporary::{SessionDirectory, session_directory};
use attempts::{Attempts, Ended};
use job_run::JobRun;
use jobs::{Jobs, Registered};
use workers::{WorkerSettings, Workers};

/// What a session is made with, beside options.
#[derive(Clone, Default)]
pub struct SessionOptions {
    /// The options of all of its jobs, unless a job says otherwise.
    pub config: Configuration,
    /// A store for keyed state that the user brings.
    pub state_store: Option<Arc<dyn ByteStoreFactory>>,
    /// A shuffle for blocking exchanges that the user brings.
    pub shuffle: Option<Arc<dyn ShuffleService>>,
    /// A clock other than the system's.
    pub clock: Option<Arc<dyn Clock>>,
    /// Cached results; those of one environment.
    pub data_sets: Arc<DataSets>,
    /// Who gives turns to the session's jobs, workers and tasks.
    pub executor: Executor,
}

/// Workers and kept results, shared by jobs.
pub struct Session {
    directory: SessionDirectory,
    workers: Arc<Workers>,
    data_sets: Arc<DataSets>,
    jobs: Arc<Jobs>,
    snapshots: Mutex<Option<SnapshotWriter>>,
    stores: StateStores,
    clock: Arc<dyn Clock>,
    next_job: Arc<AtomicU64>,
    closed: AtomicBool,
    executor: Executor,
}

impl Session {
    /// Starts the workers.
    ///
    /// # Errors
    ///
    /// [`JobError`] for an option without a valid value, or a directory that cannot be used.
    pub fn open(options: SessionOptions) -> Result<Arc<Self>, JobError> {
        let config = &options.config;
        let executor = options.executor;
        let stores = StateStores::new(config, options.state_store)?;
        let directory = session_directory(config)?;
        let clock = options.clock.unwrap_or_else(|| Arc::new(SystemClock::default()));
        let failed = |source| JobError::Directory { path: directory.path().to_owned(), source };
        let snapshots = SnapshotWriter::start(&executor).map_err(failed)?;
        let number = config.get(&option_table::WORKERS)?.max(1);
        let memory = managed_memory(config)?;
        let settings = WorkerSettings {
            directory: directory.path().to_owned(),
            config: config.clone(),
            stores: stores.clone(),
            shuffle: options.shuffle,
            clock: Arc::clone(&clock),
            memory: ByteSize(memory.0 / u64::from(number)),
            executor: executor.clone(),
        };
        let data_sets = options.data_sets;
        data_sets.run_by(&executor);
        let jobs = Arc::<Jobs>::default();
        jobs.run_by(&executor);
        let workers = Workers::start(settings, Arc::clone(&data_sets), snapshots.sender(), &jobs)?;
        Ok(Arc::new(Self {
            workers,
            data_sets,
            jobs,
            snapshots: Mutex::new(Some(snapshots)),
            stores,
            clock,
            next_job: Arc::new(AtomicU64::new(1)),
            closed: AtomicBool::new(false),
            executor,
            directory,
        }))
    }

    /// What keyed state is called in plans.
    #[must_use]
    pub fn state_store(&self) -> &StateStores {
        &self.stores
    }

    /// The clock of this session.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Whether it has been closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The ids of the workers that are alive.
    #[must_use]
    pub fn workers(&self) -> Vec<TaskManagerId> {
        self.workers.handles().iter().map(|handle| handle.id).collect()
    }

    /// The directory of a worker.
    #[must_use]
    pub fn worker_directory(&self, worker: TaskManagerId) -> PathBuf {
        self.workers.directory_of(worker)
    }

    /// The directory of this session.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills a worker: its tasks fail, its files are gone, its parts of data sets are lost. Another
    /// one takes its place. False if it is not alive.
    ///
    /// # Errors
    ///
    /// [`JobError`] if no other one can be started; the worker then lives on.
    pub fn kill(&self, worker: TaskManagerId) -> Result<bool, JobError> {
        let Some(replacement) = self.workers.kill(worker)? else { return Ok(false) };
        self.jobs
            .tell_all(|| JobCommand::WorkerLost { lost: worker, replacement: replacement.clone() });
        Ok(true)
    }

    /// Sends a command to every job that runs; answers how many there are.
    pub fn tell_jobs(&self, command: impl Fn() -> JobCommand) -> usize {
        self.jobs.tell_and_count(command)
    }

    /// Has a worker answer nothing until what is handed back is dropped. Its tasks run on.
    #[must_use]
    pub fn pause(&self, worker: TaskManagerId) -> Option<PausedWorker> {
        self.workers.pause(worker)
    }

    /// Cuts a worker off until what is handed back is dropped: it hears nothing, and what it and its
    /// tasks say comes late. Its tasks run on.
    #[must_use]
    pub fn cut_off(&self, worker: TaskManagerId) -> Option<PausedWorker> {
        self.workers.cut_off(worker)
    }

    /// Starts a job; it runs on threads of its own. If cached data turns out to be lost, it is planned
    /// anew by `replan`, once.
    ///
    /// # Errors
    ///
    /// [`JobError`] if it cannot be started.
    pub fn submit(
        &self,
        name: &str,
        plan: ExecutionPlan,
        config: &Configuration,
        restore: Option<&Path>,
        replan: Replan,
    ) -> Result<RunningJob, JobError> {
        if self.is_closed() {
            return Err(JobError::Closed);
        }
        let id = JobId(self.next_job.load(Ordering::Acquire));
        let progress = Arc::new(JobProgress::default());
        let plan = Arc::new(plan);
        let (commands, mailbox) = crossbeam_channel::unbounded();
        let attempts = Attempts {
            name: name.to_owned(),
            config: config.clone(),
            workers: Arc::clone(&self.workers),
            registry: Arc::clone(&self.data_sets),
            storage: self.storage(name, id, config)?,
            restore: restore.map(Path::to_owned),
            clock: Arc::clone(&self.clock),
            progress: Arc::clone(&progress),
            mailbox,
            budget: config.get(&option_table::CACHE_MAX_BYTES)?,
            over_budget: config.get(&option_table::CACHE_OVER_BUDGET)?,
            recovery: config.get(&option_table::CACHE_RECOVERY)?,
            next_job: Arc::clone(&self.next_job),
            executor: self.executor.clone(),
        };
        let registered = Registered::new(&self.jobs, commands.clone());
        let first = attempts.first(Arc::clone(&plan))?;
        let (tell, ended) = crossbeam_channel::bounded(1);
        let run = JobRun::new(attempts, first, replan, tell, registered);
        let running = self
            .executor
            .spawn(format!("job-{id}"), Box::new(run))
            .map_err(|error| JobError::Internal(format!("no thread for a job: {error}")))?;
        let (name, executor) = (name.to_owned(), self.executor.clone());
        Ok(RunningJob { id, name, plan, progress, commands, running, ended, executor })
    }

    fn storage(
        &self,
        name: &str,
        id: JobId,
        config: &Configuration,
    ) -> Result<Arc<dyn CheckpointStorage>, JobError> {
        Ok(Arc::new(match config.get(&option_table::CHECKPOINT_DIR)? {
            Some(directory) => {
                DirectoryStorage::new(PathBuf::from(directory).join(file_name_of(name)))
            }
            None => {
                let directory = self.directory.path().join(format!("checkpoints-{id}"));
                let make = || Ok(Arc::new(DirectoryStore::new(directory)) as _);
                DirectoryStorage::over(self.executor.store(make)?)
            }
        }))
    }

    /// Ends the workers and removes what they left. Harmless when done twice.
    ///
    /// # Errors
    ///
    /// [`JobError::NotReleased`] with every cached result that could not be removed; all else is gone.
    pub fn close(&self) -> Result<(), JobError> {
        self.closed.store(true, Ordering::Release);
        self.jobs.close();
        let failures = self.data_sets.delete_all();
        self.workers.close();
        let snapshots = self.snapshots.lock().take();
        drop(snapshots);
        if let Err(error) = std::fs::remove_dir_all(self.directory.path()) {
            tracing::debug!(%error, "the session's directory is gone already");
        }
        if failures.is_empty() {
            return Ok(());
        }
        let failures = failures.into_iter().map(|(name, failure)| (name, failure.to_string()));
        Err(JobError::NotReleased { failures: failures.collect() })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "a session did not end well");
        }
    }
}

/// A name as a single segment of a path.
fn file_name_of(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    name.chars().map(plain).collect()
}

/// The cores that this process may use.
#[must_use]
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}

/// Managed memory of all workers: as configured, or 40 % of what the process may use.
fn managed_memory(config: &Configuration) -> Result<ByteSize, JobError> {
    Ok(match config.get(&option_table::MANAGED_MEMORY)? {
        Some(memory) => memory,
        None => ByteSize(available_memory() / 10 * 4),
    })
}

/// The memory that this process may use: the control group's limit, or the machine's.
fn available_memory() -> u64 {
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1_024)
    });
    let machine = machine.unwrap_or(4 << 30);
    group.map_or(machine, |group| group.min(machine))
}

/// A job that has been started.
pub struct RunningJob {
    id: JobId,
    name: String,
    plan: Arc<ExecutionPlan>,
    progress: Arc<JobProgress>,
    commands: Sender<JobCommand>,
    running: Running,
    ended: Receiver<Ended>,
    executor: Executor,
}

impl RunningJob {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Its plan.
    #[must_use]
    pub fn plan(&self) -> &Arc<ExecutionPlan> {
        &self.plan
    }

    /// Its counters, which go on counting.
    #[must_use]
    pub fn progress(&self) -> &Arc<JobProgress> {
        &self.progress
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.running.is_finished()
    }

    /// Asks something of it. A job that has ended does not mind.
    pub fn command(&self, command: JobCommand) {
        if self.commands.send(command).is_err() {
            tracing::debug!(job = %self.id, "the job has ended");
        }
    }

    /// Takes a savepoint below `directory` and waits for it.
    ///
    /// # Errors
    ///
    /// [`JobError::SavepointDeclined`] with the reason.
    pub fn savepoint(
        &self,
        kind: element::BarrierKind,
        directory: PathBuf,
    ) -> Result<PathBuf, JobError> {
        let (answer, answered) = crossbeam_channel::bounded(1);
        self.command(JobCommand::Savepoint { kind, directory, answer });
        let ended = || {
            let reason = "the job has ended".to_owned();
            Err(JobError::SavepointDeclined { job: self.name.clone(), reason })
        };
        self.executor.receive(&answered).unwrap_or_else(ended)
    }

    /// Waits for its end.
    #[must_use]
    pub fn wait(self) -> (JobOutcome, JobReport) {
        let ended = self.executor.receive(&self.ended);
        let Ended { outcome, caches, mode } = ended.unwrap_or_else(|| Ended {
            outcome: JobOutcome::internal("the job master has panicked"),
            caches: Vec::new(),
            mode: self.plan.mode,
        });
        let _ended = self.running.join();
        let report = JobReport {
            job: self.name.clone(),
            mode,
            took: outcome.took,
            operators: JobReport::of_operators(&self.progress),
            caches,
            checkpoints: outcome.checkpoints.clone(),
            recovered: outcome.recovered.clone(),
            tasks: self.progress.tasks(),
            peak_memory: peak_memory(),
        };
        (outcome, report)
    }
}

/// The id behind which those of a job go on, when its directory has checkpoints of an earlier run.
#[must_use]
pub fn last_checkpoint(storage: &dyn CheckpointStorage) -> CheckpointId {
    let names = storage.store().list(element::FileRole::Manifest, "chk-").unwrap_or_default();
    let ids = names.iter().filter_map(|name| {
        let (folder, _) = name.split_once('/')?;
        folder.strip_prefix("chk-")?.parse::<u64>().ok()
    });
    CheckpointId(ids.max().unwrap_or(0))
}
