//! [`Window`]: the next records of a sorted buffer, read ahead, and equal prefixes put in order.
//!
//! A buffer's sort leaves small groups of equal prefix as they are: to order them is to read their
//! records, which lie anywhere in memory, and whoever drains the buffer reads them soon after. So the
//! drain does both at once: it takes some ten records and orders the groups among them. Where the
//! buffer is of one part, which no cache holds, it reads a byte of each first: their cache lines
//! arrive together, and each record is missed once.
//!
//! Filled by the stream and by the writer of runs. Of constant size, whatever the records are.

use crate::buffer::Buffer;
use crate::radix::Entry;
use crate::rules::Rules;
use crate::sorting::{LARGE, order_group};

/// Entries taken at once.
const STEP: usize = 64;

/// The last group of a window is completed, if it is small; a large one was ordered by the sort.
const MOST: usize = STEP + LARGE;

/// Some entries, in full order, behind each other in the buffer.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    entries: [Entry; MOST],
    /// How many there are.
    len: usize,
    /// How many have been handed out.
    next: usize,
    /// Whole keys that were looked at.
    pub(crate) deep: u64,
}

impl Window {
    pub(crate) fn new() -> Self {
        Self { entries: [Entry::default(); MOST], len: 0, next: 0, deep: 0 }
    }

    /// Where the next record lies, if it has been read ahead.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<u64> {
        let entry = self.entries.get(..self.len)?.get(self.next)?;
        self.next += 1;
        Some(entry.at)
    }

    /// Takes entries from `from` on, up to and without `until`, at least one if there is any; gives
    /// where to go on. `from` is where the last call said, or where a prefix begins.
    pub(crate) fn fill(
        &mut self,
        buffer: &Buffer,
        entries: &[Entry],
        from: usize,
        until: usize,
        rules: &Rules,
    ) -> usize {
        let ahead = entries.get(from..until).unwrap_or_default();
        let mut len = ahead.len().min(STEP);
        let last = len.checked_sub(1).and_then(|last| ahead.get(last));
        let rest = ahead.get(len..ahead.len().min(MOST)).unwrap_or_default();
        len +=
            rest.iter().take_while(|entry| last.is_some_and(|l| l.prefix == entry.prefix)).count();
        self.entries[..len].copy_from_slice(&ahead[..len]);
        (self.len, self.next) = (len, 0);
        if !buffer.is_dealt() {
            std::hint::black_box(buffer.touch(&self.entries[..len]));
        }
        // Looked at as a whole first, for most windows hold no group.
        let pairs = ahead.iter().zip(ahead.get(1..len).unwrap_or_default());
        if pairs.fold(false, |found, (a, b)| found | (a.prefix == b.prefix)) {
            let before = from.checked_sub(1).and_then(|index| entries.get(index));
            self.order(before.map(|entry| entry.prefix), buffer, rules);
        }
        from + len
    }

    /// Orders every small group. `before` is the prefix in front of the window.
    fn order(&mut self, before: Option<u64>, buffer: &Buffer, rules: &Rules) {
        let mut rest = self.entries.get_mut(..self.len).unwrap_or_default();
        // What goes on from the window before is of a large group.
        let mut large = before;
        while let Some(first) = rest.first() {
            let prefix = first.prefix;
            let group = rest.iter().take_while(|entry| entry.prefix == prefix).count();
            let (group, tail) = rest.split_at_mut(group);
            if group.len() > 1 && group.len() <= LARGE && large != Some(prefix) {
                self.deep += order_group(group, buffer, rules);
            }
            large = None;
            rest = tail;
        }
    }
}
