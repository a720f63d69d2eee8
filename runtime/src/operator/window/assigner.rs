//! [`WindowAssigner`]: which windows a record belongs to.
//!
//! Starts are found by the Euclid remainder on a scale wider than time itself, so records below zero
//! and at either end of time lie inside their windows.

use std::sync::Arc;
use std::time::Duration;

use element::Timestamp;

use super::bounds::Window;
use super::trigger::Trigger;
use super::triggers::{EndOfStreamTrigger, EventTimeTrigger, NeverTrigger, ProcessingTimeTrigger};

/// By which time windows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowTime {
    /// Timestamps and watermarks; records can be late.
    Event,
    /// The clock.
    Processing,
    /// None: the window never ends by itself, and nothing is late for it.
    Timeless,
}

/// Why windows cannot be made as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// A size, slide or gap of nothing.
    #[error("a window's {what} must be at least 1 ms")]
    Empty {
        /// Size, slide or gap.
        what: &'static str,
    },
    /// An offset that is not within one step.
    #[error("the offset of {offset} ms must be between -{step} and {step} ms, both excluded")]
    Offset {
        /// The offset in milliseconds.
        offset: i64,
        /// The size, or for sliding windows the slide, in milliseconds.
        step: i64,
    },
    /// A record without a timestamp came to windows in event time.
    #[error("a record without a timestamp came to an event-time window: assign timestamps first")]
    NoTimestamp,
}

/// Assigns records to windows. Shared by the subtasks; called once a record on the task's thread.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not assign records of `{T}` to windows",
    label = "not a `WindowAssigner<{T}>`",
    note = "windows are made as `TumblingEventTime::of(1.mins())`, `SlidingEventTime::of(..)`, `SessionEventTime::with_gap(..)`"
)]
pub trait WindowAssigner<T>: Send + Sync + 'static {
    /// Appends the windows of a record. `at` is its timestamp, or the clock's for processing time.
    ///
    /// # Errors
    ///
    /// What the assigner says; the task then fails.
    fn assign(&self, value: &T, at: Timestamp, windows: &mut Vec<Window>) -> anyhow::Result<()>;

    /// When windows fire, if the program does not say otherwise.
    fn default_trigger(&self) -> Arc<dyn Trigger<T>>;

    /// By which time the windows go.
    fn time(&self) -> WindowTime {
        WindowTime::Event
    }

    /// Whether windows of one key that touch become one.
    fn is_merging(&self) -> bool {
        false
    }

    /// Whether its only window is that of all time, and ends with the input.
    fn is_end_of_stream(&self) -> bool {
        false
    }

    /// The shape of windows that all have one size and begin at regular steps.
    fn aligned(&self) -> Option<Aligned> {
        None
    }

    /// Whether its parameters make sense; asked once, before the first record.
    ///
    /// # Errors
    ///
    /// [`WindowError`]: which does not.
    fn check(&self) -> Result<(), WindowError> {
        Ok(())
    }
}

/// Windows of one size that begin every `slide`, counted from `offset`. In milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// From start to end.
    pub size: i64,
    /// From start to start.
    pub slide: i64,
    /// Where one of them starts.
    pub offset: i64,
}

impl Aligned {
    /// The start of the last window that begins at or before `at`.
    pub(crate) fn floor(self, at: i128) -> i128 {
        at - (at - i128::from(self.offset)).rem_euclid(i128::from(self.slide))
    }

    /// Appends the windows that `at` lies in, the last first.
    pub(crate) fn assign(self, at: Timestamp, windows: &mut Vec<Window>) {
        let (at, size) = (i128::from(at.0), i128::from(self.size));
        let mut start = self.floor(at);
        while start > at - size {
            windows.push(Window::clamped(start, start + size));
            start -= i128::from(self.slide);
        }
    }

