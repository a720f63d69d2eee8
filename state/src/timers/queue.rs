//! [`TimerQueue`]: the timers of one kind, ordered by time, and found by key.
//!
//! Two views of one set: by time, a map from each time to the keys and namespaces due then, for few
//! times have many timers; by key, a hash table from each key to its times. Every change is
//! logarithmic in one view and constant in the other.

use std::collections::{BTreeMap, BTreeSet};

use element::Timestamp;
use hashbrown::HashTable;

use crate::entry_key::EntryKey;
use crate::heap::spread;

/// Timers of one key in a list up to here, in a tree beyond.
const FEW: usize = 32;

/// Time and namespace of a key's timer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) time: Timestamp,
    /// Without a key.
    pub(crate) namespace: EntryKey,
}

/// The timers of one kind.
///
/// **Invariant:** both views hold the same timers, and neither an empty time nor an empty key.
#[derive(Debug, Default)]
pub(crate) struct TimerQueue {
    by_time: BTreeMap<Timestamp, BTreeSet<(u64, EntryKey)>>,
    by_key: HashTable<KeyTimers>,
    len: usize,
}

#[derive(Debug)]
struct KeyTimers {
    hash: u64,
    key: EntryKey,
    times: Times,
}

/// In order.
#[derive(Debug)]
enum Times {
    Few(Vec<At>),
    Many(BTreeSet<At>),
}

impl Times {
    fn insert(&mut self, at: At) -> bool {
        match self {
            Self::Few(times) => {
                let Err(place) = times.binary_search(&at) else { return false };
                times.insert(place, at);
                if times.len() > FEW {
                    *self = Self::Many(std::mem::take(times).into_iter().collect());
                }
                true
            }
            Self::Many(times) => times.insert(at),
        }
    }

    fn remove(&mut self, at: &At) -> bool {
        match self {
            Self::Few(times) => times.binary_search(at).map(|place| times.remove(place)).is_ok(),
            Self::Many(times) => times.remove(at),
        }
    }

    fn contains(&self, at: &At) -> bool {
        match self {
            Self::Few(times) => times.binary_search(at).is_ok(),
            Self::Many(times) => times.contains(at),
        }
    }

    fn first(&self) -> Option<&At> {
        match self {
            Self::Few(times) => times.first(),
            Self::Many(times) => times.first(),
        }
    }
}

impl TimerQueue {
    /// The number of timers.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn next_time(&self) -> Option<Timestamp> {
        self.by_time.first_key_value().map(|(time, _)| *time)
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<&KeyTimers> {
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key.find(spread(hash), |held| held.hash == hash && held.key.is_plain(key))
    }

    pub(crate) fn contains(&self, hash: u64, key: &[u8], at: &At) -> bool {
        self.find(hash, key).is_some_and(|held| held.times.contains(at))
    }

    /// The earliest timer of a key.
    pub(crate) fn first_of_key(&self, hash: u64, key: &[u8]) -> Option<&At> {
        self.find(hash, key)?.times.first()
    }

    pub(crate) fn insert(&mut self, hash: u64, key: &[u8], at: At) -> bool {
        let same = |held: &KeyTimers| held.hash == hash && held.key.is_plain(key);
        let entry = self.by_key.entry(spread(hash), same, |held| spread(held.hash));
        let mut held = entry.or_insert_with(|| KeyTimers {
            hash,
            key: EntryKey::plain(key),
            times: Times::Few(Vec::new()),
        });
        if !held.get_mut().times.insert(at.clone()) {
            return false;
        }
        let due = self.by_time.entry(at.time).or_default();
        due.insert((hash, EntryKey::new(key, at.namespace.namespace())));
        self.len += 1;
        true
    }

    pub(crate) fn remove(&mut self, hash: u64, key: &[u8], at: &At) -> bool {
        if !self.remove_by_key(hash, key, at) {
            return false;
        }
        if let Some(due) = self.by_time.get_mut(&at.time) {
            due.remove(&(hash, EntryKey::new(key, at.namespace.namespace())));
            if due.is_empty() {
                self.by_time.remove(&at.time);
            }
        }
        true
    }

    fn remove_by_key(&mut self, hash: u64, key: &[u8], at: &At) -> bool {
        let same = |held: &KeyTimers| held.hash == hash && held.key.is_plain(key);
        let Ok(mut entry) = self.by_key.find_entry(spread(hash), same) else { return false };
        let removed = entry.get_mut().times.remove(at);
        if entry.get().times.first().is_none() {
            entry.remove();
        }
        self.len -= usize::from(removed);
        removed
    }

    /// Takes the earliest timer if it is due.
    pub(crate) fn pop_due(&mut self, upto: Timestamp) -> Option<(u64, EntryKey, At)> {
        let mut earliest = self.by_time.first_entry()?;
        let time = *earliest.key();
        if time > upto {
            return None;
        }
        let popped = earliest.get_mut().pop_first()?;
        if earliest.get().is_empty() {
            earliest.remove();
        }
        Some(self.popped(time, popped))
    }

    /// What was taken out by time goes from its key, too.
    fn popped(&mut self, time: Timestamp, (hash, entry): (u64, EntryKey)) -> (u64, EntryKey, At) {
        let (key, namespace) = entry.parts();
        let at = At { time, namespace: EntryKey::new(&[], namespace) };
        self.remove_by_key(hash, key, &at);
        (hash, EntryKey::plain(key), at)
    }

    /// Time and hash of the first and of the last timer, in the order in which they are due.
    pub(crate) fn ends(&self) -> Option<((Timestamp, u64), (Timestamp, u64))> {
        let (first, of_first) = self.by_time.first_key_value()?;
        let (last, of_last) = self.by_time.last_key_value()?;
        Some(((*first, of_first.first()?.0), (*last, of_last.last()?.0)))
    }

    /// Takes the timer that is due last.
    pub(crate) fn pop_last(&mut self) -> Option<(u64, EntryKey, At)> {
        let mut latest = self.by_time.last_entry()?;
        let time = *latest.key();
        let popped = latest.get_mut().pop_last()?;
        if latest.get().is_empty() {
            latest.remove();
        }
        Some(self.popped(time, popped))
    }

    /// All timers, in no order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u64, &[u8], &At)) {
        for held in &self.by_key {
            match &held.times {
                Times::Few(times) => {
                    times.iter().for_each(|at| visit(held.hash, held.key.key(), at));
                }
                Times::Many(times) => {
                    times.iter().for_each(|at| visit(held.hash, held.key.key(), at));
                }
            }
        }
    }
}
