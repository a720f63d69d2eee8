//! [`KeySelector`]: how the key of a record is found.
//!
//! Made anew by a function, or borrowed from the record. Shared by all subtasks. The function lies behind one
//! virtual call, which does with the key what is wanted of it: so a loop over a batch's keys is one call.

use std::sync::Arc;

use element::{Batch, Key, MaxParallelism, Record, SubpartitionIndex, hash_key_bytes};
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
    /// Appends the canonical bytes of the record's key; gives the key back if one was made.
    #[inline]
    pub fn encode(&self, value: &T, into: &mut Vec<u8>) -> Option<K> {
        self.0.encode(value, into)
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

    /// Appends each record's key, encoded and hashed, and says of `position` which record it is at.
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
    fn encode(&self, value: &T, into: &mut Vec<u8>) -> Option<K>;

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

struct Owned<F>(F);

impl<T, K: Key, F: Fn(&T) -> K + Send + Sync> Select<T, K> for Owned<F> {
    fn encode(&self, value: &T, into: &mut Vec<u8>) -> Option<K> {
        let key = (self.0)(value);
        key.encode_key(into);
        Some(key)
    }

    fn key(&self, value: &T) -> K {
        (self.0)(value)
    }

    fn numbers(&self, values: &[T], position: &mut Position, into: &mut Vec<u64>) -> bool {
        append_numbers(values, position, into, |value| (self.0)(value).as_number())
    }

    fn hashed(&self, values: &[T], position: &mut Position, into: &mut HashedKeys<K>) {
        into.extend_owned(values, position, &self.0);
    }

    fn targets(
        &self,
        values: &[T],
        to: (MaxParallelism, u32),
        bytes: &mut Vec<u8>,
        into: &mut Vec<SubpartitionIndex>,
    ) {
        append_targets(values, to, bytes, into, |value, bytes| (self.0)(value).encode_key(bytes));
    }

    fn push(&self, batch: Batch<T>, into: SortedInput<'_>) -> Result<(), SortError>
    where
        T: Record,
    {
        into.push(batch, |value, bytes| (self.0)(value).encode_key(bytes))
    }
}

struct Borrowed<F>(F);

impl<T, K: Key, F> Select<T, K> for Borrowed<F>
where
    F: for<'a> Fn(&'a T) -> &'a K + Send + Sync,
{
    fn encode(&self, value: &T, into: &mut Vec<u8>) -> Option<K> {
        (self.0)(value).encode_key(into);
        None
    }

    fn key(&self, value: &T) -> K {
        (self.0)(value).clone()
    }

    fn numbers(&self, values: &[T], position: &mut Position, into: &mut Vec<u64>) -> bool {
        append_numbers(values, position, into, |value| (self.0)(value).as_number())
    }

    fn hashed(&self, values: &[T], position: &mut Position, into: &mut HashedKeys<K>) {
        into.extend_borrowed(values, position, &self.0);
    }

    fn targets(
        &self,
        values: &[T],
        to: (MaxParallelism, u32),
        bytes: &mut Vec<u8>,
        into: &mut Vec<SubpartitionIndex>,
    ) {
        append_targets(values, to, bytes, into, |value, bytes| (self.0)(value).encode_key(bytes));
    }

    fn push(&self, batch: Batch<T>, into: SortedInput<'_>) -> Result<(), SortError>
    where
        T: Record,
    {
        into.push(batch, |value, bytes| (self.0)(value).encode_key(bytes))
    }
}

#[inline]
fn append_numbers<T>(
    values: &[T],
    position: &mut Position,
    into: &mut Vec<u64>,
    number: impl Fn(&T) -> Option<u64>,
) -> bool {
    into.reserve(values.len());
    for value in values {
        position.next();
        let Some(number) = number(value) else { return false };
        into.push(number);
    }
    true
}

#[inline]
fn append_targets<T>(
    values: &[T],
    (groups, consumers): (MaxParallelism, u32),
    bytes: &mut Vec<u8>,
    into: &mut Vec<SubpartitionIndex>,
    encode: impl Fn(&T, &mut Vec<u8>),
) {
    into.extend(values.iter().map(|value| {
        bytes.clear();
        encode(value, bytes);
        SubpartitionIndex(groups.subtask_of(hash_key_bytes(bytes), consumers).0)
    }));
}
