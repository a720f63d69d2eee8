//! Timestamps and watermarks: from records to event time, and what a source holds back in backlog.
//!
//! Stands right behind a source, or anywhere in a stream. In mixed mode it withholds watermarks while
//! its input is in backlog, and sends the greatest of the phase with the attribute that ends it
//! (decision D11). A source whose watermark lags behind the clock is in backlog too, if so configured
//! (FLIP-328): the two flags are ORed, and lag counts only until it has once been made up (K16).

use std::sync::Arc;
use std::time::Duration;

use element::{Batch, ConfigError, Control, RecordAttributes, Timestamp, option_table};
use graph::ResolvedMode;

use super::Operator;
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::events::TaskEvent;
use crate::output::{Output, Signal};
use crate::user::UserCode;

/// Makes watermarks from records. One a subtask; implemented by users and by the built-in strategies.
pub trait WatermarkGenerator<T>: Send {
    /// A record has come.
    fn on_record(&mut self, value: &T, timestamp: Timestamp);

    /// The watermark as it stands, asked for after each batch; `None` before there is one.
    fn current(&mut self) -> Option<Timestamp>;
}

/// Finds a record's timestamp.
pub type TimestampAssigner<T> = Arc<dyn Fn(&T) -> Timestamp + Send + Sync>;

/// Makes the watermark generator of one subtask.
pub type GeneratorFactory<T> = Arc<dyn Fn() -> Box<dyn WatermarkGenerator<T>> + Send + Sync>;

/// How event time is found in a stream. Shared by the subtasks.
pub struct WatermarkStrategy<T> {
    /// Finds timestamps; `None` keeps those that records have.
    pub assigner: Option<TimestampAssigner<T>>,
    /// Makes the generator of one subtask; `None`: no watermarks.
    pub generator: Option<GeneratorFactory<T>>,
    /// After so long without records a subtask holds nobody up.
    pub idle_after: Option<Duration>,
}

impl<T> Clone for WatermarkStrategy<T> {
    fn clone(&self) -> Self {
        Self {
            assigner: self.assigner.clone(),
            generator: self.generator.clone(),
            idle_after: self.idle_after,
        }
    }
}

impl<T: 'static> WatermarkStrategy<T> {
    /// No watermarks; timestamps stay as the source gave them.
    #[must_use]
    pub fn none() -> Self {
        Self { assigner: None, generator: None, idle_after: None }
    }

    /// Records come in order of time: the watermark is the greatest timestamp less 1 ms.
    #[must_use]
    pub fn monotonous() -> Self {
        Self::bounded_out_of_orderness(Duration::ZERO)
    }

    /// Records come at most `bound` late: the watermark is the greatest timestamp less `bound` and
    /// 1 ms.
    #[must_use]
    pub fn bounded_out_of_orderness(bound: Duration) -> Self {
        Self::generator(move || Box::new(BoundedOutOfOrderness { bound, greatest: None }))
    }

    /// A generator of the user's own, one a subtask.
    pub fn generator(
        make: impl Fn() -> Box<dyn WatermarkGenerator<T>> + Send + Sync + 'static,
    ) -> Self {
        Self { assigner: None, generator: Some(Arc::new(make)), idle_after: None }
    }

    /// Finds timestamps by a function.
    #[must_use]
    pub fn with_timestamps(
        mut self,
        assigner: impl Fn(&T) -> Timestamp + Send + Sync + 'static,
    ) -> Self {
        self.assigner = Some(Arc::new(assigner));
        self
    }

    /// Counts a subtask as idle after so long without records.
    #[must_use]
    pub fn with_idleness(mut self, after: Duration) -> Self {
        self.idle_after = Some(after);
        self
    }
}

struct BoundedOutOfOrderness {
    bound: Duration,
    greatest: Option<Timestamp>,
}

impl<T> WatermarkGenerator<T> for BoundedOutOfOrderness {
    fn on_record(&mut self, _: &T, timestamp: Timestamp) {
        self.greatest = self.greatest.max(Some(timestamp));
    }

    fn current(&mut self) -> Option<Timestamp> {
        self.greatest.map(|greatest| (greatest - self.bound).saturating_sub(1))
    }
}

/// Assigns timestamps and emits watermarks.
pub struct Timestamps<T> {
    strategy: WatermarkStrategy<T>,
    generator: Option<Box<dyn WatermarkGenerator<T>>>,
    /// The greatest watermark made, sent or withheld.
    internal: Option<Timestamp>,
    /// The greatest watermark sent.
    sent: Option<Timestamp>,
    withholds: bool,
    source_backlog: Option<bool>,
    lag: Lag,
    sent_backlog: Option<bool>,
    idle: bool,
    last_record: Timestamp,
    user: UserCode,
    context: Arc<OperatorContext>,
}

/// Backlog by lag of the watermark (FLIP-328).
struct Lag {
    threshold: Option<Duration>,
    /// Whether the lag has once been within the threshold; it then never counts again (K16).
    caught_up: bool,
    is_backlog: bool,
}

