//! Timers as entries of a snapshot: the time stands where a map's key would, the value is empty.

use element::{KeyHash, Timestamp, decode_key_exact, key_bytes};

use super::{At, TimerKind, TimerService};
use crate::StoreFailure;
use crate::snapshot::PendingTimers;
use crate::store::WriteBatch;
use crate::store_key::{StateId, StoreKey};

impl TimerKind {
    const ALL: [Self; 2] = [Self::EventTime, Self::ProcessingTime];

    pub(super) fn state(self) -> StateId {
        match self {
            Self::EventTime => StateId::EVENT_TIMERS,
            Self::ProcessingTime => StateId::PROCESSING_TIMERS,
        }
    }

    /// The kind whose timers have this id, if any.
    pub(crate) fn of_state(state: StateId) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.state() == state)
    }
}

impl TimerService {
    /// All timers, to be written while others come and go.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`] of the store of the later ones.
    pub(crate) fn pending(&self) -> Result<PendingTimers, StoreFailure> {
        Ok(PendingTimers { near: self.entries(), later: self.later.view()? })
    }

    /// The timers in memory by store key.
    fn entries(&self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        let mut put = |kind: TimerKind, hash: u64, key: &[u8], at: &At| {
            let map_key = key_bytes(&at.time);
            let (hash, namespace) = (KeyHash(hash), at.namespace.namespace());
            let at = StoreKey { hash, key, state: kind.state(), namespace, map_key: &map_key };
            batch.put_with(|out| at.push(out), |_| ());
        };
        for kind in TimerKind::ALL {
            self.queue(kind).for_each(|hash, key, at| put(kind, hash, key, at));
        }
        if let Some((hash, key)) = &self.fresh.key {
            for (kind, at) in &self.fresh.timers {
                put(*kind, *hash, key.key(), at);
            }
        }
        batch.sort_from(0);
        batch
    }

    /// Takes a timer's entry in; false if it is none.
    pub(crate) fn restore(&mut self, entry: &StoreKey<'_>) -> bool {
        let Some(kind) = TimerKind::of_state(entry.state) else { return false };
        let Ok(time) = decode_key_exact::<Timestamp>(entry.map_key) else { return false };
        self.register(kind, time, entry.hash, entry.key, entry.namespace);
        true
    }
}
