//! Typed ends of edges: routing on the writing side, gates on the reading side.

mod combining;

pub(crate) use combining::combined_key;
pub use combining::{Combined, CombiningEdge};

use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use element::{
    Batch, Configuration, Control, DirectoryStore, Key, MaxParallelism, MemoryBudget, Record,
    SubpartitionIndex, option_table,
};
use graph::{Partitioner, ResolvedMode};
use shuffle::{
    BlockingOptions, BlockingReader, BlockingWriter, ChannelReader, FileShuffle, Flow, InputGate,
    PartitionDescriptor, PartitionWriter, PipelinedWriter, ShuffleService,
};

use crate::context::TaskContext;
use crate::error::{JobError, TaskError};
use crate::events::FinishedOutput;
use crate::executor::Executor;
use crate::factory::{EdgeFactory, InputSpec, InputTransport, OutputSpec, OutputTransport, Wire};
use crate::operator::selector::KeySelector;
use crate::output::{Output, Pump, Signal};
use crate::task::FinishedOutputs;

/// Which subpartition each record of a batch goes to; chosen once, outside of the loop.
pub trait Route<T>: Send {
    /// One target a record, in order.
    fn targets(&mut self, values: &[T], into: &mut Vec<SubpartitionIndex>);
}

/// By the key's group: the subtask that owns the hash.
pub struct KeyRoute<T, K> {
    selector: KeySelector<T, K>,
    /// Room for a key.
    bytes: Vec<u8>,
    groups: MaxParallelism,
    consumers: u32,
}

impl<T: Send + 'static, K: Key> Route<T> for KeyRoute<T, K> {
    fn targets(&mut self, values: &[T], into: &mut Vec<SubpartitionIndex>) {
        let Self { selector, bytes, groups, consumers } = self;
        selector.targets(values, (*groups, *consumers), bytes, into);
    }
}

/// A user's function of record and number of consumers.
pub type CustomSelector<T> = Arc<dyn Fn(&T, u32) -> u32 + Send + Sync>;

/// By a user's function of record and number of consumers; held within the number.
pub struct CustomRoute<T> {
    function: CustomSelector<T>,
    consumers: u32,
}

impl<T: Send> Route<T> for CustomRoute<T> {
    fn targets(&mut self, values: &[T], into: &mut Vec<SubpartitionIndex>) {
        let consumers = self.consumers;
        into.extend(
            values.iter().map(|value| {
                SubpartitionIndex((self.function)(value, consumers) % consumers.max(1))
            }),
        );
    }
}

/// At random, from a seed.
struct RandomRoute {
    state: u64,
    consumers: u32,
}

impl<T> Route<T> for RandomRoute {
    fn targets(&mut self, values: &[T], into: &mut Vec<SubpartitionIndex>) {
        for _ in values {
            // splitmix64: uniform, and the same for the same seed.
            self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let target = (u128::from(z ^ (z >> 31)) * u128::from(self.consumers)) >> 64;
            into.push(SubpartitionIndex(u32::try_from(target).unwrap_or(0)));
        }
    }
}

/// How an output spreads its batches.
enum Spread<T> {
    /// All to one subpartition.
    One(SubpartitionIndex),
    /// Whole batches in turn.
    Turns { next: u32, of: u32 },
    /// Each record to a subpartition of its own.
    Each(Box<dyn Route<T>>),
    /// Everything to everybody.
    All(fn(&Batch<T>) -> Batch<T>),
}

enum WriterState {
    Open,
    Ended,
    Finished,
}

/// The last link of a chain: routes records and writes them to a partition.
pub struct PartitionOutput<T> {
    writer: Box<dyn PartitionWriter<T>>,
    spread: Spread<T>,
    targets: Vec<SubpartitionIndex>,
    state: WriterState,
    report: Option<(PartitionDescriptor, FinishedOutputs)>,
}

