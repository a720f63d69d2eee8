//! [`TypedSorter`]: the sorter over a [`Key`] and a [`Record`], encoded on the way in, decoded on the
//! way out.
//!
//! The canonical bytes of a key compare as the keys do, so the order is that of the keys, and equal
//! keys are one group whatever they looked like before (BEAM-321). Left out on purpose: comparing
//! values; whoever sorts by something makes it the key.

use std::marker::PhantomData;

use element::{Key, Record, Timestamp, decode_exact, decode_key_exact};

use crate::{
    ExternalSorter, NO_TIMESTAMP, SortError, SortStats, SortedRecord, SortedStream, SorterOptions,
};

/// Sorts values by key, then timestamp, then arrival; records without a timestamp come before all
/// others of their key, in order of arrival.
#[derive(Debug)]
pub struct TypedSorter<K, T> {
    inner: ExternalSorter,
    // A function of both, so that the sorter is Send and Sync whatever they are.
    types: PhantomData<fn(K, T)>,
}

impl<K: Key, T: Record> TypedSorter<K, T> {
    /// A sorter without records.
    #[must_use]
    pub fn new(options: SorterOptions) -> Self {
        Self { inner: ExternalSorter::new(options), types: PhantomData }
    }

    /// Adds a value. Encodes key and value straight into the sorter's memory.
    ///
    /// # Errors
    ///
    /// As [`ExternalSorter::push`].
    pub fn push(
        &mut self,
        key: &K,
        timestamp: Option<Timestamp>,
        value: &T,
    ) -> Result<(), SortError> {
        let timestamp = timestamp.map_or(NO_TIMESTAMP, Timestamp::as_millis);
        self.inner.push_with(timestamp, |out| key.encode_key(out), |out| value.encode(out))
    }

    /// The counts so far.
    #[must_use]
    pub fn stats(&self) -> SortStats {
        self.inner.stats()
    }

    /// Ends the input.
    ///
    /// # Errors
    ///
    /// As [`ExternalSorter::finish`].
    pub fn finish(self) -> Result<TypedStream<K, T>, SortError> {
        Ok(TypedStream { inner: self.inner.finish()?, types: PhantomData })
    }
}

/// Sorted values, decoded as they are asked for. An ordinary iterator, for they are owned.
#[derive(Debug)]
pub struct TypedStream<K, T> {
    inner: SortedStream,
    types: PhantomData<fn(K, T)>,
}

impl<K: Key, T: Record> TypedStream<K, T> {
    /// The counts of the sort.
    #[must_use]
    pub fn stats(&self) -> SortStats {
        self.inner.stats()
    }

    /// The same records as bytes: for whoever compares keys before decoding them.
    #[must_use]
    pub fn into_bytes(self) -> SortedStream {
        self.inner
    }
}

impl<K: Key, T: Record> Iterator for TypedStream<K, T> {
    type Item = Result<(K, Option<Timestamp>, T), SortError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next().and_then(|record| record.map(decode).transpose()).transpose()
    }
}

fn decode<K: Key, T: Record>(
    record: SortedRecord<'_>,
) -> Result<(K, Option<Timestamp>, T), SortError> {
    let timestamp = (record.timestamp != NO_TIMESTAMP).then_some(Timestamp(record.timestamp));
    Ok((decode_key_exact(record.key)?, timestamp, decode_exact(record.payload)?))
}
