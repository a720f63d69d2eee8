//! [`KeyBlock`]: the keys of a block of records, encoded and hashed before the first of them is current.
//!
//! One virtual call finds them all, and hashes that do not wait for each other are worked on at once; they
//! are also what the state backend is told of keys that come. Filled and read by
//! [`super::keyed::KeyedOperator`], a block after the other.

use element::{Key, KeyHash, hash_key_bytes};

use super::keyed_parts::{CurrentKey, KeyedParts};
use crate::user::Position;

/// Bytes of keys for which room is kept from block to block.
const KEPT: usize = 64 << 10;

/// Keys in the order of their records.
pub(crate) struct KeyBlock<K> {
    /// The canonical bytes of all keys, one behind the other.
    bytes: Vec<u8>,
    /// Where each key's bytes end; as many as `hashes`.
    ends: Vec<usize>,
    hashes: Vec<KeyHash>,
    /// The keys, where they were made and not borrowed: as many as `hashes`, or none.
    keys: Vec<Option<K>>,
}

impl<K> Default for KeyBlock<K> {
    fn default() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), hashes: Vec::new(), keys: Vec::new() }
    }
}

impl<K: Key> KeyBlock<K> {
    /// The keys' hashes.
    pub(crate) fn hashes(&self) -> &[KeyHash] {
        &self.hashes
    }

    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.ends.clear();
        self.hashes.clear();
        self.keys.clear();
    }

    /// Appends the keys that `key` makes of records, and says of `position` which record it is at.
    #[inline]
    pub(crate) fn extend_owned<T>(
        &mut self,
        values: &[T],
        position: &mut Position,
        key: impl Fn(&T) -> K,
    ) {
        for value in values {
            position.next();
            let key = key(value);
            self.push(&key);
            self.keys.push(Some(key));
        }
    }

    /// Appends the keys that `key` finds in records, and says of `position` which record it is at.
    #[inline]
    pub(crate) fn extend_borrowed<T>(
        &mut self,
        values: &[T],
        position: &mut Position,
        key: impl for<'a> Fn(&'a T) -> &'a K,
    ) {
        for value in values {
            position.next();
            self.push(key(value));
        }
    }

    #[inline]
    fn push(&mut self, key: &K) {
        let begin = self.bytes.len();
        key.encode_key(&mut self.bytes);
        self.hashes.push(hash_key_bytes(self.bytes.get(begin..).unwrap_or_default()));
        self.ends.push(self.bytes.len());
    }

    /// Makes the key of one record the current one, for state and timers. Cheap when it is so already.
    ///
    /// # Panics
    ///
    /// If the block has no such record.
    #[inline]
    pub(crate) fn enter<O>(
        &mut self,
        index: usize,
        current: &mut CurrentKey<K>,
        parts: &mut KeyedParts<O>,
    ) {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let bytes = &self.bytes[begin..self.ends[index]];
        if !current.set || !current.has_bytes(bytes) {
            let key = self.keys.get_mut(index).and_then(Option::take);
            current.change(self.hashes[index], bytes, key, parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use element::key_bytes;

    use super::*;

    #[test]
    fn keys_have_the_hashes_of_their_bytes_made_or_borrowed() {
        let names = ["", "a", "twenty bytes or more."].map(str::to_owned);
        let hashes = names.clone().map(|name| hash_key_bytes(&key_bytes(&name)));
        let (mut made, mut borrowed) = (KeyBlock::default(), KeyBlock::<String>::default());
        for _ in 0..2 {
            made.clear();
            made.extend_owned(&names, &mut Position::default(), String::clone);
            borrowed.clear();
            borrowed.extend_borrowed(&names, &mut Position::default(), |name| name);
            assert_eq!((made.hashes(), borrowed.hashes()), (&hashes[..], &hashes[..]));
            assert_eq!((made.keys.len(), borrowed.keys.len()), (3, 0));
        }
    }
}
