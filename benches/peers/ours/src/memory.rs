//! [`Watch`]: the process's resident memory over time, read by a thread of its own.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two readings.
const STEP: Duration = Duration::from_millis(20);

/// Readings under way.
#[derive(Debug)]
pub(crate) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Vec<(f64, f64)>>,
}

impl Watch {
    /// Begins to read.
    pub(crate) fn start() -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let start = Instant::now();
            let mut readings = Vec::new();
            while stopped.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                let megabytes = slackwater_benches::resident_memory() as f64 / 1e6;
                readings.push((start.elapsed().as_secs_f64(), megabytes));
            }
            readings
        });
        Self { stop, thread }
    }

    /// Seconds since the start, and megabytes, in order; empty if the thread was lost.
    pub(crate) fn stop(self) -> Vec<(f64, f64)> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}
