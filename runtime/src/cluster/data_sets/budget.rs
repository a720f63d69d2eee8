//! The budget of an environment's caches (`execution.cache.max-bytes`), and pins against it.
//!
//! Evicted first is what costs least to make again for each byte that it takes; of equal ones the
//! one whose last use is longest ago. What is pinned or being read stays, even above the budget.

use element::{ByteSize, DataSetId};

use super::{DataSets, Entry, State};

impl Entry {
    /// Nanoseconds of making for each byte at rest.
    fn worth(&self, bytes: u64) -> u128 {
        self.made_in.as_nanos() / u128::from(bytes.max(1))
    }
}

impl State {
    /// Evicts until the budget holds, or nothing is left that may be evicted.
    pub(super) fn hold_to(&mut self, budget: ByteSize) {
        loop {
            let mut total = 0;
            let mut cheapest: Option<((u128, u64), DataSetId)> = None;
            for (id, entry) in &self.sets {
                let Some((_, parts)) = entry.life.parts() else { continue };
                let bytes = parts.values().map(|part| part.bytes).sum();
                total += bytes;
                if entry.pinned || entry.readers > 0 || !entry.life.is_complete() {
                    continue;
                }
                let rank = (entry.worth(bytes), entry.used);
                if cheapest.is_none_or(|(least, _)| rank < least) {
                    cheapest = Some((rank, *id));
                }
            }
            match cheapest {
                Some((_, id)) if total > budget.0 => {
                    let reason = format!("evicted: all caches took {total} of {} bytes", budget.0);
                    self.lose(id, &reason);
                }
                _ => return,
            }
        }
    }
}

impl DataSets {
    /// Bytes of data sets that may not be evicted: pinned, or being read.
    #[must_use]
    pub fn fixed_bytes(&self) -> ByteSize {
        let state = self.state.lock();
        let fixed = state.sets.values().filter(|entry| entry.pinned || entry.readers > 0);
        let parts = fixed.filter_map(|entry| entry.life.parts());
        ByteSize(parts.flat_map(|(_, parts)| parts.values()).map(|part| part.bytes).sum())
    }

    /// Keeps a data set from eviction, or no longer. Holds for its later makings too.
    pub fn set_pinned(&self, data_set: DataSetId, pinned: bool) {
        self.state.lock().sets.entry(data_set).or_default().pinned = pinned;
    }
}
