//! Writes what operators have stored for a barrier, on a thread of its own, and acknowledges it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::Sender;
use element::{Barrier, SpillStore};

use super::OperatorState;
use crate::context::OperatorSnapshot;
use crate::events::{TaskEvent, TaskEvents};
use crate::executor::{Consumer, Executor, Running};

/// One task's part of a checkpoint, still in memory.
#[derive(Debug)]
pub struct SnapshotWork {
    /// The checkpoint.
    pub barrier: Barrier,
    /// What its operators stored.
    pub snapshots: Vec<OperatorSnapshot>,
    /// Where to write.
    pub store: Arc<dyn SpillStore>,
    /// Whom to tell.
    pub events: TaskEvents,
    /// Counts the task's snapshots that are not yet acknowledged; a task ends behind the last one.
    pub outstanding: Arc<AtomicUsize>,
}

/// Writes the snapshots of a session's tasks, while those go on.
pub struct SnapshotWriter {
    sender: Option<Sender<SnapshotWork>>,
    running: Option<Running>,
}

impl SnapshotWriter {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// What the system says of a new thread.
    pub fn start(executor: &Executor) -> std::io::Result<Self> {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let writer = Consumer::new(receiver, write);
        let running = executor.spawn("snapshots".to_owned(), Box::new(writer))?;
        Ok(Self { sender: Some(sender), running: Some(running) })
    }

    /// Where tasks send their snapshots.
    #[must_use]
    pub fn sender(&self) -> Sender<SnapshotWork> {
        self.sender.clone().unwrap_or_else(|| crossbeam_channel::bounded(0).0)
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        self.sender = None;
        if self.running.take().is_some_and(|running| !running.join()) {
            tracing::error!("the thread that writes snapshots has panicked");
        }
    }
}

fn write(work: SnapshotWork) {
    let SnapshotWork { barrier, snapshots, store, events, outstanding } = work;
    let task = events.task;
    let states = snapshots
        .into_iter()
        .enumerate()
        .map(|(i, snapshot)| {
            let name = format!(
                "{}/{}-{}.{}-{i}",
                super::storage::folder_of(barrier.id),
                task.vertex,
                task.subtask,
                task.attempt,
            );
            let keyed = snapshot.keyed.map(|keyed| keyed.write(&*store, &name)).transpose()?;
            let OperatorSnapshot { uid, items, watermark, backlog, .. } = snapshot;
            Ok(OperatorState { uid, keyed, items, watermark, backlog })
        })
        .collect::<Result<Vec<_>, state::StateError>>();
    events.send(match states {
        Ok(states) => TaskEvent::Acknowledged { id: barrier.id, states },
        Err(error) => {
            TaskEvent::SnapshotFailed { id: barrier.id, reason: crate::report::chain_of(&error) }
        }
    });
    outstanding.fetch_sub(1, Ordering::AcqRel);
}
