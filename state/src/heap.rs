//! [`HeapTable`]: all cells of one state in memory, by hash range.
//!
//! The subtask's range of the hash is cut into 64 to 128 shards, each a hash table. A snapshot takes
//! every shard as it is and shares it; the first access to a shared shard copies that shard, unless
//! the snapshot has let go of it. So a snapshot costs nothing when it is taken, and one shard's copy
//! at a time after.
//!
//! A shared shard lies behind a lock, for records need not be `Sync`: its owner may wait while the
//! snapshot encodes that shard.

use std::sync::Arc;

use element::{KeyGroups, KeyHash};
use hashbrown::HashTable;
use hashbrown::hash_table::OccupiedEntry;
use parking_lot::Mutex;

use crate::backend::KeyEntry;
use crate::cell::Cell;
use crate::entry_key::{EntryKey, Word};

/// The current key, as tables see it.
#[derive(Debug)]
pub(crate) struct CurrentKey {
    pub(crate) hash: u64,
    /// Changes with every change of the key; 0 while there is none.
    pub(crate) epoch: u64,
    pub(crate) key: EntryKey,
}

impl CurrentKey {
    /// No key.
    pub(crate) fn none() -> Self {
        Self { hash: 0, epoch: 0, key: EntryKey::plain(&[]) }
    }

    /// Becomes this key, if it is not that.
    #[inline]
    pub(crate) fn enter(&mut self, hash: u64, key: &[u8]) {
        match <[u8; 8]>::try_from(key) {
            Ok(word) => _ = self.enter_word(hash, word),
            Err(_) if self.is(key) => {}
            Err(_) => {
                self.hash = hash;
                self.epoch += 1;
                self.key = EntryKey::plain(key);
            }
        }
    }

    /// Becomes this key of eight bytes. False if it is that.
    // Hash and word are written either way: who comes next need not wait to read them from here.
    #[inline]
    pub(crate) fn enter_word(&mut self, hash: u64, word: [u8; 8]) -> bool {
        self.hash = hash;
        let EntryKey::Word(own) = &mut self.key else {
            self.leave_long(word);
            return true;
        };
        let is_new = *own != Word(word);
        *own = Word(word);
        if is_new {
            self.epoch += 1;
        }
        is_new
    }

    #[cold]
    #[inline(never)]
    fn leave_long(&mut self, word: [u8; 8]) {
        self.key = EntryKey::Word(Word(word));
        self.epoch += 1;
    }

    /// Whether it is this key.
    #[inline]
    pub(crate) fn is(&self, key: &[u8]) -> bool {
        match <[u8; 8]>::try_from(key) {
            Ok(word) => self.key.is_word(Word(word)),
            Err(_) => self.epoch > 0 && self.key.is_plain(key),
        }
    }

    /// Whether `entry` is that of this key without a namespace.
    #[inline]
    fn is_of<C>(&self, entry: &Entry<C>) -> bool {
        match self.key {
            EntryKey::Word(word) => entry.key.is_word(word),
            _ => self.is_long_of(entry),
        }
    }

    // Apart, so that the key is not read where the word is enough.
    #[inline(never)]
    fn is_long_of<C>(&self, entry: &Entry<C>) -> bool {
        entry.hash == self.hash && entry.key == self.key
    }
}

/// The hash of a table's slot. The top bits of a key's hash are the same all over a shard or a
/// subtask, and hash tables tell entries apart by the top bits: the low ones come there.
#[inline]
pub(crate) fn spread(hash: u64) -> u64 {
    hash.rotate_left(32)
}

#[inline]
fn slot_hash(hash: u64, namespace: &[u8]) -> u64 {
    if namespace.is_empty() {
        spread(hash)
    } else {
        spread(hash) ^ element::hash_key_bytes(namespace).0
    }
}

/// One entry of a table.
#[derive(Clone, Debug)]
pub(crate) struct Entry<C> {
    pub(crate) hash: u64,
    pub(crate) key: EntryKey,
    pub(crate) cell: C,
}

