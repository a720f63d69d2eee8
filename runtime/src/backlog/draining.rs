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
use crate::operator::keyed_context::KeyedContext;
use crate::operator::keyed_parts::{CurrentKey, KeyedParts, timestamp_of};
use crate::output::Output;
use crate::user::Position;

pub(super) enum Drained<C: Fold<I>, I> {
    Sort(SortedStream),
    Combine(CombinedStream<FoldCombiner<C, I>>),
}

/// A backlog on its way into the function.
pub struct Draining<C: Fold<I>, I> {
    drained: Drained<C, I>,
    /// Records of other key groups are passed over, where there may be some.
    own: Option<KeyGroups>,
    upto: Option<Timestamp>,
    batch: bool,
    in_key: bool,
    keys: u64,
    report: PhaseReport,
    begun: Duration,
    before: StateCounters,
    context: Arc<OperatorContext>,
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
        Self { drained, own, upto, batch, in_key: false, keys: 0, report, begun, before, context }
    }

    /// Hands up to `records` records over. True when there are no more.
    ///
    /// # Errors
    ///
    /// What the function says, and [`TaskError::Sort`] if a run cannot be read.
    pub(crate) fn piece<F, K, O>(
        &mut self,
        records: usize,
        position: &mut Position,
        function: &mut F,
        parts: &mut KeyedParts<O>,
        current: &mut CurrentKey<K>,
        out: &mut dyn Output<O>,
    ) -> anyhow::Result<bool>
    where
        F: KeyedFunction<K, I, O, Fold = C>,
        K: Key,
        I: Record,
        O: Send,
    {
        match &mut self.drained {
            Drained::Sort(_) => self.records(records, position, function, parts, current, out),
            Drained::Combine(_) => self.partials(records, position, function, parts, current, out),
        }
    }

    /// Hands up to `most` records over. True when there are no more.
    fn records<F, K, O>(
        &mut self,
        most: usize,
        position: &mut Position,
        function: &mut F,
        parts: &mut KeyedParts<O>,
        current: &mut CurrentKey<K>,
        out: &mut dyn Output<O>,
    ) -> anyhow::Result<bool>
    where
        F: KeyedFunction<K, I, O, Fold = C>,
        K: Key,
        I: Record,
        O: Send,
    {
        let key_end = KeyEnd { upto: self.upto, batch: self.batch };
        let Self { drained: Drained::Sort(stream), own, context, in_key, keys, .. } = self else {
            return Ok(true);
        };
        let handed = stream.hand_over(most, |record| {
            position.next();
            let hash = || hash_key_bytes(record.key);
            if is_foreign(*own, hash) {
                return Ok(());
            }
            let key = (hash, record.key);
            *keys += u64::from(enter(key, in_key, &key_end, function, parts, current, out)?);
            let (stamped, mut payload) = record.payload.split_at_checked(1).unwrap_or_default();
            let timestamp = (stamped == [1]).then(|| Timestamp::from_millis(record.timestamp));
            let value = I::decode(&mut payload).map_err(|source| {
                Stopped::Other(TaskError::Codec { operator: context.name.clone(), source }.into())
            })?;
            let mut keyed = KeyedContext::new(parts, current, out, timestamp);
            function.element(value, &mut keyed)?;
            keyed.check().map_err(anyhow::Error::from)?;
            Ok(())
        });
        match handed {
            Ok(handed) if handed == most => Ok(false),
            Ok(_) => key_end.last(self.in_key, function, parts, current, out),
            Err(Stopped::Sort(error)) => Err(TaskError::sort(&context.name)(error).into()),
            Err(Stopped::Other(error)) => Err(error),
        }
    }

    /// Hands up to `most` partial aggregates over. True when there are no more.
    fn partials<F, K, O>(
        &mut self,
        most: usize,
        position: &mut Position,
        function: &mut F,
        parts: &mut KeyedParts<O>,
        current: &mut CurrentKey<K>,
        out: &mut dyn Output<O>,
    ) -> anyhow::Result<bool>
    where
        F: KeyedFunction<K, I, O, Fold = C>,
        K: Key,
        I: Record,
        O: Send,
    {
        let key_end = KeyEnd { upto: self.upto, batch: self.batch };
        let Self { drained: Drained::Combine(stream), own, context, in_key, keys, .. } = self
        else {
            return Ok(true);
        };
        let failed = TaskError::sort(&context.name);
        for _ in 0..most {
            position.next();
            let Some(record) = stream.next().map_err(&failed)? else {
                return key_end.last(*in_key, function, parts, current, out);
            };
            let (hash, key) = record.key.split_first_chunk().unwrap_or((&[0; 8], record.key));
            let hash = || KeyHash(u64::from_be_bytes(*hash));
            if is_foreign(*own, hash) {
                continue;
            }
            let (key, part) = key.split_at(key.len().saturating_sub(C::PART));
            let key = (hash, key);
            *keys += u64::from(enter(key, in_key, &key_end, function, parts, current, out)?);
            let timestamp = Some(Timestamp::from_millis(record.timestamp))
                .filter(|timestamp| *timestamp != Timestamp::MIN);
            let mut keyed = KeyedContext::new(parts, current, out, timestamp);
            function.partial(record.accumulator, part, &mut keyed)?;
            keyed.check()?;
        }
        Ok(false)
    }

    /// What the phase did, the store's counters before and after it compared.
    #[must_use]
    pub fn report(&self, after: &StateCounters) -> PhaseReport {
        let stats = match &self.drained {
            Drained::Sort(stream) => stream.stats(),
            Drained::Combine(stream) => stream.stats(),
        };
        PhaseReport {
            keys: self.keys,
            state_reads: after.store_reads - self.before.store_reads,
            state_writes: after.store_writes - self.before.store_writes,
            bytes_spilled: stats.spilled_written,
            runs: stats.runs,
            sort_memory: stats.peak_bytes,
            draining: elapsed(&self.context, self.begun),
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

/// What happens when a key's last record has been handed over.
struct KeyEnd {
    upto: Option<Timestamp>,
    batch: bool,
}

/// Whether a sorted record is of another subtask.
#[inline]
fn is_foreign(own: Option<KeyGroups>, hash: impl Fn() -> KeyHash) -> bool {
    own.is_some_and(|own| !own.contains(hash()))
}

/// Makes the key of a sorted record the current one; the timers of the key before it fire first.
/// True if a key begins.
fn enter<F, K, I, O>(
    (hash, key): (impl Fn() -> KeyHash, &[u8]),
    in_key: &mut bool,
    key_end: &KeyEnd,
    function: &mut F,
    parts: &mut KeyedParts<O>,
    current: &mut CurrentKey<K>,
    out: &mut dyn Output<O>,
) -> anyhow::Result<bool>
where
    F: KeyedFunction<K, I, O>,
    K: Key,
    O: Send,
{
    if *in_key && current.has_bytes(key) {
        return Ok(false);
    }
    if *in_key {
        key_end.fire(function, parts, current, out)?;
    }
    current.enter_bytes(hash(), key, parts);
    *in_key = true;
    Ok(true)
}

impl KeyEnd {
    /// Behind the last record: the last key ends too. Always true: the drain is done.
    fn last<F, K, I, O>(
        &self,
        in_key: bool,
        function: &mut F,
        parts: &mut KeyedParts<O>,
        current: &mut CurrentKey<K>,
        out: &mut dyn Output<O>,
    ) -> anyhow::Result<bool>
    where
        F: KeyedFunction<K, I, O>,
        K: Key,
        O: Send,
    {
        if in_key {
            self.fire(function, parts, current, out)?;
        }
        Ok(true)
    }

    /// Fires what is due of the current key: event-time timers, then processing-time timers.
    fn fire<F, K, I, O>(
        &self,
        function: &mut F,
        parts: &mut KeyedParts<O>,
        current: &mut CurrentKey<K>,
        out: &mut dyn Output<O>,
    ) -> anyhow::Result<()>
    where
        F: KeyedFunction<K, I, O>,
        K: Key,
        O: Send,
    {
        let now = if self.batch { Timestamp::MAX } else { parts.processing_time };
        let mut ending = KeyedContext::new(parts, current, out, None);
        function.key_end(&mut ending)?;
        ending.check()?;
        if parts.timers.is_empty() {
            return Ok(());
        }
        let before = parts.watermark;
        if self.batch {
            parts.watermark = Timestamp::MAX;
            parts.ignores_timers = true;
        }
        if let Some(upto) = if self.batch { Some(Timestamp::MAX) } else { self.upto } {
            fire_of_key(TimerKind::EventTime, upto, function, parts, current, out)?;
        }
        fire_of_key(TimerKind::ProcessingTime, now, function, parts, current, out)?;
        parts.ignores_timers = false;
        parts.watermark = before;
        Ok(())
    }
}

/// Fires timers of the current key up to `upto`, in time order. A timer that a firing timer registers
/// fires too if it is due and later than the one that fires; one that is not later stays for the
/// next watermark, so that a callback that registers itself anew does not go on for ever (M23).
fn fire_of_key<F, K, I, O>(
    kind: TimerKind,
    upto: Timestamp,
    function: &mut F,
    parts: &mut KeyedParts<O>,
    current: &mut CurrentKey<K>,
    out: &mut dyn Output<O>,
) -> anyhow::Result<()>
where
    F: KeyedFunction<K, I, O>,
    K: Key,
    O: Send,
{
    let mut last = None;
    let mut postponed = Vec::new();
    while let Some(timer) = parts.timers.pop_due_of_key(kind, upto, current.hash, &current.bytes) {
        let place = (timer.time, timer.namespace.clone());
        if last.as_ref().is_some_and(|last| place <= *last) {
            postponed.push(timer);
            continue;
        }
        last = Some(place);
        let timestamp = timestamp_of(&timer);
        let mut context = KeyedContext::new(parts, current, out, timestamp);
        function.on_timer(&timer, kind, &mut context)?;
        context.check()?;
    }
    for timer in postponed {
        parts.timers.register(kind, timer.time, timer.hash, &timer.key, &timer.namespace);
    }
    Ok(())
}
