//! [`Cleaner`]: leaves expired entries out of the tables that a store's compaction writes.
//!
//! Told by the backend what expires; asked by the store's compaction threads, entry by entry. While a
//! view is open nothing is left out: a view may belong to a checkpoint whose watermark is restored.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::Expiry;

/// What a store's compaction filter asks.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    expiry: OnceLock<Arc<Expiry>>,
    /// Views that share the files which compactions rewrite.
    open_views: AtomicUsize,
}

impl Cleaner {
    /// From here on entries expire by `expiry`; the first one stays.
    pub(crate) fn expire_by(&self, expiry: Arc<Expiry>) {
        self.expiry.get_or_init(|| expiry);
    }

    /// Whether an entry is to be left out; counted if it is.
    pub(crate) fn removes(&self, key: &[u8], value: &[u8]) -> bool {
        let Some(expiry) = self.expiry.get() else { return false };
        let removes =
            self.open_views.load(Ordering::Acquire) == 0 && expiry.has_expired(key, value);
        if removes {
            expiry.count_removed();
        }
        removes
    }
}

/// A view that is open. Holds back the cleaner until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenView(Arc<Cleaner>);

impl OpenView {
    pub(crate) fn of(cleaner: &Arc<Cleaner>) -> Self {
        cleaner.open_views.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(cleaner))
    }
}

impl Drop for OpenView {
    fn drop(&mut self) {
        self.0.open_views.fetch_sub(1, Ordering::AcqRel);
    }
}
