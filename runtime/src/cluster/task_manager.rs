//! [`TaskManager`]: a worker with slots, a directory, and the tasks that it runs.

mod task_run;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Select, Sender, TryRecvError};
use element::{JobId, TaskManagerId};
use shuffle::{PartitionDescriptor, PartitionIdentity, ShuffleService, Wake};
use sort::CancelFlag;

use super::data_sets::{ReleaseFailure, RequestId, WorkerReport};
use super::hosted::HostedPartitions;
use super::line::Line;
use crate::error::TaskError;
use crate::events::{FinishedOutput, TaskEvent, TaskId, TaskMail};
use crate::executor::{Actor, Executor, Running, Turn, is_ready, wait_for_any};
use crate::task::{Place, TaskDeployment, TaskWaker};
use task_run::TaskRun;

/// What a TaskManager is told.
#[non_exhaustive]
pub enum TaskManagerMessage {
    /// Run a task.
    Deploy(Box<TaskDeployment>),
    /// Mail for a task.
    Mail(JobId, TaskId, TaskMail),
    /// End tasks early; they report it.
    Cancel(JobId, Vec<TaskId>),
    /// Partitions are no longer wanted.
    Release(Vec<PartitionDescriptor>),
    /// A task's thread has ended, of a vertex of so many subtasks, and left partitions behind.
    Ended(JobId, TaskId, u32, Vec<FinishedOutput>),
    /// A job is over: what is named is kept for the cluster, what else it wrote is dropped.
    Settle {
        /// To be answered by a report.
        request: RequestId,
        /// The job.
        job: JobId,
        /// Parts of data sets to keep.
        keep: Vec<PartitionIdentity>,
    },
    /// Parts of data sets are no longer wanted.
    ReleaseDataSets {
        /// To be answered by a report.
        request: RequestId,
        /// Which ones.
        partitions: Vec<PartitionIdentity>,
    },
    /// Say that it is there and what it keeps: the heartbeat of this number.
    Heartbeat(u64),
    /// Say nothing and do nothing until the other end is dropped: a stand-in for a worker that hangs.
    Pause(Receiver<()>),
    /// Die: everything on this worker's disk is gone when the other end hears of it.
    Kill(Sender<()>),
    /// End all tasks and then itself.
    Shutdown,
}

/// A running TaskManager, as others see it.
#[derive(Clone)]
pub struct TaskManagerHandle {
    /// Its id.
    pub id: TaskManagerId,
    /// How many subtasks of each vertex it can run at once.
    pub slots: u32,
    /// Its mailbox.
    pub sender: Sender<TaskManagerMessage>,
    /// Who reads partitions that lie there.
    pub service: Arc<dyn ShuffleService>,
}

struct RunningTask {
    cancelled: CancelFlag,
    waker: Arc<TaskWaker>,
    mail: Sender<TaskMail>,
}

/// A worker.
pub struct TaskManager {
    handle: TaskManagerHandle,
    given_up: CancelFlag,
    line: Line,
    worker: Option<Running>,
}

impl TaskManager {
    /// Starts one. It reports what it keeps at once and with each answer; its directory is removed when
    /// it ends.
    ///
    /// # Errors
    ///
    /// What the system says of a new thread.
    pub fn start(
        id: TaskManagerId,
        place: Place,
        reports: Sender<WorkerReport>,
        executor: &Executor,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let service = Arc::clone(&place.service);
        let hosted = HostedPartitions::new(id, Arc::clone(&service));
        let handle = TaskManagerHandle { id, slots: 1, sender: sender.clone(), service };
        let (given_up, line) = (CancelFlag::new(), place.line.clone());
        let mut worker = Worker {
            id,
            executor: executor.clone(),
            place: Arc::new(place),
            receiver,
            sender,
            running: HashMap::new(),
            hosted,
            settled: BTreeSet::new(),
            reports,
            sequence: 0,
            heartbeat: 0,
            given_up: given_up.clone(),
            stopping: false,
        };
        worker.report(None, Vec::new());
        let worker = executor.spawn(format!("task-manager-{id}"), Box::new(worker))?;
        Ok(Self { handle, given_up, line, worker: Some(worker) })
    }

