//! [`Workers`]: the TaskManagers of a session; each can be lost, and another takes its place.
//!
//! Left out on purpose: who finds that one is lost ([`super::resource_manager`]), and what that means
//! for data sets ([`DataSets`]) and for jobs (the JobMaster is told).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::Sender;
use element::{ByteSize, Clock, Configuration, MemoryBudget, TaskManagerId, option_table};
use parking_lot::Mutex;
use shuffle::ShuffleService;

use super::jobs::Jobs;
use super::resource_manager::ResourceManager;
use crate::checkpoint::SnapshotWork;
use crate::cluster::{
    DataSets, Line, ShelvingShuffle, TaskManager, TaskManagerHandle, TaskManagerMessage,
    WorkerReport,
};
use crate::error::JobError;
use crate::executor::{Executor, Running};
use crate::stores::StateStores;
use crate::task::Place;

/// What every worker of a session is made with.
pub(super) struct WorkerSettings {
    pub(super) directory: PathBuf,
    pub(super) config: Configuration,
    pub(super) stores: StateStores,
    pub(super) shuffle: Option<Arc<dyn ShuffleService>>,
    pub(super) clock: Arc<dyn Clock>,
    /// Managed memory of each.
    pub(super) memory: ByteSize,
    pub(super) executor: Executor,
}

/// The workers, those that are lost included until their last task has ended.
pub(super) struct Workers {
    settings: WorkerSettings,
    data_sets: Arc<DataSets>,
    next: AtomicU64,
    live: Mutex<Vec<TaskManager>>,
    lost: Mutex<Vec<TaskManager>>,
    ends: Mutex<Option<(Sender<WorkerReport>, Sender<SnapshotWork>)>>,
    ear: Mutex<Option<Running>>,
}

/// Keeps a worker from doing anything, or from being heard, until it is dropped.
pub struct PausedWorker {
    _resume: Sender<()>,
    line: Option<Line>,
}

impl Drop for PausedWorker {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.mend();
        }
    }
}

impl Workers {
    /// Starts as many as the options say.
    pub(super) fn start(
        settings: WorkerSettings,
        data_sets: Arc<DataSets>,
        snapshots: Sender<SnapshotWork>,
        jobs: &Arc<Jobs>,
    ) -> Result<Arc<Self>, JobError> {
        let number = settings.config.get(&option_table::WORKERS)?.max(1);
        let (reports, heard) = crossbeam_channel::unbounded::<WorkerReport>();
        let (clock, config) = (Arc::clone(&settings.clock), settings.config.clone());
        let executor = settings.executor.clone();
        let workers = Arc::new(Self {
            settings,
            data_sets,
            next: AtomicU64::new(0),
            live: Mutex::default(),
            lost: Mutex::default(),
            ends: Mutex::new(Some((reports, snapshots))),
            ear: Mutex::default(),
        });
        for _ in 0..number {
            let worker = workers.one_more()?;
            workers.live.lock().push(worker);
        }
        let ear = ResourceManager::start(heard, &workers, jobs, &clock, &config, &executor)?;
        *workers.ear.lock() = Some(ear);
        Ok(workers)
    }

    /// The registry that their reports go to.
    pub(super) fn data_sets(&self) -> &Arc<DataSets> {
        &self.data_sets
    }

    /// Starts one, with an id and a directory that no other has had.
    fn one_more(&self) -> Result<TaskManager, JobError> {
        let id = TaskManagerId(self.next.fetch_add(1, Ordering::Relaxed));
        let settings = &self.settings;
        let config = &settings.config;
        let home = settings.directory.join(format!("worker-{id}"));
        let (reports, snapshots) = self.ends.lock().clone().ok_or(JobError::Closed)?;
        let service = match &settings.shuffle {
            Some(service) => Arc::clone(service),
            None => crate::exchange::file_shuffle(&home, config, &settings.executor)?,
        };
        let service: Arc<dyn ShuffleService> = match config.get(&option_table::CACHE_DIR)? {
            Some(directory) => {
                let shelf = self.data_sets.shelf(Path::new(&directory)).service();
                Arc::new(ShelvingShuffle { inner: service, shelf })
            }
            None => service,
        };
        let place = Place {
            clock: Arc::clone(&settings.clock),
            memory: MemoryBudget::new(settings.memory),
            spill: settings.executor.store(|| crate::temporary::spill_store(config))?,
            directory: home.clone(),
            stores: settings.stores.clone(),
            service,
            snapshots,
            line: Line::default(),
        };
        let worker = TaskManager::start(id, place, reports, &settings.executor)
            .map_err(|source| JobError::Directory { path: home, source })?;
        self.data_sets.register(worker.handle());
        Ok(worker)
    }

