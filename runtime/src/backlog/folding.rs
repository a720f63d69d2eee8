//! Records into a table of partial results, a block of keys at a time.
//!
//! Read by the operator that collects its backlog, and by producers that combine before an exchange.

use std::sync::Arc;

use element::{Batch, Key, Timestamp, hash_key_bytes};
use sort::{Combiner, CombiningSorter, KeyBlock, NO_TIMESTAMP, SortError};

use crate::error::TaskError;
use crate::operator::function::Fold;
use crate::operator::selector::KeySelector;
use crate::user::Position;

/// A [`Fold`] as the combining sorter sees it: later partials go into earlier ones.
pub(crate) struct FoldCombiner<C, I> {
    fold: Arc<C>,
    input: std::marker::PhantomData<fn(I)>,
}

impl<C, I> FoldCombiner<C, I> {
    pub(crate) fn new(fold: Arc<C>) -> Self {
        Self { fold, input: std::marker::PhantomData }
    }
}

impl<C: Fold<I>, I> Combiner for FoldCombiner<C, I> {
    type Accumulator = C::Partial;

    fn merge(&self, into: &mut C::Partial, other: C::Partial) {
        self.fold.merge(into, other);
    }
}

/// The keys of records that are to be folded. Reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct FoldedKeys {
    block: KeyBlock,
    /// Keys that are numbers, of a whole batch.
    numbers: Vec<u64>,
}

/// Folds a batch, record by record in order; `position` says which record the user's code is at. Few
/// keys that are numbers are found by them, all others by their bytes, a block of records at a time.
///
/// # Errors
///
/// [`TaskError::Sort`] by the operator's `name`, and what the fold says of a record that belongs
/// nowhere.
pub(crate) fn fold_batch<I, K: Key, C: Fold<I>>(
    batch: Batch<I>,
    selector: &KeySelector<I, K>,
    fold: &C,
    keys: &mut FoldedKeys,
    sorter: &mut CombiningSorter<FoldCombiner<C, I>>,
    position: &mut Position,
    name: &str,
) -> anyhow::Result<()> {
    let FoldedKeys { block, numbers } = keys;
    if C::PART == 0 && sorter.wants_numbers() {
        let before = position.begun();
        numbers.clear();
        let has_numbers = selector.numbers(batch.values(), position, numbers);
        position.back_to(before);
        if has_numbers {
            let folded = fold_numbered(batch, selector, fold, numbers, sorter, position);
            return Ok(folded.map_err(TaskError::sort(name))?);
        }
    }
    fold_blocks(batch, selector, fold, block, sorter, position, name)
}

fn fold_numbered<I, K: Key, C: Fold<I>>(
    batch: Batch<I>,
    selector: &KeySelector<I, K>,
    fold: &C,
    numbers: &[u64],
    sorter: &mut CombiningSorter<FoldCombiner<C, I>>,
    position: &mut Position,
) -> Result<(), SortError> {
    let key = |value: &I, bytes: &mut Vec<u8>| {
        append_key(value, selector, bytes);
        hash_key(bytes, 0)
    };
    let fold = |partial: Option<&mut C::Partial>, value| fold.fold(partial, value);
    let (values, stamps) = batch.into_parts();
    let values = values.into_iter().inspect(|_| position.next());
    match stamps {
        // Its own loop, in which nothing is asked about times.
        None => {
            let records = values.map(|value| (NO_TIMESTAMP, value));
            sorter.update_numbered(numbers, records, key, fold)
        }
        Some(stamps) => {
            let stamps = stamps.into_iter().map(Timestamp::as_millis);
            sorter.update_numbered(numbers, stamps.zip(values), key, fold)
        }
    }
}

fn fold_blocks<I, K: Key, C: Fold<I>>(
    batch: Batch<I>,
    selector: &KeySelector<I, K>,
    fold: &C,
    block: &mut KeyBlock,
    sorter: &mut CombiningSorter<FoldCombiner<C, I>>,
    position: &mut Position,
    name: &str,
) -> anyhow::Result<()> {
    let failed = TaskError::sort(name);
    let (values, stamps) = batch.into_parts();
    let mut values = values.into_iter();
    let stamps = stamps.unwrap_or_default();
    let mut stamps = stamps.as_slice();
    while !values.as_slice().is_empty() {
        let before = position.begun();
        block.clear();
        for (at, value) in values.as_slice().iter().enumerate() {
            if block.is_full() {
                break;
            }
            position.next();
            let timestamp = stamps.get(at).copied();
            block.push_with(|bytes| write_key(value, timestamp, selector, fold, bytes))?;
        }
        block.hash_with(|key| hash_key(key, C::PART));
        position.back_to(before);
        let records = values.by_ref().map(|value| {
            let stamp = stamps.split_off_first().map_or(i64::MIN, |stamp| stamp.as_millis());
            (stamp, value)
        });
        let folded = sorter.update_block(block, records, |partial, value| {
            position.next();
            fold.fold(partial, value)
        });
        folded.map_err(&failed)?;
    }
    Ok(())
}

/// Appends room for a hash, and the key of a record.
#[inline]
fn append_key<I, K: Key>(value: &I, selector: &KeySelector<I, K>, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&[0; 8]);
    selector.encode(value, bytes);
}

/// Appends room for the hash, key and part of a record.
#[inline]
fn write_key<I, K: Key, C: Fold<I>>(
    value: &I,
    timestamp: Option<Timestamp>,
    selector: &KeySelector<I, K>,
    fold: &C,
    bytes: &mut Vec<u8>,
) -> anyhow::Result<()> {
    append_key(value, selector, bytes);
    if C::PART > 0 {
        let part = bytes.len();
        fold.part(value, timestamp, bytes)?;
        debug_assert_eq!(bytes.len(), part + C::PART, "the stated length");
    }
    Ok(())
}

/// Writes the hash of a key into the eight bytes before it, and answers the hash for the table: that of its
/// last `part` bytes counts, too.
#[inline]
fn hash_key(bytes: &mut [u8], part: usize) -> u64 {
    let (key, part) = bytes.split_at_mut(bytes.len().saturating_sub(part));
    let Some((head, key)) = key.split_first_chunk_mut::<8>() else { return 0 };
    let hash = hash_key_bytes(key).0;
    *head = hash.to_be_bytes();
    if part.is_empty() { hash } else { hash ^ hash_key_bytes(part).0 }
}
