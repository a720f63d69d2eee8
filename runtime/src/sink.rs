//! Sinks: where records leave, at least once or exactly once (two-phase commit).
//!
//! ```text
//!   write* -> barrier: prepare_commit -> checkpoint complete: commit -> ...
//!                          '-> stored in the checkpoint; committed again after a restore
//! ```
//!
//! A commit may come late, twice, or never: what an id covers is committed with the next complete
//! checkpoint, and committing again must do nothing.

mod collect;

pub use collect::{CollectSink, Collected};

use std::collections::BTreeMap;
use std::sync::Arc;

use element::{Barrier, Batch, CheckpointId, Control, Record, SubtaskIndex, Timestamp};
use element::{decode_exact, encode_to_vec};

use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::events::TaskEvent;
use crate::operator::Operator;
use crate::output::{Output, Pump, Signal};
use crate::user::{Position, UserCode};

/// What a writer may know of itself.
#[derive(Clone, Debug)]
pub struct SinkContext {
    /// The job's name.
    pub job: String,
    /// Which subtask it writes for.
    pub subtask: SubtaskIndex,
    /// Of how many.
    pub parallelism: u32,
    /// Which attempt of the job.
    pub attempt: element::Attempt,
    /// Whether the job takes checkpoints: then commits wait for them.
    pub checkpoints: bool,
    /// Whether the job goes on from a checkpoint in which this sink has a part.
    pub is_restored: bool,
}

/// A sink. Implemented by users and by the built-in sinks; shared by all subtasks.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no sink of `{T}`",
    note = "use a sink of the prelude, or implement `Sink<T>`; for a closure see `for_each`"
)]
pub trait Sink<T>: Send + Sync + 'static {
    /// Makes the writer of one subtask. `restored` is what its kin had prepared or stored in the
    /// checkpoint that the job goes on from.
    ///
    /// # Errors
    ///
    /// What cannot be opened, by name.
    fn writer(
        &self,
        context: &SinkContext,
        restored: &[Vec<u8>],
    ) -> anyhow::Result<Box<dyn SinkWriter<T>>>;
}

/// Writes the records of one subtask. On the task's thread.
pub trait SinkWriter<T>: Send {
    /// Takes one record.
    ///
    /// # Errors
    ///
    /// What cannot be written, by name; the task then fails.
    fn write(&mut self, value: T, timestamp: Option<Timestamp>) -> anyhow::Result<()>;

    /// [`write`](Self::write) for all records of a batch, by one call. `position` is at the record at hand.
    #[doc(hidden)]
    fn write_batch(&mut self, batch: Batch<T>, position: &mut Position) -> anyhow::Result<()> {
        for (value, timestamp) in batch.into_records() {
            position.next();
            self.write(value, timestamp)?;
        }
        Ok(())
    }

