//! The handover: a finished backlog into the function, key by key, with the timers of each key.
//!
//! In: records by (hash, key bytes, timestamp, arrival). Each key's state is read and written at
//! most once, for the backend is told that its input is sorted. At the end of a key the timers that
//! the phase's watermark covers fire, in time order, with that key current (M21 to M24); in batch
//! mode all of them do, and those registered while they fire are dropped (T12).

use std::sync::Arc;
use std::time::Duration;

use element::{Key, KeyGroups, KeyHash, Record, Timestamp, hash_key_bytes};
use sort::{CombinedStream, SortError, SortedStream};
use state::{StateCounters, TimerKind};

use super::folding::FoldCombiner;
use super::plan::elapsed;
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::metrics::PhaseReport;
use crate::operator::function::{Fold, KeyedFunction};
use crate::operator::keyed_context::KeyedCalls;
use crate::operator::keyed_parts::{key_of, timestamp_of};
use crate::user::Position;

pub(super) enum Drained<C: Fold<I>, I> {
    Sort(SortedStream),
    Combine(CombinedStream<FoldCombiner<C, I>>),
}

/// A backlog on its way into the function.
pub struct Draining<C: Fold<I>, I> {
    drained: Drained<C, I>,
    handover: Handover,
    report: PhaseReport,
    begun: Duration,
    before: StateCounters,
}

impl<C: Fold<I>, I> Draining<C, I> {
    pub(super) fn new(
        drained: Drained<C, I>,
        own: Option<KeyGroups>,
        upto: Option<Timestamp>,
        batch: bool,
        report: PhaseReport,
        before: StateCounters,
        context: &Arc<OperatorContext>,
    ) -> Self {
        let begun = context.task.clock.monotonic();
        let context = Arc::clone(context);
        let handover = Handover { own, upto, batch, in_key: false, keys: 0, context };
        Self { drained, handover, report, begun, before }
    }

    /// Hands up to `most` records over. True when there are no more.
    ///
    /// # Errors
    ///
    /// What the function says, and [`TaskError::Sort`] if a run cannot be read.
    pub(crate) fn piece<F, K, O>(
        &mut self,
        most: usize,
        position: &mut Position,
        calls: &mut KeyedCalls<'_, F, K, O>,
    ) -> anyhow::Result<bool>
    where
        F: KeyedFunction<K, I, O, Fold = C>,
        K: Key,
        I: Record,
        O: Send,
    {
        match &mut self.drained {
            Drained::Sort(stream) => self.handover.records(stream, most, position, calls),
            Drained::Combine(stream) => self.handover.partials(stream, most, position, calls),
        }
    }

    /// What the phase did, the store's counters before and after it compared.
    #[must_use]
    pub fn report(&self, after: &StateCounters) -> PhaseReport {
        let stats = match &self.drained {
            Drained::Sort(stream) => stream.stats(),
            Drained::Combine(stream) => stream.stats(),
        };
        PhaseReport {
            keys: self.handover.keys,
            state_reads: after.store_reads - self.before.store_reads,
            state_writes: after.store_writes - self.before.store_writes,
            bytes_spilled: stats.spilled_written,
            runs: stats.runs,
            sort_memory: stats.peak_bytes,
            draining: elapsed(&self.handover.context, self.begun),
            ..self.report.clone()
        }
    }
}

/// Why the records' way into the function ended before its time.
enum Stopped {
    Sort(SortError),
    /// What the function says, and what is behind it.
    Other(anyhow::Error),
}

impl From<SortError> for Stopped {
    fn from(error: SortError) -> Self {
        Self::Sort(error)
    }
}

impl From<anyhow::Error> for Stopped {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

/// How far the handover has come, and what happens where a key ends.
struct Handover {
    /// Records of other key groups are passed over, where there may be some.
    own: Option<KeyGroups>,
    upto: Option<Timestamp>,
    batch: bool,
    in_key: bool,
    keys: u64,
    context: Arc<OperatorContext>,
}

impl Handover {
    fn records<F, K, I, O>(
        &mut self,
        stream: &mut SortedStream,
        most: usize,
        position: &mut Position,
        calls: &mut KeyedCalls<'_, F, K, O>,
    ) -> anyhow::Result<bool>
    where
        F: KeyedFunction<K, I, O>,
        K: Key,
        I: Record,
        O: Send,
    {
        let handed = stream.hand_over(most, |record| {
            position.next();
            let hash = || hash_key_bytes(record.key);
            if self.is_foreign(hash) {
                return Ok(());
            }
            self.enter(hash, record.key, calls)?;
            let (stamped, mut payload) = record.payload.split_at_checked(1).unwrap_or_default();
            let timestamp = (stamped == [1]).then(|| Timestamp::from_millis(record.timestamp));
            let value = I::decode(&mut payload).map_err(|source| {
                let operator = self.context.name.clone();
                Stopped::Other(TaskError::Codec { operator, source }.into())
            })?;
            Ok(calls.call(timestamp, |function, context| function.element(value, context))?)
        });
        match handed {
            Ok(handed) if handed == most => Ok(false),
            Ok(_) => self.end(calls),
            Err(Stopped::Sort(error)) => Err(TaskError::sort(&self.context.name)(error).into()),
            Err(Stopped::Other(error)) => Err(error),
        }
    }