impl<T: Send> Output<T> for PartitionOutput<T> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        match &mut self.spread {
            Spread::One(target) => self.writer.emit(*target, batch)?,
            Spread::Turns { next, of } => {
                let target = SubpartitionIndex(*next);
                *next = (*next + 1) % *of;
                self.writer.emit(target, batch)?;
            }
            Spread::Each(route) => {
                self.targets.clear();
                route.targets(batch.values(), &mut self.targets);
                self.writer.scatter(batch, &self.targets)?;
            }
            Spread::All(clone) => self.writer.emit_all(batch, *clone)?,
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        match signal {
            Signal::Stream(control) => {
                self.writer.broadcast(control)?;
                if control == Control::EndOfInput {
                    self.state = WriterState::Ended;
                }
            }
            Signal::Flush => self.writer.flush()?,
            Signal::ProcessingTime(_)
            | Signal::Complete(_)
            | Signal::Aborted(_)
            | Signal::Finished => {}
        }
        Ok(())
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        if self.writer.pump()? == Flow::HeldUp {
            return Ok(Pump::HeldUp);
        }
        if let WriterState::Ended = self.state {
            self.state = WriterState::Finished;
            let finished = self.writer.finish()?;
            if let (Some(finished), Some((descriptor, outputs))) = (finished, self.report.take()) {
                outputs.lock().push(FinishedOutput { descriptor, finished });
            }
        }
        Ok(Pump::Idle)
    }
}

/// Writes each record to a data set by reference, and hands it on.
struct PersistentOutput<T: Record> {
    writer: BlockingWriter<T>,
    next: Option<Box<dyn Output<T>>>,
    state: WriterState,
    report: Option<(PartitionDescriptor, FinishedOutputs)>,
}

impl<T: Record> Output<T> for PersistentOutput<T> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        self.writer.emit_ref(SubpartitionIndex(0), &batch)?;
        self.next.as_mut().map_or(Ok(()), |next| next.batch(batch))
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        if signal == Signal::Stream(Control::EndOfInput) {
            self.writer.broadcast(Control::EndOfInput)?;
            self.state = WriterState::Ended;
        }
        self.next.as_mut().map_or(Ok(()), |next| next.signal(signal))
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        match self.next.as_mut().map_or(Ok(Pump::Idle), |next| next.pump())? {
            Pump::Idle => {}
            other => return Ok(other),
        }
        if let WriterState::Ended = self.state {
            self.state = WriterState::Finished;
            let finished = self.writer.finish()?;
            if let (Some(finished), Some((descriptor, outputs))) = (finished, self.report.take()) {
                outputs.lock().push(FinishedOutput { descriptor, finished });
            }
        }
        Ok(Pump::Idle)
    }
}

/// What a typed edge knows beyond its type.
enum EdgeRoute<T> {
    Plain,
    Key(Arc<dyn Fn(MaxParallelism, u32) -> Box<dyn Route<T>> + Send + Sync>),
    Custom(CustomSelector<T>),
    Broadcast(fn(&Batch<T>) -> Batch<T>),
}

/// An edge whose records stay in this process: pipelined only.
pub struct LocalEdge<T> {
    route: EdgeRoute<T>,
}

/// An edge whose records can become bytes.
pub struct BytesEdge<T> {
    route: EdgeRoute<T>,
}

macro_rules! edge_constructors {
    ($edge:ident) => {
        impl<T: Send + 'static> $edge<T> {
            /// Forward, rebalance, rescale, shuffle or global, as the plan says.
            #[must_use]
            pub fn plain() -> Self {
                Self { route: EdgeRoute::Plain }
            }

            /// By key.
            #[must_use]
            pub fn keyed<K: Key>(selector: KeySelector<T, K>) -> Self {
                Self {
                    route: EdgeRoute::Key(Arc::new(move |groups, consumers| {
                        Box::new(KeyRoute {
                            selector: selector.clone(),
                            bytes: Vec::new(),
                            groups,
                            consumers,
                        })
                    })),
                }
            }

            /// By a function of record and number of consumers.
            #[must_use]
            pub fn custom(function: CustomSelector<T>) -> Self {
                Self { route: EdgeRoute::Custom(function) }
            }

            /// To everybody.
            #[must_use]
            pub fn broadcast() -> Self
            where
                T: Clone,
            {
                Self { route: EdgeRoute::Broadcast(Batch::clone) }
            }
        }
    };
}

