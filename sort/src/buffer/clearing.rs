//! What of a buffer goes when it has been written to a run, and what stays.
//!
//! Parts go from the upper end; the memory of their pages stays with the buffer for the next records, or
//! is given back to the account page by page.

use super::{Buffer, ENTRY_BYTES, Part};
use crate::account::Account;
use crate::page::Page;

impl Buffer {
    /// The part from which on lies one of `shares` of the records' memory, or more; at most `most`.
    pub(crate) fn upper(&self, shares: usize, most: usize) -> usize {
        let pages: usize = self.parts.iter().map(|part| part.pages.len()).sum();
        let mut above = 0;
        let is_enough = |part: &Part| {
            above += part.pages.len();
            above * shares >= pages
        };
        self.parts.iter().rposition(is_enough).unwrap_or(0).min(most)
    }

    /// Forgets all records of parts from `from` on; keeps usual pages, and the room for entries, for the
    /// next ones. Other parts can be filled further.
    pub(crate) fn clear_from(&mut self, from: usize, account: &mut Account) {
        self.seal();
        for part in self.parts.iter_mut().skip(from) {
            for number in part.pages.drain(..) {
                let Some(page) = self.pages.get_mut(number).map(std::mem::take) else { continue };
                keep(page, self.page_bytes, &mut self.spare, account);
            }
            part.records = 0;
        }
        self.close_gaps();
        self.unseal();
    }

    /// Pages move up into the numbers of those that are gone; their order stays.
    fn close_gaps(&mut self) {
        let mut numbers = Vec::with_capacity(self.pages.len());
        let mut next = 0;
        for page in &self.pages {
            numbers.push(next);
            next += usize::from(page.len() > 0);
        }
        self.pages.retain(|page| page.len() > 0);
        for number in self.parts.iter_mut().flat_map(|part| &mut part.pages) {
            *number = numbers.get(*number).copied().unwrap_or(*number);
        }
    }

    /// Gives the memory of a page that is free back to the account; false if none is.
    pub(crate) fn release_page(&mut self, account: &mut Account) -> bool {
        let page = self.spare.pop();
        account.give(page.as_ref().map_or(0, |page| page.len() as u64));
        page.is_some()
    }

    /// Gives the memory of all pages that are free back to the account.
    pub(crate) fn release_spare(&mut self, account: &mut Account) {
        while self.release_page(account) {}
    }

    /// Drops everything and gives its bytes back to the account.
    pub(crate) fn release(&mut self, account: &mut Account) {
        self.clear_from(0, account);
        self.release_spare(account);
        let entries = std::mem::take(&mut self.entries_room) + std::mem::take(&mut self.aside_room);
        account.give(entries as u64 * ENTRY_BYTES);
    }
}

/// Keeps a page of the usual length, without its records; gives back the memory of others.
fn keep(mut page: Page, usual: usize, spare: &mut Vec<Page>, account: &mut Account) {
    if page.len() == usual {
        page.clear();
        spare.push(page);
    } else {
        account.give(page.len() as u64);
    }
}
