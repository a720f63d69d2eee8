//! [`PartedReader`]: parts of parted runs, read back one by one, each with what the memory holds of it.
//!
//! A part costs one read a run. Every block is checked against its checksum and identity, every part against
//! what was written. Dropped with the last reader of its run, the file goes.

use std::sync::Arc;

use element::{FileRole, StoreReader};

use crate::SortError;
use crate::block::{self, HEAD, Head, Identity};
use crate::buffer::Buffer;
use crate::page::Page;
use crate::parted::{PartedRun, PartedRuns};
use crate::run::Place;
use crate::run_reader::missing_or_failed;
use crate::spiller::{OpenFile, Spiller};

/// Reads the parts of all parted runs of a sorter.
#[derive(Debug)]
pub(crate) struct PartedReader {
    // Before the runs, so that files are closed when they are deleted.
    files: Vec<(Box<dyn StoreReader>, OpenFile)>,
    runs: Arc<PartedRuns>,
    /// Blocks of one part of one run, as they are in the file.
    stored: Vec<u8>,
}

impl PartedReader {
    /// Opens all runs.
    pub(crate) fn open(runs: Arc<PartedRuns>, spiller: &Spiller) -> Result<Self, SortError> {
        let mut files = Vec::with_capacity(runs.runs.len());
        for PartedRun { run, .. } in runs.runs.iter().map(|run| &**run) {
            let reader = run.file.target.store.open(FileRole::SortRun, &run.file.name);
            let reader = reader.map_err(|error| missing_or_failed(&run.file.name, 0, error))?;
            files.push((reader, OpenFile::count(&spiller.files)));
        }
        Ok(Self { files, runs, stored: Vec::new() })
    }

    /// Records of a part in all runs.
    pub(crate) fn records(&self, part: usize) -> u64 {
        self.runs.records(part)
    }

    /// The records of a part, those of the runs first and then those of `memory`, in a buffer of their own.
    /// The pages of `spare` are used again.
    ///
    /// # Errors
    ///
    /// [`SortError::Damaged`], [`SortError::Missing`] or [`SortError::Store`], with the run.
    pub(crate) fn load(
        &mut self,
        part: usize,
        memory: &Buffer,
        spare: Option<Buffer>,
    ) -> Result<Buffer, SortError> {
        let mut spare = spare.map_or_else(Vec::new, Buffer::into_pages).into_iter();
        let mut pages = Vec::with_capacity(self.files.len() + 1);
        for ((file, _), run) in self.files.iter().zip(&self.runs.runs) {
            let (start, end) = run.ends(part);
            if start.records == end.records {
                continue;
            }
            let name = &run.run.file.name;
            self.stored.resize((end.offset - start.offset) as usize, 0);
            file.read_at(start.offset, &mut self.stored)
                .map_err(|error| missing_or_failed(name, start.block, error))?;
            let mut page = spare.next().map_or_else(Vec::new, Page::into_empty);
            page.reserve_exact((end.raw - start.raw) as usize);
            open_blocks(run, start, end, &self.stored, &mut page)?;
            pages.push(Page::of(page));
        }
        let mut page = spare.next().map_or_else(Vec::new, Page::into_empty);
        page.reserve_exact(memory.size_of(part).1 as usize);
        memory.pages_of(part).for_each(|more| page.extend_from_slice(more.records()));
        pages.push(Page::of(page));
        let records = self.runs.records(part) as usize + memory.len(part);
        Ok(memory.part_of(pages, records))
    }
}

/// Proves the blocks of a part, and appends their records to `page`.
fn open_blocks(
    run: &PartedRun,
    start: Place,
    end: Place,
    stored: &[u8],
    page: &mut Vec<u8>,
) -> Result<(), SortError> {
    let mut rest = stored;
    let mut records = 0;
    for block in start.block..end.block {
        let identity = Identity { sorter: run.run.sorter, run: run.run.number, block };
        let damaged =
            |what| SortError::Damaged { run: run.run.file.name.clone(), block, what, source: None };
        let (head, behind) = rest.split_first_chunk::<HEAD>().ok_or(damaged("the block is cut"))?;
        let head = Head::parse(head);
        let longer = damaged("the block is longer than what was written");
        let left = (end.raw - start.raw).saturating_sub(page.len() as u64);
        let body = behind.split_at_checked(head.stored as usize);
        let Some((body, behind)) = body.filter(|_| u64::from(head.raw) <= left) else {
            return Err(longer);
        };
        block::append(&head, body, page, identity).map_err(damaged)?;
        records += u64::from(head.records);
        rest = behind;
        if block + 1 == end.block && records != end.records - start.records {
            return Err(damaged("records are missing"));
        }
    }
    Ok(())
}