    fn partials<F, K, I, O>(
        &mut self,
        stream: &mut CombinedStream<FoldCombiner<F::Fold, I>>,
        most: usize,
        position: &mut Position,
        calls: &mut KeyedCalls<'_, F, K, O>,
    ) -> anyhow::Result<bool>
    where
        F: KeyedFunction<K, I, O>,
        K: Key,
        O: Send,
    {
        for _ in 0..most {
            position.next();
            let record = stream.next().map_err(TaskError::sort(&self.context.name))?;
            let Some(record) = record else { return self.end(calls) };
            let (hash, key) = record.key.split_first_chunk().unwrap_or((&[0; 8], record.key));
            let hash = || KeyHash(u64::from_be_bytes(*hash));
            if self.is_foreign(hash) {
                continue;
            }
            let (key, part) = key.split_at(key.len().saturating_sub(F::Fold::PART));
            self.enter(hash, key, calls)?;
            let timestamp = Some(Timestamp::from_millis(record.timestamp))
                .filter(|timestamp| *timestamp != Timestamp::MIN);
            calls.call(timestamp, |function, context| {
                function.partial(record.accumulator, part, context)
            })?;
        }
        Ok(false)
    }

    /// Whether a sorted record is of another subtask.
    #[inline]
    fn is_foreign(&self, hash: impl Fn() -> KeyHash) -> bool {
        self.own.is_some_and(|own| !own.contains(hash()))
    }

    /// Makes the key of a sorted record the current one; the timers of the key before it fire first.
    #[inline]
    fn enter<F, K, I, O>(
        &mut self,
        hash: impl Fn() -> KeyHash,
        key: &[u8],
        calls: &mut KeyedCalls<'_, F, K, O>,
    ) -> anyhow::Result<()>
    where
        F: KeyedFunction<K, I, O>,
        K: Key,
        O: Send,
    {
        if self.in_key && calls.context.parts.backend.is_current(key) {
            return Ok(());
        }
        if self.in_key {
            self.fire(calls)?;
        }
        calls.context.current.enter_bytes(hash(), key, calls.context.parts);
        self.in_key = true;
        self.keys += 1;
        Ok(())
    }

    /// Behind the last record: the last key ends too. Always true: the drain is done.
    fn end<F, K, I, O>(&self, calls: &mut KeyedCalls<'_, F, K, O>) -> anyhow::Result<bool>
    where
        F: KeyedFunction<K, I, O>,
        K: Key,
        O: Send,
    {
        if self.in_key {
            self.fire(calls)?;
        }
        Ok(true)
    }

    /// Fires what is due of the current key: event-time timers, then processing-time timers.
    fn fire<F, K, I, O>(&self, calls: &mut KeyedCalls<'_, F, K, O>) -> anyhow::Result<()>
    where
        F: KeyedFunction<K, I, O>,
        K: Key,
        O: Send,
    {
        calls.call(None, |function, context| function.key_end(context))?;
        if calls.context.parts.timers.is_empty() {
            return Ok(());
        }
        let now = if self.batch { Timestamp::MAX } else { calls.context.parts.processing_time };
        let before = calls.context.parts.watermark;
        if self.batch {
            calls.context.parts.watermark = Timestamp::MAX;
            calls.context.parts.ignores_timers = true;
        }
        if let Some(upto) = if self.batch { Some(Timestamp::MAX) } else { self.upto } {
            fire_of_key(TimerKind::EventTime, upto, calls)?;
        }
        fire_of_key(TimerKind::ProcessingTime, now, calls)?;
        calls.context.parts.ignores_timers = false;
        calls.context.parts.watermark = before;
        Ok(())
    }
}

/// Fires timers of the current key up to `upto`, in time order. A timer that a firing timer registers
/// fires too if it is due and later than the one that fires; one that is not later stays for the
/// next watermark, so that a callback that registers itself anew does not go on for ever (M23).
fn fire_of_key<F, K, I, O>(
    kind: TimerKind,
    upto: Timestamp,
    calls: &mut KeyedCalls<'_, F, K, O>,
) -> anyhow::Result<()>
where
    F: KeyedFunction<K, I, O>,
    K: Key,
    O: Send,
{
    let mut last = None;
    let mut postponed = Vec::new();
    loop {
        let (hash, key) = key_of(&calls.context.parts.backend);
        let due = calls.context.parts.timers.pop_due_of_key(kind, upto, hash, key);
        let Some(timer) = due else { break };
        let place = (timer.time, timer.namespace.clone());
        if last.as_ref().is_some_and(|last| place <= *last) {
            postponed.push(timer);
            continue;
        }
        last = Some(place);
        calls.call(timestamp_of(&timer), |function, context| {
            function.on_timer(&timer, kind, context)
        })?;
    }
    for timer in postponed {
        let timers = &mut calls.context.parts.timers;
        timers.register(kind, timer.time, timer.hash, &timer.key, &timer.namespace);
    }
    Ok(())
}
