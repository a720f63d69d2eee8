//! [`LaterTimers`]: the timers of one operator subtask that are due last, in a store of their own.
//!
//! ```text
//!   in memory, at most `most` of each kind | due later: two entries each, in the store
//!   ---------------------------------------+--------------------------------------------
//!                                          ^ `from` (time, hash), the same for both ways to find them
//! ```
//!
//! | first byte | rest | for |
//! |---|---|---|
//! | 0 | store key of the timer, as in a snapshot | uniqueness, deleting, the timers of one key, snapshots |
//! | 1 | kind, time, store key of the timer, which begins with the hash | reading back in order of time |
//!
//! All timers of one time and hash lie on one side. The store is opened when the first timer moves to
//! it. What goes wrong with it is kept until the operator asks, which it does behind each batch. Left out
//! on purpose: when timers move. That is [`super::TimerService`]'s.

use std::fmt;
use std::ops::ControlFlow;

use element::{KeyHash, Timestamp, decode_key_exact, key_bytes};
use parking_lot::Mutex;

use super::{At, TimerKind};
use crate::StoreFailure;
use crate::entry_key::EntryKey;
use crate::store::{ByteStore, StoreSnapshot, WriteBatch};
use crate::store_key::{StoreKey, end_of_prefix, push_prefix};

/// Opens the store, at most once.
type Open = Box<dyn FnOnce() -> Result<Box<dyn ByteStore>, StoreFailure> + Send>;

/// What the store's entries begin with.
const BY_KEY: u8 = 0;
const BY_TIME: u8 = 1;

/// A timer of some key.
pub(super) type Placed = (u64, EntryKey, At);

/// Timers in a store.
pub(super) struct LaterTimers {
    /// Timers of each kind that may stay in memory.
    most: usize,
    open: Option<Open>,
    /// Behind a lock, for a view is taken of what is otherwise only read.
    store: Option<Mutex<Box<dyn ByteStore>>>,
    kinds: [Part; 2],
    failure: Option<StoreFailure>,
    batch: WriteBatch,
}

/// The timers of one kind.
#[derive(Debug, Default)]
struct Part {
    len: usize,
    /// Every timer here is at or behind this time and hash, every one in memory before; set while
    /// there are any here.
    from: Option<(Timestamp, u64)>,
}

impl Default for LaterTimers {
    fn default() -> Self {
        Self {
            most: usize::MAX,
            open: None,
            store: None,
            kinds: [Part::default(), Part::default()],
            failure: None,
            batch: WriteBatch::new(),
        }
    }
}

impl LaterTimers {
    pub(super) fn new(most: usize, open: Open) -> Self {
        Self { most: most.max(1), open: Some(open), ..Self::default() }
    }

    /// Timers of each kind that may stay in memory.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The number of timers of a kind.
    pub(super) fn len(&self, kind: TimerKind) -> usize {
        self.part(kind).len
    }

    /// Whether a timer belongs here rather than to memory.
    #[inline]
    pub(super) fn covers(&self, kind: TimerKind, time: Timestamp, hash: u64) -> bool {
        self.part(kind).from.is_some_and(|from| (time, hash) >= from)
    }

    /// Whether a timer that is due at `upto` may be here.
    pub(super) fn may_be_due(&self, kind: TimerKind, upto: Timestamp) -> bool {
        self.part(kind).from.is_some_and(|(time, _)| time <= upto)
    }

    /// What went wrong since this was asked last.
    pub(super) fn take_failure(&mut self) -> Option<StoreFailure> {
        self.failure.take()
    }

    /// Adds timers that are not here. Two puts for each.
    pub(super) fn add(&mut self, kind: TimerKind, timers: &[Placed]) {
        for (hash, key, at) in timers {
            let part = self.part_mut(kind);
            part.len += 1;
            let place = (at.time, *hash);
            part.from = Some(part.from.map_or(place, |from| from.min(place)));
            let entry = entry(kind, *hash, key.key(), at);
            self.batch.put(&entry, &[]);
            self.batch.put(&by_time(kind, at.time, &entry), &[]);
        }
        self.write();
    }

    /// Whether a timer is here. One read.
    pub(super) fn contains(&mut self, kind: TimerKind, hash: u64, key: &[u8], at: &At) -> bool {
        let found = self.store().and_then(|store| match store {
            Some(store) => store.get(&entry(kind, hash, key, at)),
            None => Ok(None),
        });
        self.noted(found).flatten().is_some()
    }

    /// Takes a timer out; false if it is not here. One read, two deletes.
    pub(super) fn remove(&mut self, kind: TimerKind, hash: u64, key: &[u8], at: &At) -> bool {
        if !self.contains(kind, hash, key, at) {
            return false;
        }
        let entry = entry(kind, hash, key, at);
        self.batch.delete(&entry);
        self.batch.delete(&by_time(kind, at.time, &entry));
        self.write();
        self.removed(kind, 1);
        true
    }

