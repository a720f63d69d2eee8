//! [`PipelinedWriter`]: one output edge over pipelined channels, one for each consumer.
//!
//! Records gather in an open batch per subpartition until it is full, so a keyed edge to many
//! consumers still sends full batches. What a channel refuses waits in a queue here, in order.

use std::collections::VecDeque;

use element::{BATCH_RECORDS, Batch, Control, StreamElement, SubpartitionIndex, Timestamp};

use crate::{FinishedPartition, Flow, PartitionWriter, PipelinedSender, TrySendError, WriteError};

/// Bytes of a full batch of large values: beyond it a batch gains nothing and costs cache.
const BATCH_BYTES: usize = 64 << 10;

/// Writes one output edge over pipelined channels.
pub struct PipelinedWriter<T> {
    lanes: Vec<Lane<T>>,
    /// Records of a full batch; fewer than [`BATCH_RECORDS`] for large types.
    batch_records: usize,
    finished: bool,
}

/// One consumer's channel, with what has not left yet.
struct Lane<T> {
    sender: PipelinedSender<T>,
    /// Records of the batch that is not full yet.
    values: Vec<T>,
    /// As many as `values` if they are `stamped`, or none.
    timestamps: Vec<Timestamp>,
    /// Whether the records of the open batch have timestamps.
    stamped: bool,
    /// Records of the batch that left last, at least 8: room for as many is made for the next, so
    /// that a trickle of small batches does not pay for full ones.
    expected: usize,
    /// Elements the channel has refused, oldest first. Whatever follows goes behind them.
    queue: VecDeque<StreamElement<T>>,
}

impl<T: Send> PipelinedWriter<T> {
    /// An edge to as many subpartitions as there are channels.
    #[must_use]
    pub fn new(channels: Vec<PipelinedSender<T>>) -> Self {
        let batch_records = (BATCH_BYTES / size_of::<T>().max(1)).clamp(64, BATCH_RECORDS);
        let lanes = channels.into_iter().map(Lane::new).collect();
        Self { lanes, batch_records, finished: false }
    }

    /// Elements that wait for room, over all subpartitions.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.lanes.iter().map(|lane| lane.queue.len()).sum()
    }

    fn lane(&mut self, subpartition: SubpartitionIndex) -> Result<&mut Lane<T>, WriteError> {
        let subpartitions = u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
        self.lanes
            .get_mut(subpartition.0 as usize)
            .ok_or(WriteError::NoSuchSubpartition { subpartition, subpartitions })
    }

    /// One move a record; batches that become full leave.
    fn scatter_records(
        &mut self,
        records: impl Iterator<Item = (T, Option<Timestamp>)>,
        targets: &[SubpartitionIndex],
    ) -> Result<(), WriteError> {
        let full = self.batch_records;
        let lanes = self.lanes.as_mut_slice();
        for ((value, stamp), target) in records.zip(targets) {
            let Some(lane) = lanes.get_mut(target.0 as usize) else {
                let subpartitions = u32::try_from(lanes.len()).unwrap_or(u32::MAX);
                return Err(WriteError::NoSuchSubpartition {
                    subpartition: *target,
                    subpartitions,
                });
            };
            if lane.push(value, stamp, full).is_err() {
                return Err(WriteError::Closed { subpartition: *target });
            }
        }
        self.each_lane(|lane| lane.seal_full(full))
    }

    fn open(&self) -> Result<(), WriteError> {
        if self.finished { Err(WriteError::Finished) } else { Ok(()) }
    }

    fn each_lane(
        &mut self,
        mut act: impl FnMut(&mut Lane<T>) -> Result<(), Gone>,
    ) -> Result<(), WriteError> {
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            act(lane).map_err(|Gone| closed(index))?;
        }
        Ok(())
    }
}

/// The consumer has gone.
struct Gone;

fn closed(index: usize) -> WriteError {
    WriteError::Closed { subpartition: SubpartitionIndex(u32::try_from(index).unwrap_or(u32::MAX)) }
}

impl<T: Send> Lane<T> {
    fn new(sender: PipelinedSender<T>) -> Self {
        let (values, timestamps) = (Vec::new(), Vec::new());
        Self { sender, values, timestamps, stamped: false, expected: 8, queue: VecDeque::new() }
    }

    /// Appends a record to the open batch. A batch that becomes full by it leaves with the next
    /// record or with [`Lane::seal_full`].
    #[inline]
    fn push(&mut self, value: T, stamp: Option<Timestamp>, full: usize) -> Result<(), Gone> {
        let stamped = stamp.is_some();
        if self.values.len() >= self.values.capacity().min(full) || self.stamped != stamped {
            self.make_room(stamped, full)?;
        }
        self.values.push(value);
        if let Some(stamp) = stamp {
            self.timestamps.push(stamp);
        }
        Ok(())
    }