/// A table of one part of the hash range.
pub(crate) type Shard<C> = HashTable<Entry<C>>;

/// A shard that a snapshot and its table hold.
pub(crate) type SharedShard<C> = Arc<Mutex<Shard<C>>>;

#[derive(Debug)]
enum Holding<C> {
    Own(Shard<C>),
    /// A snapshot reads it.
    Shared(SharedShard<C>),
}

/// How the hash range is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    first: u64,
    shift: u32,
    shards: usize,
}

impl Cut {
    pub(crate) fn of(groups: KeyGroups) -> Self {
        let (first, last) =
            groups.hash_range().map_or((0, 0), |range| (*range.start(), *range.end()));
        let span = last - first;
        let shift = (64 - span.leading_zeros()).saturating_sub(7);
        let shards = usize::try_from(span >> shift).expect("seven bits are left") + 1;
        Self { first, shift, shards }
    }

    pub(crate) fn shards(self) -> usize {
        self.shards
    }

    /// The shard of a hash; hashes outside of the range fall into its first and last.
    #[inline]
    pub(crate) fn shard_of(self, hash: u64) -> usize {
        let shard = self.place_of(hash);
        if shard < self.shards { shard } else { self.outside(hash) }
    }

    /// The shard of a hash of the range.
    #[inline]
    fn place_of(self, hash: u64) -> usize {
        (hash.wrapping_sub(self.first) >> self.shift) as usize
    }

    #[cold]
    fn outside(self, hash: u64) -> usize {
        if hash < self.first { 0 } else { self.shards - 1 }
    }
}

/// All cells of one state.
#[derive(Debug)]
pub(crate) struct HeapTable<C> {
    cut: Cut,
    shards: Vec<Holding<C>>,
    sweep: Sweep,
    /// Whether anything has ever been changed in a namespace.
    has_namespaces: bool,
}

/// How far the search for expired entries has come, round and round.
#[derive(Debug, Default)]
struct Sweep {
    shard: usize,
    bucket: usize,
    removed: u64,
}

impl<C: Cell> HeapTable<C> {
    pub(crate) fn new(cut: Cut) -> Self {
        let shards = (0..cut.shards()).map(|_| Holding::Own(Shard::new())).collect();
        Self { cut, shards, sweep: Sweep::default(), has_namespaces: false }
    }

    /// Looks at the next `buckets` places of the table and lets `clean` change what lies there; a cell
    /// left vacant is removed. Shards that a snapshot reads are passed over, not copied.
    pub(crate) fn sweep(&mut self, buckets: usize, mut clean: impl FnMut(&mut C) -> u64) {
        for _ in 0..buckets {
            let Sweep { shard, bucket, .. } = self.sweep;
            let table = match self.shards.get_mut(shard) {
                Some(Holding::Own(table)) if bucket < table.num_buckets() => table,
                Some(_) => {
                    (self.sweep.shard, self.sweep.bucket) = (shard + 1, 0);
                    continue;
                }
                None => {
                    (self.sweep.shard, self.sweep.bucket) = (0, 0);
                    continue;
                }
            };
            self.sweep.bucket += 1;
            let Some(entry) = table.get_bucket_mut(bucket) else { continue };
            self.sweep.removed += clean(&mut entry.cell);
            if entry.cell.is_vacant()
                && let Ok(entry) = table.get_bucket_entry(bucket)
            {
                entry.remove();
            }
        }
    }

    /// About how many entries there are, by a part of the shards; none where a snapshot reads those.
    pub(crate) fn estimated_len(&self) -> usize {
        let sample = self.shards.len().min(4);
        let held = self.shards.iter().take(sample).map(|holding| match holding {
            Holding::Own(table) => table.len(),
            Holding::Shared(_) => 0,
        });
        held.sum::<usize>() * (self.shards.len() / sample.max(1))
    }