    fn check(self) -> Result<(), WindowError> {
        if self.size < 1 {
            return Err(WindowError::Empty { what: "size" });
        }
        if self.slide < 1 {
            return Err(WindowError::Empty { what: "slide" });
        }
        if self.offset.unsigned_abs() >= self.slide.unsigned_abs() {
            return Err(WindowError::Offset { offset: self.offset, step: self.slide });
        }
        Ok(())
    }
}

/// A duration in whole milliseconds, held at the end of time.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

macro_rules! aligned_windows {
    ($($(#[$doc:meta])* $name:ident($size:ident $(, $slide:ident)?), $time:ident, $trigger:ident, $step:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(Aligned);

        impl $name {
            /// Windows of these measures, aligned to the epoch. Whether they make sense is said when
            /// the job starts.
            #[must_use]
            pub fn of($size: Duration $(, $slide: Duration)?) -> Self {
                Self(Aligned { size: millis($size), slide: millis($step), offset: 0 })
            }

            /// Moves all windows later. The offset must be less than the size, or the slide.
            #[must_use]
            pub fn offset(mut self, later: Duration) -> Self {
                self.0.offset = millis(later);
                self
            }

            /// Moves all windows earlier. The offset must be less than the size, or the slide.
            #[must_use]
            pub fn offset_back(mut self, earlier: Duration) -> Self {
                self.0.offset = -millis(earlier);
                self
            }
        }

        impl<T: 'static> WindowAssigner<T> for $name {
            fn assign(&self, _: &T, at: Timestamp, windows: &mut Vec<Window>) -> anyhow::Result<()> {
                self.0.assign(at, windows);
                Ok(())
            }

            fn default_trigger(&self) -> Arc<dyn Trigger<T>> {
                Arc::new($trigger)
            }

            fn time(&self) -> WindowTime {
                WindowTime::$time
            }

            fn aligned(&self) -> Option<Aligned> {
                Some(self.0)
            }

            fn check(&self) -> Result<(), WindowError> {
                self.0.check()
            }
        }
    )*};
}

aligned_windows! {
    /// Windows one behind the other, by timestamp.
    TumblingEventTime(size), Event, EventTimeTrigger, size;
    /// Windows of `size` that begin every `slide`, by timestamp. A slide above the size leaves gaps,
    /// whose records belong to no window.
    SlidingEventTime(size, slide), Event, EventTimeTrigger, slide;
    /// Windows one behind the other, by the clock.
    TumblingProcessingTime(size), Processing, ProcessingTimeTrigger, size;
    /// Windows of `size` that begin every `slide`, by the clock.
    SlidingProcessingTime(size, slide), Processing, ProcessingTimeTrigger, slide;
}

/// How long a session stays open behind a record.
enum Gap<T> {
    Fixed(Duration),
    Dynamic(Box<dyn Fn(&T) -> Duration + Send + Sync>),
}

impl<T> Gap<T> {
    fn window(&self, value: &T, at: Timestamp) -> Result<Window, WindowError> {
        let gap = match self {
            Self::Fixed(gap) => *gap,
            Self::Dynamic(gap) => gap(value),
        };
        match millis(gap) {
            0 => Err(WindowError::Empty { what: "gap" }),
            gap => Ok(Window::new(at, at.saturating_add(gap))),
        }
    }
}

macro_rules! sessions {
    ($($(#[$doc:meta])* $name:ident, $time:ident, $trigger:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name<T>(Gap<T>);

        impl<T> $name<T> {
            /// Sessions that end `gap` after their last record.
            #[must_use]
            pub fn with_gap(gap: Duration) -> Self {
                Self(Gap::Fixed(gap))
            }

            /// Sessions whose gap each record says.
            #[must_use]
            pub fn with_dynamic_gap(gap: impl Fn(&T) -> Duration + Send + Sync + 'static) -> Self {
                Self(Gap::Dynamic(Box::new(gap)))
            }
        }

        impl<T: 'static> WindowAssigner<T> for $name<T> {
            fn assign(&self, value: &T, at: Timestamp, windows: &mut Vec<Window>) -> anyhow::Result<()> {
                windows.push(self.0.window(value, at)?);
                Ok(())
            }

            fn default_trigger(&self) -> Arc<dyn Trigger<T>> {
                Arc::new($trigger)
            }

            fn time(&self) -> WindowTime {
                WindowTime::$time
            }

            fn is_merging(&self) -> bool {
                true
            }

            fn check(&self) -> Result<(), WindowError> {
                match &self.0 {
                    Gap::Fixed(gap) if millis(*gap) < 1 => Err(WindowError::Empty { what: "gap" }),
                    _ => Ok(()),
                }
            }
        }
    )*};
}