    /// How others see it.
    #[must_use]
    pub fn handle(&self) -> &TaskManagerHandle {
        &self.handle
    }

    /// What its tasks speak over.
    #[must_use]
    pub fn line(&self) -> &Line {
        &self.line
    }

    /// It counts as lost: what lies in its mailbox is of no use any more, and when it comes to itself
    /// it ends its tasks, drops what it holds, and ends. The receiver hears when that is done.
    pub fn give_up(&self) -> Receiver<()> {
        self.given_up.cancel();
        let (done, died) = crossbeam_channel::bounded(0);
        if self.handle.sender.send(TaskManagerMessage::Kill(done)).is_err() {
            tracing::debug!(task_manager = %self.handle.id, "it has ended already");
        }
        died
    }
}

impl Drop for TaskManager {
    fn drop(&mut self) {
        let told = self.handle.sender.send(TaskManagerMessage::Shutdown).is_ok();
        if let Some(worker) = self.worker.take()
            && (!told || !worker.join())
        {
            tracing::error!(task_manager = %self.handle.id, "a task manager did not end well");
        }
    }
}

struct Worker {
    id: TaskManagerId,
    executor: Executor,
    place: Arc<Place>,
    receiver: Receiver<TaskManagerMessage>,
    sender: Sender<TaskManagerMessage>,
    running: HashMap<(JobId, TaskId), RunningTask>,
    hosted: HostedPartitions,
    /// Jobs that are over: what one of their tasks leaves later is dropped at once (tC9).
    settled: BTreeSet<JobId>,
    reports: Sender<WorkerReport>,
    sequence: u64,
    /// The last heartbeat that it was asked for.
    heartbeat: u64,
    /// Whether it counts as lost. A connection that is closed takes what was on its way with it.
    given_up: CancelFlag,
    stopping: bool,
}

impl Actor for Worker {
    fn turn(&mut self) -> Turn {
        match self.receiver.try_recv() {
            Ok(message) => self.message(message),
            Err(TryRecvError::Empty) => return Turn::Wait(None),
            Err(TryRecvError::Disconnected) => return Turn::Done,
        }
        if self.stopping && self.running.is_empty() {
            remove_directory(&self.place.directory);
            return Turn::Done;
        }
        Turn::Progress
    }

    fn is_ready(&self) -> bool {
        is_ready(&self.receiver)
    }

    fn wait(&mut self, limit: Option<Duration>) {
        let mut select = Select::new();
        select.recv(&self.receiver);
        wait_for_any(&mut select, limit);
    }
}

impl Worker {
    fn message(&mut self, message: TaskManagerMessage) {
        match message {
            message if self.is_stale(&message) => {
                tracing::debug!(task_manager = %self.id, "a message to a worker given up");
            }
            TaskManagerMessage::Deploy(deployment) => self.deploy(deployment),
            TaskManagerMessage::Mail(job, task, mail) => self.mail(job, task, mail),
            TaskManagerMessage::Cancel(job, tasks) => {
                for task in tasks {
                    if let Some(running) = self.running.get(&(job, task)) {
                        running.cancel();
                    }
                }
            }
            TaskManagerMessage::Release(partitions) => self.release(&partitions),
            TaskManagerMessage::Ended(job, task, of, outputs) => {
                self.running.remove(&(job, task));
                self.hosted.finished(job, of, outputs);
                if self.settled.contains(&job) || self.given_up.is_cancelled() {
                    self.hosted.settle(job, &[]);
                }
            }
            TaskManagerMessage::Settle { request, job, keep } => {
                self.settled.insert(job);
                let failures = self.hosted.settle(job, &keep);
                self.report(Some(request), failures);
            }
            TaskManagerMessage::ReleaseDataSets { request, partitions } => {
                let failures = self.hosted.release(&partitions);
                self.report(Some(request), failures);
            }
            TaskManagerMessage::Heartbeat(number) => {
                self.heartbeat = number;
                self.report(None, Vec::new());
            }
            // The other end sends nothing: it is dropped.
            TaskManagerMessage::Pause(resumed) => {
                self.executor.receive(&resumed);
            }
            TaskManagerMessage::Kill(done) => {
                self.stopping = true;
                self.running.values().for_each(RunningTask::cancel);
                self.hosted.lose();
                remove_directory(&self.place.directory);
                drop(done);
            }
            TaskManagerMessage::Shutdown => {
                self.stopping = true;
                self.running.values().for_each(RunningTask::cancel);
            }
        }
    }

