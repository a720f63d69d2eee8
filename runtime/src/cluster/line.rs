//! [`Line`]: the way on which the tasks of one worker speak to JobMasters.
//!
//! In this process it is a channel that always works. Tests cut it: what is said then is held, and
//! comes late when it is mended, as over a network that was away for a while.

use std::sync::Arc;

use crossbeam_channel::Sender;
use parking_lot::Mutex;

use crate::events::{TaskEvent, TaskId};

/// An event on its way.
type Held = (Sender<(TaskId, TaskEvent)>, TaskId, TaskEvent);

/// What all tasks of a worker speak over. Clones are one line.
#[derive(Clone, Debug, Default)]
pub struct Line(Arc<Mutex<Option<Vec<Held>>>>);

impl Line {
    /// Sends an event, or holds it; false if nobody hears it any more. In the order of the calls.
    pub(crate) fn send(
        &self,
        to: &Sender<(TaskId, TaskEvent)>,
        task: TaskId,
        event: TaskEvent,
    ) -> bool {
        let mut held = self.0.lock();
        match &mut *held {
            Some(held) => {
                held.push((to.clone(), task, event));
                true
            }
            None => to.send((task, event)).is_ok(),
        }
    }

    /// From here on nothing comes through.
    pub(crate) fn cut(&self) {
        self.0.lock().get_or_insert_default();
    }

    /// What was held comes through, and all that follows.
    pub(crate) fn mend(&self) {
        let mut held = self.0.lock();
        for (to, task, event) in held.take().unwrap_or_default() {
            if to.send((task, event)).is_err() {
                tracing::debug!(?task, "an event that came after its job");
            }
        }
    }
}
