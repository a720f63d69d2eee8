//! [`BroadcastOperator`]: a stream and a broadcast one, whose records every subtask keeps as
//! [`state::BroadcastState`].
//!
//! ```text
//!   stream     ----> process            reads the broadcast state ----> next operator
//!   broadcast  ----> process_broadcast  changes it ---------------/
//! ```
//!
//! In batch mode the broadcast input comes first (T4): records of the stream wait in a sorter, by
//! arrival, until it has ended, and spill beyond the memory of `execution.sorted-inputs.memory`. The
//! driver is asked to read the broadcast input first, so few wait where both are at rest. In streaming
//! there is no order between the inputs. Every subtask writes the broadcast state into a checkpoint;
//! a restore gives it to every subtask. Keyed streams go by [`super::keyed_broadcast`].
//!
//! Source: FLIP-134, "broadcast inputs first"; Flink's "broadcast state pattern".

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use element::{
    Batch, ByteSize, Control, MemoryBudget, Record, Timestamp, decode_exact, encode_to_vec,
    option_table,
};
use graph::ResolvedMode;
use shuffle::ChannelStatus;
use sort::{SorterOptions, SpillTarget, TypedSorter, TypedStream};
use state::{BroadcastRead, BroadcastWrite, OperatorStateBackend, OperatorStateSnapshot, ReadOnly};

use super::side_output::{SideOutputs, SideTag};
use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::output::{BatchBuffer, FirstError, Output, Pump, Signal};
use crate::task::{Side, TwoInput};
use crate::user::{Position, UserCode};

/// The least memory that the sorter of a waiting stream is given.
const LEAST_MEMORY: ByteSize = ByteSize::kib(64);

/// Waiting records handed over in one piece of work.
const PIECE: usize = 2_048;

/// A function over a stream and a broadcast one. One instance a subtask and attempt, made by a factory
/// closure; called on the task's thread only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no broadcast process function from `{A}` and `{B}` to `{O}`",
    label = "not a `BroadcastProcessFunction<{A}, {B}, {O}>`",
    note = "`process` takes a closure that makes the function, once a subtask; on a keyed stream the function is a `KeyedBroadcastProcessFunction`"
)]
pub trait BroadcastProcessFunction<A, B, O>: Send + 'static {
    /// Takes a record of the stream. Broadcast state can be read.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn process(&mut self, value: A, context: &mut ReadOnlyContext<'_, O>) -> anyhow::Result<()>;

    /// Takes a broadcast record, of which every subtask gets its own copy. Broadcast state can be
    /// changed, and must be changed alike in all subtasks.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn process_broadcast(
        &mut self,
        value: B,
        context: &mut BroadcastContext<'_, O>,
    ) -> anyhow::Result<()>;
}

/// Where results go, and the time.
struct Emitter<O> {
    buffer: BatchBuffer<O>,
    side: SideOutputs,
    next: Box<dyn Output<O>>,
    timestamp: Option<Timestamp>,
    watermark: Timestamp,
    processing_time: Timestamp,
    failed: FirstError,
}

impl<O: Send> Emitter<O> {
    fn check(&mut self) -> Result<(), TaskError> {
        self.failed.check()
    }

    fn flush(&mut self) -> Result<(), TaskError> {
        self.buffer.flush(&mut *self.next)?;
        self.side.flush()
    }

    fn send(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.flush()?;
        if let Signal::Stream(Control::Watermark(watermark)) = signal {
            self.watermark = self.watermark.max(watermark);
        }
        self.side.signal(signal)?;
        self.next.signal(signal)
    }
}

macro_rules! context {
    ($(#[$doc:meta])* $context:ident) => {
        $(#[$doc])*
        pub struct $context<'a, O> {
            emitter: &'a mut Emitter<O>,
            state: &'a mut OperatorStateBackend,
        }

        impl<O> $context<'_, O> {
            /// The timestamp of the record at hand, if it has one.
            #[must_use]
            pub fn timestamp(&self) -> Option<Timestamp> {
                self.emitter.timestamp
            }

            /// The operator's watermark: the lesser of both inputs'.
            #[must_use]
            pub fn watermark(&self) -> Timestamp {
                self.emitter.watermark
            }

            /// Processing time, read once a batch.
            #[must_use]
            pub fn processing_time(&self) -> Timestamp {
                self.emitter.processing_time
            }

            /// Emits a result with the timestamp of the record at hand.
            pub fn collect(&mut self, value: O) {
                let Emitter { buffer, next, timestamp, failed, .. } = &mut *self.emitter;
                failed.of(|| buffer.push(value, *timestamp, &mut **next));
            }

            /// Emits a result to a side output.
            pub fn side_output<T: Send + 'static>(&mut self, tag: &SideTag<T>, value: T) {
                let Emitter { side, timestamp, failed, .. } = &mut *self.emitter;
                failed.of(|| side.emit(tag, value, *timestamp));
            }
        }

        impl<O> BroadcastRead for $context<'_, O> {
            fn broadcast_state(&mut self) -> ReadOnly<'_> {
                self.state.broadcast_state()
            }
        }
    };
}

