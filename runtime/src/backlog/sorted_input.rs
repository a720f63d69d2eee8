//! [`SortedInput`]: records of a backlog on their way into the sorter.
//!
//! ```text
//! | key | timestamp | 1 if there is one, else 0; the record as it is encoded |
//! ```
//!
//! The loop is a part of the call that knows the key's function ([`crate::operator::selector`]): the key is
//! put together in the sorter's own memory, and hashed there.

use element::{Batch, Record, Timestamp, hash_key_bytes};
use sort::{ExternalSorter, NO_TIMESTAMP, SortError};

use super::key_watch::KeyWatch;
use crate::user::Position;

/// A sorter, and who is told of what goes into it.
pub(crate) struct SortedInput<'a> {
    pub(super) sorter: &'a mut ExternalSorter,
    pub(super) watch: Option<&'a mut KeyWatch>,
    pub(super) position: &'a mut Position,
}

impl SortedInput<'_> {
    /// Pushes records, each with the key that `encode` appends.
    ///
    /// # Errors
    ///
    /// As [`ExternalSorter::push`].
    #[inline]
    pub(crate) fn push<T: Record>(
        mut self,
        batch: Batch<T>,
        encode: impl Fn(&T, &mut Vec<u8>),
    ) -> Result<(), SortError> {
        let (values, stamps) = batch.into_parts();
        match stamps {
            // Its own loop, in which nothing is asked about times.
            None => values
                .into_iter()
                .try_for_each(|value| self.push_one(&value, NO_TIMESTAMP, 0, &encode)),
            Some(stamps) => values.into_iter().zip(stamps).try_for_each(|(value, stamp)| {
                self.push_one(&value, Timestamp::as_millis(stamp), 1, &encode)
            }),
        }
    }

    #[inline(always)]
    fn push_one<T: Record>(
        &mut self,
        value: &T,
        timestamp: i64,
        is_stamped: u8,
        encode: impl Fn(&T, &mut Vec<u8>),
    ) -> Result<(), SortError> {
        self.position.next();
        let watch = &mut self.watch;
        self.sorter.push_with_prefix(
            timestamp,
            |key| encode(value, key),
            |key| {
                let hash = hash_key_bytes(key);
                watch.iter_mut().for_each(|watch| watch.see(hash));
                hash.0
            },
            |payload| {
                payload.push(is_stamped);
                value.encode(payload);
            },
        )
    }
}
