//! [`KeySelector`]: how the key of a record is found.
//!
//! Made anew by a function, or borrowed from the record. Shared by all subtasks. The function lies behind one
//! virtual call, which does with the key what is wanted of it: so a loop over a batch's keys is one call.

use std::sync::Arc;

use element::Key;

use super::hashed_keys::HashedKeys;
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
}

/// What is done with a key where its function is known.
trait Select<T, K>: Send + Sync {
    fn encode(&self, value: &T, into: &mut Vec<u8>) -> Option<K>;

    fn key(&self, value: &T) -> K;

    fn numbers(&self, values: &[T], position: &mut Position, into: &mut Vec<u64>) -> bool;

    fn hashed(&self, values: &[T], position: &mut Position, into: &mut HashedKeys<K>);
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
