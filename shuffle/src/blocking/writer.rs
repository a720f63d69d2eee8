//! [`BlockingWriter`]: one output edge into a partition at rest.
//!
//! ```text
//! hash variant   few consumers: some blocks of a subpartition leave as soon as they fill a piece
//! sort variant   many consumers: blocks gather until there is a stretch for each or memory is short,
//!                then all leave in the order of their subpartitions (a region)
//! ```
//!
//! Memory is borrowed; a refusal sends out what is held, so a writer never waits for memory and goes
//! on with none at all (FLIP-148, "deadlock").

use std::sync::Arc;

use element::{Batch, ByteSize, Control, Loan, MemoryBudget, Record, SubpartitionIndex, Timestamp};

use crate::packer::Packer;
use crate::{FinishedPartition, Flow, PartitionWriter, ResultPartitionWriter, WriteError};

/// How a blocking edge uses memory.
#[derive(Clone, Debug)]
pub struct BlockingOptions {
    /// Where memory for blocks is borrowed from.
    pub memory: Arc<MemoryBudget>,
    /// Bytes from which on a block is full.
    pub block: ByteSize,
    /// Subpartitions from which on the sort variant is used
    /// (`taskmanager.network.sort-shuffle.min-parallelism`).
    pub sort_threshold: u32,
}

impl Default for BlockingOptions {
    fn default() -> Self {
        Self {
            memory: MemoryBudget::new(ByteSize::mib(32)),
            block: ByteSize::kib(32),
            sort_threshold: 64,
        }
    }
}

/// Bytes asked for when the loan is too small.
const LOAN_STEP: u64 = 256 << 10;

/// Bytes of a region at least.
const LEAST_REGION: u64 = 1 << 20;

/// Bytes of a region at most, while each subpartition has its least stretch.
const MOST_REGION: u64 = 8 << 20;

/// Bytes of a region for each subpartition, or a block if that is smaller. Longer stretches would be
/// read a little better from a cold disk; but a region is filled at as many places as there are
/// subpartitions, and one that leaves the processor's cache costs its memory twice: as it is filled
/// and as it is written. Measured 0.7 of the processor time of 32 KiB in the program, for 200 of them.
const STRETCH: u64 = 8 << 10;

/// The same where there are so many that the region would be too large. With half of it, reading costs
/// more than filling saves. Measured 0.85 of the processor time of 8 KiB, for 2,000 of them.
const LEAST_STRETCH: u64 = 4 << 10;

/// Bytes of room for each subpartition beyond a quarter more than its stretch.
const ROOM: u64 = 1 << 10;

/// Bytes of a region of so many subpartitions.
fn region(subpartitions: u64, block: u64) -> u64 {
    let each = |bytes: u64| subpartitions.saturating_mul(block.min(bytes));
    each(STRETCH).min(MOST_REGION).max(each(LEAST_STRETCH)).max(LEAST_REGION)
}

/// Bytes of one subpartition that leave together in the hash variant; fewer where that times the
/// subpartitions were more than the least region, and a block at least.
const GATHER: u64 = 256 << 10;

/// Encodes the records of one output edge into the blocks of one partition.
///
/// Per subpartition the order of the blocks is the order of emission. What is emitted to all is
/// stored once.
pub struct BlockingWriter<T> {
    /// `None` once finished.
    partition: Option<Box<dyn ResultPartitionWriter>>,
    /// Blocks of each subpartition. **Invariant:** all empty, or `shared` is.
    lanes: Vec<Packer>,
    /// Blocks for every subpartition.
    shared: Packer,
    block: usize,
    sorts: bool,
    /// Bytes from which on a region leaves.
    region: u64,
    /// Bytes from which on a subpartition leaves by itself.
    gather: u64,
    /// Bytes of records in `lanes`; once `grew` was looked at, of all that wait.
    filled: u64,
    /// Whether more memory may be held than when it was last counted.
    grew: bool,
    /// Whether a full region has left.
    settled: bool,
    loan: Loan,
    records: u64,
    regions: u64,
    ended: bool,
    values: std::marker::PhantomData<fn(T)>,
}

impl<T: Record> BlockingWriter<T> {
    /// Writes `partition`, which has `subpartitions` subpartitions.
    #[must_use]
    pub fn new(
        partition: Box<dyn ResultPartitionWriter>,
        subpartitions: u32,
        options: &BlockingOptions,
    ) -> Self {
        let (each, block) = (u64::from(subpartitions), options.block.0);
        let sorts = subpartitions >= options.sort_threshold;
        let gather = (LEAST_REGION / each.max(1)).min(GATHER);
        Self {
            partition: Some(partition),
            lanes: (0..subpartitions).map(|_| Packer::default()).collect(),
            shared: Packer::default(),
            block: options.block.as_usize().max(1),
            sorts,
            region: region(each, block),
            filled: 0,
            grew: false,
            settled: false,
            gather: if sorts { u64::MAX } else { gather },
            loan: options.memory.borrow_beyond(0),
            records: 0,
            regions: 0,
            ended: false,
            values: std::marker::PhantomData,
        }
    }

