//! [`TimerService`]: the timers of one operator subtask, in event and processing time.
//!
//! ```text
//!               register                      pop_due_of_key, at the end of the key
//!   function ------------> fresh timers of the current key ------------------------> fired
//!                (sorted)        |  next key
//!                                v
//!   function ------------> queue by time, and by key --------> pop_due, by watermark or clock
//!              (streaming)       |           ^
//!                    due last    v           | all others are gone
//!                          a store, by key and by time
//! ```
//!
//! A timer is unique per kind, key, namespace and time. While input is sorted, timers of the current
//! key lie in a small list of their own, so that one that is registered and fires within its key
//! never enters the queues, and the timers of other keys cost nothing.
//!
//! In memory there are only so many of each kind as the service is made for. Those due last lie in a
//! store ([`later`]), and come back when all before them are gone.
//!
//! Left out on purpose: calling anybody. The runtime pops what is due and calls the function.

mod entries;
mod later;
mod queue;

use std::collections::VecDeque;

use element::{KeyHash, Timestamp};

use crate::entry_key::EntryKey;
use crate::store::ByteStore;
use crate::{StateError, StoreFailure};
use later::LaterTimers;
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

/// The most timers that move between memory and store at once.
const MOVED: usize = 16 << 10;

/// The timers of one operator subtask.
#[derive(Debug, Default)]
pub struct TimerService {
    later: LaterTimers,
    event: TimerQueue,
    processing: TimerQueue,
    fresh: Fresh,
    sorted: bool,
}

/// Timers that the current key of sorted input has registered; none of them is in a queue.
#[derive(Debug, Default)]
struct Fresh {
    key: Option<(u64, EntryKey)>,
    /// In order: the first goes and the last comes without a move of those between.
    timers: VecDeque<(TimerKind, At)>,
}

impl Fresh {
    fn is_of(&self, hash: KeyHash, key: &[u8]) -> bool {
        self.key.as_ref().is_some_and(|(at, held)| *at == hash.0 && held.is_plain(key))
    }

    fn first(&self, kind: TimerKind) -> Option<usize> {
        let place = self.timers.partition_point(|(at, _)| *at < kind);
        self.timers.get(place).filter(|(at, _)| *at == kind).map(|_| place)
    }
}

impl TimerService {
    /// A service without timers, which keeps all of them in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A service without timers, which keeps at most `most` of each kind in memory, 1 at least, those
    /// of one time and key together. What is due later goes to the store that `open` opens, empty and
    /// for this alone, when the first timer goes there: two puts for each, two deletes when it comes
    /// back, one read whenever one is registered or deleted there.
    ///
    /// What goes wrong with the store is said by [`check`](Self::check); until that is asked, the timers
    /// there are as good as gone.
    #[must_use]
    pub fn with_later(
        most: usize,
        open: impl FnOnce() -> Result<Box<dyn ByteStore>, StoreFailure> + Send + 'static,
    ) -> Self {
        Self { later: LaterTimers::new(most, Box::new(open)), ..Self::default() }
    }

