//! [`BackgroundLoad`]: a bulk load that runs on a thread of its own.
//!
//! The task hands batches over through a short queue; the thread encodes, compresses and writes them
//! into the store's own files. Dropped unfinished, the load is abandoned before it is made visible.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::{BulkLoad, WriteBatch};
use crate::StoreFailure;

/// Batches under way.
const QUEUE: usize = 4;

enum Step {
    Entries(WriteBatch),
    Finish,
}

/// The task's end of a load.
#[derive(Debug)]
pub(crate) struct BackgroundLoad {
    steps: Option<SyncSender<Step>>,
    /// The last key handed over: the order is checked here, for stores take it on trust.
    last: Vec<u8>,
    thread: Option<JoinHandle<Result<(), StoreFailure>>>,
}

/// The thread's end of a load.
pub(crate) struct Batches {
    steps: Receiver<Step>,
}

impl Batches {
    /// The next batch; `None` when the load is to be finished.
    ///
    /// # Errors
    ///
    /// If the load has been abandoned.
    pub(crate) fn next(&self) -> Result<Option<WriteBatch>, StoreFailure> {
        match self.steps.recv() {
            Ok(Step::Entries(batch)) => Ok(Some(batch)),
            Ok(Step::Finish) => Ok(None),
            Err(_) => Err(StoreFailure::new("bulk load", "it was abandoned")),
        }
    }
}

impl BackgroundLoad {
    /// Starts a thread that takes all batches, then makes them visible.
    pub(crate) fn spawn(
        name: &str,
        load: impl FnOnce(Batches) -> Result<(), StoreFailure> + Send + 'static,
    ) -> Result<Self, StoreFailure> {
        let (sender, steps) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || load(Batches { steps }))
            .map_err(|error| StoreFailure::new("bulk load", error))?;
        Ok(Self { steps: Some(sender), last: Vec::new(), thread: Some(thread) })
    }

    fn check_order(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        let mut last = self.last.as_slice();
        for (key, _) in batch.iter() {
            if key <= last {
                return Err(StoreFailure::new("bulk load", "keys do not ascend"));
            }
            last = key;
        }
        self.last = last.to_vec();
        Ok(())
    }

    /// Waits for the thread, which has been told to finish or was abandoned.
    fn join(&mut self) -> Result<(), StoreFailure> {
        self.steps = None;
        match self.thread.take().map(JoinHandle::join) {
            None => Err(StoreFailure::new("bulk load", "it has failed before")),
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(StoreFailure::new("bulk load", "its thread has died")),
        }
    }

    fn send(&mut self, step: Step) -> Result<(), StoreFailure> {
        let sent = self.steps.as_ref().is_some_and(|steps| steps.send(step).is_ok());
        // A thread that is gone says why.
        if sent { Ok(()) } else { self.join() }
    }
}

impl BulkLoad for BackgroundLoad {
    fn write(&mut self, batch: WriteBatch) -> Result<(), StoreFailure> {
        self.check_order(&batch)?;
        self.send(Step::Entries(batch))
    }

    fn finish(mut self: Box<Self>) -> Result<(), StoreFailure> {
        self.send(Step::Finish)?;
        self.join()
    }
}

impl Drop for BackgroundLoad {
    fn drop(&mut self) {
        // The outcome of an abandoned load is that there is none.
        let _ = self.join();
    }
}
