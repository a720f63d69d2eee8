//! [`MemoryBudget`]: bytes that several users share, borrowed by [`Loan`].
//!
//! A refusal means "spill, then ask again", never an error. A loan gives itself back on drop, so no
//! early return leaks. A budget remembers its peak, which tests assert.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// `n` KiB.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// `n` MiB.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// As a length in memory, held at the platform's limit.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];
        let (unit, shift) =
            UNITS.into_iter().find(|(_, shift)| self.0 >> shift > 0).unwrap_or(("B", 0));
        if shift == 0 {
            write!(f, "{} B", self.0)
        } else {
            let tenths = (self.0 >> (shift - 10)) * 10 / 1_024;
            write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
        }
    }
}

/// Bytes that can be borrowed. Shared through an `Arc`.
#[derive(Debug)]
pub struct MemoryBudget {
    total: u64,
    used: AtomicU64,
    peak: AtomicU64,
}

impl MemoryBudget {
    /// A budget of `total` bytes.
    #[must_use]
    pub fn new(total: ByteSize) -> Arc<Self> {
        Arc::new(Self { total: total.0, used: AtomicU64::new(0), peak: AtomicU64::new(0) })
    }

    /// Borrows `bytes`; `None` when they are not there: the caller spills, then asks again.
    pub fn borrow(self: &Arc<Self>, bytes: u64) -> Option<Loan> {
        let mut loan = Loan { budget: Arc::clone(self), bytes: 0 };
        loan.grow(bytes).then_some(loan)
    }

    /// Borrows `bytes` even beyond the total: for the one record that must be held whatever its
    /// size. The excess shows in [`peak`](Self::peak).
    pub fn borrow_beyond(self: &Arc<Self>, bytes: u64) -> Loan {
        let mut loan = Loan { budget: Arc::clone(self), bytes: 0 };
        loan.grow_beyond(bytes);
        loan
    }

    /// All bytes of this budget.
    #[must_use]
    pub fn total(&self) -> ByteSize {
        ByteSize(self.total)
    }

    /// Bytes on loan at this moment.
    #[must_use]
    pub fn used(&self) -> ByteSize {
        ByteSize(self.used.load(Ordering::Acquire))
    }

    /// The most bytes that were on loan at once.
    #[must_use]
    pub fn peak(&self) -> ByteSize {
        ByteSize(self.peak.load(Ordering::Acquire))
    }

    fn take(&self, bytes: u64, limit: u64) -> bool {
        let take = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        match self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::AcqRel);
                true
            }
            Err(_) => false,
        }
    }
}

/// Bytes on loan from a [`MemoryBudget`], given back on drop.
#[derive(Debug)]
pub struct Loan {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl Loan {
    /// Bytes of this loan.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The budget it is borrowed from.
    #[must_use]
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Borrows `more`; false, and nothing changed, when they are not there.
    #[must_use]
    pub fn grow(&mut self, more: u64) -> bool {
        let granted = self.budget.take(more, self.budget.total);
        if granted {
            self.bytes += more;
        }
        granted
    }

    /// Borrows `more` even beyond the budget's total.
    pub fn grow_beyond(&mut self, more: u64) {
        if self.budget.take(more, u64::MAX) {
            self.bytes += more;
        }
    }

    /// Gives `less` bytes back, or all if there are fewer.
    pub fn shrink(&mut self, less: u64) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.budget.used.fetch_sub(less, Ordering::AcqRel);
    }

    /// Splits `bytes` off into a loan of their own; all of it if there are fewer.
    #[must_use]
    pub fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { budget: Arc::clone(&self.budget), bytes }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}