context! {
    /// What a function may reach while it works on a record of the stream that is not broadcast.
    ReadOnlyContext
}

context! {
    /// What a function may reach while it works on a broadcast record.
    BroadcastContext
}

impl<O> BroadcastWrite for BroadcastContext<'_, O> {
    fn broadcast_state_mut(&mut self) -> &mut OperatorStateBackend {
        self.state
    }
}

/// A record as the sorter holds it: arrival decides, not time.
type Stamped<T> = (Option<Timestamp>, T);

/// Where records of the stream are.
enum Stream<A> {
    /// They go to the function as they come.
    Direct,
    /// They wait for the end of the broadcast input.
    Waiting(TypedSorter<(), Stamped<A>>),
    /// Those that have waited go to the function.
    Replaying(TypedStream<(), Stamped<A>>),
}

/// The function, with what its contexts borrow.
struct Calls<P, O> {
    function: P,
    state: OperatorStateBackend,
    emitter: Emitter<O>,
}

impl<P, O: Send> Calls<P, O> {
    fn element<A, B>(&mut self, value: A, timestamp: Option<Timestamp>) -> anyhow::Result<()>
    where
        P: BroadcastProcessFunction<A, B, O>,
    {
        let Self { function, state, emitter } = self;
        emitter.timestamp = timestamp;
        function.process(value, &mut ReadOnlyContext { emitter, state })?;
        Ok(emitter.check()?)
    }

    fn broadcast<A, B>(&mut self, value: B, timestamp: Option<Timestamp>) -> anyhow::Result<()>
    where
        P: BroadcastProcessFunction<A, B, O>,
    {
        let Self { function, state, emitter } = self;
        emitter.timestamp = timestamp;
        function.process_broadcast(value, &mut BroadcastContext { emitter, state })?;
        Ok(emitter.check()?)
    }
}

/// A broadcast process function with what follows it. Head of its chain.
pub struct BroadcastOperator<P, A, B, O> {
    calls: Calls<P, O>,
    stream: Stream<A>,
    status: ChannelStatus,
    /// What is to be sent on once those that wait have been handed over.
    pending: VecDeque<Signal>,
    user: UserCode,
    context: Arc<OperatorContext>,
    input: PhantomData<fn(B)>,
}

impl<P, A: Record, B, O> BroadcastOperator<P, A, B, O> {
    /// Runs `function`, its state restored if the job starts from a checkpoint.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the state cannot be restored, or an option of the sorter has no valid value.
    pub fn open(
        function: P,
        next: Box<dyn Output<O>>,
        side: SideOutputs,
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        let stream = match context.task.mode {
            ResolvedMode::Batch => Stream::Waiting(TypedSorter::new(sorter_options(context)?)),
            ResolvedMode::Streaming | ResolvedMode::Mixed => Stream::Direct,
        };
        let emitter = Emitter {
            buffer: BatchBuffer::default(),
            side,
            next,
            timestamp: None,
            watermark: Timestamp::MIN,
            processing_time: context.task.clock.now(),
            failed: FirstError::default(),
        };
        Ok(Self {
            calls: Calls { function, state: restored_state(context)?, emitter },
            stream,
            status: ChannelStatus::new(2),
            pending: VecDeque::new(),
            user: UserCode::new(context),
            context: Arc::clone(context),
            input: PhantomData,
        })
    }
}

fn sorter_options(context: &OperatorContext) -> Result<SorterOptions, TaskError> {
    let task = &context.task;
    let wanted = task.config.get(&option_table::SORTED_INPUTS_MEMORY)?;
    let memory = MemoryBudget::new(wanted.min(task.memory.total()).max(LEAST_MEMORY));
    let fan_in = task.config.get(&option_table::SORT_FAN_IN)?;
    let spill = SpillTarget::new(Arc::clone(&task.spill), context.file_prefix());
    Ok(SorterOptions::new(memory, spill)
        .with_fan_in(fan_in.max(2) as usize)
        .with_cancel(task.cancelled.clone()))
}

/// The broadcast state of an operator: as a checkpoint has it, or empty.
///
/// # Errors
///
/// [`TaskError::Codec`] if what was stored cannot be read.
pub(crate) fn restored_state(context: &OperatorContext) -> Result<OperatorStateBackend, TaskError> {
    let mut restored = context.restored.lock();
    let items = restored.as_mut().map(|restored| std::mem::take(&mut restored.items));
    let snapshots = items
        .unwrap_or_default()
        .iter()
        .map(|bytes| decode_exact::<OperatorStateSnapshot>(bytes))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| TaskError::Codec { operator: context.name.clone(), source })?;
    Ok(OperatorStateBackend::restore(&snapshots, 0, 1))
}

