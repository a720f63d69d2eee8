//! [`KeySelector`]: how the key of a record is found.
//!
//! Made anew by a function, or borrowed from the record. Shared by all subtasks. The function lies behind one
//! virtual call, which does with the key what is wanted of it: so a loop over a batch's keys is one call.

use std::borrow::Borrow;
use std::sync::Arc;

use element::{
    Batch, Key, MaxParallelism, Record, SubpartitionIndex, hash_key_bytes, hash_key_word,
};
use sort::SortError;

use super::hashed_keys::HashedKeys;
use crate::backlog::SortedInput;
use crate::user::Position;

/// Finds the key of a record.
pub struct KeySelector<T, K>(Arc<dyn Select<T, K>>);

impl<T, K> Clone for KeySelector<T, K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: 'static, K: Key> KeySelector<T, K> {
    /// The function returns a key of its own.
    #[must_use]
    pub fn owned(function: impl Fn(&T) -> K + Send + Sync + 'static) -> Self {
        Self(Arc::new(Owned(function)))
    }

    /// The function returns a part of the record: no clone a record.
    #[must_use]
    pub fn borrowed(function: impl for<'a> Fn(&'a T) -> &'a K + Send + Sync + 'static) -> Self {
        Self(Arc::new(Borrowed(function)))
    }
}

impl<T, K: Key> KeySelector<T, K> {
    /// Appends the canonical bytes of the record's key.
    #[inline]
    pub fn encode(&self, value: &T, into: &mut Vec<u8>) {
        self.0.encode(value, into);
    }

    /// The record's key: a clone, where it is a part of the record.
    pub fn key(&self, value: &T) -> K {
        self.0.key(value)
    }

    /// Appends the number of each record's key ([`Key::as_number`]), and says of `position` which record it
    /// is at. False upon the first key that has none.
    pub(crate) fn numbers(
        &self,
        values: &[T],
        position: &mut Position,
        into: &mut Vec<u64>,
    ) -> bool {
        self.0.numbers(values, position, into)
    }

    /// Finds each record's key and hashes it, and says of `position` which record it is at.
    pub(crate) fn hashed(&self, values: &[T], position: &mut Position, into: &mut HashedKeys<K>) {
        self.0.hashed(values, position, into);
    }

    /// Appends the subtask that each record's key belongs to. `bytes` is room for a key.
    pub(crate) fn targets(
        &self,
        values: &[T],
        to: (MaxParallelism, u32),
        bytes: &mut Vec<u8>,
        into: &mut Vec<SubpartitionIndex>,
    ) {
        self.0.targets(values, to, bytes, into);
    }

    /// Pushes records into a sorter, behind the canonical bytes of their keys.
    ///
    /// # Errors
    ///
    /// As [`sort::ExternalSorter::push`].
    pub(crate) fn push(&self, batch: Batch<T>, into: SortedInput<'_>) -> Result<(), SortError>
    where
        T: Record,
    {
        self.0.push(batch, into)
    }
}

/// What is done with a key where its function is known.
trait Select<T, K>: Send + Sync {
    fn encode(&self, value: &T, into: &mut Vec<u8>);

    fn key(&self, value: &T) -> K;

    fn numbers(&self, values: &[T], position: &mut Position, into: &mut Vec<u64>) -> bool;

    fn hashed(&self, values: &[T], position: &mut Position, into: &mut HashedKeys<K>);

    fn targets(
        &self,
        values: &[T],
        to: (MaxParallelism, u32),
        bytes: &mut Vec<u8>,
        into: &mut Vec<SubpartitionIndex>,
    );

    fn push(&self, batch: Batch<T>, into: SortedInput<'_>) -> Result<(), SortError>
    where
        T: Record;
}

/// A function that makes keys, or finds them in records.
trait Find<T, K>: Send + Sync {
    /// A key, or a part of the record.
    type Found<'a>: Borrow<K>
    where
        T: 'a,
        K: 'a;

    /// Whether keys are made.
    const MAKES: bool;

    fn find<'a>(&self, value: &'a T) -> Self::Found<'a>;

    fn own(found: Self::Found<'_>) -> K;
}

struct Owned<F>(F);

impl<T, K: Key, F: Fn(&T) -> K + Send + Sync> Find<T, K> for Owned<F> {
    type Found<'a>
        = K
    where
        T: 'a,
        K: 'a;

    const MAKES: bool = true;

    #[inline]
    fn find(&self, value: &T) -> K {
        (self.0)(value)
    }

    fn own(found: K) -> K {
        found
    }
}

struct Borrowed<F>(F);

impl<T, K: Key, F> Find<T, K> for Borrowed<F>
where
    F: for<'a> Fn(&'a T) -> &'a K + Send + Sync,
{
    type Found<'a>
        = &'a K
    where
        T: 'a,
        K: 'a;

    const MAKES: bool = false;

    #[inline]
    fn find<'a>(&self, value: &'a T) -> &'a K {
        (self.0)(value)
    }

    fn own(found: &K) -> K {
        found.clone()
    }
}

impl<T, K: Key, S: Find<T, K>> Select<T, K> for S {
    fn encode(&self, value: &T, into: &mut Vec<u8>) {
        self.find(value).borrow().encode_key(into);
    }

    fn key(&self, value: &T) -> K {
        S::own(self.find(value))
    }

    fn numbers(&self, values: &[T], position: &mut Position, into: &mut Vec<u64>) -> bool {
        into.reserve(values.len());
        for value in values {
            position.next();
            let Some(number) = self.find(value).borrow().as_number() else { return false };
            into.push(number);
        }
        true
    }

    fn hashed(&self, values: &[T], position: &mut Position, into: &mut HashedKeys<K>) {
        if !into.words(values, position, |value| self.find(value).borrow().as_word()) {
            into.encode(values, position, |value, bytes| {
                let found = self.find(value);
                found.borrow().encode_key(bytes);
                S::MAKES.then(|| S::own(found))
            });
        }
    }

    fn targets(
        &self,
        values: &[T],
        (groups, consumers): (MaxParallelism, u32),
        bytes: &mut Vec<u8>,
        into: &mut Vec<SubpartitionIndex>,
    ) {
        into.extend(values.iter().map(|value| {
            let found = self.find(value);
            let hash = match found.borrow().as_word() {
                Some(word) => hash_key_word(word),
                None => {
                    bytes.clear();
                    found.borrow().encode_key(bytes);
                    hash_key_bytes(bytes)
                }
            };
            SubpartitionIndex(groups.subtask_of(hash, consumers).0)
        }));
    }

    fn push(&self, batch: Batch<T>, into: SortedInput<'_>) -> Result<(), SortError>
    where
        T: Record,
    {
        into.push(batch, |value, bytes| self.find(value).borrow().encode_key(bytes))
    }
}
