//! [`HeapTable`]: all cells of one state in memory, by hash range.
//!
//! The subtask's range of the hash is cut into 64 to 128 shards, each a hash table; into one or two while
//! there are few entries, which then lie close together. A snapshot takes every shard as it is and shares
//! it; the first access to a shared shard copies that shard, unless the snapshot has let go of it. So a
//! snapshot costs nothing when it is taken, and one shard's copy at a time after. Few entries are copied at
//! once.
//!
//! A shared shard lies behind a lock, for records need not be `Sync`: its owner may wait while the
//! snapshot encodes that shard.

mod cut;
mod shard;

use std::sync::Arc;

use element::KeyHash;
use parking_lot::Mutex;

use crate::backend::{ComingKeys, KeyEntry};
use crate::cell::Cell;
use crate::current_key::CurrentKey;
use crate::entry_key::{EntryKey, Word};
use crate::slot::Meta;
use crate::snapshot::FrozenTable;
pub(crate) use cut::Cut;
pub(crate) use shard::{Entry, SharedShard, TableKey, spread};
use shard::{Holding, Shard, change_held, clean_at, insert_changed, own, slot_hash};

/// Entries up to which a table has few shards.
const FEW: usize = 1 << 12;

/// All cells of one state.
#[derive(Debug)]
pub(crate) struct HeapTable<C> {
    /// How it is cut at this moment.
    cut: Cut,
    /// How it is cut when it has grown.
    many: Cut,
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
    /// An empty table, to be cut into shards by `many` when it has grown.
    pub(crate) fn new(many: Cut) -> Self {
        // What a cell has elsewhere in memory may be large: few of those are copied at once.
        let cut = if std::mem::needs_drop::<C>() { many } else { many.few() };
        let shards = empty_shards(cut);
        Self { cut, many, shards, sweep: Sweep::default(), has_namespaces: false }
    }

    /// Before an entry comes: cuts a table that has grown into its many shards.
    #[inline]
    fn make_room(&mut self) {
        if self.is_few() && self.len() >= FEW {
            self.cut_up();
        }
    }

    /// Whether it is cut into few shards.
    fn is_few(&self) -> bool {
        self.cut != self.many
    }

    #[cold]
    fn cut_up(&mut self) {
        self.cut = self.many;
        (self.sweep.shard, self.sweep.bucket) = (0, 0);
        for mut few in std::mem::replace(&mut self.shards, empty_shards(self.many)) {
            for entry in std::mem::take(own(&mut few)).into_entries() {
                self.shard_mut(entry.hash).insert(entry);
            }
        }
    }