    #[cold]
    fn make_room(&mut self, stamped: bool, full: usize) -> Result<(), Gone> {
        if self.values.len() >= full || self.stamped != stamped {
            self.seal()?;
        }
        self.stamped = stamped;
        let more = if self.values.is_empty() { self.expected } else { self.values.len() };
        let more = more.min(full - self.values.len());
        self.values.reserve_exact(more);
        if stamped {
            self.timestamps.reserve_exact(more);
        }
        Ok(())
    }

    /// Sends the open batch if it is full.
    fn seal_full(&mut self, full: usize) -> Result<(), Gone> {
        if self.values.len() >= full { self.seal() } else { Ok(()) }
    }

    /// Joins a batch to the open one, or sends it as it is where it is worth it.
    fn append(&mut self, batch: Batch<T>, full: usize) -> Result<(), Gone> {
        if batch.len() >= full / 2 {
            self.seal()?;
            return self.send(StreamElement::Batch(batch));
        }
        batch.into_records().try_for_each(|(value, stamp)| self.push(value, stamp, full))?;
        self.seal_full(full)
    }

    /// Sends the open batch, if it has a record.
    fn seal(&mut self) -> Result<(), Gone> {
        if self.values.is_empty() {
            return Ok(());
        }
        self.expected = self.values.len().max(8);
        let values = std::mem::take(&mut self.values);
        let stamps = std::mem::take(&mut self.timestamps);
        let stamps = self.stamped.then_some(stamps);
        self.send(StreamElement::Batch(Batch::new(values, stamps)))
    }

    fn send(&mut self, element: StreamElement<T>) -> Result<(), Gone> {
        if !self.queue.is_empty() {
            self.queue.push_back(element);
            return Ok(());
        }
        match self.sender.try_send(element) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(element)) => {
                self.queue.push_back(element);
                Ok(())
            }
            Err(TrySendError::Closed(_)) => Err(Gone),
        }
    }

    fn pump(&mut self) -> Result<Flow, Gone> {
        while let Some(element) = self.queue.pop_front() {
            match self.sender.try_send(element) {
                Ok(()) => {}
                Err(TrySendError::Full(element)) => {
                    self.queue.push_front(element);
                    return Ok(Flow::HeldUp);
                }
                Err(TrySendError::Closed(_)) => return Err(Gone),
            }
        }
        Ok(Flow::Ready)
    }
}

impl<T: Send> PartitionWriter<T> for PipelinedWriter<T> {
    fn emit(&mut self, subpartition: SubpartitionIndex, batch: Batch<T>) -> Result<(), WriteError> {
        self.open()?;
        let full = self.batch_records;
        self.lane(subpartition)?
            .append(batch, full)
            .map_err(|Gone| WriteError::Closed { subpartition })
    }

    fn scatter(
        &mut self,
        batch: Batch<T>,
        targets: &[SubpartitionIndex],
    ) -> Result<(), WriteError> {
        self.open()?;
        assert_eq!(batch.len(), targets.len(), "one target a record");
        let (values, stamps) = batch.into_parts();
        match stamps {
            None => {
                let records = values.into_iter().map(|value| (value, None));
                self.scatter_records(records, targets)
            }
            Some(stamps) => {
                let records = values.into_iter().zip(stamps.into_iter().map(Some));
                self.scatter_records(records, targets)
            }
        }
    }

    fn emit_all(
        &mut self,
        batch: Batch<T>,
        clone: fn(&Batch<T>) -> Batch<T>,
    ) -> Result<(), WriteError> {
        self.open()?;
        let full = self.batch_records;
        let Some((last, others)) = self.lanes.split_last_mut() else {
            return Ok(());
        };
        for (index, lane) in others.iter_mut().enumerate() {
            lane.append(clone(&batch), full).map_err(|Gone| closed(index))?;
        }
        last.append(batch, full).map_err(|Gone| closed(others.len()))
    }

    fn broadcast(&mut self, control: Control) -> Result<(), WriteError> {
        self.open()?;
        self.each_lane(|lane| {
            lane.seal()?;
            lane.send(StreamElement::Control(control))
        })
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.open()?;
        self.each_lane(Lane::seal)
    }

    fn pump(&mut self) -> Result<Flow, WriteError> {
        let mut flow = Flow::Ready;
        self.each_lane(|lane| {
            if lane.pump()? == Flow::HeldUp {
                flow = Flow::HeldUp;
            }
            Ok(())
        })?;
        Ok(flow)
    }

    fn finish(&mut self) -> Result<Option<FinishedPartition>, WriteError> {
        self.open()?;
        self.flush()?;
        match self.queued() {
            0 => {
                self.finished = true;
                Ok(None)
            }
            queued => Err(WriteError::HeldUp { queued }),
        }
    }
}

impl<T> std::fmt::Debug for PipelinedWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipelinedWriter")
            .field("subpartitions", &self.lanes.len())
            .finish_non_exhaustive()
    }
}
