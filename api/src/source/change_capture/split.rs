//! [`CaptureSplit`]: a chunk of a captured table, from unread to followed in the log.
//!
//! ```text
//!   Chunk --read, changes up to high merged--> Rows --all sent--> Followed
//! ```
//!
//! Made by the enumerator as chunks; a reader stores each in the state that it has reached. There is
//! no split of the log: a chunk that is followed says up to where its changes have been sent, so the
//! log can be dealt anew, chunk by chunk, at another parallelism.

use element::{decode_exact, encode_to_vec};

use crate::Record;

/// Keys from `from`, up to but without `to`; without bound where there is none.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub struct KeyRange<K> {
    /// The least key.
    pub from: Option<K>,
    /// The key behind the greatest.
    pub to: Option<K>,
}

impl<K: Ord> KeyRange<K> {
    /// Whether a key lies in it.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.from.as_ref().is_none_or(|from| from <= key)
            && self.to.as_ref().is_none_or(|to| key < to)
    }
}

/// A chunk that has been sent, and is followed in the log.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub struct Followed<K, P> {
    pub(super) number: u32,
    pub(super) range: KeyRange<K>,
    /// Its changes up to here have been sent, as rows or as changes.
    pub(super) upto: P,
}

/// A part of a captured table that one reader reads.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub enum CaptureSplit<K, R, P> {
    /// A chunk that is to be read from its beginning.
    Chunk(u32, KeyRange<K>),
    /// A chunk that has been read, with the rows that have not been sent.
    Rows(Followed<K, P>, Vec<(K, R)>),
    /// A chunk that has been sent.
    Followed(Followed<K, P>),
}

/// What enumerator and readers say to each other.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Reader: these chunks have been sent.
    Sent(Vec<u32>),
    /// Enumerator: all chunks of all readers have been; follow yours in the log.
    LogBegins,
}

impl Word {
    pub(super) fn say(&self) -> Vec<u8> {
        encode_to_vec(self)
    }

    pub(super) fn hear(bytes: &[u8]) -> anyhow::Result<Self> {
        Ok(decode_exact(bytes)?)
    }
}
