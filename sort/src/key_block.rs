//! [`KeyBlock`]: the keys of some records, to be looked up at once.
//!
//! A table that is larger than the caches costs one wait for memory a look. Looks that do not depend on
//! each other wait together; so keys are written one behind the other first, and all are looked up in a
//! loop that does nothing else.
//!
//! Filled by whoever has the records; read by [`CombiningSorter::update_block`].
//!
//! [`CombiningSorter::update_block`]: crate::CombiningSorter::update_block

use element::Record;

use crate::table::{INLINE, Table, TableKey};

/// Keys and their hashes, in the order of their records. Reused from block to block.
#[derive(Debug, Default)]
pub struct KeyBlock {
    /// Keys, one behind the other, each with zeros behind it up to the length of those that lie in
    /// their slot: so such a key is read in one piece, whatever its length.
    bytes: Vec<u8>,
    keys: Vec<Place>,
}

/// One key of a block.
#[derive(Debug)]
pub(crate) struct Place {
    begin: usize,
    /// The length of the key.
    pub(crate) len: usize,
    hash: u64,
    /// The bucket in which it was found.
    pub(crate) bucket: Option<usize>,
}

impl Place {
    #[inline]
    fn key<'a>(&self, bytes: &'a [u8]) -> TableKey<'a> {
        let rest = bytes.get(self.begin..).unwrap_or_default();
        let key = rest.get(..self.len).unwrap_or_default();
        match rest.first_chunk() {
            Some(padded) => TableKey::with_padded(self.hash, key, *padded),
            None => TableKey::new(self.hash, key),
        }
    }
}

impl KeyBlock {
    /// Keys in a block: so many slots and keys stay in the innermost cache between look and use.
    pub const KEYS: usize = 64;

    /// Bytes of keys that fill a block of fewer: it lies beyond any budget.
    const BYTES: usize = 16 << 10;

    /// Whether the block is to be used before another key is added.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.keys.len() >= Self::KEYS || self.bytes.len() >= Self::BYTES
    }

    /// Forgets all keys; keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
    }

    /// Adds a key. `write` appends it to all bytes so far.
    ///
    /// # Errors
    ///
    /// What `write` says; the block is then good for nothing but [`clear`](Self::clear).
    #[inline]
    pub fn push_with<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = self.bytes.len();
        write(&mut self.bytes)?;
        let len = self.bytes.len() - begin;
        self.bytes.extend_from_slice(&[0; INLINE]);
        self.bytes.truncate(begin + len.max(INLINE));
        self.keys.push(Place { begin, len, hash: 0, bucket: None });
        Ok(())
    }

    /// Asks for the hash of each key, once all are there: bytes that have only just been written in pieces
    /// are waited for where they are read in one. `hash` may still change bytes of the key.
    #[inline]
    pub fn hash_with(&mut self, hash: impl Fn(&mut [u8]) -> u64) {
        for place in &mut self.keys {
            let end = place.begin + place.len;
            place.hash = hash(self.bytes.get_mut(place.begin..end).unwrap_or_default());
        }
    }

    #[inline]
    pub(crate) fn find_in<A: Record>(&mut self, table: &Table<A>) {
        for place in &mut self.keys {
            place.bucket = table.find(&place.key(&self.bytes));
        }
    }

    #[inline]
    pub(crate) fn places(&self) -> &[Place] {
        &self.keys
    }

    #[inline]
    pub(crate) fn key(&self, place: &Place) -> TableKey<'_> {
        place.key(&self.bytes)
    }
}
