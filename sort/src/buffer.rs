//! [`Buffer`]: the records in memory, in parts of the order, each in pages of its own.
//!
//! ```text
//! prefix --top bits--> part --> its open page, and the full ones before it
//! ```
//!
//! Records start in one part. Where the first of them show that prefixes are spread evenly, as those
//! of hashed keys are, they are dealt into parts by the top bits of the prefix: a part fits the cache
//! and is sorted and read there. Elsewhere there is one part for good.
//!
//! A record never crosses a page: one that does not fit opens the next page, one longer than a page
//! gets a page of its own length. So there is no arithmetic over page borders to get wrong
//! (FLINK-2754), and what is lost is less than a record a page and half a page a part. Entries are
//! made when a part is sorted, one part at a time, so that memory for those of the longest part is
//! enough; they name records as `page << 32 | offset`, which grows with the order of arrival in a part.
//!
//! Filled by the sorter; drained, part by part, into a run or into the stream.

mod clearing;
mod dealing;
mod ordering;

pub(crate) use dealing::Cut;

use crate::SorterOptions;
use crate::account::Account;
use crate::page::Page;
use crate::radix::Entry;
use crate::record;
use crate::rules::Rules;
use crate::stage::Staged;
use dealing::Deal;

const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

/// Records that are looked at before the buffer is cut into parts.
const SAMPLE: usize = 4_096;

/// A part of the order.
#[derive(Debug, Default)]
struct Part {
    /// The page being filled; its place in `Buffer::pages` is the last of `pages`, and empty.
    open: Page,
    records: usize,
    /// The numbers of its pages, in order of arrival.
    pages: Vec<usize>,
}

/// Records in memory. Every page's and every entry's bytes are in use in the account that is passed in.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Full pages of all parts; an open page's place is empty until [`Buffer::seal`].
    pages: Vec<Page>,
    /// At least one.
    parts: Vec<Part>,
    /// Empty pages of the usual length, kept for the next round.
    spare: Vec<Page>,
    /// Records of one part that there is room to make entries of.
    entries_room: usize,
    /// Records of a part up to which there is room for a second copy of its entries.
    aside_room: usize,
    page_bytes: usize,
    /// Which part a record is of.
    deal: Deal,
    /// What is to be done once the sample is there; `None` once it is decided.
    cut: Option<Cut>,
}

impl Buffer {
    /// An empty buffer for the memory that the options give.
    pub(crate) fn of(options: &SorterOptions) -> Self {
        Self::new(usize::try_from(options.page_bytes()).unwrap_or(usize::MAX), options.cut())
    }

    pub(crate) fn new(page_bytes: usize, cut: Cut) -> Self {
        Self {
            pages: Vec::new(),
            parts: vec![Part::default()],
            spare: Vec::new(),
            entries_room: 0,
            aside_room: 0,
            page_bytes,
            deal: Deal::ONE,
            cut: (cut.bits > 0).then_some(cut),
        }
    }

