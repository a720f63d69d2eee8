//! [`Firing`]: the timers of all keys that are due, piece by piece.
//!
//! Timers fire in order of time, hash, key and namespace. A timer that a callback registers fires in
//! the same round if it is due and stands behind the one that fires. One that does not waits for the
//! next round, so that a callback that registers its own timer again does not go on for ever (M23).
//! At the end of time there is no next watermark, so a few more rounds follow at once; what is left
//! after them is dropped, counted and warned of.

use element::{Key, Timestamp};
use state::{Timer, TimerKind};

use super::function::KeyedFunction;
use super::keyed_context::KeyedCalls;
use super::keyed_parts::{KeyedParts, timestamp_of};
use crate::user::Position;

/// Rounds at the end of time.
const LAST_ROUNDS: u32 = 64;

/// Due timers on their way into the function.
#[derive(Debug)]
pub(crate) struct Firing {
    kind: TimerKind,
    upto: Timestamp,
    /// Whether the operator's watermark is `upto` while they fire.
    moves_watermark: bool,
    /// The timer that has fired last in this round.
    last: Option<Timer>,
    postponed: Vec<Timer>,
    rounds: u32,
}

impl Firing {
    fn new(kind: TimerKind, upto: Timestamp, moves_watermark: bool) -> Self {
        Self { kind, upto, moves_watermark, last: None, postponed: Vec::new(), rounds: 1 }
    }

    /// Event-time timers up to the watermark of a phase that is not over: inside of the operator it
    /// is still the one from before the phase (decision D11).
    pub(crate) fn event(upto: Timestamp) -> Self {
        Self::new(TimerKind::EventTime, upto, false)
    }

    /// Event-time timers up to a watermark that has come.
    pub(crate) fn event_with_watermark(upto: Timestamp) -> Self {
        Self::new(TimerKind::EventTime, upto, true)
    }

    /// Processing-time timers up to a time.
    pub(crate) fn processing(upto: Timestamp) -> Self {
        Self::new(TimerKind::ProcessingTime, upto, false)
    }

    /// Fires up to `most` timers. True when none is left.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub(crate) fn piece<F, K, I, O>(
        &mut self,
        most: usize,
        position: &mut Position,
        calls: &mut KeyedCalls<'_, F, K, O>,
        operator: &str,
    ) -> anyhow::Result<bool>
    where
        F: KeyedFunction<K, I, O>,
        K: Key,
        O: Send,
    {
        if self.moves_watermark {
            calls.context.parts.set_watermark(self.upto);
        }
        for _ in 0..most {
            let Some(timer) = calls.context.parts.timers.pop_due(self.kind, self.upto) else {
                if self.end_round(calls.context.parts, operator) {
                    return Ok(true);
                }
                continue;
            };
            if self.last.as_ref().is_some_and(|last| place(&timer) <= place(last)) {
                self.postponed.push(timer);
                continue;
            }
            position.next();
            calls.context.current.enter(&timer, calls.context.parts);
            calls.call(timestamp_of(&timer), |function, context| {
                function.on_timer(&timer, self.kind, context)
            })?;
            self.last = Some(timer);
        }
        Ok(false)
    }

    /// Puts back what was postponed. True if this was the last round.
    fn end_round<O>(&mut self, parts: &mut KeyedParts<O>, operator: &str) -> bool {
        let postponed = std::mem::take(&mut self.postponed);
        self.last = None;
        let at_end = self.kind == TimerKind::EventTime && self.upto == Timestamp::MAX;
        if at_end && self.rounds >= LAST_ROUNDS && !postponed.is_empty() {
            parts.ignored_timers += postponed.len() as u64;
            tracing::warn!(
                operator,
                timers = postponed.len(),
                "timers that were registered anew at the end of time are dropped"
            );
            return true;
        }
        self.rounds += 1;
        let none = postponed.is_empty();
        for timer in postponed {
            let Timer { kind, time, hash, key, namespace } = timer;
            parts.timers.register(kind, time, hash, &key, &namespace);
        }
        none || !at_end
    }
}

/// The order in which timers fire.
fn place(timer: &Timer) -> (Timestamp, u64, &[u8], &[u8]) {
    (timer.time, timer.hash.0, &timer.key, &timer.namespace)
}
