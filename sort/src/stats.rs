//! [`SortStats`]: what a sort cost, in counts that tests assert and reports show.

/// Counts of one sort. Sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortStats {
    /// Records pushed.
    pub records: u64,
    /// Bytes of keys and payloads pushed.
    pub bytes_in: u64,
    /// Bytes of records written to runs, before compression; all passes together.
    pub spilled_raw: u64,
    /// Bytes written to runs, headers included; all passes together.
    pub spilled_written: u64,
    /// Runs written from memory; runs that merges wrote are not counted.
    pub runs: u64,
    /// Times that records are read from runs: 0 in memory, 1 if one merge, or parts sorted one by one, give
    /// the result.
    pub passes: u64,
    /// The most run files open at once.
    pub peak_open_files: u64,
    /// The most bytes borrowed at once.
    pub peak_bytes: u64,
    /// Comparisons, and readings of whole keys, that went past the eight-byte prefix.
    pub deep_comparisons: u64,
    /// Records that a combiner folded into another before they were sorted or while merging.
    pub combined: u64,
}

impl SortStats {
    /// Adds what another thread has counted while it wrote a run.
    pub(crate) fn absorb(&mut self, written: &Self) {
        self.spilled_raw += written.spilled_raw;
        self.spilled_written += written.spilled_written;
        self.runs += written.runs;
        self.deep_comparisons += written.deep_comparisons;
    }
}
