//! [`HashedKeys`]: the keys of some records, encoded and hashed before the first of them is of use.
//!
//! One virtual call finds them all, and hashes that do not wait for each other are worked on at once.
//! [`super::keyed::KeyedOperator`] tells the state backend of the keys of a block by them, then makes one
//! after the other current; [`crate::exchange::KeyRoute`] finds a batch's subtasks.

use element::{Key, KeyHash, hash_key_bytes, hash_key_word};
use state::ComingKeys;

use super::keyed_parts::{CurrentKey, KeyedParts};
use crate::user::Position;

/// Bytes of keys for which room is kept from one time to the next.
const KEPT: usize = 64 << 10;

/// Keys in the order of their records: all of them words of eight bytes ([`Key::as_word`]), or all as bytes.
pub(crate) struct HashedKeys<K> {
    /// The keys as words, with their hashes; empty if some are none.
    words: Vec<([u8; 8], KeyHash)>,
    /// Else their hashes.
    hashes: Vec<KeyHash>,
    /// Their canonical bytes, one behind the other.
    bytes: Vec<u8>,
    /// Where each key's bytes end.
    ends: Vec<usize>,
    /// The keys, where they were made and not borrowed: as many as `ends`, or none.
    keys: Vec<Option<K>>,
}

impl<K> Default for HashedKeys<K> {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            hashes: Vec::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            keys: Vec::new(),
        }
    }
}

impl<K: Key> HashedKeys<K> {
    /// The keys, to tell a state backend of them before they come.
    pub(crate) fn all(&self) -> ComingKeys<'_> {
        if self.words.is_empty() {
            ComingKeys::Hashes(&self.hashes)
        } else {
            ComingKeys::Words(&self.words)
        }
    }

    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.hashes.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.ends.clear();
        self.keys.clear();
    }

    /// The key of each record, in the place of what was there, and says of `position` which record it is at.
    /// False where a key is no word: the keys are then to be [encoded](Self::encode).
    #[inline]
    pub(crate) fn words<T>(
        &mut self,
        values: &[T],
        position: &mut Position,
        word: impl Fn(&T) -> Option<[u8; 8]>,
    ) -> bool {
        self.clear();
        let before = position.begun();
        self.words.resize(values.len(), ([0; 8], KeyHash::default()));
        for (value, (into, hash)) in values.iter().zip(&mut self.words) {
            position.next();
            let Some(word) = word(value) else {
                self.words.clear();
                position.back_to(before);
                return false;
            };
            (*into, *hash) = (word, hash_key_word(word));
        }
        true
    }

    /// As [`words`](Self::words), for keys of any kind. `encode` gives back a key that was made.
    #[inline]
    pub(crate) fn encode<T>(
        &mut self,
        values: &[T],
        position: &mut Position,
        encode: impl Fn(&T, &mut Vec<u8>) -> Option<K>,
    ) {
        self.clear();
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

    /// The keys one by one, each to be made the current one: words, or the others.
    // Two things, not one: what a call borrows of one lies in memory with all of it.
    #[inline]
    pub(crate) fn one_by_one(&mut self) -> (Words<'_>, LongKeys<'_, K>) {
        let Self { words, hashes, bytes, ends, keys } = self;
        (Words(words.iter()), LongKeys { hashes, bytes, ends, keys, index: 0, begin: 0 })
    }
}

/// Keys that are words and have not been entered yet.
pub(crate) struct Words<'a>(std::slice::Iter<'a, ([u8; 8], KeyHash)>);

impl Words<'_> {
    /// Makes the next key, if need be of `others`, the current one for state and timers. False if there is
    /// none. Cheap when it is so already.
    #[inline(always)]
    pub(crate) fn enter_next<K: Key, O>(
        &mut self,
        others: &mut LongKeys<'_, K>,
        current: &mut CurrentKey<K>,
        parts: &mut KeyedParts<O>,
    ) -> bool {
        let Some((word, hash)) = self.0.next() else { return others.enter_next(current, parts) };
        current.enter_word(*hash, *word, parts);
        true
    }
}

/// Keys as bytes that have not been entered yet.
pub(crate) struct LongKeys<'a, K> {
    hashes: &'a [KeyHash],
    bytes: &'a [u8],
    ends: &'a [usize],
    keys: &'a mut [Option<K>],
    /// The next key, and where its bytes begin.
    index: usize,
    begin: usize,
}

impl<K: Key> LongKeys<'_, K> {
    #[inline(never)]
    fn enter_next<O>(&mut self, current: &mut CurrentKey<K>, parts: &mut KeyedParts<O>) -> bool {
        let Self { hashes, bytes, ends, keys, index, begin } = self;
        let Some(end) = ends.get(*index) else { return false };
        let bytes = &bytes[*begin..*end];
        if !parts.backend.is_current(bytes) {
            let key = keys.get_mut(*index).and_then(Option::take);
            current.change(hashes[*index], bytes, key, parts);
        }
        (*index, *begin) = (*index + 1, *end);
        true
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
            KeySelector::owned(String::clone).hashed(&names, &mut Position::default(), &mut made);
            let whole = KeySelector::borrowed(|name: &String| name);
            whole.hashed(&names, &mut Position::default(), &mut borrowed);
            assert_eq!((&made.hashes[..], &borrowed.hashes[..]), (&hashes[..], &hashes[..]));
            assert_eq!((made.keys.len(), borrowed.keys.len()), (3, 0));
        }
    }

    #[test]
    fn keys_that_are_words_have_the_same_hashes() {
        let numbers = [0_u64, 1, u64::MAX];
        let hashes = numbers.map(|number| hash_key_bytes(&key_bytes(&number)));
        let mut position = Position::default();
        let mut keys = HashedKeys::default();
        for round in 1..3 {
            KeySelector::owned(|n: &u64| *n).hashed(&numbers, &mut position, &mut keys);
            assert_eq!((keys.words.len(), keys.ends.len()), (3, 0));
            assert_eq!(keys.words.iter().map(|(_, hash)| *hash).collect::<Vec<_>>(), hashes);
            assert_eq!(position.begun(), 3 * round);
        }
    }

    /// A key type of the user's may have words for some keys only.
    #[test]
    fn one_key_without_a_word_has_all_encoded() {
        #[derive(Clone, PartialEq, Eq)]
        struct Odd(u64);

        impl Key for Odd {
            fn encode_key(&self, out: &mut Vec<u8>) {
                self.0.encode_key(out);
            }

            fn decode_key(input: &mut &[u8]) -> Result<Self, element::CodecError> {
                u64::decode_key(input).map(Self)
            }

            fn as_word(&self) -> Option<[u8; 8]> {
                (self.0 % 2 == 1).then(|| self.0.to_be_bytes())
            }
        }

        let values = [Odd(1), Odd(2), Odd(3)];
        let (mut keys, mut position) = (HashedKeys::default(), Position::default());
        KeySelector::borrowed(|odd: &Odd| odd).hashed(&values, &mut position, &mut keys);
        let hashes = values.map(|odd| hash_key_bytes(&key_bytes(&odd)));
        assert_eq!((keys.words.len(), keys.ends.len()), (0, 3));
        assert_eq!(keys.hashes, hashes);
        assert_eq!(position.begun(), 3);
    }
}
