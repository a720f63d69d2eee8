//! [`PartedRun`]: parts of the buffer in a file, the records of each in the order of arrival.
//!
//! Where records are dealt into parts of the order ([`crate::buffer`]), what all runs and the memory hold of
//! one part takes a small share of the memory. So a part is written as it lies, and sorted once, when the
//! drain gets there ([`crate::parted_reader`]): nothing is merged, and no record is sorted twice.
//!
//! ```text
//! file := block*      of a run; a block has records of one part
//! ```
//!
//! [`PartedRuns`] are those of one sorter. Where a part becomes too long, or the runs too many, they become
//! one sorted run ([`crate::external`]).

use std::sync::Arc;

use crate::SortError;
use crate::buffer::Buffer;
use crate::radix::Entry;
use crate::run::{Place, Run};
use crate::spiller::Spiller;

/// Bytes of a record's entry and of its copy, while a part is sorted.
const ENTRIES: u64 = 2 * size_of::<Entry>() as u64;

/// A complete file, and where its parts are.
#[derive(Debug)]
pub(crate) struct PartedRun {
    pub(crate) run: Run,
    /// The part of the buffer that it begins with.
    first: usize,
    /// Where each part begins, and where the last one ends.
    places: Vec<Place>,
}

impl PartedRun {
    /// Writes the parts of a buffer from `from` on. The buffer stays as it is.
    pub(crate) fn write(
        buffer: &mut Buffer,
        from: usize,
        spiller: &mut Spiller,
    ) -> Result<Self, SortError> {
        buffer.seal();
        let mut writer = spiller.create_run()?;
        let mut places = Vec::with_capacity(buffer.parts() + 1 - from);
        for part in from..buffer.parts() {
            places.push(writer.place());
            writer.expect(buffer.len(part) as u64);
            for page in buffer.pages_of(part) {
                writer.append_all(page.records(), spiller)?;
            }
            writer.flush(spiller)?;
        }
        places.push(writer.place());
        Ok(Self { run: spiller.seal_spilled(writer)?, first: from, places })
    }

    /// Where a part begins and ends; the same place where it is not there.
    pub(crate) fn ends(&self, part: usize) -> (Place, Place) {
        let place = |part: usize| self.places.get(part).copied();
        match part.checked_sub(self.first).map(|part| (place(part), place(part + 1))) {
            Some((Some(start), Some(end))) => (start, end),
            _ => (Place::default(), Place::default()),
        }
    }
}

/// What is in all runs of one part.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    records: u64,
    bytes: u64,
    /// The most bytes that one run has of it, as they are in the file.
    longest: u64,
}

impl Share {
    /// Bytes that it takes to sort the part, so many records and bytes of it in memory.
    fn needs(&self, (records, bytes): (u64, u64)) -> u64 {
        self.bytes + self.longest + bytes + (self.records + records) * ENTRIES
    }
}

/// The parted runs of a sorter, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct PartedRuns {
    pub(crate) runs: Vec<Arc<PartedRun>>,
    shares: Vec<Share>,
    /// Bytes in use in the account, to sort the longest part when it is drained.
    pub(crate) reserved: u64,
}

impl PartedRuns {
    pub(crate) fn add(&mut self, run: PartedRun, parts: usize) {
        self.shares.resize(parts, Share::default());
        for (part, share) in self.shares.iter_mut().enumerate() {
            let (start, end) = run.ends(part);
            share.records += end.records - start.records;
            share.bytes += end.raw - start.raw;
            share.longest = share.longest.max(end.offset - start.offset);
        }
        self.runs.push(Arc::new(run));
    }

    /// Records of a part in all runs.
    pub(crate) fn records(&self, part: usize) -> u64 {
        self.shares.get(part).map_or(0, |share| share.records)
    }

    /// Bytes that it takes to sort any part of the runs and of `buffer` when it is drained.
    pub(crate) fn needs(&self, buffer: &Buffer) -> u64 {
        let needs = |(part, share): (usize, &Share)| share.needs(buffer.size_of(part));
        self.shares.iter().enumerate().map(needs).max().unwrap_or(0)
    }

    /// Whether each part could be sorted in `most` bytes if those of `buffer` from `from` on were written.
    pub(crate) fn take_in(&self, buffer: &Buffer, from: usize, most: u64) -> bool {
        (from..buffer.parts()).all(|part| {
            let share = self.shares.get(part).copied().unwrap_or_default();
            let (records, bytes) = buffer.size_of(part);
            share.needs((records, 2 * bytes)) <= most
        })
    }
}