    /// The earliest timer of a key. One range read, of that key's timers alone.
    pub(super) fn first_of_key(&mut self, kind: TimerKind, hash: u64, key: &[u8]) -> Option<At> {
        let mut prefix = vec![BY_KEY];
        push_prefix(KeyHash(hash), key, kind.state(), &[], &mut prefix);
        // All namespaces: the prefix without the length of one.
        prefix.pop();
        let mut first: Option<At> = None;
        self.scan(&prefix, &prefix, &mut |found| {
            if let Some((_, of, at)) = found.get(1..).and_then(parse)
                && of.is_plain(key)
                && first.as_ref().is_none_or(|first| at < *first)
            {
                first = Some(at);
            }
            ControlFlow::Continue(())
        });
        first
    }

    /// Takes about `count` of the earliest timers out, and whatever is due with the last of them.
    pub(super) fn take_earliest(&mut self, kind: TimerKind, count: usize) -> Vec<Placed> {
        let Some((time, hash)) = self.part(kind).from else { return Vec::new() };
        let prefix = [BY_TIME, kind as u8];
        let mut from = [&prefix[..], &key_bytes(&time)].concat();
        from.extend_from_slice(&hash.to_be_bytes());
        let mut earliest: Vec<Placed> = Vec::new();
        let mut next = None;
        self.scan(&from, &prefix, &mut |found| {
            let Some(timer) = found.get(10..).and_then(parse) else {
                return ControlFlow::Continue(());
            };
            let place = (timer.2.time, timer.0);
            let last = earliest.last().map(|(hash, _, at)| (at.time, *hash));
            if earliest.len() >= count && last != Some(place) {
                next = Some(place);
                return ControlFlow::Break(());
            }
            earliest.push(timer);
            ControlFlow::Continue(())
        });
        for (hash, key, at) in &earliest {
            let entry = entry(kind, *hash, key.key(), at);
            self.batch.delete(&entry);
            self.batch.delete(&by_time(kind, at.time, &entry));
        }
        self.write();
        self.part_mut(kind).from = next;
        self.removed(kind, earliest.len());
        earliest
    }

    /// A view of all timers here, by store key behind one byte; `None` if none ever was here.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    pub(super) fn view(&self) -> Result<Option<Box<dyn StoreSnapshot>>, StoreFailure> {
        if self.kinds.iter().all(|part| part.len == 0) {
            return Ok(None);
        }
        self.store.as_ref().map(|store| store.lock().snapshot()).transpose()
    }

    fn removed(&mut self, kind: TimerKind, count: usize) {
        let part = self.part_mut(kind);
        part.len = part.len.saturating_sub(count);
        if part.len == 0 {
            part.from = None;
        }
    }

    fn scan(
        &mut self,
        from: &[u8],
        prefix: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        let end = end_of_prefix(prefix);
        let scanned = self.store().and_then(|store| match store {
            Some(store) => store.scan(from, end.as_deref(), &mut |key, _| visit(key)),
            None => Ok(()),
        });
        self.noted(scanned);
    }

    fn write(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let written = self.opened().and_then(|store| match store {
            Some(store) => store.write(&batch),
            None => Ok(()),
        });
        self.noted(written);
        self.batch = batch;
        self.batch.clear();
    }

    fn store(&mut self) -> Result<Option<&mut dyn ByteStore>, StoreFailure> {
        Ok(self.store.as_mut().map(|store| store.get_mut().as_mut() as &mut dyn ByteStore))
    }

    /// The store, opened by whoever writes first.
    fn opened(&mut self) -> Result<Option<&mut dyn ByteStore>, StoreFailure> {
        if let Some(open) = self.open.take() {
            self.store = Some(Mutex::new(open()?));
        }
        self.store()
    }

    fn noted<R>(&mut self, result: Result<R, StoreFailure>) -> Option<R> {
        match result {
            Ok(result) => Some(result),
            Err(failure) => {
                self.failure.get_or_insert(failure);
                None
            }
        }
    }

    fn part(&self, kind: TimerKind) -> &Part {
        &self.kinds[kind as usize]
    }

    fn part_mut(&mut self, kind: TimerKind) -> &mut Part {
        &mut self.kinds[kind as usize]
    }
}

fn entry(kind: TimerKind, hash: u64, key: &[u8], at: &At) -> Vec<u8> {
    let (hash, namespace) = (KeyHash(hash), at.namespace.namespace());
    let map_key = key_bytes(&at.time);
    let mut entry = vec![BY_KEY];
    StoreKey { hash, key, state: kind.state(), namespace, map_key: &map_key }.push(&mut entry);
    entry
}

/// The entry by time of an entry by key, whose first byte gives way: the hash follows the time.
fn by_time(kind: TimerKind, time: Timestamp, entry: &[u8]) -> Vec<u8> {
    let store_key = entry.get(1..).unwrap_or_default();
    let mut bytes = vec![BY_TIME, kind as u8];
    bytes.extend_from_slice(&key_bytes(&time));
    bytes.extend_from_slice(store_key);
    bytes
}

/// The timer of a store key.
fn parse(store_key: &[u8]) -> Option<Placed> {
    let parts = StoreKey::parse(store_key)?;
    let time = decode_key_exact::<Timestamp>(parts.map_key).ok()?;
    let at = At { time, namespace: EntryKey::new(&[], parts.namespace) };
    Some((parts.hash.0, EntryKey::plain(parts.key), at))
}

impl fmt::Debug for LaterTimers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaterTimers").field("most", &self.most).field("kinds", &self.kinds).finish()
    }
}