    /// Whether a message was meant for a worker that still counts.
    fn is_stale(&self, message: &TaskManagerMessage) -> bool {
        let concerns_its_end = matches!(
            message,
            TaskManagerMessage::Ended(..)
                | TaskManagerMessage::Kill(_)
                | TaskManagerMessage::Shutdown
        );
        self.given_up.is_cancelled() && !concerns_its_end
    }

    fn deploy(&mut self, deployment: Box<TaskDeployment>) {
        let task = TaskId {
            attempt: deployment.attempt,
            vertex: deployment.vertex,
            subtask: deployment.subtask,
        };
        let (job, events) = (deployment.job, deployment.events.clone());
        let (mail, mailbox) = crossbeam_channel::unbounded();
        let cancelled = CancelFlag::new();
        let waker = Arc::new(TaskWaker::default());
        let running = RunningTask { cancelled: cancelled.clone(), waker: Arc::clone(&waker), mail };
        let run = TaskRun {
            deployment: Some(deployment),
            id: task,
            place: Arc::clone(&self.place),
            mailbox: Some(mailbox),
            cancelled,
            waker,
            task: None,
            manager: self.sender.clone(),
        };
        let name = format!("task-{}-{}", task.vertex, task.subtask);
        match self.executor.spawn(name, Box::new(run)) {
            Ok(_) => {
                self.running.insert((job, task), running);
            }
            Err(source) => {
                let ended = TaskEvent::Ended(Err(TaskError::NoThread(source)));
                if !self.place.line.send(&events, task, ended) {
                    tracing::debug!(?task, "a task has not begun after its master's end");
                }
            }
        }
    }

    fn mail(&self, job: JobId, task: TaskId, mail: TaskMail) {
        match self.running.get(&(job, task)) {
            Some(running) if running.mail.send(mail).is_ok() => running.waker.wake(),
            _ => tracing::debug!(?task, "mail for a task that has ended"),
        }
    }

    fn release(&mut self, partitions: &[PartitionDescriptor]) {
        let partitions: Vec<PartitionIdentity> =
            partitions.iter().map(|partition| partition.identity).collect();
        self.hosted.release(&partitions);
    }

    /// Says all that it keeps.
    fn report(&mut self, answers: Option<RequestId>, failures: Vec<ReleaseFailure>) {
        self.sequence += 1;
        let report = WorkerReport {
            worker: self.id,
            sequence: self.sequence,
            heartbeat: self.heartbeat,
            answers,
            parts: self.hosted.parts(),
            failures,
            tasks: self.running.len(),
        };
        if self.reports.send(report).is_err() {
            tracing::debug!(task_manager = %self.id, "nobody hears reports any more");
        }
    }
}

impl RunningTask {
    fn cancel(&self) {
        self.cancelled.cancel();
        self.waker.wake();
    }
}

/// What cannot be removed is left to the sweep of the next start.
fn remove_directory(directory: &PathBuf) {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(directory = %directory.display(), %error, "a directory could not be removed");
        }
        _ => {}
    }
}
