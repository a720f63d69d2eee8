//! [`Buffer`]: the records in memory, in pages, and one entry for each.
//!
//! A record never crosses a page: one that does not fit opens the next page, one longer than a page
//! gets a page of its own length. So there is no arithmetic over page borders to get wrong
//! (FLINK-2754), and what is lost is less than a record a page. Entries name records as
//! `page << 32 | offset`, which grows with the order of arrival.
//!
//! Filled by the sorter; drained, sorted, into a run or into the stream.

use crate::account::Account;
use crate::radix::Entry;
use crate::record::{self, Layout};
use crate::rules::Rules;
use crate::sorting::{Keyed, LARGE, sort_groups_beyond};
use crate::{CancelFlag, SortError};

const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

/// Bytes from a record's first to its last that are mostly enough to know which cache lines it is in.
const SHORT_RECORD: usize = 27;

/// Records in memory. Every page's and every entry's bytes are in use in the account that is passed in.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Pages that are full, in order of arrival.
    full: Vec<Vec<u8>>,
    /// The page being filled; its number is `full.len()`.
    current: Vec<u8>,
    /// Empty pages of the usual length, kept for the next round.
    spare: Vec<Vec<u8>>,
    entries: Vec<Entry>,
    page_bytes: usize,
}

impl Buffer {
    pub(crate) fn new(page_bytes: usize) -> Self {
        Self { page_bytes, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries; sorted after [`Buffer::sort`], but for small groups of equal prefix.
    #[inline]
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether a record of `bytes` can be appended as things stand.
    #[inline]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.current.capacity() - self.current.len() >= bytes
            && self.entries.len() < self.entries.capacity()
    }

    /// Appends a record, for which there is room.
    #[inline]
    pub(crate) fn push(&mut self, prefix: u64, timestamp: i64, key: &[u8], payload: &[u8]) {
        let at = (self.full.len() as u64) << 32 | self.current.len() as u64;
        record::append(&mut self.current, timestamp, key, payload);
        self.entries.push(Entry { prefix, at });
    }

    /// The page being filled, for a caller that writes a record by itself, then calls
    /// [`Buffer::record_written`] or [`Buffer::take_tail`].
    #[inline]
    pub(crate) fn page(&mut self) -> &mut Vec<u8> {
        &mut self.current
    }

    /// Notes the record from `start` to the end of the current page.
    #[inline]
    pub(crate) fn record_written(&mut self, prefix: u64, start: usize) {
        self.entries.push(Entry { prefix, at: (self.full.len() as u64) << 32 | start as u64 });
    }

    /// Takes back what was written from `start` on, for it outgrew the page.
    pub(crate) fn take_tail(&mut self, start: usize, capacity: usize) -> Vec<u8> {
        let tail = self.current.split_off(start);
        self.current.shrink_to(capacity);
        tail
    }

    /// Makes room for a record of `bytes`; false if the account refuses and records must go first.
    pub(crate) fn grow(&mut self, bytes: usize, account: &mut Account) -> bool {
        self.grow_entries(account) && self.grow_pages(bytes, account)
    }

    /// Makes room for one record of `bytes` whatever the account says.
    pub(crate) fn grow_beyond(&mut self, bytes: usize, account: &mut Account) {
        if self.entries.len() == self.entries.capacity() {
            account.take_beyond(ENTRY_BYTES);
            self.entries.reserve_exact(1);
        }
        if self.current.capacity() - self.current.len() < bytes {
            account.take_beyond(bytes as u64);
            self.next_page(Vec::with_capacity(bytes));
        }
    }

    fn grow_entries(&mut self, account: &mut Account) -> bool {
        if self.entries.len() < self.entries.capacity() {
            return true;
        }
        // An eighth more, so that copying entries costs a constant for each; small steps at first,
        // and down to one where memory is short.
        let mut more = (self.entries.len() / 8).max(self.page_bytes / 16).max(1);
        while !account.take(more as u64 * ENTRY_BYTES) {
            // Pages that an earlier round of longer records left make way for entries.
            if let Some(page) = self.spare.pop() {
                account.give(page.capacity() as u64);
            } else if more == 1 {
                return false;
            } else {
                more /= 2;
            }
        }
        self.entries.reserve_exact(more);
        true
    }

    fn grow_pages(&mut self, bytes: usize, account: &mut Account) -> bool {
        if self.current.capacity() - self.current.len() >= bytes {
            return true;
        }
        if bytes <= self.page_bytes
            && let Some(page) = self.spare.pop()
        {
            self.next_page(page);
            return true;
        }
        let wanted = bytes.max(self.page_bytes);
        for capacity in [wanted, bytes] {
            if account.take(capacity as u64) {
                self.next_page(Vec::with_capacity(capacity));
                return true;
            }
        }
        false
    }

    fn next_page(&mut self, page: Vec<u8>) {
        let last = std::mem::replace(&mut self.current, page);
        // A page of no capacity is the one before the first.
        if last.capacity() > 0 {
            self.full.push(last);
        }
    }

    /// Sorts the entries by prefix, large groups of one prefix in full; the small ones are left to
    /// [`crate::window`]. Gives the number of whole keys that were looked at.
    pub(crate) fn sort(
        &mut self,
        rules: &Rules,
        cancel: Option<&CancelFlag>,
    ) -> Result<u64, SortError> {
        let mut entries = std::mem::take(&mut self.entries);
        let deep = sort_groups_beyond(LARGE, &mut entries, self, rules, cancel);
        self.entries = entries;
        deep
    }

    /// The bytes from a record's first on; the page's rest, records of later arrival included.
    #[inline]
    pub(crate) fn bytes_at(&self, at: u64) -> &[u8] {
        let page = (at >> 32) as usize;
        let offset = (at & 0xffff_ffff) as usize;
        let page = self.full.get(page).unwrap_or(&self.current);
        page.get(offset..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn layout_at(&self, at: u64) -> Layout {
        record::parse(self.bytes_at(at)).unwrap_or_default()
    }

    /// Reads two bytes of each record, a short record's length apart. Their sum is of no meaning: the
    /// loads do not wait for each other, so the records' cache lines arrive together.
    #[inline]
    pub(crate) fn touch(&self, entries: &[Entry]) -> u8 {
        let byte = |bytes: &[u8], at: usize| bytes.get(at).copied().unwrap_or(0);
        entries.iter().fold(0_u8, |sum, entry| {
            let bytes = self.bytes_at(entry.at);
            sum ^ byte(bytes, 0) ^ byte(bytes, SHORT_RECORD)
        })
    }

    /// Forgets all records; keeps usual pages, and entries' memory, for the next ones.
    pub(crate) fn clear(&mut self, account: &mut Account) {
        let usual = self.page_bytes;
        let current = std::mem::take(&mut self.current);
        for mut page in self.full.drain(..).chain([current]) {
            if page.capacity() == usual {
                page.clear();
                self.spare.push(page);
            } else {
                account.give(page.capacity() as u64);
            }
        }
        self.entries.clear();
    }

    /// Drops everything and gives its bytes back to the account.
    pub(crate) fn release(&mut self, account: &mut Account) {
        self.clear(account);
        let pages = self.spare.drain(..).map(|page| page.capacity() as u64).sum::<u64>();
        let entries = std::mem::take(&mut self.entries);
        account.give(pages + entries.capacity() as u64 * ENTRY_BYTES);
    }
}

impl Keyed for Buffer {
    #[inline]
    fn key(&self, at: u64) -> &[u8] {
        let bytes = self.bytes_at(at);
        record::parse(bytes)
            .and_then(|layout| bytes.get(layout.key_at..layout.payload_at))
            .unwrap_or_default()
    }

    #[inline]
    fn timestamp(&self, at: u64) -> i64 {
        self.layout_at(at).timestamp
    }
}
