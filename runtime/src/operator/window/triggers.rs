//! The triggers that come with the engine.

use std::time::Duration;

use element::{Record, Timestamp};

use super::assigner::millis;
use super::bounds::clamp;
use super::trigger::{Trigger, TriggerContext, TriggerResult};

/// Fires when the watermark reaches the window's last instant, and for each later record until the
/// window is cleaned up.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventTimeTrigger;

/// Fires at once behind the window's end, else asks to be called there.
fn fire_or_wait(context: &mut TriggerContext<'_>) -> TriggerResult {
    let end = context.window().max_timestamp();
    if end <= context.watermark() {
        return TriggerResult::Fire;
    }
    context.register_event(end);
    TriggerResult::Continue
}

/// Asks to be called at a merged window's end, unless that has passed: then the record fires it.
fn wait_if_open(context: &mut TriggerContext<'_>) {
    let end = context.window().max_timestamp();
    if end > context.watermark() {
        context.register_event(end);
    }
}

fn fires_at_end(at: Timestamp, context: &TriggerContext<'_>) -> TriggerResult {
    if at == context.window().max_timestamp() {
        TriggerResult::Fire
    } else {
        TriggerResult::Continue
    }
}

impl<T> Trigger<T> for EventTimeTrigger {
    fn on_contents(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<TriggerResult> {
        Ok(fire_or_wait(context))
    }

    fn on_event_time(
        &self,
        at: Timestamp,
        context: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        Ok(fires_at_end(at, context))
    }

    fn on_merge(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        wait_if_open(context);
        Ok(())
    }

    fn clear(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        context.delete_event(context.window().max_timestamp());
        Ok(())
    }
}

/// Fires when the clock reaches the window's last instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessingTimeTrigger;

impl<T> Trigger<T> for ProcessingTimeTrigger {
    fn on_contents(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<TriggerResult> {
        context.register_processing(context.window().max_timestamp());
        Ok(TriggerResult::Continue)
    }

    fn on_processing_time(
        &self,
        at: Timestamp,
        context: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        Ok(fires_at_end(at, context))
    }

    fn on_merge(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        context.register_processing(context.window().max_timestamp());
        Ok(())
    }

    fn clear(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        context.delete_processing(context.window().max_timestamp());
        Ok(())
    }
}

/// Fires at the end of all input, and then lets the contents go.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndOfStreamTrigger;

impl<T> Trigger<T> for EndOfStreamTrigger {
    fn on_contents(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<TriggerResult> {
        context.register_event(Timestamp::MAX);
        Ok(TriggerResult::Continue)
    }

    fn on_event_time(
        &self,
        at: Timestamp,
        _: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        let ended = at == Timestamp::MAX;
        Ok(if ended { TriggerResult::FireAndPurge } else { TriggerResult::Continue })
    }

    fn on_merge(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        context.register_event(Timestamp::MAX);
        Ok(())
    }

    fn clear(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        context.delete_event(Timestamp::MAX);
        Ok(())
    }
}

/// Never fires.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverTrigger;

impl<T> Trigger<T> for NeverTrigger {}

/// Fires with every `n`-th record of a window.
#[derive(Clone, Copy, Debug)]
pub struct CountTrigger {
    records: u64,
}

impl CountTrigger {
    /// Fires with every `records`-th record; 0 counts as 1.
    #[must_use]
    pub fn of(records: u64) -> Self {
        Self { records: records.max(1) }
    }
}

impl<T> Trigger<T> for CountTrigger {
    fn sees_elements(&self) -> bool {
        true
    }

    fn on_element(&self, _: &T, context: &mut TriggerContext<'_>) -> anyhow::Result<TriggerResult> {
        let count = context.state::<u64>()?.unwrap_or(0) + 1;
        if count >= self.records {
            context.clear_state()?;
            return Ok(TriggerResult::Fire);
        }
        context.set_state(&count)?;
        Ok(TriggerResult::Continue)
    }

    fn on_merge(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        let count: u64 = context.merged_states::<u64>()?.into_iter().sum();
        if count > 0 { context.set_state(&count) } else { Ok(()) }
    }
}

/// The next whole multiple of `interval` behind `at`.
fn next_multiple(at: Timestamp, interval: i64) -> Timestamp {
    let (at, interval) = (i128::from(at.0), i128::from(interval));
    clamp(at - at.rem_euclid(interval) + interval)
}

/// Fires at every whole multiple of an interval of event time while the window is open, and at its
/// end. One watermark that passes several multiples fires once.
#[derive(Clone, Copy, Debug)]
pub struct ContinuousEventTimeTrigger {
    interval: i64,
}

impl ContinuousEventTimeTrigger {
    /// Fires every `interval`; less than 1 ms counts as that.
    #[must_use]
    pub fn of(interval: Duration) -> Self {
        Self { interval: millis(interval).max(1) }
    }