edge_constructors!(LocalEdge);
edge_constructors!(BytesEdge);

fn spread_of<T: Send + 'static>(
    route: &EdgeRoute<T>,
    spec: &OutputSpec<'_>,
    reached: u32,
) -> Spread<T> {
    match (route, spec.partitioner) {
        // The one consumer has all keys: batches go on as they are.
        (EdgeRoute::Key(_), Partitioner::KeyGroup) if spec.consumers <= 1 => {
            Spread::One(SubpartitionIndex(0))
        }
        (EdgeRoute::Key(make), Partitioner::KeyGroup) => {
            Spread::Each(make(spec.consumer_groups, spec.consumers))
        }
        (EdgeRoute::Custom(function), Partitioner::Custom) => Spread::Each(Box::new(CustomRoute {
            function: Arc::clone(function),
            consumers: spec.consumers,
        })),
        (EdgeRoute::Broadcast(clone), _) => Spread::All(*clone),
        (_, Partitioner::Shuffle) => Spread::Each(Box::new(RandomRoute {
            state: u64::from(spec.context.subtask.0).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            consumers: reached,
        })),
        (_, Partitioner::Global) => Spread::One(SubpartitionIndex(0)),
        _ if reached <= 1 => Spread::One(SubpartitionIndex(0)),
        _ => Spread::Turns { next: spec.context.subtask.0 % reached, of: reached },
    }
}

fn pipelined_output<T: Send + 'static>(
    route: &EdgeRoute<T>,
    spec: &OutputSpec<'_>,
    network: &Arc<crate::network::Network>,
    channels: &[crate::network::ChannelKey],
    waker: &Arc<dyn shuffle::Wake>,
) -> Wire {
    let senders = channels.iter().map(|key| network.sender::<T>(*key, Arc::clone(waker))).collect();
    let reached = u32::try_from(channels.len()).unwrap_or(u32::MAX);
    Wire::new(Box::new(PartitionOutput {
        writer: Box::new(PipelinedWriter::new(senders)),
        spread: spread_of(route, spec, reached),
        targets: Vec::new(),
        state: WriterState::Open,
        report: None,
    }) as Box<dyn Output<T>>)
}

fn gate_over<T: Send + 'static>(
    spec: &InputSpec<'_>,
    blocking: impl Fn(
        &Arc<dyn ShuffleService>,
        &PartitionDescriptor,
        Range<u32>,
    ) -> Result<Box<dyn ChannelReader<T>>, TaskError>,
) -> Result<Box<dyn Any + Send>, TaskError> {
    let channels = spec
        .channels
        .iter()
        .map(|channel| match channel {
            InputTransport::Pipelined(key) => {
                let receiver = spec.network.receiver::<T>(*key, Arc::clone(&spec.waker));
                Ok(Box::new(receiver) as Box<dyn ChannelReader<T>>)
            }
            InputTransport::Blocking { service, descriptor, subpartitions } => {
                blocking(service, descriptor, subpartitions.clone())
            }
        })
        .collect::<Result<Vec<_>, TaskError>>()?;
    Ok(Box::new(InputGate::new(channels)))
}

impl<T: Send + 'static> EdgeFactory for LocalEdge<T> {
    fn output(&self, spec: OutputSpec<'_>) -> Result<Wire, TaskError> {
        match &spec.transport {
            OutputTransport::Pipelined { network, channels, waker } => {
                Ok(pipelined_output(&self.route, &spec, network, channels, waker))
            }
            OutputTransport::Blocking { descriptor, .. } => Err(no_bytes(descriptor)),
        }
    }

    fn gate(&self, spec: InputSpec<'_>) -> Result<Box<dyn Any + Send>, TaskError> {
        gate_over::<T>(&spec, |_, descriptor, _| Err(no_bytes(descriptor)))
    }

    fn persistent(&self, spec: OutputSpec<'_>, _: Option<Wire>) -> Result<Wire, TaskError> {
        match &spec.transport {
            OutputTransport::Blocking { descriptor, .. } => Err(no_bytes(descriptor)),
            OutputTransport::Pipelined { .. } => Ok(Wire::of(PhantomData::<T>)),
        }
    }
}

