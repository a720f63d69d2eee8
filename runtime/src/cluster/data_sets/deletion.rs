//! Requests to workers, by id: asked for, waited for, and deletion as a request (P9).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use element::{DataSetId, TaskManagerId};
use shuffle::PartitionIdentity;

use super::super::data_set::Parts;
use super::super::task_manager::TaskManagerMessage;
use super::{DataSets, ReleaseFailure, State};

/// Names a request, to be asked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "request {}", self.0)
    }
}

/// How a deletion stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Some worker has not answered.
    Pending,
    /// Everything is gone.
    Done,
    /// Every worker has answered, and some partitions may still be there.
    Failed(Vec<ReleaseFailure>),
}

/// Answered requests that are remembered.
const REMEMBERED: usize = 1_024;

#[derive(Default)]
pub(super) struct Requests {
    next: u64,
    open: BTreeMap<RequestId, Open>,
    answered: VecDeque<(RequestId, Vec<ReleaseFailure>)>,
}

#[derive(Default)]
struct Open {
    waiting: BTreeSet<TaskManagerId>,
    failures: Vec<ReleaseFailure>,
}

impl Requests {
    pub(super) fn open(&mut self) -> RequestId {
        self.next += 1;
        let id = RequestId(self.next);
        self.open.insert(id, Open::default());
        id
    }

    pub(super) fn wait_for(&mut self, id: RequestId, worker: TaskManagerId) {
        if let Some(open) = self.open.get_mut(&id) {
            open.waiting.insert(worker);
        }
    }

    pub(super) fn failed(
        &mut self,
        id: RequestId,
        failures: impl IntoIterator<Item = ReleaseFailure>,
    ) {
        if let Some(open) = self.open.get_mut(&id) {
            open.failures.extend(failures);
        }
    }

    pub(super) fn answered(&mut self, id: RequestId, worker: TaskManagerId) {
        if let Some(open) = self.open.get_mut(&id) {
            open.waiting.remove(&worker);
        }
        self.close_if_done(id);
    }

    /// A request that waits for nobody is answered.
    pub(super) fn close_if_done(&mut self, id: RequestId) {
        if self.open.get(&id).is_some_and(|open| open.waiting.is_empty())
            && let Some(open) = self.open.remove(&id)
        {
            self.answered.push_back((id, open.failures));
            if self.answered.len() > REMEMBERED {
                self.answered.pop_front();
            }
        }
    }

    /// A worker will not answer any more.
    pub(super) fn forget_worker(&mut self, worker: TaskManagerId) {
        for id in self.open.keys().copied().collect::<Vec<_>>() {
            self.answered(id, worker);
        }
    }

    pub(super) fn is_open(&self, id: RequestId) -> bool {
        self.open.contains_key(&id)
    }

    pub(super) fn none_open(&self) -> bool {
        self.open.is_empty()
    }

    fn state(&self, id: RequestId) -> Option<Deletion> {
        if self.is_open(id) {
            return Some(Deletion::Pending);
        }
        let (_, failures) = self.answered.iter().find(|(answered, _)| *answered == id)?;
        Some(match failures.as_slice() {
            [] => Deletion::Done,
            failures => Deletion::Failed(failures.to_vec()),
        })
    }
}

impl State {
    /// Asks the holders of parts to drop them. Parts whose worker is gone and that outlive it are
    /// dropped here.
    pub(super) fn release(&mut self, parts: Parts) -> RequestId {
        let request = self.requests.open();
        let mut by_worker: BTreeMap<TaskManagerId, Vec<PartitionIdentity>> = BTreeMap::new();
        for part in parts.into_values() {
            let identity = part.descriptor.identity;
            if self.workers.contains_key(&part.worker) {
                by_worker.entry(part.worker).or_default().push(identity);
            } else if let Some(service) = self.services.get(&part.worker).filter(|_| part.external)
                && let Err(error) = service.release(&identity)
            {
                self.requests.failed(request, [ReleaseFailure::new(identity, &error)]);
            }
        }
        for (id, partitions) in by_worker {
            let Some(worker) = self.workers.get(&id) else { continue };
            let message = TaskManagerMessage::ReleaseDataSets { request, partitions };
            if worker.handle.sender.send(message).is_ok() {
                self.requests.wait_for(request, id);
            }
        }
        self.requests.close_if_done(request);
        request
    }
}

impl DataSets {
    /// Gives a data set up and asks its holders to drop it, whole. Harmless if it is not there or was
    /// deleted before. Jobs that make it now will not see it kept.
    pub fn delete(&self, data_set: DataSetId) -> RequestId {
        let mut state = self.state.lock();
        let parts = match state.sets.get_mut(&data_set) {
            Some(entry) => {
                entry.lost = None;
                entry.life.give_up()
            }
            None => Parts::new(),
        };
        state.forget_on_shelf(data_set);
        let request = state.release(parts);
        drop(state);
        self.changed.notify_all();
        request
    }

    /// How a request stands; `None` if there was no such one, or long ago.
    #[must_use]
    pub fn deletion(&self, request: RequestId) -> Option<Deletion> {
        self.state.lock().requests.state(request)
    }

    /// Whether every worker has answered a request, or is gone.
    #[must_use]
    pub fn is_answered(&self, request: RequestId) -> bool {
        !self.state.lock().requests.is_open(request)
    }

    /// Waits until every worker has answered a request, or is gone.
    pub fn wait(&self, request: RequestId) -> Deletion {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.requests.is_open(request));
        state.requests.state(request).unwrap_or(Deletion::Done)
    }

    /// Waits until no worker owes an answer.
    pub fn quiesce(&self) {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| !state.requests.none_open());
    }

    /// Deletes every data set but those with a name, over all errors (tC16); answers what could not be
    /// dropped, by stream name.
    pub fn delete_all(&self) -> Vec<(String, ReleaseFailure)> {
        let state = self.state.lock();
        let ids = state.sets.iter().filter(|(id, _)| !id.is_named());
        let ids: Vec<(DataSetId, String)> =
            ids.map(|(id, entry)| (*id, entry.name.clone())).collect();
        drop(state);
        let requests: Vec<_> = ids.into_iter().map(|(id, name)| (name, self.delete(id))).collect();
        let mut failed = Vec::new();
        for (name, request) in requests {
            if let Deletion::Failed(failures) = self.wait(request) {
                failed.extend(failures.into_iter().map(|failure| (name.clone(), failure)));
            }
        }
        failed
    }
}
