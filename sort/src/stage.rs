//! [`Stage`]: the latest records, on their way to their pages, some tens at a time.
//!
//! A record's key says where it belongs only once it is written down. So records are written one behind
//! the other, in a place that is always in the cache, and moved together, in a loop that does nothing
//! else: so many stores that miss wait for memory at once. (To read the places first, for their cache
//! lines, was dearer: 0.33 to 0.25 s for 10 M records without.)
//!
//! Filled by the sorter's callers, emptied by the sorter. Of constant size but for long records.

use crate::record;

/// Records moved at once.
const RECORDS: usize = 64;

/// Bytes beyond which they are moved before; more is not kept allocated.
pub(crate) const BYTES: usize = 8 << 10;

/// Records that wait.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    /// The records, encoded, in order of arrival; behind the last one what an aborted call left.
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: Vec<Staged>,
    /// Where the last complete record ends.
    end: usize,
    /// So many are moved at once, at most.
    most: usize,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staged {
    pub(crate) prefix: u64,
    /// Where it ends in the stage; it begins where the one before ends.
    pub(crate) end: usize,
}

/// A record that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    start: usize,
    pub(crate) key_at: usize,
    timestamp: i64,
}

impl Stage {
    /// One that holds records back, or, in a memory where they would count, none.
    pub(crate) fn new(holds_back: bool) -> Self {
        let most = if holds_back { RECORDS } else { 1 };
        Self { bytes: Vec::new(), records: Vec::new(), end: 0, most }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.records.len() >= self.most || self.bytes.len() >= BYTES
    }

    /// Begins a record behind the last complete one: the key is to be appended, then the payload.
    #[inline]
    pub(crate) fn begin(&mut self, timestamp: i64) -> Begun {
        let start = self.end;
        self.bytes.truncate(start);
        record::append_head(&mut self.bytes, timestamp, 0, 0);
        Begun { start, key_at: self.bytes.len(), timestamp }
    }

    /// Completes a record whose payload begins at `payload_at`; its lengths fit the narrow form.
    #[inline]
    pub(crate) fn complete(&mut self, begun: Begun, payload_at: usize, prefix: u64) {
        let end = self.bytes.len();
        let (key, payload) = (payload_at - begun.key_at, end - payload_at);
        record::set_lengths(&mut self.bytes, begun.start, begun.timestamp, key, payload);
        self.end = end;
        self.records.push(Staged { prefix, end });
    }

    /// Takes a record out again: its key and payload.
    #[cold]
    pub(crate) fn take_out(&mut self, begun: Begun) -> Vec<u8> {
        let parts = self.bytes.split_off(begun.key_at);
        self.bytes.truncate(begun.start);
        parts
    }

    /// Adds a whole record.
    #[inline]
    pub(crate) fn push(&mut self, prefix: u64, timestamp: i64, key: &[u8], payload: &[u8]) {
        self.bytes.truncate(self.end);
        record::append(&mut self.bytes, timestamp, key, payload);
        self.end = self.bytes.len();
        self.records.push(Staged { prefix, end: self.end });
    }

    /// Forgets all; a long record does not leave its memory behind.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.end = 0;
        if self.bytes.capacity() > 2 * BYTES {
            self.bytes = Vec::new();
        }
    }
}
