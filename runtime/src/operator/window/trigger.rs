//! [`Trigger`]: when a window's contents come out, and when they go.
//!
//! A trigger is shared by the subtasks; what it must remember of one window is in its context's
//! state, which lives in the window's namespace and is in every checkpoint.

use element::{Record, Timestamp, decode_exact, encode_to_vec};
use state::{KeyedStateBackend, TimerKind, TimerService, ValueState};

use super::bounds::Window;
use crate::operator::keyed_context::KeyedContext;
use crate::operator::keyed_parts::key_of;

/// What becomes of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerResult {
    /// Nothing.
    Continue,
    /// Its contents come out, and stay.
    Fire,
    /// Its contents come out and go; the window stays.
    FireAndPurge,
    /// Its contents go.
    Purge,
}

impl TriggerResult {
    /// Whether contents come out.
    #[must_use]
    pub const fn fires(self) -> bool {
        matches!(self, Self::Fire | Self::FireAndPurge)
    }

    /// Whether contents go.
    #[must_use]
    pub const fn purges(self) -> bool {
        matches!(self, Self::Purge | Self::FireAndPurge)
    }
}

/// Decides when windows fire. Called on the task's thread, for the key and window at hand.
///
/// Triggers that look at records say so by [`sees_elements`](Self::sees_elements) and get each of
/// them before it is added. Those that only wait for a time are asked by
/// [`on_contents`](Self::on_contents) when a window gets its first record, and for every record behind
/// the window's end.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not trigger windows of `{T}`",
    label = "not a `Trigger<{T}>`"
)]
pub trait Trigger<T>: Send + Sync + 'static {
    /// Whether [`on_element`](Self::on_element) is wanted.
    fn sees_elements(&self) -> bool {
        false
    }

    /// A record is about to be added.
    ///
    /// # Errors
    ///
    /// What the trigger says; the task then fails.
    fn on_element(&self, _: &T, _: &mut TriggerContext<'_>) -> anyhow::Result<TriggerResult> {
        Ok(TriggerResult::Continue)
    }

    /// A window that was empty has got a record, or one behind its end another.
    ///
    /// # Errors
    ///
    /// What the trigger says; the task then fails.
    fn on_contents(&self, _: &mut TriggerContext<'_>) -> anyhow::Result<TriggerResult> {
        Ok(TriggerResult::Continue)
    }

    /// An event-time timer of the window fires; also the one of its clean-up.
    ///
    /// # Errors
    ///
    /// What the trigger says; the task then fails.
    fn on_event_time(
        &self,
        _: Timestamp,
        _: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        Ok(TriggerResult::Continue)
    }

    /// A processing-time timer of the window fires; also the one of its clean-up.
    ///
    /// # Errors
    ///
    /// What the trigger says; the task then fails.
    fn on_processing_time(
        &self,
        _: Timestamp,
        _: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        Ok(TriggerResult::Continue)
    }

    /// Windows have become the one at hand; their states are in the context, and their timers and
    /// states are gone. Registers what the merged window needs, but nothing behind the watermark.
    ///
    /// # Errors
    ///
    /// What the trigger says; the task then fails.
    fn on_merge(&self, _: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Deletes the window's timers and state.
    ///
    /// # Errors
    ///
    /// What the trigger says; the task then fails.
    fn clear(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        context.clear_state()
    }
}

/// What a trigger may reach: its window, state of its own, timers, the time.
pub struct TriggerContext<'a> {
    window: Window,
    namespace: [u8; 16],
    timestamp: Option<Timestamp>,
    watermark: Timestamp,
    processing_time: Timestamp,
    backend: &'a mut KeyedStateBackend,
    timers: &'a mut TimerService,
    next_processing_timer: &'a mut Option<Timestamp>,
    ignores_timers: bool,
    ignored_timers: &'a mut u64,
    state: &'a ValueState<Vec<u8>>,
    merged: Vec<Vec<u8>>,
}

