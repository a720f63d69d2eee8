//! [`CachedSource`]: reads a kept data set in place of what computed it (FLIP-205).
//!
//! A split is one part of the data set, so any number of readers reads everything, each part once.
//! At parallelism 1 parts come in the order of their producers, and rows of a part in the order in
//! which they were written. Timestamps come as they were; there are no watermarks before the end of
//! input, so nothing is late. Left out on purpose: what to do when a part is lost. The error names
//! the part, and the JobMaster knows.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use element::{
    Attempt, Batch, DataSetId, Generation, Record, StreamElement, SubtaskIndex, TaskManagerId,
};
use graph::{OperatorAttributes, OutputTag};
use shuffle::{
    BlockingReader, ChannelEvent, ChannelReader, PartitionDescriptor, PartitionIdentity,
    ShuffleError,
};

use super::{
    Boundedness, ErasedSource, ReaderContext, ReaderPoll, Source, SourceReader, SplitEnumerator,
    StaticSplits,
};
use crate::cluster::DataSets;
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::factory::{Gates, NodeFactory, NodePayload, Outputs, Wire};
use crate::nodes::SourceNode;
use crate::operator::side_output::{SideOutputs, SideTag};
use crate::operator::timestamps::WatermarkStrategy;
use crate::output::{Output, Pump, Signal};
use crate::task::Driver;

/// A part: data set, generation, attempt, producer; its worker, checksum, and the rows read of it.
type Split = ((u128, u32, u32, u32), (u64, Option<u32>, u64));

/// A bounded source over a kept data set.
pub struct CachedSource<T> {
    data_sets: Arc<DataSets>,
    data_set: DataSetId,
    rows: PhantomData<fn() -> T>,
}

impl<T: Record> CachedSource<T> {
    /// Reads `data_set`. Where it lies is asked for when a job starts.
    #[must_use]
    pub fn new(data_sets: Arc<DataSets>, data_set: DataSetId) -> Self {
        Self { data_sets, data_set, rows: PhantomData }
    }
}

impl<T: Record> Source for CachedSource<T> {
    type Item = T;
    type Split = Split;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<Split>>> {
        let parts = match restored {
            Some(_) => Vec::new(),
            None => self.data_sets.locate(self.data_set)?,
        };
        let splits = parts.into_iter().filter_map(|(worker, descriptor)| {
            let PartitionIdentity::DataSet { data_set, generation, attempt, producer } =
                descriptor.identity
            else {
                return None;
            };
            let part = (data_set.0, generation.0, attempt.0, producer.0);
            Some((part, (worker.0, descriptor.checksum, 0)))
        });
        Ok(Box::new(StaticSplits::new(splits, restored)?))
    }

    fn reader(&self, _: &ReaderContext) -> anyhow::Result<Box<dyn SourceReader<T, Split>>> {
        let data_sets = Arc::clone(&self.data_sets);
        Ok(Box::new(Reader { data_sets, splits: VecDeque::new(), open: None }))
    }
}

struct Reader<T> {
    data_sets: Arc<DataSets>,
    /// The first is the one being read.
    splits: VecDeque<Split>,
    open: Option<Open<T>>,
}

struct Open<T> {
    reader: BlockingReader<T>,
    /// Rows that were read before a restore.
    skip: u64,
}

impl<T: Record> Reader<T> {
    fn open(&self, split: &Split) -> Result<Open<T>, ShuffleError> {
        let ((data_set, generation, attempt, producer), (worker, checksum, read)) = *split;
        let partition = PartitionIdentity::DataSet {
            data_set: DataSetId(data_set),
            generation: Generation(generation),
            attempt: Attempt(attempt),
            producer: SubtaskIndex(producer),
        };
        let service = self.data_sets.service(TaskManagerId(worker));
        let service = service.ok_or(ShuffleError::Lost { partition })?;
        let mut descriptor = PartitionDescriptor::new(partition, 1);
        descriptor.checksum = checksum;
        Ok(Open { reader: BlockingReader::new(service, descriptor, 0..1), skip: read })
    }
}

