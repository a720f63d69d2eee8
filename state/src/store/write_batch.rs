//! [`WriteBatch`]: puts and deletes, one behind the other in one buffer.

use std::ops::Range;

/// Puts and deletes for a store, in order.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// Where an entry lies in `bytes`; its value follows its key.
#[derive(Clone, Debug)]
struct Entry {
    start: usize,
    key_end: usize,
    /// `None` for a delete.
    end: Option<usize>,
}

impl Entry {
    fn key(&self) -> Range<usize> {
        self.start..self.key_end
    }

    fn value(&self) -> Option<Range<usize>> {
        self.end.map(|end| self.key_end..end)
    }
}

impl WriteBatch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a put.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.put_with(|out| out.extend_from_slice(key), |out| out.extend_from_slice(value));
    }

    /// Adds a delete.
    pub fn delete(&mut self, key: &[u8]) {
        self.delete_with(|out| out.extend_from_slice(key));
    }

    /// Adds a put whose key and value are appended to the batch's own buffer.
    pub fn put_with(&mut self, key: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        key(&mut self.bytes);
        let key_end = self.bytes.len();
        value(&mut self.bytes);
        self.entries.push(Entry { start, key_end, end: Some(self.bytes.len()) });
    }

    /// Adds a delete whose key is appended to the batch's own buffer.
    pub fn delete_with(&mut self, key: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        key(&mut self.bytes);
        self.entries.push(Entry { start, key_end: self.bytes.len(), end: None });
    }

    /// The number of puts and deletes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all keys and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Keys and values in order; no value is a delete.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.entries
            .iter()
            .map(|entry| (&self.bytes[entry.key()], entry.value().map(|value| &self.bytes[value])))
    }

    /// Forgets everything but the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// An empty batch with room for as much as this one has.
    pub(crate) fn empty_of_its_size(&self) -> Self {
        Self {
            bytes: Vec::with_capacity(self.bytes.len()),
            entries: Vec::with_capacity(self.entries.len()),
        }
    }

    /// Orders the entries from `start` on by key. No key may be there twice.
    pub(crate) fn sort_from(&mut self, start: usize) {
        let bytes = &self.bytes;
        if let Some(tail) = self.entries.get_mut(start..).filter(|tail| tail.len() > 1) {
            tail.sort_unstable_by(|a, b| bytes[a.key()].cmp(&bytes[b.key()]));
        }
    }
}

impl WriteBatch {
    /// Adds all of another batch behind this one.
    pub(crate) fn append(&mut self, other: &Self) {
        let shift = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.entries.extend(other.entries.iter().map(|entry| Entry {
            start: entry.start + shift,
            key_end: entry.key_end + shift,
            end: entry.end.map(|end| end + shift),
        }));
    }
}
