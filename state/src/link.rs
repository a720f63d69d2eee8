//! [`StoreLink`]: every read and write of the byte store, counted, and by the phase's own way.
//!
//! Outside of sorted input a read is a point or range read and a write is a batch. In sorted input
//! both go through [`crate::sorted`]. Without a store (one-key state) reads find nothing and writes
//! are forgotten.

use std::ops::ControlFlow;

use element::{KeyHash, Record};

use crate::current_key::CurrentKey;
use crate::slot::Meta;
use crate::sorted::SortedPhase;
use crate::store::{ByteStore, WriteBatch};
use crate::store_key;
use crate::{StateCounters, StateError, StoreFailure};

/// The way to the store.
#[derive(Debug)]
pub(crate) struct StoreLink {
    pub(crate) store: Option<Box<dyn ByteStore>>,
    pub(crate) phase: Option<SortedPhase>,
    pub(crate) counters: StateCounters,
    /// Changes outside of sorted input; empty between two writes.
    batch: WriteBatch,
}

impl StoreLink {
    pub(crate) fn new(store: Option<Box<dyn ByteStore>>) -> Self {
        Self { store, phase: None, counters: StateCounters::default(), batch: WriteBatch::new() }
    }

    /// Whether sorted input has come to where the store has no more entries.
    #[inline]
    fn has_nothing_left(&self) -> bool {
        self.phase.as_ref().is_some_and(|phase| phase.cursor.is_at_end())
    }

    /// The value of a store key of which `key_prefix` bytes are hash and key.
    fn get(&mut self, key: &[u8], key_prefix: usize) -> Result<Option<Vec<u8>>, StoreFailure> {
        let Some(store) = &self.store else { return Ok(None) };
        if let Some(phase) = &mut self.phase {
            phase.cursor.seek(&key[..key_prefix], store.as_ref(), &mut self.counters)?;
            return Ok(phase.cursor.get(key).map(<[u8]>::to_vec));
        }
        self.counters.store_reads += 1;
        store.get(key)
    }

    /// Visits the entries of a prefix from `from` on, as many as make a page; true if there are more.
    /// In sorted input the current key's entries are at hand, and make one page.
    fn page(
        &mut self,
        prefix: &[u8],
        key_prefix: usize,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<bool, StoreFailure> {
        let Some(store) = &self.store else { return Ok(false) };
        if let Some(phase) = &mut self.phase {
            phase.cursor.seek(&prefix[..key_prefix], store.as_ref(), &mut self.counters)?;
            phase.cursor.scan(prefix, visit);
            return Ok(false);
        }
        self.counters.store_range_reads += 1;
        let end = store_key::end_of_prefix(prefix);
        let (mut seen, mut bytes, mut more) = (0, 0, false);
        store.scan(from, end.as_deref(), &mut |key, value| {
            more = seen == PAGE || bytes >= PAGE_BYTES;
            if more {
                return ControlFlow::Break(());
            }
            seen += 1;
            bytes += key.len() + value.len();
            visit(key, value);
            ControlFlow::Continue(())
        })?;
        Ok(more)
    }

    /// Writes what `add` puts into a batch, ordered by key. In sorted input every key of it is greater than
    /// those written before.
    pub(crate) fn write(&mut self, add: impl FnOnce(&mut WriteBatch)) -> Result<(), StoreFailure> {
        let Some(store) = &mut self.store else { return Ok(()) };
        if let Some(phase) = &mut self.phase {
            return phase.append(add, store.as_mut(), &mut self.counters);
        }
        add(&mut self.batch);
        if self.batch.is_empty() {
            return Ok(());
        }
        self.counters.store_writes += self.batch.len() as u64;
        self.batch.sort_from(0);
        let written = store.write(&self.batch);
        self.batch.clear();
        written
    }
}

/// Entries, and bytes of them, that a map's iteration reads at once.
const PAGE: usize = 1_024;
const PAGE_BYTES: usize = 1 << 20;

/// A part of a stored map.
#[derive(Debug)]
pub(crate) struct Page<V> {
    /// Map keys and values, in order.
    pub(crate) entries: Vec<(Box<[u8]>, V)>,
    /// Whether the map goes on behind it.
    pub(crate) more: bool,
}

/// Reads the stored entries of one state, key and namespace.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    /// None in memory, where nothing is read.
    pub(crate) link: Option<&'a mut StoreLink>,
    pub(crate) state: &'a Meta,
    pub(crate) at: &'a CurrentKey,
    pub(crate) namespace: &'a [u8],
}

impl Reader<'_> {
    /// Whether there is a store beneath: whether a delete must be remembered.
    pub(crate) fn is_durable(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.store.is_some())
    }

    fn prefix(&self) -> (Vec<u8>, usize) {
        let key = self.at.key.key();
        let mut prefix = Vec::with_capacity(24 + key.len() + self.namespace.len());
        let hash = KeyHash(self.at.hash);
        store_key::push_prefix(hash, key, self.state.id, self.namespace, &mut prefix);
        (prefix, key.len())
    }

    /// The stored value under a map key; the empty one for a record.
    pub(crate) fn get<V: Record>(&mut self, map_key: &[u8]) -> Result<Option<V>, StateError> {
        if !self.is_durable() || self.link.as_ref().is_some_and(|link| link.has_nothing_left()) {
            return Ok(None);
        }
        let (mut key, key_len) = self.prefix();
        store_key::push_suffix(map_key, key_len, &mut key);
        let Some(link) = &mut self.link else { return Ok(None) };
        let bytes = link.get(&key, 8 + key_len)?;
        bytes.map(|bytes| decode(&self.state.name, &bytes)).transpose()
    }

    /// A page of the stored map keys with their values, in order: those behind `after`, or the first.
    pub(crate) fn page<V: Record>(&mut self, after: Option<&[u8]>) -> Result<Page<V>, StateError> {
        let (prefix, key_len) = self.prefix();
        let mut page = Page { entries: Vec::new(), more: false };
        let Some(link) = &mut self.link else { return Ok(page) };
        let mut from = prefix.clone();
        if let Some(map_key) = after {
            store_key::push_suffix(map_key, key_len, &mut from);
            // Right behind it.
            from.push(0);
        }
        let suffix = store_key::suffix_len(key_len);
        let mut failure = None;
        page.more = link.page(&prefix, 8 + key_len, &from, &mut |key, bytes| {
            let map_key = key.get(prefix.len()..key.len() - suffix).unwrap_or_default();
            match decode(&self.state.name, bytes) {
                Ok(value) => page.entries.push((map_key.into(), value)),
                Err(error) => failure = Some(error),
            }
        })?;
        failure.map_or(Ok(page), Err)
    }
}

fn decode<V: Record>(state: &str, bytes: &[u8]) -> Result<V, StateError> {
    element::decode_exact(bytes)
        .map_err(|source| StateError::Decode { state: state.to_owned(), source })
}
