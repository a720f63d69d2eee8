//! [`Table`]: one accumulator a key, found by the hash that the caller has anyway.
//!
//! Keys of up to 24 bytes (a hash and a word) lie beside their accumulator, so a hit is one place in memory and one
//! comparison of two numbers; longer keys lie one behind the other in a vector of their own. Nothing
//! is allocated on a hit.
//!
//! Filled by the combining sorter; emptied, in key order, into a run or into the stream.

use element::Record;
use hashbrown::HashTable;

use crate::account::Account;
use crate::radix::Entry;
use crate::rules::Rules;
use crate::sorting::{Keyed, sort_groups_beyond};
use crate::{CancelFlag, SortError};

/// Keys up to this length lie in their slot.
pub(crate) const INLINE: usize = 24;

/// Bytes that the table's growth takes beside its slots: one control byte each, and a group.
const CONTROL_GROUP: u64 = 16;

/// One key and what was folded for it.
#[derive(Debug)]
pub(crate) struct Slot<A> {
    hash: u64,
    /// The key, padded with zeros; of a long key: where it begins in `long_keys`.
    inline: [u8; INLINE],
    key_len: u32,
    pub(crate) timestamp: i64,
    pub(crate) accumulator: A,
}

/// A key that is looked for, as the table compares it.
pub(crate) struct TableKey<'a> {
    pub(crate) hash: u64,
    pub(crate) bytes: &'a [u8],
    /// The key with zeros behind it; of a long key of no meaning.
    padded: [u8; INLINE],
}

impl<'a> TableKey<'a> {
    /// A key of its hash.
    #[inline]
    pub(crate) fn new(hash: u64, bytes: &'a [u8]) -> Self {
        Self { hash, bytes, padded: padded(bytes) }
    }

    /// The same, where the key lies with zeros behind it anyway.
    #[inline]
    pub(crate) fn with_padded(hash: u64, bytes: &'a [u8], padded: [u8; INLINE]) -> Self {
        Self { hash, bytes, padded }
    }
}

/// Accumulators by key. What it takes of memory is in use in the account that is passed in.
#[derive(Debug)]
pub(crate) struct Table<A> {
    slots: HashTable<Slot<A>>,
    long_keys: Vec<u8>,
    /// In use for slots and their sort entries.
    taken: u64,
    /// In use for what accumulators hold outside of their slots.
    heap: u64,
    /// Counts what makes buckets that were found before of no meaning.
    moves: u64,
}

/// The hash as the table wants it. Its highest bits tell slots of one group apart, and a subtask's
/// keys agree in theirs; the other half's do not.
#[inline]
fn spread(hash: u64) -> u64 {
    hash.rotate_left(32)
}

/// A key with zeros behind it, made of whole words; of a long key its front.
#[inline]
fn padded(key: &[u8]) -> [u8; INLINE] {
    let mut bytes = [0; INLINE];
    let (first, last) = match key.split_first_chunk::<16>() {
        // A hash and a number, mostly: nothing to be put together.
        Some((first, &[])) => (*first, 0),
        Some((first, _)) => (*first, word(key, 16)),
        None => {
            let second = u128::from(word(key, 8)) << 64;
            ((second | u128::from(word(key, 0))).to_le_bytes(), 0)
        }
    };
    if let Some((head, tail)) = bytes.split_first_chunk_mut() {
        *head = first;
        tail.copy_from_slice(&last.to_le_bytes());
    }
    bytes
}

/// Up to eight bytes of a key from `at` on, the first one lowest, zeros behind the last one.
#[inline]
fn word(key: &[u8], at: usize) -> u64 {
    let rest = key.get(at..).unwrap_or_default();
    match (rest.first_chunk(), key.last_chunk()) {
        (Some(whole), _) => u64::from_le_bytes(*whole),
        (None, _) if rest.is_empty() => 0,
        // The key's last eight bytes end with the rest: one read in place of a loop.
        (None, Some(last)) => u64::from_le_bytes(*last) >> (8 * (8 - rest.len())),
        (None, None) => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// A padded key as words: compared as such, no library is called for it.
#[inline]
fn words(padded: &[u8; INLINE]) -> (u64, u64, u64) {
    (word(padded, 0), word(padded, 8), word(padded, 16))
}

fn long_key<'a>(long_keys: &'a [u8], inline: &[u8; INLINE], len: u32) -> &'a [u8] {
    let mut start = [0; 8];
    start.copy_from_slice(&inline[..8]);
    let start = u64::from_le_bytes(start) as usize;
    long_keys.get(start..start + len as usize).unwrap_or_default()
}