    /// Whether every call since this was asked last has done what it says.
    ///
    /// # Errors
    ///
    /// [`StateError::Store`] of the store of later timers: some of them are lost, and the operator with
    /// them.
    pub fn check(&mut self) -> Result<(), StateError> {
        self.later.take_failure().map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// The number of timers of a kind that are not in memory.
    #[must_use]
    pub fn later(&self, kind: TimerKind) -> usize {
        self.later.len(kind)
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
            return self.insert(kind, hash.0, key, at);
        }
        if !self.fresh.is_of(hash, key) {
            self.settle();
            self.fresh.key = Some((hash.0, EntryKey::plain(key)));
        }
        let known = if self.later.covers(kind, time, hash.0) {
            self.later.contains(kind, hash.0, key, &at)
        } else {
            self.queue(kind).contains(hash.0, key, &at)
        };
        if known {
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
        self.remove(kind, hash.0, key, &at)
    }

    /// Takes the earliest timer that is due at `upto`; of those of one time the least by hash, key and
    /// namespace.
    pub fn pop_due(&mut self, kind: TimerKind, upto: Timestamp) -> Option<Timer> {
        self.settle();
        let (hash, key, at) = self.queue_mut(kind).pop_due(upto)?;
        self.fetch(kind);
        Some(timer(kind, hash, key.key(), &at))
    }

    /// Takes the earliest timer of one key that is due at `upto`. Timers of other keys cost nothing, but
    /// for a range read of this key's where any of the later ones is due.
    pub fn pop_due_of_key(
        &mut self,
        kind: TimerKind,
        upto: Timestamp,
        hash: KeyHash,
        key: &[u8],
    ) -> Option<Timer> {
        let fresh = if self.fresh.is_of(hash, key) { self.fresh.first(kind) } else { None };
        let fresh_at = fresh.and_then(|place| self.fresh.timers.get(place)).map(|(_, at)| at);
        let mut settled = self.queue(kind).first_of_key(hash.0, key).cloned();
        if settled.is_none() && self.later.may_be_due(kind, upto) {
            settled = self.later.first_of_key(kind, hash.0, key);
        }
        let settled_first = match (fresh_at, &settled) {
            (None, None) => return None,
            (Some(fresh), Some(settled)) => settled < fresh,
            (fresh, _) => fresh.is_none(),
        };
        let at = if settled_first { settled } else { fresh_at.cloned() }?;
        if at.time > upto {
            return None;
        }
        if settled_first {
            self.remove(kind, hash.0, key, &at);
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
        self.queue(kind).len() + self.later.len(kind) + fresh
    }

    /// Whether there is no timer of any kind.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // There are none later without any in memory.
        self.fresh.timers.is_empty() && self.event.len() == 0 && self.processing.len() == 0
    }

    /// Moves fresh timers into the queues.
    fn settle(&mut self) {
        if let Some((hash, key)) = self.fresh.key.take() {
            for (kind, at) in std::mem::take(&mut self.fresh.timers) {
                self.insert(kind, hash, key.key(), at);
            }
        }
    }

    /// Puts a timer where it belongs; false if it is there.
    fn insert(&mut self, kind: TimerKind, hash: u64, key: &[u8], at: At) -> bool {
        if self.later.covers(kind, at.time, hash) {
            let added = !self.later.contains(kind, hash, key, &at);
            if added {
                self.later.add(kind, &[(hash, EntryKey::plain(key), at)]);
            }
            return added;
        }
        let added = self.queue_mut(kind).insert(hash, key, at);
        if self.queue(kind).len() > self.later.most() {
            self.put_off(kind);
        }
        added
    }

    /// Takes a settled timer out; false if it is not there.
    fn remove(&mut self, kind: TimerKind, hash: u64, key: &[u8], at: &At) -> bool {
        if self.later.covers(kind, at.time, hash) {
            return self.later.remove(kind, hash, key, at);
        }
        let removed = self.queue_mut(kind).remove(hash, key, at);
        self.fetch(kind);
        removed
    }

    /// Moves the timers that are due last to the store, a quarter or a piece of them, and what is due
    /// with the first of these. The first timer stays.
    fn put_off(&mut self, kind: TimerKind) {
        let count = (self.later.most() / 4).clamp(1, MOVED);
        let mut moved: Vec<later::Placed> = Vec::with_capacity(count);
        while let Some((first, last)) = self.queue(kind).ends() {
            let with = moved.last().map(|(hash, _, at)| (at.time, *hash));
            if first == last || moved.len() >= count && with != Some(last) {
                break;
            }
            moved.extend(self.queue_mut(kind).pop_last());
        }
        self.later.add(kind, &moved);
    }

    /// Brings the earliest of the later timers back if there is none in memory.
    fn fetch(&mut self, kind: TimerKind) {
        if self.queue(kind).len() > 0 || self.later.len(kind) == 0 {
            return;
        }
        let count = (self.later.most() / 2).clamp(1, MOVED);
        for (hash, key, at) in self.later.take_earliest(kind, count) {
            self.queue_mut(kind).insert(hash, key.key(), at);
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
