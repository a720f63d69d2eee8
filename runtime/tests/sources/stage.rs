//! A source task without a thread: a driver, what follows it, and what came out.

use std::sync::Arc;

use crossbeam_channel::Receiver;
use element::{
    Attempt, Batch, ByteSize, Configuration, Control, JobId, ManualClock, MaxParallelism,
    MemoryBudget, MemoryStore, SubtaskIndex, Timestamp, VertexId,
};
use graph::{InputTreatment, ResolvedMode};
use parking_lot::Mutex;
use slackwater_runtime::TaskError;
use slackwater_runtime::context::{OperatorContext, TaskContext, TreatmentPlan};
use slackwater_runtime::events::{TaskEvent, TaskEvents, TaskId};
use slackwater_runtime::output::{Output, Pump, Signal};
use slackwater_runtime::stores::StateStores;

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen<T> {
    Record(T),
    Backlog(bool),
    Watermark(i64),
    Idle(bool),
    Barrier(u64),
    End,
}

/// A list of what came out, that can be full.
pub(crate) struct Tape<T> {
    pub(crate) seen: Arc<Mutex<Vec<Seen<T>>>>,
    pub(crate) full: Arc<Mutex<bool>>,
}

impl<T> Clone for Tape<T> {
    fn clone(&self) -> Self {
        Self { seen: Arc::clone(&self.seen), full: Arc::clone(&self.full) }
    }
}

impl<T> Tape<T> {
    pub(crate) fn new() -> Self {
        Self { seen: Arc::default(), full: Arc::default() }
    }

    pub(crate) fn take(&self) -> Vec<Seen<T>> {
        std::mem::take(&mut *self.seen.lock())
    }
}

impl<T: Send> Output<T> for Tape<T> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        self.seen.lock().extend(batch.into_records().map(|(value, _)| Seen::Record(value)));
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        let Signal::Stream(control) = signal else { return Ok(()) };
        self.seen.lock().push(match control {
            Control::Attributes(attributes) => Seen::Backlog(attributes.is_backlog),
            Control::Watermark(mark) => Seen::Watermark(mark.as_millis()),
            Control::Idle => Seen::Idle(true),
            Control::Active => Seen::Idle(false),
            Control::EndOfInput => Seen::End,
            Control::Barrier(barrier) => Seen::Barrier(barrier.id.0),
        });
        Ok(())
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        Ok(if *self.full.lock() { Pump::HeldUp } else { Pump::Idle })
    }
}

/// What a source's operators may reach, with a clock that stands at 1,000 until it is moved.
pub(crate) struct Stage {
    pub(crate) context: Arc<OperatorContext>,
    pub(crate) clock: ManualClock,
    pub(crate) events: Receiver<(TaskId, TaskEvent)>,
    _directory: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new(mode: ResolvedMode) -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_000));
        let directory = tempfile::tempdir().unwrap();
        let (sender, events) = crossbeam_channel::unbounded();
        let config = Configuration::new();
        let (attempt, vertex, subtask) = (Attempt(0), VertexId(0), SubtaskIndex(0));
        let task = TaskContext {
            job: JobId(1),
            job_name: "job".to_owned(),
            attempt,
            vertex,
            vertex_name: "source".to_owned(),
            subtask,
            parallelism: 1,
            max_parallelism: MaxParallelism::DEFAULT,
            mode,
            stores: StateStores::new(&config, None).unwrap(),
            config,
            clock: Arc::new(clock.clone()),
            memory: MemoryBudget::new(ByteSize::mib(1)),
            spill: Arc::new(MemoryStore::default()),
            checkpoints: Arc::new(MemoryStore::default()),
            directory: directory.path().to_owned(),
            events: TaskEvents {
                task: TaskId { attempt, vertex, subtask },
                sender,
                line: slackwater_runtime::cluster::Line::default(),
            },
            cancelled: sort::CancelFlag::new(),
            deadline: Default::default(),
            alignment: Default::default(),
        };
        let context = Arc::new(OperatorContext {
            task: Arc::new(task),
            name: "source".to_owned(),
            uid: "source".to_owned(),
            treatment: TreatmentPlan {
                treatment: InputTreatment::Direct,
                reason: String::new(),
                memory: None,
                combines: false,
                output_only_at_end: false,
                durable: false,
            },
            metrics: Arc::default(),
            restored: Mutex::new(None),
            snapshots: Arc::default(),
            is_backlog: false,
        });
        Self { context, clock, events, _directory: directory }
    }
}