    /// Looks at the entries without namespace of these hashes, and answers how many looks are of use: those
    /// at entries, and at places where one may come, which lie where there are no namespaces.
    pub(crate) fn prefetch(&self, hashes: &[KeyHash]) -> usize {
        let is_there = |hash: &&KeyHash| {
            let hash = hash.0;
            let Some(Holding::Own(table)) = self.shards.get(self.cut.shard_of(hash)) else {
                return false;
            };
            // Both ends of the entry are read, for it may lie across two lines of memory.
            match table.find(spread(hash), |entry| entry.hash == hash) {
                Some(entry) => !entry.cell.is_vacant(),
                None => !self.has_namespaces,
            }
        };
        hashes.iter().filter(is_there).count()
    }

    /// Entries that sweeps have removed.
    pub(crate) fn cleaned(&self) -> u64 {
        self.sweep.removed
    }

    /// Reads the cell of a key, if there is one.
    #[inline]
    pub(crate) fn read(&mut self, at: &CurrentKey, namespace: &[u8]) -> Option<&C> {
        let table = self.shard_mut(at.hash);
        let entry = if namespace.is_empty() {
            table.find(spread(at.hash), |entry| at.is_of(entry))
        } else {
            let parts = (at.key.key(), namespace);
            let same = |entry: &Entry<C>| entry.hash == at.hash && entry.key.parts() == parts;
            table.find(slot_hash(at.hash, namespace), same)
        };
        entry.map(|entry| &entry.cell)
    }

    /// Changes the cell of the current key without a namespace in place: a vacant one if there is none, and a
    /// cell left vacant is removed. `None`, and nothing done, if no key is current.
    #[inline]
    pub(crate) fn change_plain<R>(
        &mut self,
        at: &CurrentKey,
        change: impl FnOnce(&mut C) -> R,
    ) -> Option<R> {
        let table = self.shard_mut(at.hash);
        match table.find_entry(spread(at.hash), |entry| at.is_of(entry)) {
            Ok(entry) => Some(change_held(entry, change)),
            Err(absent) => {
                // The result comes back by a way of its own: where a call writes into this function's, the
                // path above goes through memory, too.
                let mut result = None;
                change_absent(absent.into_table(), at, |cell| result = Some(change(cell)));
                result
            }
        }
    }

    /// As [`change_plain`](Self::change_plain), in any namespace.
    pub(crate) fn change<R>(
        &mut self,
        at: &CurrentKey,
        namespace: &[u8],
        change: impl FnOnce(&mut C) -> R,
    ) -> Option<R> {
        if namespace.is_empty() {
            return self.change_plain(at, change);
        }
        if at.epoch == 0 {
            return None;
        }
        self.has_namespaces = true;
        let parts = (at.key.key(), namespace);
        let slot = slot_hash(at.hash, namespace);
        let same = |entry: &Entry<C>| entry.hash == at.hash && entry.key.parts() == parts;
        Some(match self.shard_mut(at.hash).find_entry(slot, same) {
            Ok(entry) => change_held(entry, change),
            Err(absent) => {
                let key = || EntryKey::new(parts.0, parts.1);
                insert_changed(absent.into_table(), slot, at.hash, key, change)
            }
        })
    }

    /// The shard of a hash, for changing.
    #[inline]
    fn shard_mut(&mut self, hash: u64) -> &mut Shard<C> {
        let shard = self.cut.place_of(hash);
        if shard >= self.shards.len() {
            return self.outside_mut(hash);
        }
        own(&mut self.shards[shard])
    }

    #[cold]
    #[inline(never)]
    fn outside_mut(&mut self, hash: u64) -> &mut Shard<C> {
        own(&mut self.shards[self.cut.outside(hash)])
    }

