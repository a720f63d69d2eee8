//! [`Harness`]: one keyed operator in a test's hands, without threads, with a clock moved by hand.
//!
//! ```text
//!   push, watermark, advance, end   -->  KeyedOperator over state in memory  -->  output, late
//! ```
//!
//! Each call does all the work that it causes before it returns. Left out on purpose: the backlog path
//! and exchanges between tasks; a job on a `StreamExecutionEnvironment` shows those.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use element::{
    Attempt, Barrier, BarrierKind, Batch, ByteSize, CheckpointId, Configuration, Control, JobId,
    Key, ManualClock, MaxParallelism, MemoryBudget, MemoryStore, Record, SpillStore, SubtaskIndex,
    Timestamp, VertexId,
};
use graph::{InputTreatment, ResolvedMode};
use parking_lot::Mutex;
use sort::CancelFlag;
use state::SnapshotSource;

use crate::checkpoint::RestoredOperator;
use crate::cluster::Line;
use crate::context::{Deadline, OperatorContext, TaskContext, TreatmentPlan};
use crate::error::TaskError;
use crate::events::{TaskEvents, TaskId};
use crate::factory::Wire;
use crate::metrics::{OperatorCounts, OperatorMetrics};
use crate::operator::Operator;
use crate::operator::function::KeyedFunction;
use crate::operator::keyed::KeyedOperator;
use crate::operator::selector::KeySelector;
use crate::operator::side_output::{SideOutputs, SideTag};
use crate::operator::window::LATE_RECORDS;
use crate::output::{Output, Pump, Signal};
use crate::stores::StateStores;

/// Records that came out, with their timestamps; shared with the operator.
type Tape<T> = Arc<Mutex<Vec<(T, Option<Timestamp>)>>>;

struct Recorder<T>(Tape<T>);

impl<T: Send> Output<T> for Recorder<T> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        self.0.lock().extend(batch.into_records());
        Ok(())
    }

    fn signal(&mut self, _: Signal) -> Result<(), TaskError> {
        Ok(())
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        Ok(Pump::Idle)
    }
}

/// What a harness has stored, to go on from in another one.
#[derive(Clone, Debug)]
pub struct Stored {
    restored: RestoredOperator,
    now: Timestamp,
}

impl Stored {
    /// The same, to go on from at another time.
    #[must_use]
    pub fn resumed_at(self, now: Timestamp) -> Self {
        Self { now, ..self }
    }
}

/// One keyed operator with state in memory.
pub struct Harness<K: Key, I, O, F: KeyedFunction<K, I, O>> {
    operator: KeyedOperator<F, K, I, O>,
    output: Tape<O>,
    late: Tape<I>,
    clock: ManualClock,
    context: Arc<OperatorContext>,
    checkpoints: u64,
}

