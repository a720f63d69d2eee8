//! [`KeyWatch`]: the keys seen while `auto` collects a backlog.
//!
//! When the sorter's memory is nearly full there are two ways on: spill, which costs every record a
//! write and a read of a file, or hand over what is held, which costs every key a read and a write of
//! the store. With few keys the second is cheaper by far, and can be done again and again.

use element::{ByteSize, KeyHash};
use hashbrown::HashSet;

/// Records a key from which on handing over costs less than spilling: an access to a store on disk
/// costs about what a few tens of spilled records do.
const RECORDS_A_KEY: u64 = 32;

/// Bytes of sort memory for each key that is counted: counting takes a sixty-fourth of it at most.
const MEMORY_A_KEY: u64 = 1_024;

/// Distinct keys, as far as they are few.
pub(super) struct KeyWatch {
    seen: HashSet<KeyHash>,
    most: usize,
    last: Option<KeyHash>,
    many: bool,
}

impl KeyWatch {
    /// Counts as many keys as could be few in a sorter of `memory`.
    pub(super) fn for_memory(memory: ByteSize) -> Self {
        let most = usize::try_from(memory.0 / MEMORY_A_KEY).unwrap_or(usize::MAX);
        Self { seen: HashSet::new(), most, last: None, many: false }
    }

    /// A record of a key has come.
    #[inline]
    pub(super) fn see(&mut self, key: KeyHash) {
        if self.many || self.last == Some(key) {
            return;
        }
        self.last = Some(key);
        if self.seen.insert(key) && self.seen.len() > self.most {
            self.many = true;
            self.seen = HashSet::new();
        }
    }

    /// Whether the keys seen are few for `records` records.
    pub(super) fn are_few(&self, records: u64) -> bool {
        !self.many && self.seen.len() as u64 * RECORDS_A_KEY <= records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_few_by_their_records_and_by_the_memory() {
        let mut watch = KeyWatch::for_memory(ByteSize::kib(4));
        (0..4).for_each(|key| watch.see(KeyHash(key)));
        assert!(watch.are_few(4 * RECORDS_A_KEY));
        assert!(!watch.are_few(4 * RECORDS_A_KEY - 1));
        watch.see(KeyHash(9));
        assert!(!watch.are_few(1_000_000), "more than could be few in 4 KiB");
    }
}
