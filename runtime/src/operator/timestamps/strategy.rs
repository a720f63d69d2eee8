//! [`WatermarkStrategy`]: how event time is found in a stream.
//!
//! Made by users, shared by the subtasks; [`super::Timestamps`] carries it out. Left out on purpose:
//! when watermarks are sent, which backlog and mode decide.

use std::sync::Arc;
use std::time::Duration;

use element::Timestamp;

use crate::source::alignment::WatermarkAlignment;

/// Makes watermarks from records. One a subtask; implemented by users and by the built-in strategies.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not make watermarks from records of `{T}`",
    note = "use a `WatermarkStrategy` that is there, or implement `WatermarkGenerator<T>`"
)]
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
    /// Of a source: how far its watermark may be ahead of those of its group.
    pub alignment: Option<WatermarkAlignment>,
}

impl<T> Clone for WatermarkStrategy<T> {
    fn clone(&self) -> Self {
        Self {
            assigner: self.assigner.clone(),
            generator: self.generator.clone(),
            idle_after: self.idle_after,
            alignment: self.alignment.clone(),
        }
    }
}

impl<T: 'static> WatermarkStrategy<T> {
    /// No watermarks; timestamps stay as the source gave them.
    #[must_use]
    pub fn none() -> Self {
        Self { assigner: None, generator: None, idle_after: None, alignment: None }
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
        Self { generator: Some(Arc::new(make)), ..Self::none() }
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

    /// Counts a subtask as idle when it has had nothing to read for so long. One that is held back, by
    /// its consumers or by alignment, has something to read.
    #[must_use]
    pub fn with_idleness(mut self, after: Duration) -> Self {
        self.idle_after = Some(after);
        self
    }

    /// Holds the source's readers back while their watermark is more than `max_drift` ahead of the
    /// least of the group (FLIP-182). All sources of a job with one `group` name are in one group; its
    /// subtasks report their watermarks every `update_interval`, which bounds how far they overshoot.
    /// Who is idle, has no watermark yet or has ended holds nobody back.
    ///
    /// For sources only: elsewhere in a stream the job is refused.
    #[must_use]
    pub fn with_watermark_alignment(
        mut self,
        group: impl Into<String>,
        max_drift: Duration,
        update_interval: Duration,
    ) -> Self {
        let group = group.into();
        self.alignment = Some(WatermarkAlignment { group, max_drift, update_interval });
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
