//! [`KeySelector`]: how the key of a record is found.

use std::sync::Arc;

use element::Key;

/// Made anew by a function, or borrowed from the record. Shared by all subtasks.
pub enum KeySelector<T, K> {
    /// The function returns a key of its own.
    Owned(Arc<dyn Fn(&T) -> K + Send + Sync>),
    /// The function returns a part of the record: no clone a record.
    Borrowed(Arc<dyn for<'a> Fn(&'a T) -> &'a K + Send + Sync>),
}

impl<T, K> Clone for KeySelector<T, K> {
    fn clone(&self) -> Self {
        match self {
            Self::Owned(function) => Self::Owned(Arc::clone(function)),
            Self::Borrowed(function) => Self::Borrowed(Arc::clone(function)),
        }
    }
}

impl<T, K: Key> KeySelector<T, K> {
    /// Appends the canonical bytes of the record's key; gives the key back if one was made.
    #[inline]
    pub fn encode(&self, value: &T, into: &mut Vec<u8>) -> Option<K> {
        match self {
            Self::Owned(function) => {
                let key = function(value);
                key.encode_key(into);
                Some(key)
            }
            Self::Borrowed(function) => {
                function(value).encode_key(into);
                None
            }
        }
    }

    /// The record's key: a clone, where it is a part of the record.
    pub fn key(&self, value: &T) -> K {
        match self {
            Self::Owned(function) => function(value),
            Self::Borrowed(function) => function(value).clone(),
        }
    }
}
