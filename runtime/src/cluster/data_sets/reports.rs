//! What workers say they keep, and what follows from it (P6, P7).

use element::TaskManagerId;
use shuffle::{PartitionIdentity, ShuffleError};

use super::super::data_set::{ClusterDataSet, DataSetPart, Parts, Reported};
use super::super::task_manager::TaskManagerHandle;
use super::{DataSets, RequestId, State, Worker};

/// A partition that could not be dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseFailure {
    /// Which one.
    pub partition: PartitionIdentity,
    /// What its storage said, with causes.
    pub reason: String,
}

impl ReleaseFailure {
    pub(crate) fn new(partition: PartitionIdentity, error: &ShuffleError) -> Self {
        Self { partition, reason: crate::report::chain_of(error) }
    }
}

impl std::fmt::Display for ReleaseFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is not released: {}", self.partition, self.reason)
    }
}

/// All that a worker keeps, said at its start, with each answer, and for each heartbeat.
#[derive(Clone, Debug)]
pub struct WorkerReport {
    /// Who speaks.
    pub worker: TaskManagerId,
    /// One more than that of its report before.
    pub sequence: u64,
    /// The number of the last heartbeat that it was asked for; 0 before the first.
    pub heartbeat: u64,
    /// The request that it answers.
    pub answers: Option<RequestId>,
    /// Every part of a data set that it was told to keep.
    pub parts: Vec<DataSetPart>,
    /// What it could not drop for that request.
    pub failures: Vec<ReleaseFailure>,
    /// Tasks that it runs.
    pub tasks: usize,
}

impl DataSets {
    /// A worker is there. Done before it can report.
    pub fn register(&self, handle: &TaskManagerHandle) {
        let mut state = self.state.lock();
        state.services.insert(handle.id, std::sync::Arc::clone(&handle.service));
        let worker = Worker { handle: handle.clone(), sequence: 0, heartbeat: 0, tasks: 0 };
        state.workers.insert(handle.id, worker);
    }

    /// A worker has said what it keeps.
    pub fn reported(&self, report: WorkerReport) {
        let mut state = self.state.lock();
        let Some(worker) = state.workers.get_mut(&report.worker) else {
            tracing::debug!(worker = %report.worker, "a report of a worker that is gone");
            return;
        };
        if report.sequence <= worker.sequence {
            tracing::debug!(worker = %report.worker, "a report that was overtaken");
            return;
        }
        worker.sequence = report.sequence;
        worker.heartbeat = report.heartbeat;
        worker.tasks = report.tasks;
        state.missing_parts(&report);
        let mut strays = Parts::new();
        for part in report.parts {
            if let Some(stray) = state.take_up(part) {
                let place = element::SubtaskIndex(u32::try_from(strays.len()).unwrap_or(u32::MAX));
                strays.insert(place, stray);
            }
        }
        // Not for an answer: what could not be dropped would be asked for again at once, for ever.
        if !strays.is_empty() && report.answers.is_none() {
            state.release(strays);
        }
        if let Some(request) = report.answers {
            state.requests.failed(request, report.failures);
            state.requests.answered(request, report.worker);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The last heartbeat that a worker has answered; `None` if it is not known.
    #[must_use]
    pub fn heartbeat(&self, worker: TaskManagerId) -> Option<u64> {
        self.state.lock().workers.get(&worker).map(|worker| worker.heartbeat)
    }

    /// Workers that run no task and hold no part of a data set: those could be given back (P5). What
    /// rests apart from its worker does not hold the worker (tC11).
    #[must_use]
    pub fn idle_workers(&self) -> Vec<TaskManagerId> {
        let state = self.state.lock();
        let holds = |worker: TaskManagerId| {
            let sets = state.sets.values().filter_map(|entry| entry.life.parts());
            sets.flat_map(|(_, parts)| parts.values())
                .any(|part| part.worker == worker && !part.external)
        };
        let workers = state.workers.iter().filter(|(_, worker)| worker.tasks == 0);
        workers.map(|(id, _)| *id).filter(|id| !holds(*id)).collect()
    }
}

impl State {
    /// Parts of complete data sets that their worker does not name any more: lost, whole.
    fn missing_parts(&mut self, report: &WorkerReport) {
        let named = |part: &DataSetPart| report.parts.iter().any(|other| other == part);
        let is_lost = |part: &DataSetPart| part.worker == report.worker && !named(part);
        let lost: Vec<_> = self
            .sets
            .iter()
            .filter(|(_, entry)| !matches!(entry.life, ClusterDataSet::Promoting { .. }))
            .filter(|(_, entry)| {
                entry.life.parts().is_some_and(|(_, parts)| parts.values().any(is_lost))
            })
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            let reason = format!("worker {} has it no longer", report.worker);
            self.lose_parts(id, &reason, is_lost);
        }
    }

    /// A part finds its data set; one that nobody wants is handed back.
    fn take_up(&mut self, part: DataSetPart) -> Option<DataSetPart> {
        let Some((data_set, generation, _)) = part.place() else { return Some(part) };
        let is_known = self.sets.contains_key(&data_set);
        let entry = self.sets.entry(data_set).or_default();
        let copy = part.clone();
        let taken = if is_known && entry.last >= generation {
            entry.life.reported(part)
        } else {
            entry.last = generation;
            entry.life.adopt(part)
        };
        match taken {
            Reported::Stray => Some(copy),
            Reported::Completes => {
                entry.lost = None;
                None
            }
            Reported::Taken => None,
        }
    }
}
