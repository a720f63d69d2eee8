//! Wakes the thread that steps a task.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use shuffle::Wake;

/// Times that a task gives up its core before it sleeps.
const YIELDS: usize = 4;

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

    /// Whether somebody has called [`Wake::wake`] since the last return of [`park`](Self::park).
    #[must_use]
    pub fn is_notified(&self) -> bool {
        self.notified.load(Ordering::Acquire)
    }

    /// Waits until somebody has called [`Wake::wake`] since the last return, or `limit` is over.
    pub fn park(&self, limit: Option<Duration>) {
        if limit == Some(Duration::ZERO) {
            self.notified.swap(false, Ordering::AcqRel);
            return;
        }
        // Whoever wakes us is often about to: giving it the core a few times is cheaper than sleeping.
        for _ in 0..YIELDS {
            if self.notified.swap(false, Ordering::Acquire) {
                return;
            }
            thread::yield_now();
        }
        match limit {
            Some(limit) => thread::park_timeout(limit),
            None => thread::park(),
        }
        // A swap, not a store: what a waker did before it found the flag set must be seen from here on,
        // and a plain store could pass the reads that follow it.
        self.notified.swap(false, Ordering::AcqRel);
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
