//! [`TimerService`]: the timers of one operator subtask, in event and processing time.
//!
//! ```text
//!               register                      pop_due_of_key, at the end of the key
//!   function ------------> fresh timers of the current key ------------------------> fired
//!                (sorted)        |  next key
//!                                v
//!   function ------------> queue by time, and by key --------> pop_due, by watermark or clock
//!              (streaming)
//! ```
//!
//! A timer is unique per kind, key, namespace and time. While input is sorted, timers of the current
//! key lie in a small list of their own, so that one that is registered and fires within its key
//! never enters the queues, and the timers of other keys cost nothing.
//!
//! Left out on purpose: calling anybody. The runtime pops what is due and calls the function.

mod entries;
mod queue;

use element::{KeyHash, Timestamp};

use crate::entry_key::EntryKey;
use queue::{At, TimerQueue};

/// By which time a timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerKind {
    /// The watermark.
    EventTime,
    /// The clock.
    ProcessingTime,
}

/// A timer that is due, taken out of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// By which time it fires.
    pub kind: TimerKind,
    /// When.
    pub time: Timestamp,
    /// The hash of its key.
    pub hash: KeyHash,
    /// The canonical bytes of its key.
    pub key: Box<[u8]>,
    /// Its namespace; empty outside of windows.
    pub namespace: Box<[u8]>,
}

/// The timers of one operator subtask.
#[derive(Debug, Default)]
pub struct TimerService {
    event: TimerQueue,
    processing: TimerQueue,
    fresh: Fresh,
    sorted: bool,
}

/// Timers that the current key of sorted input has registered; none of them is in a queue.
#[derive(Debug, Default)]
struct Fresh {
    key: Option<(u64, EntryKey)>,
    /// In order; few.
    timers: Vec<(TimerKind, At)>,
}

impl Fresh {
    fn is_of(&self, hash: KeyHash, key: &[u8]) -> bool {
        self.key.as_ref().is_some_and(|(at, held)| *at == hash.0 && held.is_plain(key))
    }

    fn first(&self, kind: TimerKind) -> Option<usize> {
        self.timers.iter().position(|(at, _)| *at == kind)
    }
}

impl TimerService {
    /// A service without timers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From here on keys come in order, each of them once.
    pub fn begin_sorted_input(&mut self) {
        self.sorted = true;
    }

    /// Keys come in any order again.
    pub fn end_sorted_input(&mut self) {
        self.settle();
        self.sorted = false;
    }

    /// Registers a timer; false if it is there already. Logarithmic in the timers of its kind, and
    /// cheaper for one that is there.
    pub fn register(
        &mut self,
        kind: TimerKind,
        time: Timestamp,
        hash: KeyHash,
        key: &[u8],
        namespace: &[u8],
    ) -> bool {
        let at = At { time, namespace: EntryKey::new(&[], namespace) };
        if !self.sorted {
            return self.queue_mut(kind).insert(hash.0, key, at);
        }
        if !self.fresh.is_of(hash, key) {
            self.settle();
            self.fresh.key = Some((hash.0, EntryKey::plain(key)));
        }
        if self.queue(kind).contains(hash.0, key, &at) {
            return false;
        }
        let timer = (kind, at);
        match self.fresh.timers.binary_search(&timer) {
            Ok(_) => false,
            Err(place) => {
                self.fresh.timers.insert(place, timer);
                true
            }
        }
    }

    /// Deletes a timer; false if it is not there. Logarithmic.
    pub fn delete(
        &mut self,
        kind: TimerKind,
        time: Timestamp,
        hash: KeyHash,
        key: &[u8],
        namespace: &[u8],
    ) -> bool {
        let at = At { time, namespace: EntryKey::new(&[], namespace) };
        if self.fresh.is_of(hash, key)
            && let Ok(place) = self.fresh.timers.binary_search(&(kind, at.clone()))
        {
            self.fresh.timers.remove(place);
            return true;
        }
        self.queue_mut(kind).remove(hash.0, key, &at)
    }

    /// Takes the earliest timer that is due at `upto`; of those of one time the least by hash, key and
    /// namespace.
    pub fn pop_due(&mut self, kind: TimerKind, upto: Timestamp) -> Option<Timer> {
        self.settle();
        let (hash, key, at) = self.queue_mut(kind).pop_due(upto)?;
        Some(timer(kind, hash, key.key(), &at))
    }

    /// Takes the earliest timer of one key that is due at `upto`. Timers of other keys cost nothing.
    pub fn pop_due_of_key(
        &mut self,
        kind: TimerKind,
        upto: Timestamp,
        hash: KeyHash,
        key: &[u8],
    ) -> Option<Timer> {
        let fresh = if self.fresh.is_of(hash, key) { self.fresh.first(kind) } else { None };
        let fresh_at = fresh.and_then(|place| self.fresh.timers.get(place)).map(|(_, at)| at);
        let queued = self.queue(kind).first_of_key(hash.0, key);
        let from_queue = match (fresh_at, queued) {
            (None, None) => return None,
            (Some(fresh), Some(queued)) => queued < fresh,
            (fresh, _) => fresh.is_none(),
        };
        let at = if from_queue { queued } else { fresh_at }?.clone();
        if at.time > upto {
            return None;
        }
        if from_queue {
            self.queue_mut(kind).remove(hash.0, key, &at);
        } else if let Some(place) = fresh {
            self.fresh.timers.remove(place);
        }
        Some(timer(kind, hash.0, key, &at))
    }

    /// When the next timer of a kind is due.
    #[must_use]
    pub fn next_time(&self, kind: TimerKind) -> Option<Timestamp> {
        let fresh = self.fresh.timers.iter().filter(|(at, _)| *at == kind);
        let fresh = fresh.map(|(_, at)| at.time).min();
        let queued = self.queue(kind).next_time();
        fresh.into_iter().chain(queued).min()
    }

    /// The number of timers of a kind.
    #[must_use]
    pub fn len(&self, kind: TimerKind) -> usize {
        let fresh = self.fresh.timers.iter().filter(|(at, _)| *at == kind).count();
        self.queue(kind).len() + fresh
    }

    /// Whether there is no timer of any kind.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fresh.timers.is_empty() && self.event.len() == 0 && self.processing.len() == 0
    }

    /// Moves fresh timers into the queues.
    fn settle(&mut self) {
        if let Some((hash, key)) = self.fresh.key.take() {
            for (kind, at) in std::mem::take(&mut self.fresh.timers) {
                self.queue_mut(kind).insert(hash, key.key(), at);
            }
        }
    }

    fn queue(&self, kind: TimerKind) -> &TimerQueue {
        match kind {
            TimerKind::EventTime => &self.event,
            TimerKind::ProcessingTime => &self.processing,
        }
    }

    fn queue_mut(&mut self, kind: TimerKind) -> &mut TimerQueue {
        match kind {
            TimerKind::EventTime => &mut self.event,
            TimerKind::ProcessingTime => &mut self.processing,
        }
    }
}

fn timer(kind: TimerKind, hash: u64, key: &[u8], at: &At) -> Timer {
    Timer {
        kind,
        time: at.time,
        hash: KeyHash(hash),
        key: key.into(),
        namespace: at.namespace.namespace().into(),
    }
}
