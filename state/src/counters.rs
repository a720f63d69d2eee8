//! [`StateCounters`]: how often state was touched, and how often the store beneath it was.
//!
//! Counted by the backend, read by metrics and by the tests that hold FLIP-327 and FLIP-325 to their
//! word.

/// Counts since the backend was made; all but `cached_keys` only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateCounters {
    /// Accesses that found key, state and namespace in the cache.
    pub hits: u64,
    /// Accesses that did not.
    pub misses: u64,
    /// Point reads of the store.
    pub store_reads: u64,
    /// Range reads of the store, those of the merge in step with sorted input included.
    pub store_range_reads: u64,
    /// Entries put into or deleted from the store, one by one or in bulk.
    pub store_writes: u64,
    /// Entries among these that went through a bulk load.
    pub ingested_entries: u64,
    /// Keys that left the cache.
    pub evicted_keys: u64,
    /// Entries that had expired and were removed without being asked for: by a store while it
    /// compacts, in memory beside other accesses.
    pub cleaned_entries: u64,
    /// Keys in the cache at this moment.
    pub cached_keys: u64,
}
