//! [`HashedKeys`]: the keys of some records, encoded and hashed before the first of them is of use.
//!
//! One virtual call finds them all, and hashes that do not wait for each other are worked on at once.
//! [`super::keyed::KeyedOperator`] tells the state backend of the keys of a block by them, then makes one
//! after the other current; [`crate::exchange::KeyRoute`] finds a batch's subtasks.

use element::{Key, KeyHash, hash_key_bytes};

use super::keyed_parts::{CurrentKey, KeyedParts};
use crate::user::Position;

/// Bytes of keys for which room is kept from one time to the next.
const KEPT: usize = 64 << 10;

/// Keys in the order of their records.
pub(crate) struct HashedKeys<K> {
    /// The canonical bytes of all keys, one behind the other.
    bytes: Vec<u8>,
    /// Where each key's bytes end; as many as `hashes`.
    ends: Vec<usize>,
    hashes: Vec<KeyHash>,
    /// The keys, where they were made and not borrowed: as many as `hashes`, or none.
    keys: Vec<Option<K>>,
}

impl<K> Default for HashedKeys<K> {
    fn default() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), hashes: Vec::new(), keys: Vec::new() }
    }
}

impl<K: Key> HashedKeys<K> {
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

    /// Appends the key of each record as `encode` does, which gives back a key that was made for it, and says
    /// of `position` which record it is at.
    #[inline]
    pub(crate) fn extend<T>(
        &mut self,
        values: &[T],
        position: &mut Position,
        encode: impl Fn(&T, &mut Vec<u8>) -> Option<K>,
    ) {
        // Beside the keys while they grow: their lengths then stay out of memory.
        let (mut ends, mut hashes) =
            (std::mem::take(&mut self.ends), std::mem::take(&mut self.hashes));
        for value in values {
            position.next();
            let begin = self.bytes.len();
            if let Some(key) = encode(value, &mut self.bytes) {
                self.keys.push(Some(key));
            }
            hashes.push(hash_key_bytes(self.bytes.get(begin..).unwrap_or_default()));
            ends.push(self.bytes.len());
        }
        (self.ends, self.hashes) = (ends, hashes);
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
    use crate::operator::selector::KeySelector;

    #[test]
    fn keys_have_the_hashes_of_their_bytes_made_or_borrowed() {
        let names = ["", "a", "twenty bytes or more."].map(str::to_owned);
        let hashes = names.clone().map(|name| hash_key_bytes(&key_bytes(&name)));
        let (mut made, mut borrowed) = (HashedKeys::default(), HashedKeys::<String>::default());
        for _ in 0..2 {
            made.clear();
            KeySelector::owned(String::clone).hashed(&names, &mut Position::default(), &mut made);
            borrowed.clear();
            let whole = KeySelector::borrowed(|name: &String| name);
            whole.hashed(&names, &mut Position::default(), &mut borrowed);
            assert_eq!((made.hashes(), borrowed.hashes()), (&hashes[..], &hashes[..]));
            assert_eq!((made.keys.len(), borrowed.keys.len()), (3, 0));
        }
    }
}