    /// There is nothing more for now: what a reader should see soon is written out.
    ///
    /// # Errors
    ///
    /// What cannot be written, by name.
    fn flush(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// A barrier: ends what was written since the one before, so that it can be committed.
    /// Returns what a commit must know, as bytes; it is stored in the checkpoint.
    ///
    /// # Errors
    ///
    /// What cannot be made durable, by name; the task then fails.
    fn prepare_commit(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    /// What a writer of a later attempt must know beside what is prepared; asked behind
    /// [`prepare_commit`](Self::prepare_commit), stored with this checkpoint alone, given back to
    /// [`Sink::writer`], and never committed.
    ///
    /// # Errors
    ///
    /// What went wrong; the task then fails.
    fn snapshot(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    /// Makes visible what was prepared. Called again for the same bytes it must do nothing.
    ///
    /// # Errors
    ///
    /// What cannot be made visible, by name; the task then fails.
    fn commit(&mut self, _committable: &[u8]) -> anyhow::Result<()> {
        Ok(())
    }

    /// Whether it wants no more records: the job may then stop early.
    fn is_satisfied(&self) -> bool {
        false
    }

    /// The input has ended.
    ///
    /// # Errors
    ///
    /// What cannot be written, by name.
    fn end(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Runs a sink's writer at the end of a chain.
pub struct SinkOperator<T> {
    writer: Box<dyn SinkWriter<T>>,
    pending: BTreeMap<CheckpointId, Vec<Vec<u8>>>,
    /// What was prepared at the end of the input.
    last: Vec<Vec<u8>>,
    /// Whether commits wait for checkpoints, the last one included.
    checkpoints: bool,
    /// Whether the input has ended and the last commit is still to come.
    waits: bool,
    satisfied: bool,
    user: UserCode,
    context: Arc<OperatorContext>,
}

impl<T: Send + 'static> SinkOperator<T> {
    /// Opens the writer of a subtask; what a restored checkpoint had prepared is committed first.
    ///
    /// # Errors
    ///
    /// [`TaskError::Sink`] if it cannot be opened.
    pub fn open(sink: &dyn Sink<T>, context: &Arc<OperatorContext>) -> Result<Self, TaskError> {
        let task = &context.task;
        let failed = |source| TaskError::Sink { sink: context.name.clone(), source };
        let restored = context.restored.lock().take();
        let is_restored = restored.is_some();
        let items = restored.unwrap_or_default().items;
        let (committables, states) = split(&items).map_err(failed)?;
        let interval = task.config.get(&element::option_table::CHECKPOINT_INTERVAL)?;
        let about = SinkContext {
            job: task.job_name.clone(),
            subtask: task.subtask,
            parallelism: task.parallelism,
            attempt: task.attempt,
            checkpoints: interval.is_some() && task.mode != graph::ResolvedMode::Batch,
            is_restored,
        };
        let restored = [committables.as_slice(), states.as_slice()].concat();
        let mut writer = sink.writer(&about, &restored).map_err(failed)?;
        for committable in &committables {
            writer.commit(committable).map_err(failed)?;
        }
        Ok(Self {
            writer,
            pending: BTreeMap::new(),
            last: Vec::new(),
            checkpoints: about.checkpoints,
            waits: false,
            satisfied: false,
            user: UserCode::new(context),
            context: Arc::clone(context),
        })
    }

    fn call<R>(
        &mut self,
        call: impl FnOnce(&mut dyn SinkWriter<T>) -> anyhow::Result<R>,
    ) -> Result<R, TaskError> {
        let Self { writer, context, user, .. } = self;
        user.run_batch(|_| Ok(call(&mut **writer)))?
            .map_err(|source| TaskError::Sink { sink: context.name.clone(), source })
    }

    /// All that is prepared and not committed, in order, and what the writer has stored; as items of a
    /// checkpoint, see [`split`].
    fn items(&self, states: Items) -> Items {
        let committables = self.pending.values().flatten().chain(&self.last);
        let committables = committables.map(|item| (false, item.clone()));
        let items = committables.chain(states.into_iter().map(|item| (true, item)));
        items.map(|item| encode_to_vec(&item)).collect()
    }

    fn commit_all(&mut self) -> Result<(), TaskError> {
        self.commit_up_to(CheckpointId(u64::MAX))?;
        for committable in std::mem::take(&mut self.last) {
            self.call(|writer| writer.commit(&committable))?;
        }
        Ok(())
    }

    fn commit_up_to(&mut self, id: CheckpointId) -> Result<(), TaskError> {
        while let Some(entry) = self.pending.first_entry().filter(|entry| *entry.key() <= id) {
            for committable in entry.remove() {
                self.call(|writer| writer.commit(&committable))?;
            }
        }
        Ok(())
    }
}

impl<T: Send + 'static> Operator<T, ()> for SinkOperator<T> {
    fn batch(&mut self, batch: Batch<T>, _: &mut dyn Output<()>) -> Result<(), TaskError> {
        let Self { writer, context, user, .. } = self;
        user.run_batch(|position| {
            let written = writer.write_batch(batch, position);
            Ok(written.map_err(|source| TaskError::Sink { sink: context.name.clone(), source })?)
        })?;
        if !self.satisfied && self.writer.is_satisfied() {
            self.satisfied = true;
            self.context.tell(TaskEvent::Satisfied);
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal, out: &mut dyn Output<()>) -> Result<(), TaskError> {
        match signal {
            Signal::Flush => self.call(|writer| writer.flush())?,
            Signal::Complete(id) => self.commit_up_to(id)?,
            Signal::Finished => {
                self.commit_all()?;
                self.waits = false;
            }
            Signal::Stream(Control::EndOfInput) => {
                self.last = self.call(|writer| {
                    writer.end()?;
                    writer.prepare_commit()
                })?;
                if self.checkpoints {
                    // Committed when nothing else can fail any more: see `cluster::job_master`.
                    self.waits = true;
                    let states = self.call(|writer| writer.snapshot())?;
                    self.context.snapshots.lock().push(OperatorSnapshot {
                        uid: self.context.uid.clone(),
                        items: self.items(states),
                        ..OperatorSnapshot::default()
                    });
                } else {
                    self.commit_all()?;
                }
            }
            _ => {}
        }
        out.signal(signal)
    }

    fn pump(&mut self, _: &mut dyn Output<()>) -> Result<Pump, TaskError> {
        Ok(if self.waits { Pump::HeldUp } else { Pump::Idle })
    }

    fn snapshot(
        &mut self,
        barrier: Barrier,
        _: &mut dyn Output<()>,
    ) -> Result<Option<OperatorSnapshot>, TaskError> {
        let prepared = self.call(|writer| writer.prepare_commit())?;
        let states = self.call(|writer| writer.snapshot())?;
        self.pending.insert(barrier.id, prepared);
        Ok(Some(OperatorSnapshot {
            uid: self.context.uid.clone(),
            items: self.items(states),
            ..OperatorSnapshot::default()
        }))
    }
}

/// Items of a checkpoint, as bytes.
type Items = Vec<Vec<u8>>;

/// Tells what is to be committed from what a writer has stored; see [`SinkOperator::items`].
fn split(items: &[Vec<u8>]) -> anyhow::Result<(Items, Items)> {
    let (mut committables, mut states) = (Vec::new(), Vec::new());
    for item in items {
        let (is_state, item) = decode_exact::<(bool, Vec<u8>)>(item)?;
        if is_state { states.push(item) } else { committables.push(item) }
    }
    Ok((committables, states))
}

/// A sink that gives each record to a closure; whatever that has done stays done (at least once).
pub struct ClosureSink<F>(pub Arc<F>);

struct ClosureWriter<F>(Arc<F>);

impl<T, F> Sink<T> for ClosureSink<F>
where
    F: Fn(T) -> anyhow::Result<()> + Send + Sync + 'static,
{
    fn writer(&self, _: &SinkContext, _: &[Vec<u8>]) -> anyhow::Result<Box<dyn SinkWriter<T>>> {
        Ok(Box::new(ClosureWriter(Arc::clone(&self.0))))
    }
}

impl<T, F> SinkWriter<T> for ClosureWriter<F>
where
    F: Fn(T) -> anyhow::Result<()> + Send + Sync,
{
    fn write(&mut self, value: T, _: Option<Timestamp>) -> anyhow::Result<()> {
        (self.0)(value)
    }
}

/// Stores a number as a committable.
pub(crate) fn number<T: Record>(value: &T) -> Vec<u8> {
    encode_to_vec(value)
}

/// Reads a number back.
pub(crate) fn to_number<T: Record>(bytes: &[u8]) -> anyhow::Result<T> {
    Ok(decode_exact(bytes)?)
}
