//! [`TaskManager`]: a worker with slots, a directory, and a thread for each of its tasks.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use element::{JobId, TaskManagerId};
use shuffle::{PartitionDescriptor, ShuffleService, Wake};
use sort::CancelFlag;

use crate::events::{TaskEvent, TaskId, TaskMail};
use crate::task::{Place, TaskDeployment, TaskWaker, run_to_end, wire};

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
    /// A task's thread has ended.
    Ended(JobId, TaskId),
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

struct Running {
    cancelled: CancelFlag,
    waker: Arc<TaskWaker>,
    mail: Sender<TaskMail>,
}

/// A worker.
pub struct TaskManager {
    handle: TaskManagerHandle,
    thread: Option<JoinHandle<()>>,
}

impl TaskManager {
    /// Starts one. Its directory is removed when it ends.
    ///
    /// # Errors
    ///
    /// What the system says of a new thread.
    pub fn start(id: TaskManagerId, slots: u32, place: Place) -> std::io::Result<Self> {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let service = Arc::clone(&place.service);
        let handle = TaskManagerHandle { id, slots, sender: sender.clone(), service };
        let thread = std::thread::Builder::new()
            .name(format!("task-manager-{id}"))
            .spawn(move || Worker { place: Arc::new(place), sender, running: HashMap::new() }.run(&receiver))?;
        Ok(Self { handle, thread: Some(thread) })
    }

    /// How others see it.
    #[must_use]
    pub fn handle(&self) -> &TaskManagerHandle {
        &self.handle
    }
}

impl Drop for TaskManager {
    fn drop(&mut self) {
        let told = self.handle.sender.send(TaskManagerMessage::Shutdown).is_ok();
        if let Some(thread) = self.thread.take()
            && (!told || thread.join().is_err())
        {
            tracing::error!(task_manager = %self.handle.id, "a task manager did not end well");
        }
    }
}

struct Worker {
    place: Arc<Place>,
    sender: Sender<TaskManagerMessage>,
    running: HashMap<(JobId, TaskId), Running>,
}

impl Worker {
    fn run(mut self, receiver: &Receiver<TaskManagerMessage>) {
        let mut stopping = false;
        for message in receiver {
            match message {
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
                TaskManagerMessage::Ended(job, task) => {
                    self.running.remove(&(job, task));
                }
                TaskManagerMessage::Shutdown => {
                    stopping = true;
                    self.running.values().for_each(Running::cancel);
                }
            }
            if stopping && self.running.is_empty() {
                break;
            }
        }
        remove_directory(&self.place.directory);
    }

    /// Wiring opens files and stores: it is done on the task's own thread.
    fn deploy(&mut self, deployment: Box<TaskDeployment>) {
        let task = TaskId {
            attempt: deployment.attempt,
            vertex: deployment.vertex,
            subtask: deployment.subtask,
        };
        let job = deployment.job;
        let events = deployment.events.clone();
        let (mail, mailbox) = crossbeam_channel::unbounded();
        let cancelled = CancelFlag::new();
        let waker = Arc::new(TaskWaker::default());
        let running =
            Running { cancelled: cancelled.clone(), waker: Arc::clone(&waker), mail };
        let place = Arc::clone(&self.place);
        let manager = self.sender.clone();
        let spawned = std::thread::Builder::new()
            .name(format!("task-{}-{}", task.vertex, task.subtask))
            .spawn(move || {
                waker.adopt();
                let directory = place.directory.join(format!(
                    "job-{job}.{}-{}-{}",
                    task.attempt, task.vertex, task.subtask
                ));
                let ended = run_task(&deployment, &place, mailbox, cancelled, &waker);
                // Channels whose other end has not come are not waited for by anybody.
                drop(deployment);
                remove_directory(&directory);
                let gone = events.send((task, TaskEvent::Ended(ended))).is_err();
                if manager.send(TaskManagerMessage::Ended(job, task)).is_err() || gone {
                    tracing::debug!(?task, "a task has ended after its masters");
                }
            });
        match spawned {
            Ok(_) => {
                self.running.insert((job, task), running);
            }
            Err(source) => tracing::error!(?task, %source, "no thread for a task"),
        }
    }

    fn mail(&self, job: JobId, task: TaskId, mail: TaskMail) {
        match self.running.get(&(job, task)) {
            Some(running) if running.mail.send(mail).is_ok() => running.waker.wake(),
            _ => tracing::debug!(?task, "mail for a task that has ended"),
        }
    }

    fn release(&self, partitions: &[PartitionDescriptor]) {
        for partition in partitions {
            if let Err(error) = self.place.service.release(&partition.identity) {
                tracing::warn!(%error, "a partition could not be released");
            }
        }
    }
}

impl Running {
    fn cancel(&self) {
        self.cancelled.cancel();
        self.waker.wake();
    }
}

fn run_task(
    deployment: &TaskDeployment,
    place: &Place,
    mailbox: Receiver<TaskMail>,
    cancelled: CancelFlag,
    waker: &Arc<TaskWaker>,
) -> Result<crate::events::TaskEnd, crate::error::TaskError> {
    let wake: Arc<dyn Wake> = Arc::clone(waker) as _;
    let task = crate::user::guarded(&deployment.job_name, || {
        wire(deployment, place, mailbox, cancelled, wake)
    })?;
    run_to_end(task, waker)
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