    /// How many parts there are.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Records in a part.
    pub(crate) fn len(&self, part: usize) -> usize {
        self.parts.get(part).map_or(0, |part| part.records)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.records == 0)
    }

    /// Records of a part, and their bytes.
    pub(crate) fn size_of(&self, part: usize) -> (u64, u64) {
        let bytes: usize = self.pages_of(part).map(|page| page.records().len()).sum();
        let open = self.parts.get(part).map_or(0, |part| part.open.records().len());
        (self.len(part) as u64, (bytes + open) as u64)
    }

    /// The pages of a part, in order of arrival; the open one is empty until [`Buffer::seal`].
    pub(crate) fn pages_of(&self, part: usize) -> impl Iterator<Item = &Page> {
        let numbers = self.parts.get(part).map_or(&[][..], |part| &part.pages);
        numbers.iter().filter_map(|number| self.pages.get(*number))
    }

    /// A sealed buffer of one part of this one alone: of `records`, in these pages.
    pub(crate) fn part_of(&self, pages: Vec<Page>, records: usize) -> Self {
        let numbers = (0..pages.len()).collect();
        Self {
            pages,
            parts: vec![Part { open: Page::default(), records, pages: numbers }],
            aside_room: records,
            deal: self.deal,
            ..Self::new(0, Cut::default())
        }
    }

    /// A sealed buffer without records that has parts like this one.
    pub(crate) fn empty_like(&self) -> Self {
        let parts = self.parts.iter().map(|_| Part::default()).collect();
        Self { parts, deal: self.deal, ..Self::new(0, Cut::default()) }
    }

    pub(crate) fn into_pages(self) -> Vec<Page> {
        self.pages
    }

    /// Whether records are of a part of the order, which the cache holds.
    pub(crate) fn is_dealt(&self) -> bool {
        self.deal.is_many()
    }

    /// Entries that the account has bytes for.
    pub(crate) fn entries_room(&self) -> usize {
        self.entries_room
    }

    #[inline]
    fn part(&self, prefix: u64) -> usize {
        self.deal.part(prefix)
    }

    /// Whether a record of `bytes` can be appended as things stand.
    #[inline]
    pub(crate) fn has_room(&self, prefix: u64, bytes: usize) -> bool {
        self.parts
            .get(self.part(prefix))
            .is_some_and(|part| part.open.room() >= bytes && part.records < self.entries_room)
    }

    /// Appends a record, for which there is room.
    #[inline]
    pub(crate) fn push(&mut self, prefix: u64, timestamp: i64, key: &[u8], payload: &[u8]) {
        let part = self.part(prefix);
        if let Some(part) = self.parts.get_mut(part) {
            let bytes = record::encoded_len(timestamp, key.len(), payload.len()).unwrap_or(0);
            record::write(part.open.append(bytes), timestamp, key, payload);
            part.records += 1;
        }
    }

    /// Appends encoded records, as they lie in `bytes` behind each other from `start` on, as long as there
    /// is room; gives how many.
    pub(crate) fn push_staged(
        &mut self,
        bytes: &[u8],
        mut start: usize,
        records: &[Staged],
    ) -> usize {
        let (deal, most) = (self.deal, self.entries_room);
        let parts = self.parts.as_mut_slice();
        for (pushed, staged) in records.iter().enumerate() {
            let Some(part) = parts.get_mut(deal.part(staged.prefix)) else {
                return pushed;
            };
            let from = bytes.get(start..).unwrap_or_default();
            if part.records >= most || !part.open.append_from(from, staged.end - start) {
                return pushed;
            }
            part.records += 1;
            start = staged.end;
        }
        records.len()
    }

    /// Makes room for a record of `bytes`; false if the account refuses and records must go first.
    pub(crate) fn grow(
        &mut self,
        prefix: u64,
        bytes: usize,
        rules: &Rules,
        account: &mut Account,
    ) -> bool {
        if self.cut.is_some() && self.len(0) >= SAMPLE {
            self.deal(rules, account);
        }
        let part = self.part(prefix);
        self.grow_entries(part, account) && self.grow_pages(part, bytes, account)
    }

    /// Makes room for one record of `bytes` whatever the account says.
    pub(crate) fn grow_beyond(&mut self, prefix: u64, bytes: usize, account: &mut Account) {
        let part = self.part(prefix);
        if self.len(part) >= self.entries_room {
            account.take_beyond(ENTRY_BYTES);
            self.entries_room += 1;
        }
        if !self.fits(part, bytes) {
            account.take_beyond(bytes as u64);
            self.next_page(part, Page::new(bytes));
        }
    }

    fn fits(&self, part: usize, bytes: usize) -> bool {
        self.parts.get(part).is_some_and(|part| part.open.room() >= bytes)
    }

    fn grow_entries(&mut self, part: usize, account: &mut Account) -> bool {
        let records = self.len(part);
        if records < self.entries_room {
            return true;
        }
        // An eighth more; small steps at first, and down to one where memory is short.
        let mut more = (records / 8).max((self.page_bytes / 16).min(SAMPLE)).max(1);
        while !account.take(more as u64 * ENTRY_BYTES) {
            // Pages that an earlier round of longer records left make way for entries.
            if let Some(page) = self.spare.pop() {
                account.give(page.len() as u64);
            } else if more == 1 {
                return false;
            } else {
                more /= 2;
            }
        }
        self.entries_room += more;
        true
    }

    fn grow_pages(&mut self, part: usize, bytes: usize, account: &mut Account) -> bool {
        if self.fits(part, bytes) {
            return true;
        }
        if bytes <= self.page_bytes
            && let Some(page) = self.spare.pop()
        {
            self.next_page(part, page);
            return true;
        }
        let wanted = bytes.max(self.page_bytes);
        for capacity in [wanted, bytes] {
            if account.take(capacity as u64) {
                self.next_page(part, Page::new(capacity));
                return true;
            }
        }
        false
    }

    fn next_page(&mut self, part: usize, page: Page) {
        let Some(part) = self.parts.get_mut(part) else { return };
        let last = std::mem::replace(&mut part.open, page);
        if let Some(place) = part.pages.last().and_then(|number| self.pages.get_mut(*number)) {
            *place = last;
        }
        part.pages.push(self.pages.len());
        self.pages.push(Page::default());
    }

    /// Puts open pages to their places, before parts are sorted; nothing is pushed after that.
    pub(crate) fn seal(&mut self) {
        for part in &mut self.parts {
            let open = std::mem::take(&mut part.open);
            if let Some(place) = part.pages.last().and_then(|number| self.pages.get_mut(*number))
                && open.len() > 0
            {
                *place = open;
            }
        }
    }

    /// Opens the last page of each part again.
    fn unseal(&mut self) {
        for part in &mut self.parts {
            if let Some(place) = part.pages.last().and_then(|number| self.pages.get_mut(*number)) {
                part.open = std::mem::take(place);
            }
        }
    }

    /// Bytes in use in the account for a second copy of entries; each stream that sorts parts of this
    /// buffer needs as many.
    pub(crate) fn aside_bytes(&self) -> u64 {
        self.aside_room as u64 * ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use element::{ByteSize, MemoryBudget, MemoryStore};

    use super::*;
    use crate::SpillTarget;

    #[track_caller]
    fn check(memory: u64, parts: usize, prefix: impl Fn(u64) -> u64) {
        let budget = MemoryBudget::new(ByteSize(memory));
        let spill = SpillTarget::new(Arc::new(MemoryStore::new()), "t");
        let options = SorterOptions::new(budget, spill);
        let rules = Rules::of(&options);
        let mut account = Account::new(&options.budget, memory, 0);
        let mut buffer = Buffer::new(options.page_bytes() as usize, options.cut());
        for n in 0..10_000_u64 {
            let key = prefix(n).to_be_bytes();
            if !buffer.has_room(prefix(n), 12) {
                assert!(buffer.grow(prefix(n), 12, &rules, &mut account));
            }
            buffer.push(prefix(n), crate::NO_TIMESTAMP, &key, &[]);
        }
        assert_eq!(buffer.parts(), parts);
        buffer.seal();
        let (mut entries, mut aside) = (Vec::new(), Vec::new());
        let mut found = 0;
        for part in 0..parts {
            buffer.sort_part(part, &mut entries, &mut aside, &rules, None).unwrap();
            assert!(entries.is_sorted_by_key(|entry| (entry.prefix, entry.at)));
            assert!(entries.iter().all(|entry| buffer.part(entry.prefix) == part));
            found += entries.len();
        }
        assert_eq!(found, 10_000);
        buffer.release(&mut account);
        account.trim();
        assert_eq!(options.budget.used(), ByteSize(0));
    }

    #[test]
    fn only_prefixes_that_are_spread_are_dealt_and_parts_grow_with_the_memory() {
        let hash = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17);
        check(3 << 20, 1, hash);
        check(4 << 20, 64, hash);
        check(32 << 20, 256, hash);
        check(128 << 20, 512, hash);
        check(128 << 20, 1, |n| n);
        check(128 << 20, 1, |n| hash(n) >> 4);
    }
}
