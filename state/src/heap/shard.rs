//! One shard of a table: its entries, and whether a snapshot reads them too.

use std::sync::Arc;

use element::hash_key_word;
use hashbrown::HashTable;
use hashbrown::hash_table::OccupiedEntry;
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

/// What an entry is found by.
pub(crate) trait TableKey {
    fn hash(&self) -> u64;

    /// The key's bytes and the namespace's.
    fn parts(&self) -> (&[u8], &[u8]);

    /// The hash of its slot.
    fn slot(&self) -> u64 {
        slot_hash(self.hash(), self.parts().1)
    }
}

/// A key of eight bytes without a namespace. Its hash costs less than room for it.
impl TableKey for Word {
    fn hash(&self) -> u64 {
        hash_key_word(self.0).0
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        (&self.0, &[])
    }
}

/// A key of any other length, or in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct HashedKey {
    pub(super) hash: u64,
    pub(super) key: EntryKey,
}

impl TableKey for HashedKey {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        self.key.parts()
    }
}

/// One entry of a table.
#[derive(Clone, Debug)]
pub(crate) struct Entry<K, C> {
    pub(crate) key: K,
    pub(crate) cell: C,
}

/// A table of one part of the hash range.
#[derive(Clone, Debug)]
pub(crate) struct Shard<C> {
    /// Keys of eight bytes, which are most often numbers, without a namespace: small entries close together.
    pub(super) words: HashTable<Entry<Word, C>>,
    /// All others.
    pub(super) others: HashTable<Entry<HashedKey, C>>,
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

    /// Visits all entries, in no order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&dyn TableKey, &C)) {
        self.words.iter().for_each(|entry| visit(&entry.key, &entry.cell));
        self.others.iter().for_each(|entry| visit(&entry.key, &entry.cell));
    }

    /// All entries, in no order.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = Entry<HashedKey, C>> {
        let words = self.words.into_iter().map(|Entry { key, cell }| Entry {
            key: HashedKey { hash: key.hash(), key: EntryKey::Word(key) },
            cell,
        });
        words.chain(self.others)
    }

    /// Takes in an entry whose key is not there.
    pub(super) fn insert(&mut self, Entry { key, cell }: Entry<HashedKey, C>) {
        match key.key {
            EntryKey::Word(key) => insert_new(&mut self.words, Entry { key, cell }),
            _ => insert_new(&mut self.others, Entry { key, cell }),
        }
    }

    /// The cell of any key, made if there is none.
    pub(super) fn cell_mut(&mut self, hash: u64, key: EntryKey) -> &mut C {
        if let EntryKey::Word(key) = key {
            let same = |entry: &Entry<Word, C>| entry.key == key;
            let entry = self.words.entry(key.slot(), same, |entry| entry.key.slot());
            return &mut entry.or_insert_with(|| Entry { key, cell: C::default() }).into_mut().cell;
        }
        let key = HashedKey { hash, key };
        let same = |entry: &Entry<HashedKey, C>| entry.key.hash == hash && entry.key.key == key.key;
        let entry = self.others.entry(key.slot(), same, |entry| entry.key.slot());
        &mut entry.or_insert_with(|| Entry { key, cell: C::default() }).into_mut().cell
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
    table.insert_unique(entry.key.slot(), entry, |entry| entry.key.slot());
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
    key: impl FnOnce() -> K,
    change: impl FnOnce(&mut C) -> R,
) -> R {
    let mut cell = C::default();
    let result = change(&mut cell);
    if !cell.is_vacant() {
        insert_new(table, Entry { key: key(), cell });
    }
    result
}
