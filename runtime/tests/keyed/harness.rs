//! A keyed operator alone: its input is called by hand, its output is a list.

use std::collections::BTreeMap;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use element::option_table::{self, StateBackendKind};
use element::{
    Attempt, Barrier, BarrierKind, Batch, ByteSize, CheckpointId, Configuration, Control, JobId,
    ManualClock, MaxParallelism, MemoryBudget, MemoryStore, RecordAttributes, SpillStore,
    SubtaskIndex, Timestamp, VertexId,
};
use graph::{InputTreatment, ResolvedMode};
use parking_lot::Mutex;
use slackwater_runtime::TaskError;
use slackwater_runtime::checkpoint::RestoredOperator;
use slackwater_runtime::context::{OperatorContext, OperatorSnapshot, TaskContext, TreatmentPlan};
use slackwater_runtime::events::{TaskEvent, TaskEvents, TaskId};
use slackwater_runtime::operator::Operator;
use slackwater_runtime::operator::function::KeyedFunction;
use slackwater_runtime::operator::keyed::KeyedOperator;
use slackwater_runtime::operator::selector::KeySelector;
use slackwater_runtime::operator::side_output::SideOutputs;
use slackwater_runtime::output::{Output, Pump, Signal};
use slackwater_runtime::stores::StateStores;

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen<O> {
    Record(O, Option<i64>),
    Backlog(bool),
    Watermark(i64),
    Idle(bool),
    End,
}

/// The list behind an operator.
pub(crate) struct List<O>(Arc<Mutex<Vec<Seen<O>>>>);

impl<O> List<O> {
    pub(crate) fn over(seen: &Arc<Mutex<Vec<Seen<O>>>>) -> Self {
        Self(Arc::clone(seen))
    }
}

impl<O: Send> Output<O> for List<O> {
    fn batch(&mut self, batch: Batch<O>) -> Result<(), TaskError> {
        let records = batch.into_records();
        let seen = records.map(|(value, at)| Seen::Record(value, at.map(Timestamp::as_millis)));
        self.0.lock().extend(seen);
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        let Signal::Stream(control) = signal else { return Ok(()) };
        let seen = match control {
            Control::Attributes(attributes) => Seen::Backlog(attributes.is_backlog),
            Control::Watermark(mark) => Seen::Watermark(mark.as_millis()),
            Control::Idle => Seen::Idle(true),
            Control::Active => Seen::Idle(false),
            Control::EndOfInput => Seen::End,
            Control::Barrier(_) => return Ok(()),
        };
        self.0.lock().push(seen);
        Ok(())
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        Ok(Pump::Idle)
    }
}

/// What an operator is made with.
pub(crate) struct Setting {
    pub(crate) mode: ResolvedMode,
    pub(crate) treatment: InputTreatment,
    pub(crate) combines: bool,
    pub(crate) at_end: bool,
    pub(crate) state: StateBackendKind,
    pub(crate) cache: Option<u64>,
    pub(crate) memory: ByteSize,
    pub(crate) restored: Option<RestoredOperator>,
}

impl Setting {
    pub(crate) fn mixed() -> Self {
        Self {
            mode: ResolvedMode::Mixed,
            treatment: InputTreatment::Sort,
            combines: false,
            at_end: false,
            state: StateBackendKind::Heap,
            cache: None,
            memory: ByteSize::mib(1),
            restored: None,
        }
    }

    pub(crate) fn batch() -> Self {
        Self { mode: ResolvedMode::Batch, treatment: InputTreatment::BatchSort, ..Self::mixed() }
    }

    pub(crate) fn streaming() -> Self {
        let (mode, treatment) = (ResolvedMode::Streaming, InputTreatment::Direct);
        Self { mode, treatment, ..Self::mixed() }
    }
}

pub(crate) type Row = (u32, i64);

/// A keyed operator over pairs of key and value.
pub(crate) struct Harness<F: KeyedFunction<u32, Row, O>, O> {
    operator: KeyedOperator<F, u32, Row, O>,
    out: List<O>,
    seen: Arc<Mutex<Vec<Seen<O>>>>,
    pub(crate) clock: ManualClock,
    pub(crate) context: Arc<OperatorContext>,
    pub(crate) spill: Arc<MemoryStore>,
    pub(crate) checkpoints: Arc<dyn SpillStore>,
    events: Receiver<(TaskId, TaskEvent)>,
    _directory: tempfile::TempDir,
}

impl<F: KeyedFunction<u32, Row, O>, O: Send + Clone> Harness<F, O> {
    pub(crate) fn new(setting: Setting, function: F) -> Self {
        Self::with_config(setting, Configuration::new(), function)
    }

