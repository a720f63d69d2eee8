//! What a sorter is told before its first record: memory, place, order, limits.
//!
//! Written by whoever builds a sorter (the runtime from its option table, a library user by hand);
//! read by every part of the crate. Left out on purpose: option *names*, which belong to the table of
//! options; here are values that are already typed.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use element::{MemoryBudget, SpillStore};

use crate::buffer::Cut;

/// Blocks are not made larger than this, whatever the budget.
const LARGEST_BLOCK: u64 = 128 << 10;

/// Pages are not made larger than this, whatever the budget.
const LARGEST_PAGE: u64 = 1 << 20;

/// The same where there are many parts.
const LARGEST_PART_PAGE: u64 = 64 << 10;

const CUT_INTO_64: u64 = 4 << 20;
const CUT_INTO_256: u64 = 32 << 20;
const CUT_INTO_512: u64 = 128 << 20;

/// The direction of the keys. Equal keys come by ascending timestamp and arrival in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// Least key first.
    #[default]
    Ascending,
    /// Greatest key first.
    Descending,
}

/// What decides between records of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ties {
    /// The timestamp, then the order of arrival.
    #[default]
    Timestamp,
    /// The order of arrival alone.
    Arrival,
}

/// What is done to the blocks of a run before they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BlockCompression {
    /// Nothing: a plain disk is faster than any compressor.
    #[default]
    None,
    /// lz4; a block that would grow is written as it is.
    Lz4,
}

/// A flag that stops a sorter from another thread. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// A flag that is not raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag, for good: the sorter's next bounded step answers
    /// [`SortError::Cancelled`](crate::SortError::Cancelled).
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the flag is raised.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Where runs are written: a store, and how their names begin.
///
/// The sorter adds process, a number drawn at its start, sorter and run to the name, so two sorters
/// never clash, in one process or in several (FLINK-8941).
#[derive(Clone, Debug)]
pub struct SpillTarget {
    /// The place of the files.
    pub store: Arc<dyn SpillStore>,
    /// How names begin; plain segments, separated by `/`.
    pub prefix: String,
}

impl SpillTarget {
    /// Runs named `{prefix}-...` in `store`.
    pub fn new(store: Arc<dyn SpillStore>, prefix: impl Into<String>) -> Self {
        Self { store, prefix: prefix.into() }
    }
}

/// Eight bytes of a key that decide most comparisons: records are ordered by prefix, and by key where
/// prefixes are equal. That is the order of the keys if `a < b` as keys gives `prefix(a) <= prefix(b)`;
/// a hash as the prefix gives the order of the hashes, and the parts of the sort an equal size.
pub type KeyPrefix = fn(&[u8]) -> u64;

/// Everything that a sorter is told.
#[derive(Clone)]
pub struct SorterOptions {
    /// Memory, shared or not. The sorter never holds more than one record beyond what it was lent
    /// (one a run while merging); a refusal means that it spills.
    pub budget: Arc<MemoryBudget>,
    /// The most bytes that this sorter takes of the budget; the whole by default.
    pub memory: u64,
    /// Where it spills.
    pub spill: SpillTarget,
    /// Runs merged at once, at least 2; also bounds open files (one more for the merge's output).
    pub fan_in: usize,
    /// Compression of blocks.
    pub compression: BlockCompression,
    /// Direction of the keys.
    pub order: Order,
    /// What decides between records of one key.
    pub ties: Ties,
    /// The prefix of a key; the first eight bytes, big-endian, by default.
    pub prefix: Option<KeyPrefix>,
    /// The least and the greatest prefix that is expected: all by default.
    pub prefix_range: (u64, u64),
    /// Threads that sort and write, 1 by default: then the caller's thread does all of it.
    pub threads: usize,
    /// Whether runs written from memory are made durable, so that they can be sealed and resumed.
    pub durable_runs: bool,
    /// Stops the sorter from outside.
    pub cancel: Option<CancelFlag>,
}

impl fmt::Debug for SorterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SorterOptions")
            .field("memory", &self.memory)
            .field("spill", &self.spill.prefix)
            .field("fan_in", &self.fan_in)
            .field("compression", &self.compression)
            .field("order", &self.order)
            .field("ties", &self.ties)
            .field("threads", &self.threads)
            .field("durable_runs", &self.durable_runs)
            .finish_non_exhaustive()
    }
}

impl SorterOptions {
    /// Ascending, by timestamp then arrival, fan-in 128, not compressed, all of `budget`, one thread.
    #[must_use]
    pub fn new(budget: Arc<MemoryBudget>, spill: SpillTarget) -> Self {
        Self {
            memory: budget.total().0,
            budget,
            spill,
            fan_in: 128,
            compression: BlockCompression::None,
            order: Order::Ascending,
            ties: Ties::Timestamp,
            prefix: None,
            prefix_range: (0, u64::MAX),
            threads: 1,
            durable_runs: false,
            cancel: None,
        }
    }

