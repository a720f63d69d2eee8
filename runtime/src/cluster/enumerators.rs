//! The enumerators of a job's sources, run on the JobMaster's thread.

use std::collections::{BTreeMap, BTreeSet};

use element::{SubtaskIndex, VertexId};

use crate::error::TaskError;
use crate::events::TaskMail;
use crate::factory::ExecutionPlan;
use crate::source::{AnyEnumerator, EnumeratorOrders};

/// One source's enumerator, and the flag it has set last.
struct Entry {
    name: String,
    uid: String,
    enumerator: Box<dyn AnyEnumerator>,
    is_backlog: bool,
}

/// The enumerators by vertex.
#[derive(Default)]
pub(super) struct Enumerators {
    entries: BTreeMap<VertexId, Entry>,
    /// Sources whose readers begin with all of their splits.
    handed_out: BTreeSet<VertexId>,
}

impl Enumerators {
    /// Makes and starts the enumerator of a vertex that begins with a source; nothing for others.
    pub(super) fn open(
        &mut self,
        plan: &ExecutionPlan,
        id: VertexId,
        restored: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Option<EnumeratorOrders>, TaskError> {
        let Some(vertex) = plan.vertex(id) else { return Ok(None) };
        let Some(head) = vertex.chain.first() else { return Ok(None) };
        let Some(source) = head.payload.factory.source() else { return Ok(None) };
        let failed = |source| TaskError::Source { source_name: head.name.clone(), source };
        let stored = restored(&head.uid);
        let orders = crate::user::guarded(&head.name, || {
            let mut enumerator =
                source.enumerator(vertex.parallelism, stored.as_deref()).map_err(failed)?;
            let orders = enumerator.start().map_err(failed)?;
            Ok((enumerator, orders))
        });
        let (enumerator, orders) = orders?;
        let is_backlog = orders.is_backlog.unwrap_or(false);
        let (name, uid) = (head.name.clone(), head.uid.clone());
        self.entries.insert(id, Entry { name, uid, enumerator, is_backlog });
        Ok(Some(orders))
    }

    /// The readers of this source have all of their splits: whoever asks is told so.
    pub(super) fn hand_out(&mut self, id: VertexId) {
        self.handed_out.insert(id);
    }

    /// The flag of a source as it stands.
    pub(super) fn is_backlog(&self, id: VertexId) -> bool {
        self.entries.get(&id).is_some_and(|entry| entry.is_backlog)
    }

    /// Whether a vertex is a source.
    pub(super) fn is_source(&self, id: VertexId) -> bool {
        self.entries.contains_key(&id) || self.handed_out.contains(&id)
    }

    /// The vertices that are sources.
    pub(super) fn sources(&self) -> impl Iterator<Item = VertexId> {
        self.entries.keys().copied()
    }

    fn ask(
        &mut self,
        id: VertexId,
        call: impl FnOnce(&mut dyn AnyEnumerator) -> anyhow::Result<EnumeratorOrders>,
    ) -> Result<EnumeratorOrders, TaskError> {
        let Some(entry) = self.entries.get_mut(&id) else { return Ok(EnumeratorOrders::default()) };
        let Entry { name, enumerator, .. } = entry;
        let orders = crate::user::guarded(name, || {
            call(&mut **enumerator)
                .map_err(|source| TaskError::Source { source_name: name.clone(), source })
        })?;
        if let Some(is_backlog) = orders.is_backlog {
            entry.is_backlog = is_backlog;
        }
        Ok(orders)
    }

    /// A reader wants a split.
    pub(super) fn split_requested(
        &mut self,
        id: VertexId,
        reader: SubtaskIndex,
    ) -> Result<EnumeratorOrders, TaskError> {
        if self.handed_out.contains(&id) {
            let mail = vec![(Some(reader), TaskMail::NoMoreSplits)];
            return Ok(EnumeratorOrders { mail, is_backlog: None });
        }
        self.ask(id, |enumerator| enumerator.split_requested(reader))
    }

    /// A reader says something.
    pub(super) fn reader_event(
        &mut self,
        id: VertexId,
        reader: SubtaskIndex,
        event: &[u8],
    ) -> Result<EnumeratorOrders, TaskError> {
        self.ask(id, |enumerator| enumerator.reader_event(reader, event))
    }

    /// What all of them have not handed out, by uid.
    pub(super) fn snapshot(&mut self) -> Result<Vec<(String, Vec<u8>)>, TaskError> {
        self.entries
            .values_mut()
            .map(|entry| {
                let stored = entry.enumerator.snapshot().map_err(|source| TaskError::Source {
                    source_name: entry.name.clone(),
                    source,
                })?;
                Ok((entry.uid.clone(), stored))
            })
            .collect()
    }

    /// Forgets the enumerator of a vertex.
    pub(super) fn close(&mut self, id: VertexId) {
        self.entries.remove(&id);
    }
}
