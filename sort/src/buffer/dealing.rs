//! Whether records are dealt into parts of the order, and into which.
//!
//! ```text
//! range of prefixes   | part 0 | part 1 | ...              equal shares, by the top bits of the distance
//!                     ^ base                               from the base
//! ```
//!
//! What lies outside of the range belongs to the first or the last part: the order is right whatever comes.

use super::{Buffer, Part};
use crate::account::Account;
use crate::page::Page;
use crate::radix::Entry;
use crate::rules::Rules;
use crate::stage::Staged;

/// The share of the sample, one in so many, beyond which one part is too much of the whole.
const EVEN: usize = 32;

/// Pages of one part of many that take as many bytes as a second copy of its entries may.
const ASIDE_PAGES: usize = 32;

/// How a buffer is cut, chosen from the memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cut {
    /// Bits of the prefix that choose a part; 0 if there is one part for good.
    pub(crate) bits: u32,
    /// The least and the greatest prefix to be dealt.
    pub(crate) range: (u64, u64),
    /// The length of a page of one part of many.
    pub(crate) page_bytes: usize,
}

/// Which part a prefix is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deal {
    base: u64,
    /// 63 less the bits of the distance that choose a part.
    shift: u32,
    pub(super) parts: usize,
}

impl Deal {
    /// One part for all.
    pub(super) const ONE: Self = Self { base: 0, shift: 63, parts: 1 };

    /// Up to `1 << bits` parts of a range, more than half as many; `None` if there are not many prefixes in
    /// it.
    fn of((base, last): (u64, u64), bits: u32) -> Option<Self> {
        let width = last.checked_sub(base)?;
        let width_bits = u64::BITS - width.leading_zeros();
        let shift = width_bits.checked_sub(bits + 1)?;
        Some(Self { base, shift, parts: (width >> 1 >> shift) as usize + 1 })
    }

    #[inline]
    pub(super) fn part(&self, prefix: u64) -> usize {
        let part = (self.distance(prefix) >> 1 >> self.shift) as usize;
        part.min(self.parts - 1)
    }

    /// How far a prefix is from the base: its first [`Deal::known`] bits are the same within a part.
    #[inline]
    pub(super) fn distance(&self, prefix: u64) -> u64 {
        prefix.saturating_sub(self.base)
    }

    pub(super) fn known(&self) -> u32 {
        63 - self.shift
    }

    pub(super) fn is_many(&self) -> bool {
        self.parts > 1
    }
}

impl Buffer {
    /// Deals the records of the one part into many, if they are spread evenly and memory is there.
    #[cold]
    pub(super) fn deal(&mut self, rules: &Rules, account: &mut Account) {
        let Some(Cut { bits, range, page_bytes }) = self.cut.take() else { return };
        let Some(deal) = Deal::of(range, bits) else { return };
        self.seal();
        let mut sizes = vec![(0_usize, 0_usize); deal.parts];
        self.for_each_of(0, rules, |prefix, _, record| {
            if let Some(size) = sizes.get_mut(deal.part(prefix)) {
                *size = (size.0 + 1, size.1 + record.len());
            }
        });
        let most = self.len(0) / EVEN;
        let is_even = sizes.iter().all(|size| size.0 <= most && size.1 <= page_bytes);
        // So much for each part, and once for a second copy of the entries of one.
        let aside_bytes = page_bytes * ASIDE_PAGES;
        if !is_even || !account.take((page_bytes * deal.parts + aside_bytes) as u64) {
            self.unseal();
            return;
        }
        let mut dealt = Self::new(page_bytes, Cut::default());
        dealt.parts = (0..deal.parts).map(|_| Part::default()).collect();
        (dealt.deal, dealt.entries_room) = (deal, self.entries_room);
        dealt.aside_room = aside_bytes / size_of::<Entry>();
        for part in 0..deal.parts {
            dealt.next_page(part, Page::new(page_bytes));
        }
        self.for_each_of(0, rules, |prefix, _, record| {
            dealt.push_staged(record, 0, &[Staged { prefix, end: record.len() }]);
        });
        let last = std::mem::replace(self, dealt);
        let pages = last.pages.iter().chain(&last.spare);
        account.give(pages.map(|page| page.len() as u64).sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_into_parts_in_order_whatever_lies_outside() {
        for (base, last) in
            [(0, u64::MAX), (1 << 63, u64::MAX), (7, 1 << 40), (u64::MAX / 3, u64::MAX / 3 * 2)]
        {
            let deal = Deal::of((base, last), 6).unwrap();
            assert!((33..=64).contains(&deal.parts), "{deal:?}");
            let step = (last - base) / 1_000;
            let parts: Vec<usize> = (0..1_000).map(|n| deal.part(base + n * step)).collect();
            assert!(parts.is_sorted());
            assert_eq!((parts[0], deal.part(last)), (0, deal.parts - 1));
            assert_eq!((deal.part(0), deal.part(u64::MAX)), (0, deal.parts - 1));
        }
        assert!(Deal::of((5, 60), 6).is_none(), "too few prefixes");
        assert!(Deal::of((9, 3), 6).is_none());
    }
}