    /// Looks at the next `buckets` places of the table and lets `clean` change what lies there; a cell
    /// left vacant is removed. Shards that a snapshot reads are passed over, not copied.
    pub(crate) fn sweep(&mut self, buckets: usize, mut clean: impl FnMut(&mut C) -> u64) {
        for _ in 0..buckets {
            let Sweep { shard, bucket, .. } = self.sweep;
            let Some(Holding::Own(Shard { words, others })) = self.shards.get_mut(shard) else {
                self.sweep.shard = if shard < self.shards.len() { shard + 1 } else { 0 };
                self.sweep.bucket = 0;
                continue;
            };
            self.sweep.bucket += 1;
            self.sweep.removed += match bucket.checked_sub(words.num_buckets()) {
                None => clean_at(words, bucket, &mut clean),
                Some(bucket) if bucket < others.num_buckets() => {
                    clean_at(others, bucket, &mut clean)
                }
                Some(_) => {
                    (self.sweep.shard, self.sweep.bucket) = (shard + 1, 0);
                    0
                }
            };
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

    /// Looks at the entries without namespace of these keys, and answers how many looks are of use: those
    /// at entries, and at places where one may come, which lie where there are no namespaces.
    pub(crate) fn prefetch(&self, keys: ComingKeys<'_>) -> usize {
        // Both ends of an entry are read, for it may lie across two lines of memory.
        let of_use = |found: Option<&C>| found.map_or(!self.has_namespaces, |c| !c.is_vacant());
        match keys {
            ComingKeys::Words(words) => {
                let is_of_use = |(word, hash): &&([u8; 8], KeyHash)| {
                    let Some(shard) = self.own_shard(*hash) else { return false };
                    let same = |entry: &Entry<Word, C>| entry.key == Word(*word);
                    of_use(shard.words.find(spread(hash.0), same).map(|entry| &entry.cell))
                };
                words.iter().filter(is_of_use).count()
            }
            ComingKeys::Hashes(hashes) => {
                let is_of_use = |hash: &&KeyHash| {
                    let Some(shard) = self.own_shard(**hash) else { return false };
                    let same = |entry: &Entry<EntryKey, C>| entry.hash == hash.0;
                    of_use(shard.others.find(spread(hash.0), same).map(|entry| &entry.cell))
                };
                hashes.iter().filter(is_of_use).count()
            }
        }
    }

    /// The shard of a hash, if no snapshot reads it.
    fn own_shard(&self, hash: KeyHash) -> Option<&Shard<C>> {
        match self.shards.get(self.cut.shard_of(hash.0)) {
            Some(Holding::Own(shard)) => Some(shard),
            _ => None,
        }
    }

    /// Entries that sweeps have removed.
    pub(crate) fn cleaned(&self) -> u64 {
        self.sweep.removed
    }

    /// Reads the cell of a key, if there is one.
    #[inline]
    pub(crate) fn read(&mut self, at: &CurrentKey, namespace: &[u8]) -> Option<&C> {
        let shard = self.shard_mut(at.hash);
        if let EntryKey::Word(word) = at.key
            && namespace.is_empty()
        {
            let found = shard.words.find(spread(at.hash), |entry| entry.key == word);
            return found.map(|entry| &entry.cell);
        }
        let parts = (at.key.key(), namespace);
        let same = |entry: &Entry<EntryKey, C>| entry.hash == at.hash && entry.key.parts() == parts;
        shard.others.find(slot_hash(at.hash, namespace), same).map(|entry| &entry.cell)
    }

    /// Changes the cell of the current key without a namespace in place: a vacant one if there is none, and a
    /// cell left vacant is removed. `None`, and nothing done, if no key is current.
    #[inline]
    pub(crate) fn change_plain<R>(
        &mut self,
        at: &CurrentKey,
        change: impl FnOnce(&mut C) -> R,
    ) -> Option<R> {
        let EntryKey::Word(word) = at.key else {
            let mut result = None;
            self.change_other(at, &[], |cell| result = Some(change(cell)));
            return result;
        };
        let words = &mut self.shard_mut(at.hash).words;
        match words.find_entry(spread(at.hash), |entry| entry.key == word) {
            Ok(entry) => Some(change_held(entry, change)),
            Err(_) => {
                // The result comes back by a way of its own: where a call writes into this function's, the
                // path above goes through memory, too.
                let mut result = None;
                self.change_absent(at.hash, word, |cell| result = Some(change(cell)));
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
        let mut result = None;
        self.change_other(at, namespace, |cell| result = Some(change(cell)));
        result
    }

    /// Changes the vacant cell of a word that has no entry.
    // Apart, so that nothing is kept for it where there is one.
    #[inline(never)]
    fn change_absent(&mut self, hash: u64, word: Word, change: impl FnOnce(&mut C)) {
        self.make_room();
        insert_changed(&mut self.shard_mut(hash).words, hash, || word, change);
    }

    /// Changes the cell of the current key, which is no word or in a namespace; nothing if there is none.
    #[inline(never)]
    fn change_other(&mut self, at: &CurrentKey, namespace: &[u8], change: impl FnOnce(&mut C)) {
        if at.epoch == 0 {
            return;
        }
        self.has_namespaces |= !namespace.is_empty();
        let parts = (at.key.key(), namespace);
        let slot = slot_hash(at.hash, namespace);
        let same = |entry: &Entry<EntryKey, C>| entry.hash == at.hash && entry.key.parts() == parts;
        match self.shard_mut(at.hash).others.find_entry(slot, same) {
            Ok(entry) => change_held(entry, change),
            Err(_) => {
                self.make_room();
                let key = || EntryKey::new(parts.0, parts.1);
                insert_changed(&mut self.shard_mut(at.hash).others, at.hash, key, change);
            }
        }
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

    /// The table as it is: its shards shared from here on, or a copy of few entries.
    pub(crate) fn freeze(&mut self, meta: Meta) -> FrozenTable<C> {
        if !self.is_few() {
            return FrozenTable::many(meta, self.share());
        }
        let shards = self.shards.iter_mut().map(|holding| own(holding).clone());
        FrozenTable::few(meta, shards.flat_map(Shard::into_entries).collect(), self.many)
    }

    /// The shards as they are, shared from here on.
    fn share(&mut self) -> Vec<SharedShard<C>> {
        self.shards
            .iter_mut()
            .map(|holding| {
                let shared = match std::mem::replace(holding, Holding::Own(Shard::default())) {
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
        self.make_room();
        self.shard_mut(hash).cell_mut(hash, EntryKey::new(key, namespace))
    }

    /// Appends the keys of all entries, once for each namespace.
    pub(crate) fn keys(&self, into: &mut Vec<KeyEntry>) {
        let mut take = |table: &Shard<C>| {
            table.for_each(|hash, key, _| into.push((KeyHash(hash), key.parts().0.to_vec())));
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

fn empty_shards<C>(cut: Cut) -> Vec<Holding<C>> {
    (0..cut.shards()).map(|_| Holding::Own(Shard::default())).collect()
}

#[cfg(test)]
mod tests {
    use element::{KeyGroups, MaxParallelism, hash_key_bytes};

    use super::*;
    use crate::cell::One;
    use crate::handle::StateKind;
    use crate::snapshot::FrozenSlot;
    use crate::store::WriteBatch;
    use crate::store_key::{StateId, StoreKey};

    type Cells = One<u64>;

    fn meta() -> Meta {
        let (name, kind) = ("number".into(), StateKind::Value);
        Meta { name, id: StateId::of("number"), kind, schema: Cells::schema(), ttl: None }
    }

    /// Sets every key below `keys` to itself and `more`.
    fn set(table: &mut HeapTable<Cells>, keys: u64, more: u64) {
        let mut at = CurrentKey::none();
        for key in 0..keys {
            let bytes = key.to_be_bytes();
            at.enter(hash_key_bytes(&bytes).0, &bytes);
            table.change(&at, &[], |cell| cell.0 = Some(key + more)).expect("a key is current");
        }
    }

    fn sum(table: &mut HeapTable<Cells>, keys: u64) -> u64 {
        let mut at = CurrentKey::none();
        let of_key = |key: u64| {
            let bytes = key.to_be_bytes();
            at.enter(hash_key_bytes(&bytes).0, &bytes);
            table.read(&at, &[]).and_then(|cell| cell.0).expect("the key is there")
        };
        (0..keys).map(of_key).sum()
    }

    /// What a snapshot writes, part by part: the number of entries and the sum of values.
    fn written(mut frozen: FrozenTable<Cells>, cut: Cut) -> (usize, u64) {
        let (mut entries, mut sum, mut batch) = (0, 0, WriteBatch::new());
        for shard in 0..cut.shards() {
            batch.clear();
            frozen.emit(shard, &mut batch);
            for (key, value) in batch.iter() {
                let at = StoreKey::parse(key).expect("a store key");
                assert_eq!(cut.shard_of(at.hash.0), shard);
                let value: u64 = element::decode_exact(value.expect("a value")).expect("a number");
                (entries, sum) = (entries + 1, sum + value);
            }
        }
        (entries, sum)
    }

    #[test]
    fn a_table_that_grows_keeps_all_and_so_do_snapshots_from_before() {
        let cut = Cut::of(KeyGroups::all(MaxParallelism::DEFAULT));
        let mut table = HeapTable::new(cut);
        let (few, many) = (FEW as u64 - 1, 2 * FEW as u64);
        let upto = |keys: u64| keys * (keys - 1) / 2;
        set(&mut table, few, 0);
        let before = [table.freeze(meta()), table.freeze(meta())];
        assert!(table.is_few());
        set(&mut table, many, 1);
        assert!(!table.is_few());
        let after = [table.freeze(meta()), table.freeze(meta())];
        set(&mut table, many, 2);
        assert_eq!((table.len() as u64, sum(&mut table, many)), (many, upto(many) + 2 * many));
        for frozen in before {
            assert_eq!(written(frozen, cut), (few as usize, upto(few)));
        }
        for frozen in after {
            assert_eq!(written(frozen, cut), (many as usize, upto(many) + many));
        }
    }

    #[test]
    fn cells_with_more_elsewhere_in_memory_are_cut_finely_from_the_start() {
        let cut = Cut::of(KeyGroups::all(MaxParallelism::DEFAULT));
        assert!(HeapTable::<One<u64>>::new(cut).is_few());
        assert!(!HeapTable::<One<Vec<u64>>>::new(cut).is_few());
    }
}
