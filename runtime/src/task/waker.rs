//! Wakes the thread that steps a task.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use shuffle::Wake;

/// Made before its task's thread is; that thread [adopts](TaskWaker::adopt) it.
#[derive(Debug, Default)]
pub struct TaskWaker {
    thread: OnceLock<Thread>,
    notified: AtomicBool,
}

impl TaskWaker {
    /// From now on wakes the calling thread.
    pub fn adopt(&self) {
        self.thread.get_or_init(thread::current);
    }

    /// Waits until somebody has called [`Wake::wake`] since the last return, or `limit` is over.
    pub fn park(&self, limit: Option<Duration>) {
        if self.notified.swap(false, Ordering::Acquire) {
            return;
        }
        match limit {
            Some(limit) => thread::park_timeout(limit),
            None => thread::park(),
        }
        self.notified.store(false, Ordering::Release);
    }
}

impl Wake for TaskWaker {
    fn wake(&self) {
        if !self.notified.swap(true, Ordering::AcqRel)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}
