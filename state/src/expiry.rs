//! [`Expiry`]: which stored entries have expired, as a store asks while it compacts.
//!
//! The backend says which of its states have a time to live and how far the watermark is; a store
//! that rewrites entries anyway leaves out what has expired by then. Asked on the store's own threads.
//!
//! Left out on purpose: lists, whose elements expire each by its own time. They are cleaned up when
//! they are read.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use element::{Clock, SystemClock, Timestamp};
use parking_lot::RwLock;

use crate::handle::{StateDescriptor, StateKind};
use crate::store_key::{StateId, StoreKey};
use crate::{TtlClock, TtlConfig};

/// Which entries of a backend's store have expired.
pub struct Expiry {
    clock: RwLock<Arc<dyn Clock>>,
    watermark: AtomicI64,
    /// States whose entries carry a stamp; few.
    states: RwLock<Vec<(StateId, TtlConfig)>>,
    removed: AtomicU64,
}

impl Default for Expiry {
    fn default() -> Self {
        Self {
            clock: RwLock::new(Arc::new(SystemClock::default())),
            watermark: AtomicI64::new(Timestamp::MIN.0),
            states: RwLock::default(),
            removed: AtomicU64::new(0),
        }
    }
}

impl Expiry {
    pub(crate) fn set_clock(&self, clock: Arc<dyn Clock>) {
        *self.clock.write() = clock;
    }

    pub(crate) fn set_watermark(&self, watermark: Timestamp) {
        self.watermark.store(watermark.0, Ordering::Relaxed);
    }

    /// A state is declared; one without a time to live is forgotten here.
    pub(crate) fn declare(&self, id: StateId, descriptor: &StateDescriptor) {
        if let Some(ttl) = stamped(descriptor) {
            self.states.write().push((id, ttl));
        }
    }

    /// Whether an entry of the store may be left out. An entry that is none of ours never may.
    #[must_use]
    pub fn has_expired(&self, key: &[u8], value: &[u8]) -> bool {
        let states = self.states.read();
        if states.is_empty() {
            return false;
        }
        let Some(key) = StoreKey::parse(key) else { return false };
        let ttl = states.iter().find(|(id, _)| *id == key.state).map(|(_, ttl)| *ttl);
        ttl.is_some_and(|ttl| is_expired(&ttl, value, self.now(ttl.clock)))
    }

    fn now(&self, clock: TtlClock) -> Timestamp {
        match clock {
            TtlClock::ProcessingTime => self.clock.read().now(),
            TtlClock::EventTime => Timestamp(self.watermark.load(Ordering::Relaxed)),
        }
    }

    /// An entry was left out.
    pub fn count_removed(&self) {
        self.removed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }
}

/// The time to live of a state of whose entries each stands behind one stamp.
pub(crate) fn stamped(descriptor: &StateDescriptor) -> Option<TtlConfig> {
    descriptor.ttl.filter(|_| descriptor.kind != StateKind::List)
}

/// Whether a stored value of such a state has expired at `now`.
pub(crate) fn is_expired(ttl: &TtlConfig, value: &[u8], now: Timestamp) -> bool {
    let stamp = value.first_chunk::<8>().map(|stamp| Timestamp(i64::from_le_bytes(*stamp)));
    stamp.is_some_and(|stamp| ttl.is_expired(stamp, now))
}

impl fmt::Debug for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expiry").field("states", &self.states.read().len()).finish_non_exhaustive()
    }
}
