//! Timestamps and watermarks: from records to event time, and what a source holds back in backlog.
//!
//! Stands right behind a source, or anywhere in a stream. In mixed mode it withholds watermarks while
//! its input is in backlog, and sends the greatest of the phase with the attribute that ends it
//! (decision D11). A source whose watermark lags behind the clock is in backlog too, if so configured
//! (FLIP-328): the two flags are ORed, and lag counts only until it has once been made up (K16).

mod aligning;
mod idleness;
mod strategy;

use std::sync::Arc;
use std::time::Duration;

use element::{Barrier, Batch, ConfigError, Control, RecordAttributes, Timestamp, option_table};
use graph::ResolvedMode;

use super::Operator;
use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::events::TaskEvent;
use crate::output::{Output, Signal};
use crate::user::UserCode;
use aligning::Aligning;
use idleness::Idleness;

pub use strategy::{GeneratorFactory, TimestampAssigner, WatermarkGenerator, WatermarkStrategy};

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
    idleness: Idleness,
    aligning: Option<Aligning>,
    user: UserCode,
    context: Arc<OperatorContext>,
}

/// A strategy that cannot be carried out where it stands.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlignmentError {
    /// Nothing there reads, so nothing can be held back.
    #[error("watermark alignment is for sources: give the strategy to the source itself")]
    NoSource,
}

/// Backlog by lag of the watermark (FLIP-328).
struct Lag {
    threshold: Option<Duration>,
    /// Whether the lag has once been within the threshold; it then never counts again (K16).
    caught_up: bool,
    is_backlog: bool,
}

impl<T: Send + 'static> Timestamps<T> {
    /// One subtask's part of `strategy`, anywhere in a stream but behind its source.
    ///
    /// # Errors
    ///
    /// [`TaskError::Config`] if an option has no valid value; [`TaskError::User`] if the strategy
    /// aligns, which sources alone can.
    pub fn new(
        strategy: WatermarkStrategy<T>,
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        match &strategy.alignment {
            None => Self::behind_source(strategy, context),
            Some(_) => Err(TaskError::user(&context.name)(AlignmentError::NoSource.into())),
        }
    }

    /// One subtask's part of a source's `strategy`.
    ///
    /// # Errors
    ///
    /// [`TaskError::Config`] if an option has no valid value.
    pub fn behind_source(
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
        let idle_after = strategy.idle_after.filter(|_| !batch);
        let alignment = strategy.alignment.clone().filter(|_| !batch);
        let aligning = alignment.map(|alignment| Aligning::new(alignment, context));
        Ok(Self {
            generator,
            strategy,
            internal: restored_watermark(context),
            sent: None,
            withholds: context.task.mode == ResolvedMode::Mixed,
            source_backlog: None,
            lag: Lag {
                threshold: threshold.filter(|_| !batch),
                caught_up: false,
                is_backlog: false,
            },
            sent_backlog: None,
            idleness: Idleness::new(idle_after, context),
            aligning,
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
        self.reach(made);
        self.check_lag(out)?;
        if self.withholds && self.sent_backlog == Some(true) {
            return Ok(());
        }
        self.send_watermark(out)
    }

    /// Moves the internal watermark on, sent or withheld.
    fn reach(&mut self, watermark: Option<Timestamp>) {
        self.internal = self.internal.max(watermark);
        if let (Some(_), Some(reached)) = (&self.aligning, self.internal) {
            self.context.task.alignment.reached(reached);
        }
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

    /// Whether the subtask is idle may have changed; the deadlines of both are asked for again.
    fn at_time(&mut self, now: Timestamp, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        if self.idleness.at_time(now, &self.context) {
            out.signal(Signal::Stream(Control::Idle))?;
        }
        let (reached, is_idle) = (self.internal, self.idleness.is_idle());
        if let Some(aligning) = &mut self.aligning {
            aligning.at_time(now, reached, is_idle, &self.context);
        }
        Ok(())
    }
}

/// What a checkpoint in a durable backlog has stored of the watermarks that were withheld.
fn restored_watermark(context: &OperatorContext) -> Option<Timestamp> {
    let restored = context.restored.lock();
    restored.as_ref()?.watermark.filter(|mark| *mark != Timestamp::MIN)
}

impl<T: Send + 'static> Operator<T, T> for Timestamps<T> {
    fn batch(&mut self, batch: Batch<T>, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        if self.idleness.has_records() {
            out.signal(Signal::Stream(Control::Active))?;
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
                    self.reach(attributes.watermark);
                }
                self.send_flag(out)
            }
            // With a generator of its own, the watermarks and idleness of what is above are not
            // those of this stream, but for the end of all input.
            Signal::Stream(Control::Watermark(mark)) if mark == Timestamp::MAX => {
                out.signal(signal)
            }
            Signal::Stream(Control::Watermark(mark)) if self.generator.is_none() => {
                self.reach(Some(mark));
                if self.withholds && self.sent_backlog == Some(true) {
                    return Ok(());
                }
                self.send_watermark(out)
            }
            Signal::Stream(Control::Watermark(_)) => Ok(()),
            Signal::Stream(Control::Idle | Control::Active) if self.generator.is_some() => Ok(()),
            Signal::Stream(Control::EndOfInput) => {
                if let Some(aligning) = &mut self.aligning {
                    aligning.end(&self.context);
                }
                out.signal(signal)
            }
            Signal::ProcessingTime(now) => {
                self.at_time(now, out)?;
                out.signal(signal)
            }
            Signal::Flush => {
                self.idleness.has_nothing(&self.context);
                out.signal(signal)
            }
            other => out.signal(other),
        }
    }

    fn snapshot(
        &mut self,
        _: Barrier,
        _: &mut dyn Output<T>,
    ) -> Result<Option<OperatorSnapshot>, TaskError> {
        // What is withheld in backlog nobody says again.
        let withheld = self.withholds && self.sent_backlog == Some(true);
        Ok(withheld.then(|| OperatorSnapshot {
            uid: self.context.uid.clone(),
            // Without one yet, the least: restored subtasks begin with the least of all.
            watermark: Some(self.internal.unwrap_or(Timestamp::MIN)),
            ..OperatorSnapshot::default()
        }))
    }
}