    /// The live ones, as others see them.
    pub(super) fn handles(&self) -> Vec<TaskManagerHandle> {
        self.live.lock().iter().map(|worker| worker.handle().clone()).collect()
    }

    /// Where a worker's files lie.
    pub(super) fn directory_of(&self, worker: TaskManagerId) -> PathBuf {
        self.settings.directory.join(format!("worker-{worker}"))
    }

    /// Kills a worker: its files are gone when this returns. Another one is started in its place and
    /// handed back; `None` if it is not alive.
    pub(super) fn kill(&self, id: TaskManagerId) -> Result<Option<TaskManagerHandle>, JobError> {
        self.lose(id, "was lost", |lost| {
            // It sends nothing: its end is dropped when it is dead.
            let died = self.settings.executor.receive(&lost.give_up());
            tracing::debug!(worker = %id, ?died, "a worker is dead");
        })
    }

    /// A worker counts as lost, whatever it does from here on: nobody listens to it. Another one is
    /// started in its place and handed back; `None` if it is not alive.
    pub(super) fn give_up(
        &self,
        id: TaskManagerId,
        how: &str,
    ) -> Result<Option<TaskManagerHandle>, JobError> {
        self.lose(id, how, |lost| drop(lost.give_up()))
    }

    fn lose(
        &self,
        id: TaskManagerId,
        how: &str,
        end: impl FnOnce(&TaskManager),
    ) -> Result<Option<TaskManagerHandle>, JobError> {
        let replacement = self.one_more()?;
        let handle = replacement.handle().clone();
        let lost = {
            let mut live = self.live.lock();
            let Some(slot) = live.iter_mut().find(|worker| worker.handle().id == id) else {
                drop(live);
                self.data_sets.worker_lost(handle.id, how);
                return Ok(None);
            };
            std::mem::replace(slot, replacement)
        };
        end(&lost);
        self.data_sets.worker_lost(id, how);
        self.lost.lock().push(lost);
        Ok(Some(handle))
    }

    /// Has a worker do nothing until what is handed back is dropped; `None` if it is not alive.
    pub(super) fn pause(&self, id: TaskManagerId) -> Option<PausedWorker> {
        let (resume, paused) = crossbeam_channel::bounded(0);
        let live = self.live.lock();
        let worker = live.iter().find(|worker| worker.handle().id == id)?;
        worker.handle().sender.send(TaskManagerMessage::Pause(paused)).ok()?;
        Some(PausedWorker { _resume: resume, line: None })
    }

    /// As [`pause`](Self::pause), and what its tasks say is not heard before it is over either.
    pub(super) fn cut_off(&self, id: TaskManagerId) -> Option<PausedWorker> {
        let mut paused = self.pause(id)?;
        let live = self.live.lock();
        let line = live.iter().find(|worker| worker.handle().id == id)?.line().clone();
        line.cut();
        paused.line = Some(line);
        Some(paused)
    }

    /// Ends all of them, and then the thread that hears them.
    pub(super) fn close(&self) {
        // First, so that none is started any more.
        drop(self.ends.lock().take());
        let workers = std::mem::take(&mut *self.live.lock());
        for worker in &workers {
            self.data_sets.worker_lost(worker.handle().id, "was closed");
        }
        drop(workers);
        drop(std::mem::take(&mut *self.lost.lock()));
        if let Some(ear) = self.ear.lock().take()
            && !ear.join()
        {
            tracing::error!("the thread that hears workers has panicked");
        }
    }
}