    /// The shards as they are, shared from here on.
    pub(crate) fn share(&mut self) -> Vec<SharedShard<C>> {
        self.shards
            .iter_mut()
            .map(|holding| {
                let shared = match std::mem::replace(holding, Holding::Own(Shard::new())) {
                    Holding::Own(table) => Arc::new(Mutex::new(table)),
                    Holding::Shared(table) => table,
                };
                *holding = Holding::Shared(Arc::clone(&shared));
                shared
            })
            .collect()
    }

    /// The cell of any key, made if there is none: for restoring.
    pub(crate) fn cell_mut(&mut self, hash: u64, key: &[u8], namespace: &[u8]) -> &mut C {
        self.has_namespaces |= !namespace.is_empty();
        let table = self.shard_mut(hash);
        let same = |entry: &Entry<C>| entry.hash == hash && entry.key.parts() == (key, namespace);
        let entry =
            table.entry(slot_hash(hash, namespace), same, |entry| rehash(entry)).or_insert_with(
                || Entry { hash, key: EntryKey::new(key, namespace), cell: C::default() },
            );
        &mut entry.into_mut().cell
    }

    /// Appends the keys of all entries, once for each namespace.
    pub(crate) fn keys(&self, into: &mut Vec<KeyEntry>) {
        let mut take = |table: &Shard<C>| {
            into.extend(table.iter().map(|entry| (KeyHash(entry.hash), entry.key.key().to_vec())));
        };
        for holding in &self.shards {
            match holding {
                Holding::Own(table) => take(table),
                Holding::Shared(table) => take(&table.lock()),
            }
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        let len = |holding: &Holding<C>| match holding {
            Holding::Own(table) => table.len(),
            Holding::Shared(table) => table.lock().len(),
        };
        self.shards.iter().map(len).sum()
    }
}

fn rehash<C>(entry: &Entry<C>) -> u64 {
    slot_hash(entry.hash, entry.key.namespace())
}

/// The table, for changing: copied if a snapshot still reads it.
#[inline]
fn own<C: Cell>(holding: &mut Holding<C>) -> &mut Shard<C> {
    if let Holding::Shared(_) = holding {
        unshare(holding);
    }
    match holding {
        Holding::Own(table) => table,
        Holding::Shared(_) => unreachable!("it has just been made our own"),
    }
}

#[cold]
fn unshare<C: Cell>(holding: &mut Holding<C>) {
    if let Holding::Shared(shared) = std::mem::replace(holding, Holding::Own(Shard::new())) {
        let table = match Arc::try_unwrap(shared) {
            Ok(table) => table.into_inner(),
            Err(shared) => shared.lock().clone(),
        };
        *holding = Holding::Own(table);
    }
}

/// Changes the cell of an entry; an entry that is left vacant is removed.
#[inline]
fn change_held<C: Cell, R>(
    mut entry: OccupiedEntry<'_, Entry<C>>,
    change: impl FnOnce(&mut C) -> R,
) -> R {
    let result = change(&mut entry.get_mut().cell);
    if entry.get().cell.is_vacant() {
        entry.remove();
    }
    result
}

/// Changes the vacant cell of the current key, which has no entry; nothing if no key is current.
// Apart, so that nothing is kept for it where there is an entry.
#[inline(never)]
fn change_absent<C: Cell>(table: &mut Shard<C>, at: &CurrentKey, change: impl FnOnce(&mut C)) {
    if at.epoch > 0 {
        insert_changed(table, spread(at.hash), at.hash, || at.key.clone(), change);
    }
}

/// Changes a vacant cell, which becomes an entry unless it stays vacant.
#[inline]
fn insert_changed<C: Cell, R>(
    table: &mut Shard<C>,
    slot: u64,
    hash: u64,
    key: impl FnOnce() -> EntryKey,
    change: impl FnOnce(&mut C) -> R,
) -> R {
    let mut cell = C::default();
    let result = change(&mut cell);
    if !cell.is_vacant() {
        let entry = Entry { hash, key: key(), cell };
        table.insert_unique(slot, entry, |entry| rehash(entry));
    }
    result
}
