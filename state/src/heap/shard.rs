//! One shard of a table: its entries, and whether a snapshot reads them too.

use std::sync::Arc;

use hashbrown::hash_table::{self, HashTable, OccupiedEntry};
use parking_lot::Mutex;

use crate::cell::Cell;
use crate::entry_key::{EntryKey, Word};

/// The hash of a table's slot. The top bits of a key's hash are the same all over a shard or a
/// subtask, and hash tables tell entries apart by the top bits: the low ones come there.
#[inline]
pub(crate) fn spread(hash: u64) -> u64 {
    hash.rotate_left(32)
}

/// The hash of the slot of a key in a namespace.
#[inline]
pub(super) fn slot_hash(hash: u64, namespace: &[u8]) -> u64 {
    if namespace.is_empty() {
        spread(hash)
    } else {
        spread(hash) ^ element::hash_key_bytes(namespace).0
    }
}

/// What entries are told apart by, beside their hashes.
pub(crate) trait TableKey {
    /// The key's bytes and the namespace's.
    fn parts(&self) -> (&[u8], &[u8]);
}

impl TableKey for Word {
    fn parts(&self) -> (&[u8], &[u8]) {
        (&self.0, &[])
    }
}

impl TableKey for EntryKey {
    fn parts(&self) -> (&[u8], &[u8]) {
        self.parts()
    }
}

/// One entry of a table.
#[derive(Clone, Debug)]
pub(crate) struct Entry<K, C> {
    pub(crate) hash: u64,
    pub(crate) key: K,
    pub(crate) cell: C,
}

impl<K: TableKey, C> Entry<K, C> {
    /// The hash of its slot.
    pub(super) fn slot(&self) -> u64 {
        slot_hash(self.hash, self.key.parts().1)
    }
}

/// A table of one part of the hash range.
#[derive(Clone, Debug)]
pub(crate) struct Shard<C> {
    /// Keys of eight bytes, which are most often numbers, without a namespace: small entries close together.
    pub(super) words: HashTable<Entry<Word, C>>,
    /// All others.
    pub(super) others: HashTable<Entry<EntryKey, C>>,
}

impl<C> Default for Shard<C> {
    fn default() -> Self {
        Self { words: HashTable::new(), others: HashTable::new() }
    }
}

impl<C: Cell> Shard<C> {
    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.words.len() + self.others.len()
    }

    /// Visits all entries, in no order: hash, key and cell.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u64, &dyn TableKey, &C)) {
        self.words.iter().for_each(|entry| visit(entry.hash, &entry.key, &entry.cell));
        self.others.iter().for_each(|entry| visit(entry.hash, &entry.key, &entry.cell));
    }

    /// All entries, in no order.
    pub(super) fn into_entries(self) -> impl Iterator<Item = Entry<EntryKey, C>> {
        let words = self.words.into_iter();
        let as_any = |Entry { hash, key, cell }| Entry { hash, key: EntryKey::Word(key), cell };
        words.map(as_any).chain(self.others)
    }

    /// Takes in an entry whose key is not there.
    pub(super) fn insert(&mut self, Entry { hash, key, cell }: Entry<EntryKey, C>) {
        match key {
            EntryKey::Word(key) => insert_new(&mut self.words, Entry { hash, key, cell }),
            _ => insert_new(&mut self.others, Entry { hash, key, cell }),
        }
    }

    /// The cell of any key, made if there is none.
    pub(super) fn cell_mut(&mut self, hash: u64, key: EntryKey) -> &mut C {
        match key {
            EntryKey::Word(key) => cell_of(&mut self.words, hash, key),
            _ => cell_of(&mut self.others, hash, key),
        }
    }
}

/// A shard that a snapshot and its table hold.
pub(crate) type SharedShard<C> = Arc<Mutex<Shard<C>>>;

/// A shard in its table.
#[derive(Debug)]
pub(super) enum Holding<C> {
    Own(Shard<C>),
    /// A snapshot reads it.
    Shared(SharedShard<C>),
}

/// The table, for changing: copied if a snapshot still reads it.
#[inline]
pub(super) fn own<C: Cell>(holding: &mut Holding<C>) -> &mut Shard<C> {
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
    if let Holding::Shared(shared) = std::mem::replace(holding, Holding::Own(Shard::default())) {
        let table = match Arc::try_unwrap(shared) {
            Ok(table) => table.into_inner(),
            Err(shared) => shared.lock().clone(),
        };
        *holding = Holding::Own(table);
    }
}

fn insert_new<K: TableKey, C>(table: &mut HashTable<Entry<K, C>>, entry: Entry<K, C>) {
    table.insert_unique(entry.slot(), entry, Entry::slot);
}

fn cell_of<K: TableKey + Eq, C: Cell>(
    table: &mut HashTable<Entry<K, C>>,
    hash: u64,
    key: K,
) -> &mut C {
    let slot = slot_hash(hash, key.parts().1);
    let same = |entry: &Entry<K, C>| entry.hash == hash && entry.key == key;
    match table.entry(slot, same, Entry::slot) {
        hash_table::Entry::Occupied(entry) => &mut entry.into_mut().cell,
        hash_table::Entry::Vacant(entry) => {
            &mut entry.insert(Entry { hash, key, cell: C::default() }).into_mut().cell
        }
    }
}

/// Looks at one place of a table, and lets `clean` change what lies there; a cell left vacant is removed.
pub(super) fn clean_at<K, C: Cell>(
    table: &mut HashTable<Entry<K, C>>,
    bucket: usize,
    clean: &mut impl FnMut(&mut C) -> u64,
) -> u64 {
    let Some(entry) = table.get_bucket_mut(bucket) else { return 0 };
    let cleaned = clean(&mut entry.cell);
    if entry.cell.is_vacant()
        && let Ok(entry) = table.get_bucket_entry(bucket)
    {
        entry.remove();
    }
    cleaned
}

/// Changes the cell of an entry; an entry that is left vacant is removed.
#[inline]
pub(super) fn change_held<K, C: Cell, R>(
    mut entry: OccupiedEntry<'_, Entry<K, C>>,
    change: impl FnOnce(&mut C) -> R,
) -> R {
    let result = change(&mut entry.get_mut().cell);
    if entry.get().cell.is_vacant() {
        entry.remove();
    }
    result
}

/// Changes a vacant cell, which becomes an entry unless it stays vacant.
#[inline]
pub(super) fn insert_changed<K: TableKey, C: Cell, R>(
    table: &mut HashTable<Entry<K, C>>,
    hash: u64,
    key: impl FnOnce() -> K,
    change: impl FnOnce(&mut C) -> R,
) -> R {
    let mut cell = C::default();
    let result = change(&mut cell);
    if !cell.is_vacant() {
        insert_new(table, Entry { hash, key: key(), cell });
    }
    result
}
