//! [`JobProgress`]: what a job has done so far, for displays.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use element::VertexId;
use parking_lot::Mutex;

use crate::metrics::{OperatorCounts, OperatorMetrics};

/// Counters of a running job; cheap to read at any time.
#[derive(Debug, Default)]
pub struct JobProgress {
    operators: Mutex<BTreeMap<(VertexId, usize), Operator>>,
    is_backlog: AtomicBool,
    checkpoints: AtomicU64,
    attempts: AtomicU64,
    tasks: AtomicU64,
    restarts: AtomicU64,
}

#[derive(Debug)]
struct Operator {
    name: String,
    uid: String,
    subtasks: Vec<Arc<OperatorMetrics>>,
}

/// Counters of one operator, by subtask.
#[derive(Clone, Debug)]
pub struct OperatorProgress {
    /// The operator's name.
    pub name: String,
    /// The operator's uid.
    pub uid: String,
    /// Counters by subtask, those of the last attempt.
    pub subtasks: Vec<OperatorCounts>,
}

impl JobProgress {
    /// Fresh counters for a subtask's operators, replacing those of an earlier attempt.
    pub(super) fn register(
        &self,
        vertex: VertexId,
        chain: impl Iterator<Item = (String, String)>,
        subtask: usize,
    ) -> Vec<Arc<OperatorMetrics>> {
        let mut operators = self.operators.lock();
        chain
            .enumerate()
            .map(|(position, (name, uid))| {
                let metrics = Arc::new(OperatorMetrics::default());
                let entry = operators.entry((vertex, position)).or_insert_with(|| Operator {
                    name,
                    uid,
                    subtasks: Vec::new(),
                });
                if entry.subtasks.len() <= subtask {
                    entry.subtasks.resize_with(subtask + 1, Arc::default);
                }
                if let Some(slot) = entry.subtasks.get_mut(subtask) {
                    *slot = Arc::clone(&metrics);
                }
                metrics
            })
            .collect()
    }

    pub(super) fn set_backlog(&self, is_backlog: bool) {
        self.is_backlog.store(is_backlog, Ordering::Relaxed);
    }

    pub(super) fn checkpoint_completed(&self) {
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
    }

    /// An attempt of a unit of so many tasks.
    pub(super) fn attempt_begun(&self, tasks: usize) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.tasks.fetch_add(tasks as u64, Ordering::Relaxed);
    }

    /// A failure is taken in: its tasks begin again when they are due.
    pub(super) fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Release);
    }

    /// The job runs by another plan: what was counted so far is forgotten.
    pub(crate) fn begin_again(&self) {
        self.operators.lock().clear();
        self.set_backlog(false);
    }

    /// Whether any source is in backlog.
    #[must_use]
    pub fn is_backlog(&self) -> bool {
        self.is_backlog.load(Ordering::Relaxed)
    }

    /// Checkpoints completed.
    #[must_use]
    pub fn checkpoints(&self) -> u64 {
        self.checkpoints.load(Ordering::Relaxed)
    }

    /// Attempts begun, all regions together.
    #[must_use]
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Tasks started, of all attempts.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        self.tasks.load(Ordering::Relaxed)
    }

    /// Failures after which the restart strategy has let tasks begin again.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Acquire)
    }

    /// Counters of all operators, by vertex and place in the chain.
    #[must_use]
    pub fn operators(&self) -> Vec<OperatorProgress> {
        self.operators
            .lock()
            .values()
            .map(|operator| OperatorProgress {
                name: operator.name.clone(),
                uid: operator.uid.clone(),
                subtasks: operator.subtasks.iter().map(|metrics| metrics.read()).collect(),
            })
            .collect()
    }

    /// Records that the sources have read.
    #[must_use]
    pub fn records_read(&self) -> u64 {
        let operators = self.operators.lock();
        operators
            .iter()
            .filter(|((_, position), _)| *position == 0)
            .flat_map(|(_, operator)| &operator.subtasks)
            .map(|metrics| metrics.source_records())
            .sum()
    }
}