/// What of the broadcast state goes into a checkpoint.
pub(crate) fn stored_state(state: &OperatorStateBackend) -> Vec<Vec<u8>> {
    let snapshot = state.snapshot();
    if snapshot.is_empty() { Vec::new() } else { vec![encode_to_vec(&snapshot)] }
}

impl<P, A, B, O> BroadcastOperator<P, A, B, O>
where
    A: Record,
    B: Send,
    O: Send,
    P: BroadcastProcessFunction<A, B, O>,
{
    /// Runs `work` as user code.
    fn guarded<R>(
        &mut self,
        work: impl FnOnce(&mut Calls<P, O>, &mut Position) -> anyhow::Result<R>,
    ) -> Result<R, TaskError> {
        let Self { calls, user, context, .. } = self;
        calls.emitter.processing_time = context.task.clock.now();
        let result = user.run_batch(|position| work(calls, position))?;
        calls.emitter.flush()?;
        Ok(result)
    }

    /// Sends a signal on, behind what waits.
    fn later(&mut self, signal: Signal) -> Result<(), TaskError> {
        match self.stream {
            Stream::Direct => self.calls.emitter.send(signal),
            Stream::Waiting(_) | Stream::Replaying(_) => {
                self.pending.push_back(signal);
                Ok(())
            }
        }
    }

    /// The broadcast input has ended: what has waited is handed over, piece by piece, by `pump`.
    fn begin_replay(&mut self) -> Result<(), TaskError> {
        match std::mem::replace(&mut self.stream, Stream::Direct) {
            Stream::Waiting(sorter) => {
                let failed = TaskError::sort(&self.context.name);
                self.stream = Stream::Replaying(sorter.finish().map_err(failed)?);
            }
            other => self.stream = other,
        }
        Ok(())
    }

    /// Hands up to a piece of those over that have waited. True when there are no more.
    fn replay(&mut self, stream: &mut TypedStream<(), Stamped<A>>) -> Result<bool, TaskError> {
        let name = self.context.name.clone();
        self.guarded(|calls, position| {
            for _ in 0..PIECE {
                let Some(record) = stream.next() else { return Ok(true) };
                let (_, _, (timestamp, value)) = record.map_err(TaskError::sort(&name))?;
                position.next();
                calls.element(value, timestamp)?;
            }
            Ok(false)
        })
    }
}

impl<P, A, B, O> TwoInput<A, B> for BroadcastOperator<P, A, B, O>
where
    A: Record,
    B: Send,
    O: Send,
    P: BroadcastProcessFunction<A, B, O>,
{
    fn first(&self) -> Option<Side> {
        matches!(self.stream, Stream::Waiting(_)).then_some(Side::Right)
    }

    fn left(&mut self, batch: Batch<A>) -> Result<(), TaskError> {
        self.context.metrics.records_in(batch.len());
        if let Stream::Waiting(sorter) = &mut self.stream {
            let failed = TaskError::sort(&self.context.name);
            return batch
                .into_records()
                .try_for_each(|(value, timestamp)| sorter.push(&(), None, &(timestamp, value)))
                .map_err(failed);
        }
        self.guarded(|calls, position| {
            batch.into_records().try_for_each(|(value, timestamp)| {
                position.next();
                calls.element(value, timestamp)
            })
        })
    }

    fn right(&mut self, batch: Batch<B>) -> Result<(), TaskError> {
        self.context.metrics.records_in(batch.len());
        self.guarded(|calls, position| {
            batch.into_records().try_for_each(|(value, timestamp)| {
                position.next();
                calls.broadcast(value, timestamp)
            })
        })
    }

    fn control(&mut self, side: Side, control: Control) -> Result<(), TaskError> {
        let mut said = Vec::new();
        self.status.receive(usize::from(side == Side::Right), control, &mut |word| said.push(word));
        for word in said {
            self.later(Signal::Stream(word))?;
        }
        if side == Side::Right && control == Control::EndOfInput {
            self.begin_replay()?;
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        if let Signal::Stream(Control::Barrier(_)) = signal {
            self.context.snapshots.lock().push(OperatorSnapshot {
                uid: self.context.uid.clone(),
                items: stored_state(&self.calls.state),
                ..OperatorSnapshot::default()
            });
            return self.calls.emitter.send(signal);
        }
        self.later(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        for pumped in [self.calls.emitter.next.pump()?, self.calls.emitter.side.pump()?] {
            if pumped != Pump::Idle {
                return Ok(pumped);
            }
        }
        if !matches!(self.stream, Stream::Replaying(_)) {
            return Ok(Pump::Idle);
        }
        if let Stream::Replaying(mut stream) = std::mem::replace(&mut self.stream, Stream::Direct) {
            if self.replay(&mut stream)? {
                while let Some(signal) = self.pending.pop_front() {
                    self.calls.emitter.send(signal)?;
                }
            } else {
                self.stream = Stream::Replaying(stream);
            }
        }
        Ok(Pump::Progress)
    }
}
