//! [`Batch`]: the unit that moves between operators and tasks.
//!
//! About a thousand values with their timestamps side by side, so that a virtual call, a channel
//! operation and a clock reading are paid once a batch.

use crate::Timestamp;

/// Records in a full batch.
pub const BATCH_RECORDS: usize = 1_024;

/// Values in arrival order, either all with a timestamp or all without.
///
/// **Invariant:** the timestamps are absent, or as many as the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch<T> {
    values: Vec<T>,
    timestamps: Option<Vec<Timestamp>>,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { values: Vec::new(), timestamps: None }
    }
}

impl<T> Batch<T> {
    /// Records without timestamps.
    #[must_use]
    pub fn unstamped(values: Vec<T>) -> Self {
        Self { values, timestamps: None }
    }

    /// Records with timestamps.
    ///
    /// # Panics
    ///
    /// If the two lists differ in length.
    #[must_use]
    pub fn stamped(values: Vec<T>, timestamps: Vec<Timestamp>) -> Self {
        assert_eq!(values.len(), timestamps.len(), "one timestamp a value");
        Self { values, timestamps: Some(timestamps) }
    }

    /// Values with the timestamps of another batch of the same length, or with none.
    ///
    /// # Panics
    ///
    /// If the two lists differ in length.
    #[must_use]
    pub fn new(values: Vec<T>, timestamps: Option<Vec<Timestamp>>) -> Self {
        if let Some(stamps) = &timestamps {
            assert_eq!(values.len(), stamps.len(), "one timestamp a value");
        }
        Self { values, timestamps }
    }

    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The timestamps, if the records have them.
    #[must_use]
    pub fn timestamps(&self) -> Option<&[Timestamp]> {
        self.timestamps.as_deref()
    }

    /// The timestamp of one record; `None` if it has none, or does not exist.
    #[must_use]
    pub fn timestamp(&self, index: usize) -> Option<Timestamp> {
        self.timestamps.as_ref().and_then(|stamps| stamps.get(index).copied())
    }

    /// Values and timestamps, apart.
    #[must_use]
    pub fn into_parts(self) -> (Vec<T>, Option<Vec<Timestamp>>) {
        (self.values, self.timestamps)
    }

    /// Whether `push` with this kind of timestamp would keep the invariant.
    #[must_use]
    #[inline]
    pub fn admits(&self, timestamp: Option<Timestamp>) -> bool {
        self.values.is_empty() || self.timestamps.is_some() == timestamp.is_some()
    }

    /// Appends a record.
    ///
    /// # Panics
    ///
    /// If the batch does not [admit](Self::admits) this kind of timestamp.
    #[inline]
    pub fn push(&mut self, value: T, timestamp: Option<Timestamp>) {
        match (&mut self.timestamps, timestamp) {
            (Some(stamps), Some(stamp)) => stamps.push(stamp),
            (None, None) => {}
            (_, timestamp) => self.begin(timestamp),
        }
        self.values.push(value);
    }

    /// Appends a record for which there is room, of the kind that is there; else gives its value back.
    ///
    /// # Errors
    ///
    /// The value.
    #[inline]
    pub fn push_within(&mut self, value: T, timestamp: Option<Timestamp>) -> Result<(), T> {
        if self.values.len() == self.values.capacity() {
            return Err(value);
        }
        match (&mut self.timestamps, timestamp) {
            (None, None) => {}
            (Some(stamps), Some(stamp)) => stamps.push(stamp),
            _ => return Err(value),
        }
        self.values.push(value);
        Ok(())
    }

    /// The first record says whether there are timestamps.
    #[cold]
    fn begin(&mut self, timestamp: Option<Timestamp>) {
        assert!(self.values.is_empty(), "a batch is all stamped or all unstamped");
        self.timestamps = timestamp.map(|stamp| vec![stamp]);
    }

    /// Appends records up to the first that the batch does not [admit](Self::admits), and answers how many.
    pub fn fill(&mut self, records: impl Iterator<Item = (T, Option<Timestamp>)>) -> usize {
        let before = self.len();
        // Beside the batch while it grows: their lengths then stay out of memory.
        let Self { mut values, mut timestamps } = std::mem::take(self);
        for (value, timestamp) in records {
            match (&mut timestamps, timestamp) {
                (None, None) => {}
                (Some(stamps), Some(stamp)) => stamps.push(stamp),
                (stamps, stamp) if values.is_empty() => *stamps = stamp.map(|stamp| vec![stamp]),
                _ => break,
            }
            values.push(value);
        }
        *self = Self { values, timestamps };
        self.len() - before
    }

    /// Makes room for `additional` records.
    pub fn reserve(&mut self, additional: usize) {
        self.values.reserve(additional);
        if let Some(stamps) = &mut self.timestamps {
            stamps.reserve(additional);
        }
    }

    /// The records, one by one, with their timestamps.
    pub fn into_records(self) -> impl Iterator<Item = (T, Option<Timestamp>)> {
        let mut stamps = self.timestamps.map(Vec::into_iter);
        self.values.into_iter().map(move |value| (value, stamps.as_mut().and_then(Iterator::next)))
    }
}
