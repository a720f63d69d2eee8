//! The records of a sealed buffer, looked at and put in order part by part.
//!
//! Entries are made when a part is sorted, one part at a time, so that memory for those of the longest
//! part is enough.

use super::Buffer;
use crate::page::Page;
use crate::radix::{Entry, FEW, OF_FEW, OF_MANY, TwoDigits};
use crate::record::{self, Layout};
use crate::rules::Rules;
use crate::sorting::{Keyed, LARGE, order_groups_beyond, sort_groups_beyond};
use crate::{CancelFlag, SortError};

/// Bytes from a record's first to its last that are mostly enough to know which cache lines it is in.
const SHORT_RECORD: usize = 27;

impl Buffer {
    /// Calls `each` for the records of a sealed part, in order of arrival: prefix, place, bytes.
    pub(super) fn for_each_of(
        &self,
        part: usize,
        rules: &Rules,
        mut each: impl FnMut(u64, u64, &[u8]),
    ) {
        let numbers = self.parts.get(part).map_or(&[][..], |part| &part.pages);
        for number in numbers {
            let mut rest = self.pages.get(*number).map_or(&[][..], Page::records);
            let length = rest.len();
            while let Some(Layout { key_at, payload_at, end, .. }) = record::parse(rest) {
                let Some((record, tail)) = rest.split_at_checked(end) else { break };
                let key = record.get(key_at..payload_at).unwrap_or_default();
                let offset = length - rest.len();
                each(rules.prefix(key), (*number as u64) << 32 | offset as u64, record);
                rest = tail;
            }
        }
    }

    /// Makes the entries of a sealed part and sorts them by prefix, with room for a second copy.
    fn sort_by_digits<const VALUES: usize>(
        &self,
        part: usize,
        aside: &mut Vec<Entry>,
        entries: &mut Vec<Entry>,
        rules: &Rules,
    ) {
        let deal = self.deal;
        let mut digits = TwoDigits::<VALUES>::new(deal.known());
        self.for_each_of(part, rules, |prefix, at, _| {
            digits.count(deal.distance(prefix));
            aside.push(Entry { prefix, at });
        });
        digits.sort(aside, entries, |prefix| deal.distance(prefix));
    }

    /// Makes the entries of a sealed part and sorts them by prefix, large groups of one prefix in
    /// full; the small ones are left to [`crate::window`]. Gives the number of whole keys that were
    /// looked at. `aside` is room for a second copy of entries.
    ///
    /// # Errors
    ///
    /// [`SortError::Cancelled`].
    pub(crate) fn sort_part(
        &self,
        part: usize,
        entries: &mut Vec<Entry>,
        aside: &mut Vec<Entry>,
        rules: &Rules,
        cancel: Option<&CancelFlag>,
    ) -> Result<u64, SortError> {
        let length = self.len(part);
        let is_aside = length <= self.aside_room;
        let made = if is_aside { &mut *aside } else { &mut *entries };
        made.clear();
        // Never more than there is room for in the account: the parts before were no longer.
        made.reserve_exact(length);
        if !is_aside {
            self.for_each_of(part, rules, |prefix, at, _| made.push(Entry { prefix, at }));
            return sort_groups_beyond(LARGE, entries, self, rules, cancel);
        }
        if length <= FEW {
            self.sort_by_digits::<OF_FEW>(part, aside, entries, rules);
        } else {
            self.sort_by_digits::<OF_MANY>(part, aside, entries, rules);
        }
        order_groups_beyond(LARGE, entries, self, rules, cancel)
    }

    /// The bytes from a record's first on; the page's rest, records of later arrival included.
    #[inline]
    pub(crate) fn bytes_at(&self, at: u64) -> &[u8] {
        let page = (at >> 32) as usize;
        let offset = (at & 0xffff_ffff) as usize;
        self.pages.get(page).map_or(&[], |page| page.from(offset))
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
}

impl Keyed for Buffer {
    #[inline]
    fn key(&self, at: u64) -> &[u8] {
        self.key_and_timestamp(at).0
    }

    #[inline]
    fn timestamp(&self, at: u64) -> i64 {
        self.key_and_timestamp(at).1
    }

    #[inline]
    fn key_and_timestamp(&self, at: u64) -> (&[u8], i64) {
        let record = record::split(self.bytes_at(at));
        record.map_or((&[], record::NO_TIMESTAMP), |record| (record.key, record.timestamp))
    }

    #[inline]
    fn number(&self, at: u64) -> Option<u64> {
        record::number(self.bytes_at(at))
    }
}
