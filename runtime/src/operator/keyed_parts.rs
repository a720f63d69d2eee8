//! The parts of a keyed operator that its function's context borrows: state, timers, outputs, time.

use std::sync::Arc;

use element::{Barrier, Key, KeyHash, Timestamp, option_table};
use state::{KeyedStateBackend, Timer, TimerKind, TimerService, WriteMode};

use super::process_function::RuntimeContext;
use super::side_output::SideOutputs;
use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::metrics::OperatorMetrics;
use crate::output::{BatchBuffer, Output};

/// The timestamp of what a timer's callback emits: the timer's time in event time, none otherwise.
pub(crate) fn timestamp_of(timer: &Timer) -> Option<Timestamp> {
    match timer.kind {
        TimerKind::EventTime => Some(timer.time),
        TimerKind::ProcessingTime => None,
    }
}

/// State, timers, outputs and time of a keyed operator's subtask.
pub(crate) struct KeyedParts<O> {
    pub(crate) backend: KeyedStateBackend,
    pub(crate) timers: TimerService,
    pub(crate) buffer: BatchBuffer<O>,
    pub(crate) side: SideOutputs,
    pub(crate) watermark: Timestamp,
    pub(crate) processing_time: Timestamp,
    /// The earliest processing-time timer registered since the task was last told.
    pub(crate) next_processing_timer: Option<Timestamp>,
    /// In batch mode, while timers fire: those registered then are dropped (behaviour T12).
    pub(crate) ignores_timers: bool,
    pub(crate) ignored_timers: u64,
    pub(crate) metrics: Arc<OperatorMetrics>,
    pub(crate) runtime: RuntimeContext,
}

/// Hash and canonical bytes of the key at hand; those of no key while there is none.
pub(crate) fn key_of(backend: &KeyedStateBackend) -> (KeyHash, &[u8]) {
    backend.current_key().unwrap_or_default()
}

/// The key at hand, once somebody asked for it. Its hash and bytes are the state backend's.
///
/// **Invariant:** nobody else changes the backend's current key.
pub(crate) struct CurrentKey<K> {
    pub(crate) key: Option<K>,
}

impl<K> Default for CurrentKey<K> {
    fn default() -> Self {
        Self { key: None }
    }
}

impl<K: Key> CurrentKey<K> {
    /// Makes the key of a timer the current one.
    pub(crate) fn enter<O>(&mut self, timer: &Timer, parts: &mut KeyedParts<O>) {
        self.enter_bytes(timer.hash, &timer.key, parts);
    }

    /// Makes a key by its bytes the current one.
    #[inline]
    pub(crate) fn enter_bytes<O>(&mut self, hash: KeyHash, key: &[u8], parts: &mut KeyedParts<O>) {
        if !parts.backend.is_current(key) {
            self.change(hash, key, None, parts);
        }
    }

    /// Makes a key of eight bytes the current one.
    #[inline]
    pub(crate) fn enter_word<O>(
        &mut self,
        hash: KeyHash,
        word: [u8; 8],
        parts: &mut KeyedParts<O>,
    ) {
        if parts.backend.set_current_word(hash, word) {
            self.key = None;
        }
    }

    /// Makes another key the current one.
    #[inline]
    pub(crate) fn change<O>(
        &mut self,
        hash: KeyHash,
        bytes: &[u8],
        key: Option<K>,
        parts: &mut KeyedParts<O>,
    ) {
        self.key = key;
        parts.backend.set_current_key(hash, bytes);
    }
}

impl<O: Send> KeyedParts<O> {
    /// Opens the state store, restored if the job starts from a checkpoint.
    pub(crate) fn open(
        context: &Arc<OperatorContext>,
        side: SideOutputs,
    ) -> Result<Self, TaskError> {
        let failed = TaskError::state(&context.name);
        let mut backend = context.task.stores.open(context)?;
        let mut timers = context.task.stores.timers(context)?;
        let restored = context.restored.lock().take();
        let mut watermark = Timestamp::MIN;
        if let Some(restored) = restored {
            backend.restore(&mut timers, &restored.keyed).map_err(failed)?;
            watermark = restored.watermark.unwrap_or(Timestamp::MIN);
            backend.set_watermark(watermark);
        }
        Ok(Self {
            backend,
            timers,
            buffer: BatchBuffer::default(),
            side,
            watermark,
            processing_time: context.task.clock.now(),
            next_processing_timer: None,
            ignores_timers: false,
            ignored_timers: 0,
            metrics: Arc::clone(&context.metrics),
            runtime: RuntimeContext::new(context),
        })
    }