    fn wait(&self, from: Timestamp, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        let next = next_multiple(from.max(context.watermark()), self.interval);
        if next < context.window().max_timestamp() {
            context.register_event(next);
            context.set_state(&next)
        } else {
            context.clear_state()
        }
    }
}

impl<T> Trigger<T> for ContinuousEventTimeTrigger {
    fn on_contents(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<TriggerResult> {
        let result = fire_or_wait(context);
        if result == TriggerResult::Continue && context.state::<Timestamp>()?.is_none() {
            self.wait(context.timestamp().unwrap_or(Timestamp::MIN), context)?;
        }
        Ok(result)
    }

    fn on_event_time(
        &self,
        at: Timestamp,
        context: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        if context.state::<Timestamp>()? == Some(at) {
            self.wait(at, context)?;
            return Ok(TriggerResult::Fire);
        }
        Ok(fires_at_end(at, context))
    }

    fn on_merge(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        let next = context.merged_states::<Timestamp>()?.into_iter().min();
        wait_if_open(context);
        match next.filter(|next| *next < context.window().max_timestamp()) {
            Some(next) => {
                context.register_event(next);
                context.set_state(&next)
            }
            None => self.wait(context.timestamp().unwrap_or(Timestamp::MIN), context),
        }
    }

    fn clear(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        context.delete_event(context.window().max_timestamp());
        if let Some(next) = context.state::<Timestamp>()? {
            context.delete_event(next);
        }
        context.clear_state()
    }
}

/// Fires at every whole multiple of an interval of processing time while the window has contents.
#[derive(Clone, Copy, Debug)]
pub struct ContinuousProcessingTimeTrigger {
    interval: i64,
}

impl ContinuousProcessingTimeTrigger {
    /// Fires every `interval`; less than 1 ms counts as that.
    #[must_use]
    pub fn of(interval: Duration) -> Self {
        Self { interval: millis(interval).max(1) }
    }

    fn wait(&self, from: Timestamp, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        let next = next_multiple(from.max(context.processing_time()), self.interval);
        context.register_processing(next);
        context.set_state(&next)
    }
}

impl<T> Trigger<T> for ContinuousProcessingTimeTrigger {
    fn on_contents(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<TriggerResult> {
        if context.state::<Timestamp>()?.is_none() {
            self.wait(Timestamp::MIN, context)?;
        }
        Ok(TriggerResult::Continue)
    }

    fn on_processing_time(
        &self,
        at: Timestamp,
        context: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        if context.state::<Timestamp>()? != Some(at) {
            return Ok(fires_at_end(at, context));
        }
        self.wait(at, context)?;
        Ok(TriggerResult::Fire)
    }

    fn on_merge(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        self.wait(Timestamp::MIN, context)
    }

    fn clear(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        if let Some(next) = context.state::<Timestamp>()? {
            context.delete_processing(next);
        }
        context.clear_state()
    }
}

/// Fires with each record that is further than a threshold from the one that last fired.
pub struct DeltaTrigger<F> {
    threshold: f64,
    delta: F,
}

impl<F> DeltaTrigger<F> {
    /// Fires where `delta` of the earlier and the later record is above `threshold`.
    pub fn of(threshold: f64, delta: F) -> Self {
        Self { threshold, delta }
    }
}

impl<T, F> Trigger<T> for DeltaTrigger<F>
where
    T: Record,
    F: Fn(&T, &T) -> f64 + Send + Sync + 'static,
{
    fn sees_elements(&self) -> bool {
        true
    }

    fn on_element(
        &self,
        value: &T,
        context: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        match context.state::<T>()? {
            None => context.set_state(value)?,
            Some(last) if (self.delta)(&last, value) > self.threshold => {
                context.set_state(value)?;
                return Ok(TriggerResult::Fire);
            }
            Some(_) => {}
        }
        Ok(TriggerResult::Continue)
    }

    fn on_merge(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        match context.merged_states::<T>()?.pop() {
            Some(last) => context.set_state(&last),
            None => Ok(()),
        }
    }
}

/// Lets a window's contents go whenever another trigger fires.
#[derive(Clone, Copy, Debug)]
pub struct PurgingTrigger<R> {
    inner: R,
}

impl<R> PurgingTrigger<R> {
    /// Fires as `inner` does.
    pub fn of(inner: R) -> Self {
        Self { inner }
    }

    fn purging<T>(
        &self,
        result: TriggerResult,
        context: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult>
    where
        R: Trigger<T>,
    {
        if result != TriggerResult::Fire {
            return Ok(result);
        }
        // The next record finds an empty window and registers anew.
        self.inner.clear(context)?;
        Ok(TriggerResult::FireAndPurge)
    }
}

impl<T, R: Trigger<T>> Trigger<T> for PurgingTrigger<R> {
    fn sees_elements(&self) -> bool {
        self.inner.sees_elements()
    }

    fn on_element(
        &self,
        value: &T,
        context: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        let keeps = self.inner.on_element(value, context)?;
        // A trigger that sees records has set its state for the next firing already.
        Ok(if keeps == TriggerResult::Fire { TriggerResult::FireAndPurge } else { keeps })
    }

    fn on_contents(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<TriggerResult> {
        let result = self.inner.on_contents(context)?;
        self.purging(result, context)
    }

    fn on_event_time(
        &self,
        at: Timestamp,
        context: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        let result = self.inner.on_event_time(at, context)?;
        self.purging(result, context)
    }

    fn on_processing_time(
        &self,
        at: Timestamp,
        context: &mut TriggerContext<'_>,
    ) -> anyhow::Result<TriggerResult> {
        let result = self.inner.on_processing_time(at, context)?;
        self.purging(result, context)
    }

    fn on_merge(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        self.inner.on_merge(context)
    }

    fn clear(&self, context: &mut TriggerContext<'_>) -> anyhow::Result<()> {
        self.inner.clear(context)
    }
}
