//! [`EntryKey`]: key and namespace of one entry, without an allocation when they are short.
//!
//! Tables compare it on every look-up, so it is two words. A key of eight bytes without a namespace, as
//! numbers have, is one word to write, copy and compare. Up to 13 bytes of key and namespace together lie
//! inside it; longer ones behind a pointer.

/// Bytes that fit without an allocation.
const INLINE: usize = 13;

/// Key bytes and, behind them, namespace bytes.
///
/// **Invariant:** of two entry keys with equal contents both are of the same variant, and the unused bytes
/// of an inline one are 0.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum EntryKey {
    /// A key of eight bytes, without a namespace.
    Word(Word),
    /// The last two bytes are the key's length, and the length of key and namespace.
    Inline([u8; INLINE + 2]),
    Long(Box<LongKey>),
}

/// Eight bytes that are written and read as one: what is read in wider pieces than it was written in waits
/// for all that was written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(8))]
pub(crate) struct Word(pub(crate) [u8; 8]);

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LongKey {
    key_len: usize,
    bytes: Box<[u8]>,
}

impl EntryKey {
    /// An entry without a namespace.
    #[inline]
    pub(crate) fn plain(key: &[u8]) -> Self {
        Self::new(key, &[])
    }

    #[inline]
    pub(crate) fn new(key: &[u8], namespace: &[u8]) -> Self {
        match <[u8; 8]>::try_from(key) {
            Ok(word) if namespace.is_empty() => Self::Word(Word(word)),
            _ => Self::of_bytes(key, namespace),
        }
    }

    fn of_bytes(key: &[u8], namespace: &[u8]) -> Self {
        let total = key.len() + namespace.len();
        if total <= INLINE {
            let mut data = [0; INLINE + 2];
            data[..key.len()].copy_from_slice(key);
            data[key.len()..total].copy_from_slice(namespace);
            data[INLINE] = key.len() as u8;
            data[INLINE + 1] = total as u8;
            return Self::Inline(data);
        }
        let mut bytes = Vec::with_capacity(total);
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(namespace);
        Self::Long(Box::new(LongKey { key_len: key.len(), bytes: bytes.into() }))
    }

    /// Becomes the same as another. Of words only the eight bytes are written: a value put together
    /// elsewhere and moved here is read in other pieces than it was written in.
    #[inline]
    pub(crate) fn become_same(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Word(own), Self::Word(word)) => *own = *word,
            _ => self.clone_from(other),
        }
    }

    /// The key's bytes and the namespace's.
    #[inline]
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        match self {
            Self::Word(Word(word)) => (word, &[]),
            Self::Inline(data) => {
                let (key_len, total) = (usize::from(data[INLINE]), usize::from(data[INLINE + 1]));
                data[..total].split_at(key_len)
            }
            Self::Long(long) => long.bytes.split_at(long.key_len),
        }
    }

    /// The key's bytes.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.parts().0
    }

    /// The namespace's bytes.
    #[inline]
    pub(crate) fn namespace(&self) -> &[u8] {
        self.parts().1
    }

    /// Whether this is the entry of `key` without a namespace.
    #[inline]
    pub(crate) fn is_plain(&self, key: &[u8]) -> bool {
        match self {
            Self::Word(Word(word)) => key == word,
            _ => self.parts() == (key, &[]),
        }
    }

    /// Whether this is the entry of the key of these eight bytes without a namespace.
    #[inline]
    pub(crate) fn is_word(&self, word: Word) -> bool {
        matches!(self, Self::Word(own) if *own == word)
    }
}

impl PartialOrd for EntryKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// By key, then by namespace.
impl Ord for EntryKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl std::fmt::Debug for EntryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (key, namespace) = self.parts();
        write!(f, "{}", key.escape_ascii())?;
        if !namespace.is_empty() {
            write!(f, "/{}", namespace.escape_ascii())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_key_takes_two_words() {
        assert_eq!(size_of::<EntryKey>(), 16);
    }

    #[test]
    fn parts_come_back_at_every_length() {
        for key_len in 0..20 {
            for namespace_len in 0..20 {
                let (key, namespace) = (vec![7; key_len], vec![0; namespace_len]);
                let entry = EntryKey::new(&key, &namespace);
                assert_eq!(entry.parts(), (&key[..], &namespace[..]));
                assert_eq!(entry == EntryKey::plain(&key), namespace_len == 0);
                assert_eq!(entry.is_plain(&key), namespace_len == 0);
                let word = <[u8; 8]>::try_from(&key[..]).ok().filter(|_| namespace_len == 0);
                let word = word.map(Word);
                assert_eq!(matches!(entry, EntryKey::Word(_)), word.is_some());
                assert!(word.is_none_or(|word| entry.is_word(word)));
                for mut other in [EntryKey::new(&[1; 8], &[]), EntryKey::new(&[1; 30], &[2])] {
                    other.become_same(&entry);
                    assert!(other == entry);
                }
            }
        }
    }
}