/// The plan never makes such an edge blocking; should it, the task says so.
fn no_bytes(descriptor: &PartitionDescriptor) -> TaskError {
    TaskError::Shuffle(shuffle::ShuffleError::Service {
        partition: descriptor.identity,
        source: "records that are no `Record` cannot be written".into(),
    })
}

impl<T: Record> EdgeFactory for BytesEdge<T> {
    fn output(&self, spec: OutputSpec<'_>) -> Result<Wire, TaskError> {
        match &spec.transport {
            OutputTransport::Pipelined { network, channels, waker } => {
                Ok(pipelined_output(&self.route, &spec, network, channels, waker))
            }
            OutputTransport::Blocking { service, descriptor, finished } => {
                let reached = descriptor.subpartitions;
                let writer = blocking_writer::<T>(&**service, descriptor, spec.context)?;
                Ok(Wire::new(Box::new(PartitionOutput {
                    writer: Box::new(writer),
                    spread: spread_of(&self.route, &spec, reached),
                    targets: Vec::new(),
                    state: WriterState::Open,
                    report: Some((descriptor.clone(), Arc::clone(finished))),
                }) as Box<dyn Output<T>>))
            }
        }
    }

    fn gate(&self, spec: InputSpec<'_>) -> Result<Box<dyn Any + Send>, TaskError> {
        let is_batch = spec.context.mode == ResolvedMode::Batch;
        gate_over::<T>(&spec, |service, descriptor, range| {
            let reader = BlockingReader::<T>::new(Arc::clone(service), descriptor.clone(), range);
            Ok(Box::new(if is_batch { reader } else { reader.as_backlog() }))
        })
    }

    fn persistent(&self, spec: OutputSpec<'_>, next: Option<Wire>) -> Result<Wire, TaskError> {
        let OutputTransport::Blocking { service, descriptor, finished } = &spec.transport else {
            return next.ok_or(TaskError::Cancelled);
        };
        Ok(Wire::new(Box::new(PersistentOutput {
            writer: blocking_writer::<T>(&**service, descriptor, spec.context)?,
            next: next.map(Wire::open),
            state: WriterState::Open,
            report: Some((descriptor.clone(), Arc::clone(finished))),
        }) as Box<dyn Output<T>>))
    }
}

/// The writer of a partition at rest, with memory as the options say.
fn blocking_writer<T: Record>(
    service: &dyn ShuffleService,
    descriptor: &PartitionDescriptor,
    context: &TaskContext,
) -> Result<BlockingWriter<T>, TaskError> {
    let options = BlockingOptions {
        memory: MemoryBudget::new(context.config.get(&option_table::SHUFFLE_MEMORY)?),
        sort_threshold: context.config.get(&option_table::SHUFFLE_SORT_THRESHOLD)?,
        ..BlockingOptions::default()
    };
    let partition = service.writer(descriptor)?;
    Ok(BlockingWriter::new(partition, descriptor.subpartitions, &options))
}

/// Partitions at rest of one worker, below its directory.
///
/// # Errors
///
/// [`JobError`] for an option without a valid value.
pub fn file_shuffle(
    home: &Path,
    _config: &Configuration,
    executor: &Executor,
) -> Result<Arc<dyn ShuffleService>, JobError> {
    let make = || Ok(Arc::new(DirectoryStore::new(home.join("partitions"))) as _);
    let store = executor.store(make)?;
    Ok(Arc::new(FileShuffle::new(store)))
}

/// Bytes and batches that wait in one channel, by the options.
///
/// # Errors
///
/// [`TaskError::Config`] if an option has no valid value.
pub fn channel_capacity(
    config: &element::Configuration,
) -> Result<shuffle::ChannelCapacity, element::ConfigError> {
    Ok(shuffle::ChannelCapacity {
        batches: config.get(&option_table::CHANNEL_BATCHES)?.max(1) as usize,
        bytes: config.get(&option_table::CHANNEL_BYTES)?,
    })
}