impl<A: Record> Table<A> {
    pub(crate) fn new() -> Self {
        Self { slots: HashTable::new(), long_keys: Vec::new(), taken: 0, heap: 0, moves: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many keys there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many buckets there are: none before the first key.
    pub(crate) fn buckets(&self) -> usize {
        if self.slots.capacity() == 0 { 0 } else { self.slots.num_buckets() }
    }

    /// The bucket of a key, which holds as long as [`Table::moves`] does not change.
    #[inline]
    pub(crate) fn find(&self, key: &TableKey<'_>) -> Option<usize> {
        let len = key.bytes.len() as u32;
        if key.bytes.len() <= 8 {
            // Of a number alone there is one word to compare.
            let number = word(&key.padded, 0);
            self.slots.find_bucket_index(spread(key.hash), |slot| {
                word(&slot.inline, 0) == number && slot.key_len == len
            })
        } else if key.bytes.len() <= INLINE {
            self.slots.find_bucket_index(spread(key.hash), |slot| {
                words(&slot.inline) == words(&key.padded) && slot.key_len == len
            })
        } else {
            let long_keys = &self.long_keys;
            self.slots.find_bucket_index(spread(key.hash), |slot| {
                slot.hash == key.hash
                    && slot.key_len == len
                    && long_key(long_keys, &slot.inline, len) == key.bytes
            })
        }
    }

    /// The slot of a bucket that was found.
    #[inline]
    pub(crate) fn slot_mut(&mut self, bucket: usize) -> Option<&mut Slot<A>> {
        self.slots.get_bucket_mut(bucket)
    }

    /// How often slots have changed their buckets or gone.
    #[inline]
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    /// Makes room for one more key; false if the account refuses and the table must be emptied.
    pub(crate) fn grow(&mut self, key: usize, heap: u64, account: &mut Account) -> bool {
        if !self.grow_keys(key, account) || !self.grow_slots(account) || !account.take(heap) {
            return false;
        }
        self.heap += heap;
        true
    }

    /// Makes room for one more key whatever the account says.
    pub(crate) fn grow_beyond(&mut self, key: usize, heap: u64, account: &mut Account) {
        if key > INLINE && self.long_keys.capacity() - self.long_keys.len() < key {
            account.take_beyond(key as u64);
            self.long_keys.reserve_exact(key);
        }
        if self.slots.len() == self.slots.capacity() {
            let wanted = Self::bytes_of(self.next_buckets());
            account.take_beyond(wanted);
            self.rehash(wanted, account);
        }
        account.take_beyond(heap);
        self.heap += heap;
    }

    fn grow_keys(&mut self, key: usize, account: &mut Account) -> bool {
        if key <= INLINE || self.long_keys.capacity() - self.long_keys.len() >= key {
            return true;
        }
        // The old keys stay until the longer vector is there.
        let more = (self.long_keys.capacity() / 2).max(key);
        let whole = self.long_keys.len() + more;
        if !account.take(whole as u64) {
            return false;
        }
        let before = self.long_keys.capacity() as u64;
        self.long_keys.reserve_exact(more);
        account.give(before);
        true
    }

    fn grow_slots(&mut self, account: &mut Account) -> bool {
        if self.slots.len() < self.slots.capacity() {
            return true;
        }
        // The old slots stay until all have moved, so both are in use for that time.
        let wanted = Self::bytes_of(self.next_buckets());
        let granted = account.take(wanted);
        if granted {
            self.rehash(wanted, account);
        }
        granted
    }

    fn rehash(&mut self, wanted: u64, account: &mut Account) {
        self.moves += 1;
        self.slots.reserve(1, |slot| spread(slot.hash));
        account.give(self.taken);
        self.taken = wanted;
    }

    fn next_buckets(&self) -> u64 {
        if self.slots.capacity() == 0 { 4 } else { self.slots.num_buckets() as u64 * 2 }
    }

    /// Bytes of so many buckets, and of the entries to sort their slots by.
    fn bytes_of(buckets: u64) -> u64 {
        buckets * (size_of::<Slot<A>>() as u64 + 1 + size_of::<Entry>() as u64) + CONTROL_GROUP
    }

    /// Adds a key that is not there; room must have been made.
    pub(crate) fn insert(&mut self, key: &TableKey<'_>, timestamp: i64, accumulator: A) {
        let (hash, key_len) = (key.hash, key.bytes.len() as u32);
        let inline = if key.bytes.len() <= INLINE {
            key.padded
        } else {
            let start = (self.long_keys.len() as u64).to_le_bytes();
            self.long_keys.extend_from_slice(key.bytes);
            padded(&start)
        };
        let slot = Slot { hash, inline, key_len, timestamp, accumulator };
        self.slots.insert_unique(spread(hash), slot, |slot| spread(slot.hash));
    }

    /// Notes that an accumulator holds so many bytes more (or fewer) outside of its slot.
    pub(crate) fn resized(&mut self, before: usize, after: usize, account: &mut Account) -> bool {
        if after <= before {
            let less = ((before - after) as u64).min(self.heap);
            self.heap -= less;
            account.give(less);
            return true;
        }
        let more = (after - before) as u64;
        let granted = account.take(more);
        if !granted {
            account.take_beyond(more);
        }
        self.heap += more;
        granted
    }

    /// Entries of all slots in key order, and the number of whole keys looked at; `at` is a bucket.
    pub(crate) fn sorted(
        &self,
        rules: &Rules,
        cancel: Option<&CancelFlag>,
    ) -> Result<(Vec<Entry>, u64), SortError> {
        let mut entries = Vec::with_capacity(self.slots.len());
        entries.extend(self.slots.iter_buckets().map(|bucket| {
            let at = bucket as u64;
            Entry { prefix: rules.prefix(self.key(at)), at }
        }));
        let deep = sort_groups_beyond(1, &mut entries, self, rules, cancel)?;
        Ok((entries, deep))
    }

    pub(crate) fn slot(&self, bucket: u64) -> Option<&Slot<A>> {
        self.slots.get_bucket(bucket as usize)
    }

    /// Takes a slot out; its key stays in place.
    pub(crate) fn take(&mut self, bucket: u64) -> Option<Slot<A>> {
        self.slots.get_bucket_entry(bucket as usize).ok().map(|entry| entry.remove().0)
    }

    pub(crate) fn key_of<'a>(&'a self, slot: &'a Slot<A>) -> &'a [u8] {
        let len = slot.key_len as usize;
        match slot.inline.get(..len) {
            Some(inline) => inline,
            None => long_key(&self.long_keys, &slot.inline, slot.key_len),
        }
    }

    /// Forgets all keys; keeps the memory of slots and keys.
    pub(crate) fn clear(&mut self, account: &mut Account) {
        self.moves += 1;
        self.slots.clear();
        self.long_keys.clear();
        account.give(std::mem::take(&mut self.heap));
    }

    /// Drops everything and gives its bytes back to the account.
    pub(crate) fn release(&mut self, account: &mut Account) {
        self.moves += 1;
        let keys = std::mem::take(&mut self.long_keys).capacity() as u64;
        self.slots = HashTable::new();
        account.give(keys + std::mem::take(&mut self.taken) + std::mem::take(&mut self.heap));
    }
}

impl<A: Record> Keyed for Table<A> {
    #[inline]
    fn key(&self, at: u64) -> &[u8] {
        self.slot(at).map_or(&[], |slot| self.key_of(slot))
    }

    fn timestamp(&self, at: u64) -> i64 {
        self.slot(at).map_or(crate::NO_TIMESTAMP, |slot| slot.timestamp)
    }
}