    /// Whether blocks gather and leave in regions.
    #[must_use]
    pub fn sorts(&self) -> bool {
        self.sorts
    }

    /// Times that all subpartitions were sent out together.
    #[must_use]
    pub fn regions(&self) -> u64 {
        self.regions
    }

    fn open(&self) -> Result<(), WriteError> {
        if self.ended || self.partition.is_none() { Err(WriteError::Finished) } else { Ok(()) }
    }

    fn no_such(&self, subpartition: SubpartitionIndex) -> WriteError {
        let subpartitions = u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
        WriteError::NoSuchSubpartition { subpartition, subpartitions }
    }

    /// Ends the block of a subpartition; in the hash variant it leaves with those before it.
    #[cold]
    fn full(&mut self, subpartition: SubpartitionIndex) -> Result<(), WriteError> {
        let partition = self.partition.as_mut().ok_or(WriteError::Finished)?;
        self.grew = true;
        if let Some(lane) = self.lanes.get_mut(subpartition.0 as usize) {
            lane.cut();
            if lane.memory().0 as u64 >= self.gather {
                let blocks: Vec<_> = lane.blocks().map(|block| (subpartition, block)).collect();
                partition.write_all(&blocks)?;
                lane.clear();
            }
        }
        Ok(())
    }

    /// As [`PartitionWriter::emit`], for records that somebody else wants too: encoded where they
    /// are, not cloned.
    ///
    /// # Errors
    ///
    /// As [`PartitionWriter::emit`].
    pub fn emit_ref(
        &mut self,
        subpartition: SubpartitionIndex,
        batch: &Batch<T>,
    ) -> Result<(), WriteError> {
        self.open()?;
        self.put(batch, std::iter::repeat(subpartition))
    }

    /// Packs each record for its subpartition, by reference: moving records costs more than packing.
    fn put(
        &mut self,
        batch: &Batch<T>,
        targets: impl Iterator<Item = SubpartitionIndex>,
    ) -> Result<(), WriteError> {
        let values = batch.values().iter();
        match batch.timestamps() {
            None => self.put_each(values.map(|value| (value, None)).zip(targets)),
            Some(stamps) => {
                let stamps = stamps.iter().copied().map(Some);
                self.put_each(values.zip(stamps).zip(targets))
            }
        }?;
        self.records += batch.len() as u64;
        self.account()
    }