impl<T: Send + 'static> Timestamps<T> {
    /// One subtask's part of `strategy`.
    ///
    /// # Errors
    ///
    /// [`TaskError::Config`] if an option has no valid value.
    pub fn new(
        strategy: WatermarkStrategy<T>,
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        let threshold = context.task.config.get(&option_table::BACKLOG_WATERMARK_LAG)?;
        if threshold.is_some_and(|threshold| threshold.is_zero()) {
            return Err(ConfigError::Refused {
                key: option_table::BACKLOG_WATERMARK_LAG.key.to_owned(),
                reason: "0 is no threshold: leave the option out for none".to_owned(),
            }
            .into());
        }
        let batch = context.task.mode == ResolvedMode::Batch;
        // In batch mode the user's generator is not asked: nothing is late there (T5).
        let generator = strategy.generator.as_ref().filter(|_| !batch).map(|make| make());
        Ok(Self {
            generator,
            strategy,
            internal: None,
            sent: None,
            withholds: context.task.mode == ResolvedMode::Mixed,
            source_backlog: None,
            lag: Lag {
                threshold: threshold.filter(|_| !batch),
                caught_up: false,
                is_backlog: false,
            },
            sent_backlog: None,
            idle: false,
            last_record: context.task.clock.now(),
            user: UserCode::new(context),
            context: Arc::clone(context),
        })
    }

    fn stamp(&mut self, batch: Batch<T>) -> Result<Batch<T>, TaskError> {
        if self.strategy.assigner.is_none() && self.generator.is_none() {
            return Ok(batch);
        }
        let (values, mut stamps) = batch.into_parts();
        let Self { strategy, generator, user, .. } = self;
        user.run_batch(|position| {
            if let Some(assigner) = &strategy.assigner {
                let assigned = values.iter().map(|value| {
                    position.next();
                    assigner(value)
                });
                stamps = Some(assigned.collect());
            }
            if let (Some(generator), Some(stamps)) = (generator, &stamps) {
                for (value, timestamp) in values.iter().zip(stamps) {
                    generator.on_record(value, *timestamp);
                }
            }
            Ok(Batch::new(values, stamps))
        })
    }

    /// The watermark after a batch, sent unless it is withheld.
    fn advance(&mut self, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        let made = self.generator.as_mut().and_then(|generator| generator.current());
        if made <= self.internal {
            return Ok(());
        }
        self.internal = made;
        self.check_lag(out)?;
        if self.withholds && self.sent_backlog == Some(true) {
            return Ok(());
        }
        self.send_watermark(out)
    }

    fn send_watermark(&mut self, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        match self.internal.filter(|mark| Some(*mark) > self.sent) {
            Some(watermark) => {
                self.sent = Some(watermark);
                out.signal(Signal::Stream(Control::Watermark(watermark)))
            }
            None => Ok(()),
        }
    }

    /// Backlog by lag begins while the lag is above the threshold, and ends for good below it.
    fn check_lag(&mut self, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        let (Some(threshold), Some(watermark)) = (self.lag.threshold, self.internal) else {
            return Ok(());
        };
        if self.lag.caught_up {
            return Ok(());
        }
        let behind = watermark + threshold < self.context.task.clock.now();
        self.lag.caught_up = !behind;
        if behind != self.lag.is_backlog {
            self.lag.is_backlog = behind;
            self.context.tell(TaskEvent::LagBacklog(behind));
            self.send_flag(out)?;
        }
        Ok(())
    }

    /// The flag of source and lag together, sent if it is news.
    fn send_flag(&mut self, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        let is_backlog = self.source_backlog.unwrap_or(false) || self.lag.is_backlog;
        if self.sent_backlog == Some(is_backlog) {
            return Ok(());
        }
        self.sent_backlog = Some(is_backlog);
        let attributes = if is_backlog {
            RecordAttributes::BACKLOG
        } else {
            RecordAttributes::live(self.internal)
        };
        out.signal(Signal::Stream(Control::Attributes(attributes)))?;
        if !is_backlog {
            self.send_watermark(out)?;
        }
        Ok(())
    }

    fn wait_for_idleness(&self) {
        if let Some(after) = self.strategy.idle_after.filter(|_| self.generator.is_some()) {
            self.context.task.deadline.at(self.last_record + after);
        }
    }
}

impl<T: Send + 'static> Operator<T, T> for Timestamps<T> {
    fn batch(&mut self, batch: Batch<T>, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        if self.strategy.idle_after.is_some() {
            self.last_record = self.context.task.clock.now();
            if self.idle {
                self.idle = false;
                out.signal(Signal::Stream(Control::Active))?;
            }
            self.wait_for_idleness();
        }
        let batch = self.stamp(batch)?;
        out.batch(batch)?;
        self.advance(out)
    }

    fn signal(&mut self, signal: Signal, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        match signal {
            Signal::Stream(Control::Attributes(attributes)) => {
                self.source_backlog = Some(attributes.is_backlog);
                // As with watermarks: a generator of its own makes the time of this stream.
                if self.generator.is_none() && attributes.watermark > self.internal {
                    self.internal = attributes.watermark;
                }
                self.send_flag(out)
            }
            // With a generator of its own, the watermarks and idleness of what is above are not
            // those of this stream, but for the end of all input.
            Signal::Stream(Control::Watermark(mark)) if mark == Timestamp::MAX => {
                out.signal(signal)
            }
            Signal::Stream(Control::Watermark(mark)) if self.generator.is_none() => {
                self.internal = self.internal.max(Some(mark));
                if self.withholds && self.sent_backlog == Some(true) {
                    return Ok(());
                }
                self.send_watermark(out)
            }
            Signal::Stream(Control::Watermark(_)) => Ok(()),
            Signal::Stream(Control::Idle | Control::Active) if self.generator.is_some() => Ok(()),
            Signal::ProcessingTime(now) => {
                if let Some(after) = self.strategy.idle_after.filter(|_| !self.idle) {
                    if self.last_record + after <= now {
                        self.idle = true;
                        out.signal(Signal::Stream(Control::Idle))?;
                    } else {
                        self.wait_for_idleness();
                    }
                }
                out.signal(signal)
            }
            other => out.signal(other),
        }
    }
}
