//! Writes what operators have stored for a barrier, on a thread of its own, and acknowledges it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use element::{Barrier, SpillStore};

use super::OperatorState;
use crate::context::OperatorSnapshot;
use crate::events::{TaskEvent, TaskEvents};

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

/// The thread that writes snapshots of one TaskManager, while its tasks go on.
#[derive(Debug)]
pub struct SnapshotWriter {
    sender: Option<Sender<SnapshotWork>>,
    thread: Option<JoinHandle<()>>,
}

impl SnapshotWriter {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// What the system says of a new thread.
    pub fn start() -> std::io::Result<Self> {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let thread = std::thread::Builder::new()
            .name("snapshots".to_owned())
            .spawn(move || write_all(&receiver))?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
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
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes snapshots has panicked");
        }
    }
}

fn write_all(receiver: &Receiver<SnapshotWork>) {
    for SnapshotWork { barrier, snapshots, store, events, outstanding } in receiver {
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
            Err(error) => TaskEvent::SnapshotFailed {
                id: barrier.id,
                reason: crate::report::chain_of(&error),
            },
        });
        outstanding.fetch_sub(1, Ordering::AcqRel);
    }
}
