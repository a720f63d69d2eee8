//! [`Kept`]: records that are merged from memory, in blocks like those of a run.
//!
//! Where the memory overflows by little, most of what it holds when the input ends need not be written.
//! The part of it that earlier runs have records of is the last leaf of their merge: sorted, copied to
//! a block, and read there as a block that came from a file.

use crate::in_memory::InMemory;
use crate::rules::Rules;
use crate::{CancelFlag, SortError, page, record};

/// The rest of a buffer, for one reader.
#[derive(Debug)]
pub(crate) struct Kept {
    memory: InMemory,
    rules: Rules,
    cancel: Option<CancelFlag>,
    block_bytes: usize,
}

impl Kept {
    pub(crate) fn new(
        memory: InMemory,
        rules: Rules,
        cancel: Option<CancelFlag>,
        block_bytes: u64,
    ) -> Self {
        let block_bytes = usize::try_from(block_bytes).unwrap_or(usize::MAX);
        Self { memory, rules, cancel, block_bytes }
    }

    /// Puts the next records into `block`, at least one if there is any, and beyond a block's length by
    /// less than a record; gives how many.
    ///
    /// # Errors
    ///
    /// [`SortError::Cancelled`].
    pub(crate) fn fill(&mut self, block: &mut Vec<u8>) -> Result<u64, SortError> {
        block.clear();
        block.reserve_exact(self.block_bytes + page::BLOCK);
        let mut records = 0;
        while block.len() < self.block_bytes.max(1)
            && self.memory.advance(&self.rules, self.cancel.as_ref())?
        {
            let bytes = self.memory.bytes();
            page::append_from(block, bytes, record::length(bytes));
            records += 1;
        }
        Ok(records)
    }

    pub(crate) fn deep_comparisons(&self) -> u64 {
        self.memory.deep_comparisons()
    }
}
