//! The sorter's one loan, and what of it is in use.
//!
//! Memory that a page gives up is kept on loan for the next page, so a shared budget cannot starve a
//! sorter between two of its own steps. Given back by [`Account::trim`] and on drop.

use std::sync::Arc;

use element::{Loan, MemoryBudget};

/// What one sorter has borrowed.
///
/// Invariant: `used <= loan.bytes()`; `loan.bytes()` exceeds `limit` only by what
/// [`Account::take_beyond`] took for single records.
#[derive(Debug)]
pub(crate) struct Account {
    loan: Loan,
    used: u64,
    limit: u64,
    /// Bytes that records leave alone: for the block of the run that they are written to.
    reserve: u64,
    /// The most bytes that were on loan at once.
    peak: u64,
}

impl Account {
    pub(crate) fn new(budget: &Arc<MemoryBudget>, limit: u64, reserve: u64) -> Self {
        Self { loan: budget.borrow_beyond(0), used: 0, limit, reserve, peak: 0 }
    }

    /// Takes `bytes` into use for records, if the limit and the budget allow it and the reserve.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        self.borrow(self.used.saturating_add(bytes).saturating_add(self.reserve))
            && self.take_reserved(bytes)
    }

    /// Takes `bytes` into use, the reserve among them.
    #[must_use]
    pub(crate) fn take_reserved(&mut self, bytes: u64) -> bool {
        let wanted = self.used.saturating_add(bytes);
        let granted = self.borrow(wanted);
        if granted {
            self.used = wanted;
        }
        granted
    }

    /// Sees to it that `wanted` bytes are on loan.
    fn borrow(&mut self, wanted: u64) -> bool {
        let missing = wanted.saturating_sub(self.loan.bytes());
        let granted = wanted <= self.limit && (missing == 0 || self.loan.grow(missing));
        self.peak = self.peak.max(self.loan.bytes());
        granted
    }

    /// Takes `bytes` into use whatever the limit: for a single record that must be held.
    pub(crate) fn take_beyond(&mut self, bytes: u64) {
        let wanted = self.used.saturating_add(bytes);
        self.loan.grow_beyond(wanted.saturating_sub(self.loan.bytes()));
        self.used = wanted;
        self.peak = self.peak.max(self.loan.bytes());
    }

    /// `bytes` are not in use any more; they stay on loan.
    pub(crate) fn give(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        // What went beyond the limit is not ours to keep.
        self.loan.shrink(self.loan.bytes().saturating_sub(self.used.max(self.limit)));
    }

    /// Gives back to the budget what is not in use.
    pub(crate) fn trim(&mut self) {
        self.loan.shrink(self.loan.bytes().saturating_sub(self.used));
    }

    /// Nothing is in use any more: everything goes back to the budget.
    pub(crate) fn end(&mut self) {
        self.used = 0;
        self.trim();
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }
}
