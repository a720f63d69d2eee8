//! Records whose keys are numbers: found through the [`Front`](crate::front::Front), a batch at a time.

use element::Record;

use super::{Combiner, CombiningSorter, FAR};
use crate::SortError;
use crate::table::TableKey;

impl<C: Combiner> CombiningSorter<C> {
    /// Whether keys are found by their numbers more cheaply than by their bytes: few are there.
    #[must_use]
    #[inline]
    pub fn wants_numbers(&self) -> bool {
        self.plain.is_none() && self.table.len() < FAR
    }

    /// Folds records whose keys have numbers, in order: no two keys have one number, and a key always has
    /// the same. `records` gives a timestamp and a value for each of `numbers`; `key` appends the bytes of a
    /// value's key and answers their hash, and is asked for no more than the first record of a key, mostly;
    /// `fold` folds a value as that of [`update`](Self::update) does.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update), upon the first record that fails.
    #[inline]
    pub fn update_numbered<V>(
        &mut self,
        numbers: &[u64],
        records: impl Iterator<Item = (i64, V)>,
        mut key: impl FnMut(&V, &mut Vec<u8>) -> u64,
        mut fold: impl FnMut(Option<&mut C::Accumulator>, V) -> Option<C::Accumulator>,
    ) -> Result<(), SortError> {
        self.check()?;
        self.front.follow(&self.table, &mut self.spiller.account);
        // Counted beside the sorter: a count in memory is one wait for it a record.
        let (mut combined, mut key_bytes) = (0, 0);
        let mut done = Ok(());
        for (number, (timestamp, value)) in numbers.iter().zip(records) {
            let place = self.front.find(*number);
            done = match self.table.slot_mut(place.bucket as usize) {
                Some(slot) => {
                    combined += 1;
                    key_bytes += u64::from(place.key_len);
                    slot.timestamp = slot.timestamp.max(timestamp);
                    let before = slot.accumulator.estimated_bytes();
                    fold(Some(&mut slot.accumulator), value);
                    let after = slot.accumulator.estimated_bytes();
                    if before == after {
                        continue;
                    }
                    self.resized(before, after)
                }
                None => self.update_unknown(*number, timestamp, value, &mut key, &mut fold),
            };
            if done.is_err() {
                break;
            }
            self.front.follow(&self.table, &mut self.spiller.account);
        }
        let stats = &mut self.spiller.stats;
        stats.records += combined;
        stats.combined += combined;
        stats.bytes_in += key_bytes;
        done
    }

    /// Folds a record whose number leads nowhere, and takes note of where it leads.
    #[inline(never)]
    fn update_unknown<V>(
        &mut self,
        number: u64,
        timestamp: i64,
        value: V,
        key: &mut impl FnMut(&V, &mut Vec<u8>) -> u64,
        fold: &mut impl FnMut(Option<&mut C::Accumulator>, V) -> Option<C::Accumulator>,
    ) -> Result<(), SortError> {
        let mut bytes = std::mem::take(&mut self.key);
        bytes.clear();
        let hash = key(&value, &mut bytes);
        self.update(hash, &bytes, timestamp, |partial| fold(partial, value))?;
        self.front.follow(&self.table, &mut self.spiller.account);
        if let Some(bucket) = self.table.find(&TableKey::new(hash, &bytes)) {
            self.front.insert(number, bucket, bytes.len());
        }
        self.key = bytes;
        Ok(())
    }
}
