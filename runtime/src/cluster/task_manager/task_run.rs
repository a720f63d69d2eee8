//! [`TaskRun`]: one task at its TaskManager, from its deployment to the word of its end.
//!
//! ```text
//!   deployed --(first turn)--> wired --(turns)--> ended: its channels closed, its directory gone,
//!                                                 then its TaskManager and its JobMaster are told
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use shuffle::Wake;
use sort::CancelFlag;

use super::{TaskManagerMessage, remove_directory};
use crate::error::TaskError;
use crate::events::{TaskEnd, TaskEvent, TaskId, TaskMail};
use crate::executor::{Actor, Turn};
use crate::task::{Place, Step, Task, TaskDeployment, TaskWaker, wire};
use crate::user::caught;

/// A task that gets turns. Its waker is woken for mail, and by the channels that it reads and writes.
pub(super) struct TaskRun {
    /// Gone when it has ended.
    pub(super) deployment: Option<Box<TaskDeployment>>,
    pub(super) id: TaskId,
    pub(super) place: Arc<Place>,
    /// Gone when it is wired.
    pub(super) mailbox: Option<Receiver<TaskMail>>,
    pub(super) cancelled: CancelFlag,
    pub(super) waker: Arc<TaskWaker>,
    /// There when it is wired.
    pub(super) task: Option<Task>,
    pub(super) manager: Sender<TaskManagerMessage>,
}

impl TaskRun {
    /// Wiring opens files and stores: it is done in the task's own turn.
    fn wire(&mut self, mailbox: Receiver<TaskMail>) -> Result<(), TaskError> {
        self.waker.adopt();
        let Some(deployment) = &self.deployment else { return Ok(()) };
        let wake: Arc<dyn Wake> = Arc::clone(&self.waker) as _;
        let cancelled = self.cancelled.clone();
        let task = crate::user::guarded(&deployment.job_name, || {
            wire(deployment, &self.place, mailbox, cancelled, wake)
        })?;
        self.task = Some(task);
        Ok(())
    }

    fn step(&mut self) -> Result<Step, TaskError> {
        if let Some(mailbox) = self.mailbox.take() {
            self.wire(mailbox)?;
        }
        let Some(task) = &mut self.task else { return Ok(Step::Done) };
        catch_unwind(AssertUnwindSafe(|| task.step()))
            .unwrap_or_else(|panic| Err(caught(task.name(), None, panic)))
    }

    fn ended(&mut self, failure: Option<TaskError>) {
        let end = self.task.take().map(Task::end);
        let Some(deployment) = self.deployment.take() else { return };
        let ended: Result<TaskEnd, TaskError> = match failure {
            None => Ok(end.unwrap_or_default()),
            Some(error) => Err(error),
        };
        let task = self.id;
        let (job, events) = (deployment.job, deployment.events.clone());
        let vertex = deployment.plan.vertex(task.vertex);
        let of = vertex.map_or(1, |vertex| vertex.parallelism);
        let outputs = ended.as_ref().map(|end| end.partitions.clone()).unwrap_or_default();
        // Channels whose other end has not come are not waited for by anybody.
        drop(deployment);
        let name = format!("job-{job}.{}-{}-{}", task.attempt, task.vertex, task.subtask);
        remove_directory(&self.place.directory.join(name));
        // This worker hears of its partitions before anybody can ask it to keep them.
        let message = TaskManagerMessage::Ended(job, task, of, outputs);
        let gone = self.manager.send(message).is_err();
        if !self.place.line.send(&events, task, TaskEvent::Ended(ended)) || gone {
            tracing::debug!(?task, "a task has ended after its masters");
        }
    }
}

impl Actor for TaskRun {
    fn turn(&mut self) -> Turn {
        let failure = match self.step() {
            Ok(Step::Progress | Step::Snapshot(_)) => return Turn::Progress,
            Ok(Step::Wait(until)) => {
                return Turn::Wait(until.map(|until| self.place.clock.left_until(until)));
            }
            Ok(Step::Done) => None,
            Err(error) => Some(error),
        };
        self.ended(failure);
        Turn::Done
    }

    fn is_ready(&self) -> bool {
        self.waker.is_notified()
    }

    fn wait(&mut self, limit: Option<Duration>) {
        self.waker.park(limit);
    }
}
