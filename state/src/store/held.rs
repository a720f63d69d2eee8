//! [`HeldWrites`]: writes that wait beside a store while a view of it is made.
//!
//! Put in by the store that holds them back, read by its look-ups and scans as if they were in it, and
//! taken out again in order of keys once the view is there. Left out on purpose: when that is.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use super::{Visit, WriteBatch};
use crate::StoreFailure;

/// Bytes of memory that an entry costs beside its key and value, about.
const ENTRY_BYTES: usize = 64;

/// Puts and deletes by key, the latest of each.
#[derive(Debug, Default)]
pub(super) struct HeldWrites {
    /// No value is a delete.
    entries: BTreeMap<Box<[u8]>, Option<Box<[u8]>>>,
    /// An upper bound of the memory of the entries; 0 when there is none.
    bytes: usize,
}

impl HeldWrites {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many keys they are of.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The memory they take, at most.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the writes of a batch, in its order. Logarithmic for each.
    pub(super) fn hold(&mut self, batch: &WriteBatch) {
        for (key, value) in batch.iter() {
            self.bytes += ENTRY_BYTES + key.len() + value.map_or(0, <[u8]>::len);
            self.entries.insert(key.into(), value.map(Into::into));
        }
    }

    /// What is held of a key: nothing, a delete (`Some(None)`) or a value.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.entries.get(key).map(Option::as_deref)
    }

    /// Takes up to `count` of the least keys out, into `batch`.
    pub(super) fn release(&mut self, count: usize, batch: &mut WriteBatch) {
        for _ in 0..count {
            let Some((key, value)) = self.entries.pop_first() else { break };
            match value {
                Some(value) => batch.put(&key, &value),
                None => batch.delete(&key),
            }
        }
        if self.entries.is_empty() {
            self.bytes = 0;
        }
    }

    /// Visits what `stored` visits from `from` up to `to`, with the held writes on top, in order.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`] of `stored`; what was visited before stands.
    pub(super) fn over(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        stored: impl FnOnce(Visit<'_>) -> Result<(), StoreFailure>,
        visit: Visit<'_>,
    ) -> Result<(), StoreFailure> {
        if self.is_empty() || to.is_some_and(|to| to <= from) {
            return stored(visit);
        }
        let range = (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded));
        let mut held = self.entries.range::<[u8], _>(range).peekable();
        let mut ended = false;
        stored(&mut |key, value| {
            let mut flow = ControlFlow::Continue(());
            let mut replaced = false;
            while let Some((at, put)) = held.next_if(|(at, _)| at.as_ref() <= key) {
                replaced = at.as_ref() == key;
                if let Some(put) = put {
                    flow = visit(at, put);
                }
                if flow.is_break() {
                    break;
                }
            }
            if flow.is_continue() && !replaced {
                flow = visit(key, value);
            }
            ended = flow.is_break();
            flow
        })?;
        for (key, value) in held.filter(|_| !ended) {
            if let Some(value) = value
                && visit(key, value).is_break()
            {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::store::{ByteStore, MemoryByteStore};

    type Entries = Vec<(Vec<u8>, Vec<u8>)>;

    fn batch(writes: &[(u8, Option<u8>)]) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for (key, value) in writes {
            match value {
                Some(value) => batch.put(&[*key], &[*value]),
                None => batch.delete(&[*key]),
            }
        }
        batch
    }

    /// Up to `limit` entries from `from` on.
    fn seen(held: &HeldWrites, store: &dyn ByteStore, from: u8, to: u8, limit: usize) -> Entries {
        let mut entries = Entries::new();
        let stored = |visit: Visit<'_>| store.scan(&[from], Some(&[to]), visit);
        held.over(&[from], Some(&[to]), stored, &mut |key, value| {
            entries.push((key.to_vec(), value.to_vec()));
            let full = entries.len() == limit;
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        entries
    }

    #[test]
    fn a_scan_shows_held_writes_as_if_they_were_in_the_store() {
        // Every choice of three stored keys and of three held puts or deletes, every range and limit.
        for case in 0..8 * 27_u32 {
            let stored: Vec<_> = (0..3).filter(|i| case >> i & 1 == 1).collect();
            let stored: Vec<_> = stored.iter().map(|i| (2 * *i as u8, Some(1))).collect();
            let mut writes = Vec::new();
            let mut choice = case / 8;
            for key in 1..4 {
                match choice % 3 {
                    0 => {}
                    1 => writes.push((key, Some(9))),
                    _ => writes.push((key, None)),
                }
                choice /= 3;
            }
            let (mut below, mut whole) = (MemoryByteStore::default(), MemoryByteStore::default());
            below.write(&batch(&stored)).unwrap();
            whole.write(&batch(&stored)).unwrap();
            whole.write(&batch(&writes)).unwrap();
            let mut held = HeldWrites::default();
            held.hold(&batch(&writes));
            for (from, to, limit) in [(0, 9, 9), (1, 4, 9), (2, 3, 9), (0, 9, 2), (0, 9, 1)] {
                let expected = seen(&HeldWrites::default(), &whole, from, to, limit);
                assert_eq!(seen(&held, &below, from, to, limit), expected, "{stored:?} {writes:?}");
            }
        }
    }

    #[test]
    fn what_is_released_is_held_no_more_and_comes_in_order() {
        let mut held = HeldWrites::default();
        held.hold(&batch(&[(3, Some(1)), (1, Some(1)), (3, None), (2, Some(5))]));
        let mut released = WriteBatch::new();
        held.release(2, &mut released);
        assert_eq!((held.get(&[1]), held.get(&[3])), (None, Some(None)));
        assert!(held.bytes() > 0);
        held.release(2, &mut released);
        let entries: Vec<_> = released.iter().collect();
        let (one, two): (&[u8], &[u8]) = (&[1], &[5]);
        assert_eq!(entries, [(&[1][..], Some(one)), (&[2][..], Some(two)), (&[3][..], None)]);
        assert_eq!((held.is_empty(), held.bytes()), (true, 0));
    }
}