impl<K, I, O, F> Harness<K, I, O, F>
where
    K: Key,
    I: Record,
    O: Send + 'static,
    F: KeyedFunction<K, I, O>,
{
    /// An operator that runs `function` over keys found by `key`, its clock at the epoch.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the function cannot be opened.
    pub fn open(
        function: F,
        key: impl Fn(&I) -> K + Send + Sync + 'static,
    ) -> Result<Self, TaskError> {
        let start = Stored { restored: RestoredOperator::default(), now: Timestamp(0) };
        Self::restore(function, key, start)
    }

    /// As [`open`](Self::open), with what another harness has stored.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the function cannot be opened or its state not restored.
    pub fn restore(
        function: F,
        key: impl Fn(&I) -> K + Send + Sync + 'static,
        stored: Stored,
    ) -> Result<Self, TaskError> {
        let clock = ManualClock::at(stored.now);
        let context = context(&clock, stored.restored)?;
        let (output, late) = (Tape::default(), Tape::default());
        let mut sides = SideOutputs::default();
        let recorder: Box<dyn Output<I>> = Box::new(Recorder(Arc::clone(&late)));
        sides.connect::<I>(LATE_RECORDS, Wire::new(recorder));
        let selector = KeySelector::owned(key);
        let operator = KeyedOperator::open(selector, function, sides, &context)?;
        Ok(Self { operator, output, late, clock, context, checkpoints: 0 })
    }

    /// Hands one record over.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn push(&mut self, value: I, at: impl Into<Option<Timestamp>>) -> Result<(), TaskError> {
        let mut batch = Batch::default();
        batch.push(value, at.into());
        self.operator.batch(batch, &mut Recorder(Arc::clone(&self.output)))?;
        self.finish_work()
    }

    /// Moves the watermark; what is due fires.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn watermark(&mut self, at: Timestamp) -> Result<(), TaskError> {
        self.signal(Signal::Stream(Control::Watermark(at)))
    }

    /// Moves the clock; what is due fires.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn advance(&mut self, by: Duration) -> Result<(), TaskError> {
        use element::Clock as _;
        self.clock.advance(by);
        let now = self.clock.now();
        if self.context.task.deadline.take_due(now) {
            self.signal(Signal::ProcessingTime(now))?;
        }
        Ok(())
    }

    /// Ends the input.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn end(&mut self) -> Result<(), TaskError> {
        self.watermark(Timestamp::MAX)?;
        self.signal(Signal::Stream(Control::EndOfInput))
    }

    /// Takes a snapshot of state, timers and watermark.
    ///
    /// # Errors
    ///
    /// What the state says.
    pub fn snapshot(&mut self) -> Result<Stored, TaskError> {
        use element::Clock as _;
        self.checkpoints += 1;
        let barrier =
            Barrier { id: CheckpointId(self.checkpoints), kind: BarrierKind::ExactlyOnce };
        let mut out = Recorder(Arc::clone(&self.output));
        let snapshot = self.operator.snapshot(barrier, &mut out)?.unwrap_or_default();
        let store: Arc<dyn SpillStore> = Arc::new(MemoryStore::new());
        let failed = TaskError::state(&self.context.name);
        let keyed = snapshot.keyed.map(|keyed| keyed.write(&*store, "snapshot")).transpose();
        let keyed = keyed.map_err(failed)?;
        let sources = keyed.map(|handle| SnapshotSource { store, handle });
        let restored = RestoredOperator {
            keyed: sources.into_iter().collect(),
            items: snapshot.items,
            watermark: snapshot.watermark,
            ..RestoredOperator::default()
        };
        Ok(Stored { restored, now: self.clock.now() })
    }

    /// Takes what has come out since the last call.
    #[must_use]
    pub fn output(&mut self) -> Vec<O> {
        self.stamped_output().into_iter().map(|(value, _)| value).collect()
    }

    /// As [`output`](Self::output), each with its timestamp.
    #[must_use]
    pub fn stamped_output(&mut self) -> Vec<(O, Option<Timestamp>)> {
        std::mem::take(&mut *self.output.lock())
    }

    /// Takes the records that have come too late since the last call.
    #[must_use]
    pub fn late(&mut self) -> Vec<I> {
        let late = std::mem::take(&mut *self.late.lock());
        late.into_iter().map(|(value, _)| value).collect()
    }

    /// Timers that wait, of both kinds.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.operator.timers()
    }

    /// The operator's counters.
    #[must_use]
    pub fn counts(&self) -> OperatorCounts {
        self.context.metrics.read()
    }

    /// A tag's side output of the function; called before the first record.
    pub fn side_output<T: Send + 'static>(&mut self, tag: &SideTag<T>) -> SideTape<T> {
        let tape = Tape::default();
        let recorder: Box<dyn Output<T>> = Box::new(Recorder(Arc::clone(&tape)));
        self.operator.sides().connect::<T>(tag.name(), Wire::new(recorder));
        SideTape(tape)
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.operator.signal(signal, &mut Recorder(Arc::clone(&self.output)))?;
        self.finish_work()
    }

    fn finish_work(&mut self) -> Result<(), TaskError> {
        let mut out = Recorder(Arc::clone(&self.output));
        while self.operator.pump(&mut out)? != Pump::Idle {}
        Ok(())
    }
}

/// What has come to a side output.
pub struct SideTape<T>(Tape<T>);

impl<T> SideTape<T> {
    /// Takes what has come since the last call.
    #[must_use]
    pub fn output(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock()).into_iter().map(|(value, _)| value).collect()
    }
}

/// The world of an operator that runs alone, over memory.
fn context(
    clock: &ManualClock,
    restored: RestoredOperator,
) -> Result<Arc<OperatorContext>, TaskError> {
    let config = Configuration::new();
    let task = TaskId { attempt: Attempt(0), vertex: VertexId(0), subtask: SubtaskIndex(0) };
    // Nobody listens to the events of a task that runs alone.
    let (sender, _) = crossbeam_channel::unbounded();
    let stores = StateStores::new(&config, None)?;
    let task = TaskContext {
        job: JobId(0),
        job_name: "harness".to_owned(),
        attempt: task.attempt,
        vertex: task.vertex,
        vertex_name: "harness".to_owned(),
        subtask: task.subtask,
        parallelism: 1,
        max_parallelism: MaxParallelism::DEFAULT,
        mode: ResolvedMode::Streaming,
        config,
        clock: Arc::new(clock.clone()),
        memory: MemoryBudget::new(ByteSize::mib(64)),
        spill: Arc::new(MemoryStore::new()),
        checkpoints: Arc::new(MemoryStore::new()),
        directory: PathBuf::new(),
        stores,
        events: TaskEvents { task, sender, line: Line::default() },
        cancelled: CancelFlag::default(),
        deadline: Deadline::default(),
        alignment: Default::default(),
    };
    Ok(Arc::new(OperatorContext {
        task: Arc::new(task),
        name: "function under test".to_owned(),
        uid: "function under test".to_owned(),
        treatment: TreatmentPlan {
            treatment: InputTreatment::Direct,
            reason: "a harness hands records over one by one".to_owned(),
            memory: None,
            combines: false,
            output_only_at_end: false,
            durable: false,
        },
        metrics: Arc::new(OperatorMetrics::default()),
        restored: Mutex::new(Some(restored)),
        snapshots: Arc::default(),
        is_backlog: false,
    }))
}