sessions! {
    /// Sessions by timestamp: records of a key less than a gap apart, or exactly, are one window.
    SessionEventTime, Event, EventTimeTrigger;
    /// Sessions by the clock.
    SessionProcessingTime, Processing, ProcessingTimeTrigger;
}

macro_rules! timeless {
    ($($(#[$doc:meta])* $name:ident, $trigger:ident, $end_of_stream:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl<T: 'static> WindowAssigner<T> for $name {
            fn assign(&self, _: &T, _: Timestamp, windows: &mut Vec<Window>) -> anyhow::Result<()> {
                windows.push(Window::GLOBAL);
                Ok(())
            }

            fn default_trigger(&self) -> Arc<dyn Trigger<T>> {
                Arc::new($trigger)
            }

            fn time(&self) -> WindowTime {
                WindowTime::Timeless
            }

            fn is_end_of_stream(&self) -> bool {
                $end_of_stream
            }
        }
    )*};
}

timeless! {
    /// One window for all time. It fires by a trigger of the program's own only.
    GlobalWindows, NeverTrigger, false;
    /// One window for all time, which fires at the end of the input (FLIP-331).
    EndOfStreamWindows, EndOfStreamTrigger, true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(size: i64, slide: i64, offset: i64, at: i64) {
        let aligned = Aligned { size, slide, offset };
        assert_eq!(aligned.check(), Ok(()));
        let mut windows = Vec::new();
        aligned.assign(Timestamp(at), &mut windows);
        assert_eq!(windows.len() as i64, (size / slide).max(1), "{aligned:?} at {at}");
        for window in windows {
            let inside = window.start() <= Timestamp(at) && Timestamp(at) <= window.max_timestamp();
            assert!(inside, "{at} in {window}");
            let whole = window.start() > Timestamp::MIN && window.end() < Timestamp::MAX;
            assert!(!whole || (window.start().0 - offset).rem_euclid(slide) == 0, "{window}");
        }
    }

    /// tW1: around zero, below it, and at both ends of time.
    #[test]
    fn a_record_lies_inside_its_windows_wherever_it_is() {
        for at in [0, 1, -1, -9, -10, -11, 9, 10, i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
            for (size, slide) in [(10, 10), (15, 5), (30, 10), (1, 1)] {
                for offset in [0, slide - 1, 1 - slide] {
                    check(size, slide, offset, at);
                }
            }
            check(i64::MAX, i64::MAX, 0, at);
        }
    }

    /// tW2: offsets within one step on either side of zero, and no others.
    #[test]
    fn offsets_may_be_negative_within_the_step_and_others_are_refused() {
        let at = |offset| Aligned { size: 10, slide: 5, offset }.check();
        assert_eq!(at(4), Ok(()));
        assert_eq!(at(-4), Ok(()));
        assert_eq!(at(5), Err(WindowError::Offset { offset: 5, step: 5 }));
        assert_eq!(at(-5), Err(WindowError::Offset { offset: -5, step: 5 }));
        let back =
            TumblingEventTime::of(Duration::from_millis(10)).offset_back(Duration::from_millis(3));
        let mut windows = Vec::new();
        back.assign(&(), Timestamp(-4), &mut windows).unwrap();
        assert_eq!(windows, [Window::new(Timestamp(-13), Timestamp(-3))]);
        let empty = Aligned { size: 0, slide: 1, offset: 0 }.check();
        assert_eq!(empty, Err(WindowError::Empty { what: "size" }));
    }
}
