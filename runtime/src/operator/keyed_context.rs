//! [`KeyedContext`]: what a keyed function may reach while it works on one record or timer.

use element::{Key, Timestamp, decode_key_exact};
use state::{KeyedStateBackend, StateAccess, TimerKind};

use super::hashed_keys::{LongKeys, Words};
use super::keyed_parts::{CurrentKey, KeyedParts, key_of};
use super::process_function::RuntimeContext;
use crate::output::{FirstError, Output};

/// What a keyed function may reach: its key, state, timers, outputs, and the time.
pub struct KeyedContext<'a, K, O> {
    pub(crate) parts: &'a mut KeyedParts<O>,
    pub(crate) current: &'a mut CurrentKey<K>,
    pub(crate) out: &'a mut dyn Output<O>,
    pub(crate) timestamp: Option<Timestamp>,
    failed: &'a mut FirstError,
}

/// A keyed function, and what it is lent for a piece of work.
pub(crate) struct KeyedCalls<'a, F, K, O> {
    pub(crate) function: &'a mut F,
    /// Made once, for all calls of the piece.
    pub(crate) context: KeyedContext<'a, K, O>,
}

impl<'a, F, K: Key, O> KeyedCalls<'a, F, K, O> {
    pub(crate) fn new(
        function: &'a mut F,
        parts: &'a mut KeyedParts<O>,
        current: &'a mut CurrentKey<K>,
        out: &'a mut dyn Output<O>,
        failed: &'a mut FirstError,
    ) -> Self {
        let context = KeyedContext { parts, current, out, timestamp: None, failed };
        Self { function, context }
    }

    /// Makes the next key of a block the current one. False if there is none.
    #[inline(always)]
    pub(crate) fn enter_next(
        &mut self,
        words: &mut Words<'_>,
        others: &mut LongKeys<'_, K>,
    ) -> bool {
        words.enter_next(others, self.context.current, self.context.parts)
    }

    /// Calls the function; what it emits has `timestamp`, unless it says another.
    ///
    /// # Errors
    ///
    /// What the function says, else what an output said meanwhile.
    #[inline]
    pub(crate) fn call(
        &mut self,
        timestamp: Option<Timestamp>,
        call: impl FnOnce(&mut F, &mut KeyedContext<'_, K, O>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Self { function, context } = self;
        context.timestamp = timestamp;
        call(function, context)?;
        Ok(context.failed.check()?)
    }
}

impl<K: Key, O> KeyedContext<'_, K, O> {
    /// The same for a while, to be a part of another context.
    pub(crate) fn reborrow(&mut self) -> KeyedContext<'_, K, O> {
        let Self { parts, current, out, timestamp, failed } = self;
        KeyedContext { parts, current, out: *out, timestamp: *timestamp, failed }
    }

    /// The key of the record or timer at hand.
    ///
    /// # Panics
    ///
    /// If the key's own decoding refuses the bytes that its own encoding made.
    pub fn key(&mut self) -> &K {
        let Self { parts, current, .. } = self;
        current.key.get_or_insert_with(|| {
            decode_key_exact(key_of(&parts.backend).1).expect("a key decodes from its own encoding")
        })
    }

    /// The canonical bytes of the key at hand.
    #[must_use]
    pub fn key_bytes(&self) -> &[u8] {
        key_of(&self.parts.backend).1
    }

    /// The timestamp of the record or timer at hand, if it has one.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// The operator's watermark. During a sorted backlog: the one from before the phase (D11).
    #[must_use]
    pub fn watermark(&self) -> Timestamp {
        self.parts.watermark
    }

    /// Where the function runs: its operator, subtask and parallelism, and the job's options.
    #[must_use]
    pub fn runtime(&self) -> &RuntimeContext {
        &self.parts.runtime
    }

    /// Processing time, read once a batch.
    #[must_use]
    pub fn processing_time(&self) -> Timestamp {
        self.parts.processing_time
    }

    /// Emits a result with the timestamp of the record or timer at hand.
    #[inline]
    pub fn collect(&mut self, value: O) {
        self.collect_at(value, self.timestamp);
    }

    /// Emits a result with a timestamp of its own.
    #[inline(always)]
    pub fn collect_at(&mut self, value: O, timestamp: Option<Timestamp>) {
        // The rare call gets what it needs part by part: a context that is lent whole lies in memory.
        if let Err(value) = self.parts.buffer.push_within(value, timestamp) {
            self.failed.push_at_edge(&mut self.parts.buffer, value, timestamp, self.out);
        }
    }

    /// Emits a result to a side output.
    pub fn side_output<T: Send + 'static>(
        &mut self,
        tag: &super::side_output::SideTag<T>,
        value: T,
    ) {
        let Self { parts, timestamp, failed, .. } = self;
        failed.of(|| parts.side.emit(tag, value, *timestamp));
    }

    /// Timers of the key at hand.
    pub fn timers(&mut self) -> Timers<'_, O> {
        self.timers_in(&[])
    }

    /// Timers of the key at hand in a namespace, such as a window.
    pub fn timers_in<'b>(&'b mut self, namespace: &'b [u8]) -> Timers<'b, O> {
        Timers { parts: self.parts, namespace }
    }
}

impl<K: Key, V> KeyedContext<'_, K, (K, V)> {
    /// Emits a result behind the key at hand, with the timestamp of the record or timer.
    pub fn collect_with_key(&mut self, value: V) {
        let key = self.key().clone();
        self.collect((key, value));
    }
}

impl<K, O> StateAccess for KeyedContext<'_, K, O> {
    fn backend(&mut self) -> &mut KeyedStateBackend {
        &mut self.parts.backend
    }
}

/// Timers of one key: unique per time, fired in time order.
pub struct Timers<'a, O> {
    parts: &'a mut KeyedParts<O>,
    namespace: &'a [u8],
}

impl<O> Timers<'_, O> {
    /// Asks to be called when the watermark reaches `time`. Nothing happens if that timer exists.
    pub fn register_event(&mut self, time: Timestamp) {
        self.register(TimerKind::EventTime, time);
    }

    /// Asks to be called when processing time reaches `time`.
    pub fn register_processing(&mut self, time: Timestamp) {
        self.register(TimerKind::ProcessingTime, time);
        let next = self.parts.next_processing_timer;
        self.parts.next_processing_timer = Some(next.map_or(time, |before| before.min(time)));
    }

    fn register(&mut self, kind: TimerKind, time: Timestamp) {
        if self.parts.ignores_timers {
            self.parts.ignored_timers += 1;
        } else {
            let (hash, key) = key_of(&self.parts.backend);
            self.parts.timers.register(kind, time, hash, key, self.namespace);
        }
    }

    /// Takes back the event-time timer at `before`, if there is one, and asks for one at `time`.
    pub fn replace_event(&mut self, before: Option<Timestamp>, time: Timestamp) {
        if let Some(before) = before.filter(|before| *before != time) {
            self.delete_event(before);
        }
        self.register_event(time);
    }

    /// Takes back an event-time timer; false if there is none.
    pub fn delete_event(&mut self, time: Timestamp) -> bool {
        self.delete(TimerKind::EventTime, time)
    }

    /// Takes back a processing-time timer; false if there is none.
    pub fn delete_processing(&mut self, time: Timestamp) -> bool {
        self.delete(TimerKind::ProcessingTime, time)
    }

    fn delete(&mut self, kind: TimerKind, time: Timestamp) -> bool {
        let (hash, key) = key_of(&self.parts.backend);
        self.parts.timers.delete(kind, time, hash, key, self.namespace)
    }
}