impl<'a> TriggerContext<'a> {
    pub(crate) fn new<K, O>(
        context: &'a mut KeyedContext<'_, K, O>,
        window: Window,
        state: &'a ValueState<Vec<u8>>,
    ) -> Self {
        let parts = &mut *context.parts;
        Self {
            window,
            namespace: window.namespace(),
            timestamp: context.timestamp,
            watermark: parts.watermark,
            processing_time: parts.processing_time,
            backend: &mut parts.backend,
            timers: &mut parts.timers,
            next_processing_timer: &mut parts.next_processing_timer,
            ignores_timers: parts.ignores_timers,
            ignored_timers: &mut parts.ignored_timers,
            state,
            merged: Vec::new(),
        }
    }

    pub(crate) fn with_merged(mut self, merged: Vec<Vec<u8>>) -> Self {
        self.merged = merged;
        self
    }

    /// The window at hand.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// The timestamp of the record or timer at hand.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// The watermark; during a sorted backlog the one from before the phase.
    #[must_use]
    pub fn watermark(&self) -> Timestamp {
        self.watermark
    }

    /// Processing time.
    #[must_use]
    pub fn processing_time(&self) -> Timestamp {
        self.processing_time
    }

    /// Asks to be called when the watermark reaches `time`.
    pub fn register_event(&mut self, time: Timestamp) {
        self.register(TimerKind::EventTime, time);
    }

    /// Asks to be called when processing time reaches `time`.
    pub fn register_processing(&mut self, time: Timestamp) {
        self.register(TimerKind::ProcessingTime, time);
        let next = *self.next_processing_timer;
        *self.next_processing_timer = Some(next.map_or(time, |before| before.min(time)));
    }

    fn register(&mut self, kind: TimerKind, time: Timestamp) {
        if self.ignores_timers {
            *self.ignored_timers += 1;
        } else {
            let (hash, key) = key_of(self.backend);
            self.timers.register(kind, time, hash, key, &self.namespace);
        }
    }

    /// Takes an event-time timer back.
    pub fn delete_event(&mut self, time: Timestamp) {
        self.delete(TimerKind::EventTime, time);
    }

    /// Takes a processing-time timer back.
    pub fn delete_processing(&mut self, time: Timestamp) {
        self.delete(TimerKind::ProcessingTime, time);
    }

    fn delete(&mut self, kind: TimerKind, time: Timestamp) {
        let (hash, key) = key_of(self.backend);
        self.timers.delete(kind, time, hash, key, &self.namespace);
    }

    /// What the trigger remembers of the window. A trigger keeps values of one type.
    ///
    /// # Errors
    ///
    /// What the state store says, and when the value is of another type.
    pub fn state<V: Record>(&mut self) -> anyhow::Result<Option<V>> {
        let bytes = self.state.get_in(self.backend, &self.namespace)?;
        Ok(bytes.map(|bytes| decode_exact(&bytes)).transpose()?)
    }

    /// Remembers a value in the place of what was there.
    ///
    /// # Errors
    ///
    /// What the state store says.
    pub fn set_state<V: Record>(&mut self, value: &V) -> anyhow::Result<()> {
        Ok(self.state.set_in(self.backend, &self.namespace, encode_to_vec(value))?)
    }

    /// Forgets what was remembered.
    ///
    /// # Errors
    ///
    /// What the state store says.
    pub fn clear_state(&mut self) -> anyhow::Result<()> {
        Ok(self.state.clear_in(self.backend, &self.namespace)?)
    }

    /// In [`Trigger::on_merge`]: what was remembered of the windows that were merged, in their order.
    ///
    /// # Errors
    ///
    /// When a value is of another type.
    pub fn merged_states<V: Record>(&self) -> anyhow::Result<Vec<V>> {
        Ok(self.merged.iter().map(|bytes| decode_exact(bytes)).collect::<Result<_, _>>()?)
    }
}