    fn put_each<'a>(
        &mut self,
        records: impl Iterator<Item = ((&'a T, Option<Timestamp>), SubpartitionIndex)>,
    ) -> Result<(), WriteError>
    where
        T: 'a,
    {
        let block = self.block;
        for ((value, stamp), subpartition) in records {
            let Some(lane) = self.lanes.get_mut(subpartition.0 as usize) else {
                return Err(self.no_such(subpartition));
            };
            let before = lane.bytes();
            lane.push(value, stamp);
            let after = lane.bytes();
            self.filled += (after.0 - before.0) as u64;
            self.grew |= after.1 != before.1;
            if lane.open_bytes() >= block {
                self.full(subpartition)?;
            }
        }
        Ok(())
    }

    /// Sends out what is for all, before something for one is packed.
    fn send_shared(&mut self) -> Result<(), WriteError> {
        if self.shared.is_empty() {
            return Ok(());
        }
        let partition = self.partition.as_mut().ok_or(WriteError::Finished)?;
        self.shared.cut();
        for block in self.shared.blocks() {
            partition.write_broadcast(block)?;
        }
        self.shared.clear();
        Ok(())
    }

    /// Sends out what every subpartition holds, in their order.
    fn send_lanes(&mut self) -> Result<(), WriteError> {
        let partition = self.partition.as_mut().ok_or(WriteError::Finished)?;
        self.lanes.iter_mut().for_each(Packer::cut);
        let lanes = (0..).map(SubpartitionIndex).zip(&self.lanes);
        let blocks: Vec<_> =
            lanes.flat_map(|(index, lane)| lane.blocks().map(move |b| (index, b))).collect();
        partition.write_all(&blocks)?;
        self.regions += u64::from(!blocks.is_empty());
        self.lanes.iter_mut().for_each(Packer::clear);
        (self.filled, self.grew) = (0, true);
        Ok(())
    }

    /// Borrows for what is held. Where that is refused, everything leaves and the memory with it.
    fn account(&mut self) -> Result<(), WriteError> {
        if self.sorts && self.filled >= self.region {
            self.send_lanes()?;
            self.settle();
        }
        if !std::mem::take(&mut self.grew) {
            return Ok(());
        }
        let held = self.count_memory();
        let missing = held.saturating_sub(self.loan.bytes());
        if missing == 0 || self.loan.grow(missing.max(LOAN_STEP)) || self.loan.grow(missing) {
            return Ok(());
        }
        let filled = self.filled;
        let sizes: Vec<usize> = self.lanes.iter().map(|lane| lane.memory().0).collect();
        self.send_lanes()?;
        self.send_shared()?;
        self.shared = Packer::default();
        self.keep_memory(&sizes, filled);
        Ok(())
    }

    /// Looks at all packers, of which there may be thousands: what is filled, and all that is held.
    fn count_memory(&mut self) -> u64 {
        let packers = self.lanes.iter().chain(std::iter::once(&self.shared));
        let (filled, held) = packers
            .map(Packer::memory)
            .fold((0, 0), |sum, memory| (sum.0 + memory.0 as u64, sum.1 + memory.1 as u64));
        self.filled = filled;
        held
    }

    /// After the first region that was full: memory for a stretch each and what chance adds to some, in
    /// place of what doubling took, which lies scattered and half of it unused.
    fn settle(&mut self) {
        let lanes = self.lanes.len() as u64;
        let each = self.region.div_ceil(lanes.max(1));
        let room = each + each / 4 + ROOM;
        let missing = lanes.saturating_mul(room).saturating_sub(self.loan.bytes());
        if !self.settled && (missing == 0 || self.loan.grow(missing)) {
            self.lanes.iter_mut().for_each(|lane| *lane = Packer::default());
            self.lanes.iter_mut().for_each(|lane| lane.reserve(room as usize));
        }
        self.settled = true;
    }

    /// After a region: the next one looks like it, so memory stays where it was filled, and what
    /// doubling took beyond is given back. Fresh memory would cost more than the copies. Where that
    /// does not fit into the loan, all is given back.
    fn keep_memory(&mut self, sizes: &[usize], filled: u64) {
        let limit = self.loan.bytes();
        let mut held = 0;
        for (lane, size) in self.lanes.iter_mut().zip(sizes) {
            if lane.memory().1 > size + size / 4 {
                lane.shrink_to(*size);
            }
            held += lane.memory().1 as u64;
        }
        if held > limit || filled < limit / 2 {
            self.lanes.iter_mut().for_each(|lane| *lane = Packer::default());
        }
    }
}

impl<T: Record> PartitionWriter<T> for BlockingWriter<T> {
    fn emit(&mut self, subpartition: SubpartitionIndex, batch: Batch<T>) -> Result<(), WriteError> {
        self.open()?;
        self.send_shared()?;
        self.put(&batch, std::iter::repeat(subpartition))
    }

    fn scatter(
        &mut self,
        batch: Batch<T>,
        targets: &[SubpartitionIndex],
    ) -> Result<(), WriteError> {
        self.open()?;
        assert_eq!(batch.len(), targets.len(), "one target a record");
        self.send_shared()?;
        self.put(&batch, targets.iter().copied())
    }

    fn emit_all(
        &mut self,
        batch: Batch<T>,
        _: fn(&Batch<T>) -> Batch<T>,
    ) -> Result<(), WriteError> {
        self.open()?;
        self.send_lanes()?;
        self.grew = true;
        for (at, value) in batch.values().iter().enumerate() {
            self.shared.push(value, batch.timestamp(at));
            self.records += 1;
            if self.shared.open_bytes() >= self.block {
                self.send_shared()?;
            }
        }
        self.account()
    }

    fn broadcast(&mut self, control: Control) -> Result<(), WriteError> {
        self.open()?;
        if control == Control::EndOfInput {
            self.ended = true;
            return Ok(());
        }
        self.grew = true;
        // Beside records that wait the control waits with them; alone it is stored once.
        if self.lanes.iter().all(Packer::is_empty) {
            self.shared.control(control);
        } else {
            self.lanes.iter_mut().for_each(|lane| lane.control(control));
        }
        self.account()
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        // Nobody reads before the end, and small blocks would cost.
        Ok(())
    }

    fn pump(&mut self) -> Result<Flow, WriteError> {
        Ok(Flow::Ready)
    }

    fn finish(&mut self) -> Result<Option<FinishedPartition>, WriteError> {
        self.send_lanes()?;
        self.send_shared()?;
        let partition = self.partition.take().ok_or(WriteError::Finished)?;
        let finished = partition.finish()?;
        self.lanes.clear();
        self.shared = Packer::default();
        self.loan.shrink(self.loan.bytes());
        Ok(Some(FinishedPartition { records: Some(self.records), ..finished }))
    }
}

impl<T> std::fmt::Debug for BlockingWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockingWriter")
            .field("subpartitions", &self.lanes.len())
            .field("sorts", &self.sorts)
            .finish_non_exhaustive()
    }
}