    /// Stored states that the function has not bound, though it has bound others, are removed from the
    /// program: the JobMaster has refused them unless they may be left out.
    pub(crate) fn leave_out_removed(&mut self, context: &OperatorContext) -> Result<(), TaskError> {
        let allowed = context.task.config.get(&option_table::ALLOW_NON_RESTORED_STATE)?;
        if allowed && !self.backend.declared().is_empty() {
            self.backend.leave_out_unclaimed();
        }
        Ok(())
    }

    /// Asks the task to be called for restored processing-time timers.
    pub(crate) fn rearm(&mut self, context: &OperatorContext) {
        self.next_processing_timer = self.timers.next_time(state::TimerKind::ProcessingTime);
        self.arm(context);
    }

    /// Asks the task to be called when the earliest processing-time timer is due.
    pub(crate) fn arm(&mut self, context: &OperatorContext) {
        if self.next_processing_timer.take().is_some() {
            let next = self.timers.next_time(state::TimerKind::ProcessingTime);
            if let Some(time) = next {
                context.task.deadline.at(time);
            }
        }
    }

    /// Hands half-filled batches down, to the main and the side outputs, behind calls of the function
    /// that may have lost a timer.
    pub(crate) fn flush_outputs(&mut self, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        self.timers.check().map_err(TaskError::state(self.runtime.operator()))?;
        self.buffer.flush(out)?;
        self.side.flush()
    }

    /// Moves the operator's watermark on, also for values that expire by it; never back (tB18).
    pub(crate) fn set_watermark(&mut self, watermark: Timestamp) {
        self.watermark = self.watermark.max(watermark);
        self.backend.set_watermark(self.watermark);
    }

    /// The watermark of a phase: the greatest of the one before it, those seen in it, and the one
    /// that its end carries (decision D11).
    pub(crate) fn phase_watermark(
        &self,
        seen: Option<Timestamp>,
        carried: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let before = Some(self.watermark).filter(|mark| *mark != Timestamp::MIN);
        before.max(seen).max(carried)
    }

    /// From now on keys come in order, each once.
    pub(crate) fn begin_sorted_input(
        &mut self,
        context: &OperatorContext,
    ) -> Result<(), TaskError> {
        let bulk = context.task.config.get(&option_table::STATE_BULK_LOAD)?;
        let mode = if bulk { WriteMode::BulkLoad } else { WriteMode::Writes };
        self.timers.begin_sorted_input();
        self.backend.begin_sorted_input(mode).map_err(TaskError::state(&context.name))
    }

    /// Everything of the sorted phase goes to the store.
    pub(crate) fn end_sorted_input(&mut self, context: &OperatorContext) -> Result<(), TaskError> {
        self.timers.end_sorted_input();
        self.backend.end_sorted_input().map_err(TaskError::state(&context.name))?;
        self.next_processing_timer = Some(Timestamp::MIN);
        self.arm(context);
        context.metrics.set_state(self.backend.counters());
        Ok(())
    }

    /// A consistent copy of state, timers and watermark: of a savepoint one that stands alone, of a
    /// checkpoint one that may share files with those before it.
    pub(crate) fn snapshot(
        &mut self,
        barrier: Barrier,
        context: &OperatorContext,
    ) -> Result<OperatorSnapshot, TaskError> {
        let keyed = if barrier.kind.is_savepoint() {
            self.backend.snapshot(&self.timers)
        } else {
            self.backend.incremental_snapshot(&self.timers, barrier.id)
        };
        let keyed = keyed.map_err(TaskError::state(&context.name))?;
        context.metrics.set_state(self.backend.counters());
        Ok(OperatorSnapshot {
            uid: context.uid.clone(),
            keyed: Some(keyed),
            items: Vec::new(),
            watermark: Some(self.watermark),
            backlog: None,
        })
    }
}