impl<T: Record> SourceReader<T, Split> for Reader<T> {
    fn add_split(&mut self, split: Split) {
        self.splits.push_back(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>> {
        let Some(split) = self.splits.front() else { return Ok(ReaderPoll::NeedSplit) };
        if self.open.is_none() {
            self.open = Some(self.open(split)?);
        }
        let (Some(open), Some((_, (_, _, read)))) = (&mut self.open, self.splits.front_mut())
        else {
            return Ok(ReaderPoll::NeedSplit);
        };
        match open.reader.poll()? {
            ChannelEvent::Element(StreamElement::Batch(batch)) => {
                let batch = skip(batch, &mut open.skip);
                *read += batch.len() as u64;
                Ok(ReaderPoll::Batch(batch))
            }
            ChannelEvent::Element(StreamElement::Control(_)) | ChannelEvent::Empty => {
                Ok(ReaderPoll::Batch(Batch::default()))
            }
            ChannelEvent::Ended => {
                self.open = None;
                self.splits.pop_front();
                Ok(ReaderPoll::Batch(Batch::default()))
            }
        }
    }

    fn snapshot(&mut self) -> Vec<Split> {
        self.splits.iter().copied().collect()
    }
}

/// A batch without the rows that were read before.
fn skip<T>(batch: Batch<T>, left: &mut u64) -> Batch<T> {
    if *left == 0 {
        return batch;
    }
    let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(batch.len());
    *left -= passed as u64;
    let mut rest = Batch::default();
    for (value, timestamp) in batch.into_records().skip(passed) {
        rest.push(value, timestamp);
    }
    rest
}

/// The node that reads a data set: its records leave by the output that was cached.
pub struct CachedNode<T> {
    source: SourceNode<T>,
    output: OutputTag,
}

impl<T: Record> CachedNode<T> {
    /// The payload of a reader of `data_set` in place of `output`.
    #[must_use]
    pub fn payload(
        data_sets: Arc<DataSets>,
        data_set: DataSetId,
        output: OutputTag,
    ) -> NodePayload {
        let source = CachedSource::<T>::new(data_sets, data_set);
        let source = SourceNode::new(Arc::new(source), WatermarkStrategy::none());
        let mut payload = NodePayload::new(Self { source, output: output.clone() });
        if let OutputTag::Side(tag) = output {
            payload.sides.insert(tag, |sides, name, wire| sides.connect::<T>(name, wire));
        }
        payload
    }
}

impl<T: Record> NodeFactory for CachedNode<T> {
    fn attributes(&self) -> OperatorAttributes {
        self.source.attributes()
    }

    fn link(&self, context: &Arc<OperatorContext>, outputs: Outputs) -> Result<Wire, TaskError> {
        let main = match &self.output {
            OutputTag::Main => outputs.main,
            OutputTag::Side(tag) => {
                let forward = SideForward { tag: SideTag::<T>::new(tag), sides: outputs.side };
                Some(Wire::new(Box::new(forward) as Box<dyn Output<T>>))
            }
        };
        self.source.link(context, Outputs { main, side: SideOutputs::default() })
    }

    fn driver(
        &self,
        context: &Arc<OperatorContext>,
        head: Wire,
        gates: Gates,
    ) -> Result<Box<dyn Driver>, TaskError> {
        self.source.driver(context, head, gates)
    }

    fn source(&self) -> Option<Arc<dyn ErasedSource>> {
        self.source.source()
    }
}

/// Sends what would leave by the main output to a side output.
struct SideForward<T> {
    tag: SideTag<T>,
    sides: SideOutputs,
}

impl<T: Send + 'static> Output<T> for SideForward<T> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        for (value, timestamp) in batch.into_records() {
            self.sides.emit(&self.tag, value, timestamp)?;
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.sides.signal(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        self.sides.pump()
    }
}
