//! Keys of the byte store: one ordered space per operator and subtask.
//!
//! ```text
//! | hash, 8 big-endian | key bytes | state id, 4 big-endian | namespace length | namespace | map key | key length |
//! ```
//!
//! The order is that of the engine, (hash, key bytes), then state, namespace and map key, because
//! key bytes of one type are never a prefix of one another. The namespace's length is a varint. The
//! key's length stands at the end, where it does not disturb the order, and is read backwards: one
//! byte below 255, or four bytes big-endian and then 255.

use element::KeyHash;

/// Which state an entry belongs to: the hash of the state's name, so that it is the same in every
/// subtask and every run. The two greatest are the timers'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StateId(pub(crate) u32);

impl StateId {
    /// Event-time timers.
    pub(crate) const EVENT_TIMERS: Self = Self(u32::MAX - 1);
    /// Processing-time timers.
    pub(crate) const PROCESSING_TIMERS: Self = Self(u32::MAX);

    /// The id of the state of this name.
    pub(crate) fn of(name: &str) -> Self {
        let hash = element::hash_key_bytes(name.as_bytes()).0;
        Self(((hash >> 32) as u32).min(u32::MAX - 2))
    }

    pub(crate) fn is_timers(self) -> bool {
        self >= Self::EVENT_TIMERS
    }
}

/// A store key, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreKey<'a> {
    pub(crate) hash: KeyHash,
    pub(crate) key: &'a [u8],
    pub(crate) state: StateId,
    pub(crate) namespace: &'a [u8],
    pub(crate) map_key: &'a [u8],
}

/// Appends what all entries of one key begin with.
pub(crate) fn push_key(hash: KeyHash, key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&hash.0.to_be_bytes());
    out.extend_from_slice(key);
}

/// Appends what all entries of one key, state and namespace begin with.
pub(crate) fn push_prefix(
    hash: KeyHash,
    key: &[u8],
    state: StateId,
    namespace: &[u8],
    out: &mut Vec<u8>,
) {
    push_key(hash, key, out);
    out.extend_from_slice(&state.0.to_be_bytes());
    push_varint(namespace.len() as u32, out);
    out.extend_from_slice(namespace);
}

/// Appends what stands behind the prefix.
pub(crate) fn push_suffix(map_key: &[u8], key_len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(map_key);
    if key_len < 255 {
        out.push(key_len as u8);
    } else {
        out.extend_from_slice(&(key_len as u32).to_be_bytes());
        out.push(255);
    }
}

/// The bytes behind the map key.
pub(crate) fn suffix_len(key_len: usize) -> usize {
    if key_len < 255 { 1 } else { 5 }
}

impl<'a> StoreKey<'a> {
    /// Appends the whole key.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        self.push_of(self.map_key, out);
    }

    /// Appends the whole key as if `map_key` were the map key: nothing is copied to say so.
    #[inline]
    pub(crate) fn push_of(&self, map_key: &[u8], out: &mut Vec<u8>) {
        if let (Ok(word), [], []) = (<[u8; 8]>::try_from(self.key), self.namespace, map_key) {
            out.extend_from_slice(&self.of_word(word));
            return;
        }
        push_prefix(self.hash, self.key, self.state, self.namespace, out);
        push_suffix(map_key, self.key.len(), out);
    }

    /// The whole key of a record under an integer, the common case, in one piece: no namespace, so its length
    /// is 0, and no map key.
    fn of_word(&self, word: [u8; 8]) -> [u8; 22] {
        let mut bytes = [0; 22];
        bytes[..8].copy_from_slice(&self.hash.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&word);
        bytes[16..20].copy_from_slice(&self.state.0.to_be_bytes());
        bytes[21] = 8;
        bytes
    }

    /// Takes a key apart; `None` if it is none of ours.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (key_len, bytes) = match bytes.split_last()? {
            (255, rest) => {
                let (rest, len) = rest.split_last_chunk::<4>()?;
                (u32::from_be_bytes(*len) as usize, rest)
            }
            (len, rest) => (usize::from(*len), rest),
        };
        let (hash, rest) = bytes.split_first_chunk::<8>()?;
        let (key, rest) = rest.split_at_checked(key_len)?;
        let (state, mut rest) = rest.split_first_chunk::<4>()?;
        let namespace_len = take_varint(&mut rest)? as usize;
        let (namespace, map_key) = rest.split_at_checked(namespace_len)?;
        Some(Self {
            hash: KeyHash(u64::from_be_bytes(*hash)),
            key,
            state: StateId(u32::from_be_bytes(*state)),
            namespace,
            map_key,
        })
    }
}

/// The hash that a store key begins with.
pub(crate) fn hash_of(bytes: &[u8]) -> Option<KeyHash> {
    bytes.first_chunk::<8>().map(|hash| KeyHash(u64::from_be_bytes(*hash)))
}

/// The least bytes that are greater than all that begin with `prefix`; `None` if there are none.
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 255)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Appends a number in 7-bit groups, the lowest first.
pub(crate) fn push_varint(mut number: u32, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what [`push_varint`] wrote.
pub(crate) fn take_varint(input: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = input.split_first()?;
        *input = rest;
        number |= u32::from(byte & 127).checked_shl(shift)?;
        if byte & 128 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_keys_come_apart_as_they_were_put_together() {
        for key_len in [0, 1, 8, 254, 255, 256, 70_000] {
            for namespace_len in [0, 1, 127, 128, 300] {
                for map_len in [0, 1, 255] {
                    let bytes = [vec![255; key_len], vec![0; namespace_len], vec![255; map_len]];
                    let key = StoreKey {
                        hash: KeyHash(7),
                        key: &bytes[0],
                        state: StateId::of("count"),
                        namespace: &bytes[1],
                        map_key: &bytes[2],
                    };
                    let mut out = Vec::new();
                    key.push(&mut out);
                    assert_eq!(StoreKey::parse(&out), Some(key));
                    let mut parts = Vec::new();
                    push_prefix(key.hash, key.key, key.state, key.namespace, &mut parts);
                    push_suffix(key.map_key, key_len, &mut parts);
                    assert_eq!(out, parts);
                }
            }
        }
    }

    #[test]
    fn cut_store_keys_are_none_of_ours() {
        assert_eq!(StoreKey::parse(&[]), None);
        assert_eq!(StoreKey::parse(&[1, 2, 3, 255]), None);
        assert_eq!(StoreKey::parse(&[0; 12]), None);
        assert_eq!(StoreKey::parse(&[200; 40]), None);
    }

    #[test]
    fn the_end_of_a_prefix_lies_right_behind_it() {
        assert_eq!(end_of_prefix(&[1, 255]), Some(vec![2]));
        assert_eq!(end_of_prefix(&[255, 255]), None);
        assert_eq!(end_of_prefix(&[1, 2]), Some(vec![1, 3]));
    }
}