    /// Takes at most `bytes` of the budget.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Merges at most `runs` at once; 0 and 1 count as 2.
    #[must_use]
    pub fn with_fan_in(mut self, runs: usize) -> Self {
        self.fan_in = runs.max(2);
        self
    }

    /// Sets the compression of blocks.
    #[must_use]
    pub fn with_compression(mut self, compression: BlockCompression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the direction.
    #[must_use]
    pub fn with_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Sets what decides between records of one key.
    #[must_use]
    pub fn with_ties(mut self, ties: Ties) -> Self {
        self.ties = ties;
        self
    }

    /// Sets the prefix of a key.
    #[must_use]
    pub fn with_prefix(mut self, prefix: KeyPrefix) -> Self {
        self.prefix = Some(prefix);
        self
    }

    /// Says that prefixes are spread over a range, as those of one share of all hashes are. Others come in
    /// order, too, but if they are many it takes longer.
    #[must_use]
    pub fn with_prefix_range(mut self, range: RangeInclusive<u64>) -> Self {
        self.prefix_range = (*range.start(), *range.end());
        self
    }

    /// Writes runs by `threads` threads of an [`ExternalSorter`](crate::ExternalSorter), while its
    /// caller's goes on pushing; 0 and 1 count as the caller's alone.
    ///
    /// The first run is written by the caller: what fits into the memory is never written. From then on
    /// every thread has a share of the memory, and so has the caller; runs are as much shorter. The
    /// threads end with the input, or with the sorter. To merge by several, use
    /// [`ExternalSorter::finish_ranges`](crate::ExternalSorter::finish_ranges).
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Makes every run durable that is written from memory: one sync of file and directory a run.
    ///
    /// Needed by [`ExternalSorter::seal`](crate::ExternalSorter::seal).
    #[must_use]
    pub fn with_durable_runs(mut self) -> Self {
        self.durable_runs = true;
        self
    }

    /// Stops when `cancel` is raised.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancelFlag) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// The memory that this sorter may take.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.min(self.budget.total().0)
    }

    /// Raw bytes of a block, from the memory: `fan_in` of them and the merge's output must fit at
    /// once, with the compressed form beside each where there is one.
    pub(crate) fn block_bytes(&self) -> u64 {
        let blocks = (self.fan_in.max(2) as u64).saturating_add(3);
        (self.memory() / blocks.saturating_mul(self.with_packed(16)) * 16).min(LARGEST_BLOCK)
    }

    /// Bytes of a block of `raw` bytes and of the room to pack it into.
    pub(crate) fn with_packed(&self, raw: u64) -> u64 {
        match self.compression {
            BlockCompression::None => raw,
            // What does not pack grows by a tenth before that shows.
            BlockCompression::Lz4 => raw * 2 + raw / 8,
        }
    }

    /// How records in memory are cut into parts: a part fits the second-level cache where the memory
    /// is not large, and the first pages of all parts take a sixteenth of the memory.
    pub(crate) fn cut(&self) -> Cut {
        let bits = match self.memory() {
            CUT_INTO_512.. => 9,
            CUT_INTO_256.. => 8,
            CUT_INTO_64.. => 6,
            _ => return Cut::default(),
        };
        let page_bytes = (self.memory() >> (bits + 4)).min(LARGEST_PART_PAGE);
        let (least, greatest) = self.prefix_range;
        let range = match self.order {
            Order::Ascending => (least, greatest),
            Order::Descending => (!greatest, !least),
        };
        Cut { bits, range, page_bytes: page_bytes as usize }
    }

    /// Bytes of a page of records: a sixteenth of the memory, so that the last page wastes little.
    pub(crate) fn page_bytes(&self) -> u64 {
        (self.memory() / 16).clamp(1, LARGEST_PAGE)
    }
}

#[cfg(test)]
mod tests {
    use element::{ByteSize, MemoryStore};

    use super::*;

    fn options(total: u64) -> SorterOptions {
        let store: Arc<dyn SpillStore> = Arc::new(MemoryStore::default());
        SorterOptions::new(MemoryBudget::new(ByteSize(total)), SpillTarget::new(store, "t"))
    }

    #[test]
    fn blocks_of_one_merge_fit_into_the_memory() {
        for total in [1, 100, 16 << 10, 1 << 20, 1 << 30] {
            for fan_in in [0, 2, 4, 128] {
                for compression in [BlockCompression::None, BlockCompression::Lz4] {
                    let options = options(total).with_fan_in(fan_in).with_compression(compression);
                    let block = options.with_packed(options.block_bytes());
                    let needed = block * (options.fan_in as u64 + 1);
                    assert!(needed <= total, "{total} {fan_in}: {needed}");
                }
            }
        }
    }

    /// tS1: an option that is set reaches the sorter that is built.
    #[test]
    fn a_fan_in_below_two_counts_as_two() {
        assert_eq!(options(1).with_fan_in(0).fan_in, 2);
        assert_eq!(options(1).with_fan_in(7).fan_in, 7);
    }
}