    pub(crate) fn with_config(setting: Setting, mut config: Configuration, function: F) -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_000));
        let directory = tempfile::tempdir().unwrap();
        let spill = Arc::new(MemoryStore::default());
        let checkpoints: Arc<dyn SpillStore> = Arc::new(MemoryStore::default());
        let (sender, events) = crossbeam_channel::unbounded();
        config.set(&option_table::STATE_BACKEND, setting.state);
        config.set(&option_table::STATE_CACHE_ENTRIES, setting.cache);
        let (attempt, vertex, subtask) = (Attempt(0), VertexId(0), SubtaskIndex(0));
        let task = TaskContext {
            job: JobId(1),
            job_name: "job".to_owned(),
            attempt,
            vertex,
            vertex_name: "keyed".to_owned(),
            subtask,
            parallelism: 1,
            max_parallelism: MaxParallelism::DEFAULT,
            mode: setting.mode,
            stores: StateStores::new(&config, None).unwrap(),
            config,
            clock: Arc::new(clock.clone()),
            memory: MemoryBudget::new(ByteSize::mib(16)),
            spill: Arc::clone(&spill) as _,
            checkpoints: Arc::clone(&checkpoints),
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
            name: "keyed".to_owned(),
            uid: "keyed".to_owned(),
            treatment: TreatmentPlan {
                treatment: setting.treatment,
                reason: String::new(),
                memory: Some(setting.memory),
                combines: setting.combines,
                output_only_at_end: setting.at_end,
                durable: false,
            },
            metrics: Arc::default(),
            restored: Mutex::new(setting.restored),
            snapshots: Arc::default(),
            is_backlog: false,
        });
        let selector = KeySelector::owned(|row: &Row| row.0);
        let operator =
            KeyedOperator::open(selector, function, SideOutputs::default(), &context).unwrap();
        let seen = Arc::default();
        Self {
            operator,
            out: List(Arc::clone(&seen)),
            seen,
            clock,
            context,
            spill,
            checkpoints,
            events,
            _directory: directory,
        }
    }

    /// Records without timestamps.
    pub(crate) fn push(&mut self, rows: &[Row]) {
        self.operator.batch(Batch::unstamped(rows.to_vec()), &mut self.out).unwrap();
    }

    /// Records with timestamps.
    pub(crate) fn push_at(&mut self, rows: &[(i64, Row)]) {
        let values = rows.iter().map(|(_, row)| *row).collect();
        let stamps = rows.iter().map(|(at, _)| Timestamp::from_millis(*at)).collect();
        self.operator.batch(Batch::stamped(values, stamps), &mut self.out).unwrap();
    }

    fn control(&mut self, control: Control) {
        self.operator.signal(Signal::Stream(control), &mut self.out).unwrap();
        self.pump();
    }

    fn pump(&mut self) {
        while self.operator.pump(&mut self.out).unwrap() != Pump::Idle {}
    }

    pub(crate) fn backlog(&mut self) {
        self.control(Control::Attributes(RecordAttributes::BACKLOG));
    }

    pub(crate) fn live(&mut self, watermark: Option<i64>) {
        let watermark = watermark.map(Timestamp::from_millis);
        self.control(Control::Attributes(RecordAttributes::live(watermark)));
    }

    pub(crate) fn watermark(&mut self, millis: i64) {
        self.control(Control::Watermark(Timestamp::from_millis(millis)));
    }

    pub(crate) fn idle(&mut self, idle: bool) {
        self.control(if idle { Control::Idle } else { Control::Active });
    }

    /// The end of the input, as a driver says it.
    pub(crate) fn end(&mut self) {
        self.control(Control::Watermark(Timestamp::MAX));
        self.control(Control::EndOfInput);
    }

    /// Moves the clock and calls the operator if it asked for that time, as the task does.
    pub(crate) fn clock_to(&mut self, millis: i64) {
        let now = Timestamp::from_millis(millis);
        self.clock.set(now);
        self.run_timers();
    }

    pub(crate) fn run_timers(&mut self) {
        let now = element::Clock::now(&self.clock);
        while self.context.task.deadline.take_due(now) {
            self.operator.signal(Signal::ProcessingTime(now), &mut self.out).unwrap();
            self.pump();
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Seen<O>> {
        std::mem::take(&mut *self.seen.lock())
    }

    /// Records that came out, timestamps and signals left out.
    pub(crate) fn take_records(&mut self) -> Vec<O> {
        let records = self.take().into_iter().filter_map(|seen| match seen {
            Seen::Record(value, _) => Some(value),
            _ => None,
        });
        records.collect()
    }

    /// A barrier; the snapshot, unless the operator declined.
    pub(crate) fn barrier(&mut self, id: u64) -> Option<OperatorSnapshot> {
        let barrier = Barrier { id: CheckpointId(id), kind: BarrierKind::ExactlyOnce };
        self.operator.snapshot(barrier, &mut self.out).unwrap()
    }

    /// A snapshot, written, as another operator is given it back.
    pub(crate) fn stored(&mut self, id: u64) -> RestoredOperator {
        let snapshot = self.barrier(id).unwrap();
        let handle =
            snapshot.keyed.unwrap().write(&*self.checkpoints, &format!("snapshot-{id}")).unwrap();
        let store = Arc::clone(&self.checkpoints);
        RestoredOperator {
            keyed: vec![state::SnapshotSource { store, handle }],
            items: snapshot.items,
            watermark: snapshot.watermark,
            ..RestoredOperator::default()
        }
    }

    /// Events of a kind that were told so far.
    pub(crate) fn told(&self, kind: impl Fn(&TaskEvent) -> bool) -> usize {
        self.events.try_iter().filter(|(_, event)| kind(event)).count()
    }
}

/// Sequences of values by key, in order.
pub(crate) fn by_key<O: Clone>(rows: &[(u32, O)]) -> BTreeMap<u32, Vec<O>> {
    let mut keys: BTreeMap<u32, Vec<O>> = BTreeMap::new();
    for (key, value) in rows {
        keys.entry(*key).or_default().push(value.clone());
    }
    keys
}

/// How often the key changes from one record to the next, and one.
pub(crate) fn runs_of_keys<O>(rows: &[(u32, O)]) -> usize {
    rows.chunk_by(|a, b| a.0 == b.0).count()
}
