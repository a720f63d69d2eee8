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

use crate::table::Table;

/// Keys and their hashes, in the order of their records. Reused from block to block.
#[derive(Debug, Default)]
pub struct KeyBlock {
    /// Keys, one behind the other.
    bytes: Vec<u8>,
    /// Of each key where it ends, its hash, and the bucket in which it was found.
    keys: Vec<(usize, u64, Option<usize>)>,
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

    /// Adds a key. `write` gets all bytes so far and the number of them, appends the key, and answers
    /// its hash.
    ///
    /// # Errors
    ///
    /// What `write` says; the block is then good for nothing but [`clear`](Self::clear).
    #[inline]
    pub fn push_with<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>, usize) -> Result<u64, E>,
    ) -> Result<(), E> {
        let begin = self.bytes.len();
        let hash = write(&mut self.bytes, begin)?;
        self.keys.push((self.bytes.len(), hash, None));
        Ok(())
    }

    #[inline]
    pub(crate) fn find_in<A: Record>(&mut self, table: &Table<A>) {
        let mut begin = 0;
        for (end, hash, bucket) in &mut self.keys {
            *bucket = table.find(*hash, self.bytes.get(begin..*end).unwrap_or_default());
            begin = *end;
        }
    }

    /// Hash, bytes and bucket of each key.
    #[inline]
    pub(crate) fn keys(&self) -> impl Iterator<Item = (u64, &[u8], Option<usize>)> {
        let mut begin = 0;
        self.keys.iter().map(move |(end, hash, bucket)| {
            let key = self.bytes.get(begin..*end).unwrap_or_default();
            begin = *end;
            (*hash, key, *bucket)
        })
    }
}
