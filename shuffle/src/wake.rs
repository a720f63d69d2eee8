//! [`Wake`]: how one task tells another that it may go on.
//!
//! Channels call it; tasks and the simulator implement it. A wake may come when it is not needed and
//! may come twice; it never fails to come when a task that was told [`crate::Flow::HeldUp`] or
//! "empty" could go on.
//!
//! Left out on purpose: parking. A channel never blocks; who waits, and how, is the task's business.

use std::thread::Thread;

/// Makes a waiting task run again.
///
/// Implemented by tasks and by the simulator; called by channels on the thread of the task at the
/// other end, never under a lock.
pub trait Wake: Send + Sync {
    /// Lets the task run again soon; does not block. A task that runs already must look at its
    /// channels once more before it waits.
    fn wake(&self);
}

impl Wake for Thread {
    fn wake(&self) {
        self.unpark();
    }
}

/// A [`Wake`] for tasks that never wait: tests, and loops that poll.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWake;

impl Wake for NoWake {
    fn wake(&self) {}
}
