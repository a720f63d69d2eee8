//! A testing kit: a user's keyed function in a test's hands, with clock and watermark moved by hand.
//!
//! ```
//! use slackwater::prelude::*;
//! use slackwater::testing::{KeyedHarness, at};
//!
//! /// Tells a user's name a while after the last click.
//! struct Idle { last: ValueState<Timestamp> }
//!
//! impl KeyedProcessFunction<u64, u64, String> for Idle {
//!     fn process(&mut self, _: u64, context: &mut KeyedContext<'_, u64, String>) -> Result<()> {
//!         let now = context.timestamp().unwrap_or_default();
//!         if let Some(before) = self.last.replace(context, now)? {
//!             context.timers().delete_event(before + 30.secs());
//!         }
//!         context.timers().register_event(now + 30.secs());
//!         Ok(())
//!     }
//!
//!     fn on_timer(&mut self, _: Timestamp, context: &mut KeyedContext<'_, u64, String>) -> Result<()> {
//!         let user = *context.key();
//!         context.collect(format!("user {user} is idle"));
//!         Ok(self.last.clear(context)?)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let mut harness = KeyedHarness::new(Idle { last: ValueState::new("last") }, |user| *user);
//! harness.push(7, at(0.secs()))?;
//! harness.push(7, at(20.secs()))?;
//! harness.watermark(at(31.secs()))?;
//! assert_eq!(harness.output(), Vec::<String>::new());
//! harness.watermark(at(50.secs()))?;
//! assert_eq!(harness.output(), ["user 7 is idle"]);
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use element::{Key, Record, Timestamp};
use runtime::operator::co_process::{CoProcess, KeyedCoProcessFunction};
use runtime::operator::process::{KeyedProcessFunction, Process};
use runtime::testing::Harness;

pub use runtime::testing::{SideTape, Stored};

use crate::{Either, Error, Result, SideTag, TaskError};

/// The instant so long after the epoch.
#[must_use]
pub fn at(after: Duration) -> Timestamp {
    Timestamp::from_millis(0) + after
}

/// A [`KeyedProcessFunction`] with state in memory, run record by record on the test's thread.
pub struct KeyedHarness<K: Key, I: 'static, O, P: KeyedProcessFunction<K, I, O>> {
    harness: Opened<Harness<K, I, O, Process<P, I>>>,
}

/// A harness that could be opened, or why not: the first call then says so.
type Opened<H> = std::result::Result<H, TaskError>;

fn opened<H>(harness: &mut Opened<H>) -> Result<&mut H> {
    harness.as_mut().map_err(|error| Error::msg(runtime::report::chain_of(error)))
}

impl<K, I, O, P> KeyedHarness<K, I, O, P>
where
    K: Key,
    I: Record,
    O: Send + 'static,
    P: KeyedProcessFunction<K, I, O>,
{
    /// Runs `function` over keys found by `key`; the clock is at the epoch. A function that cannot be
    /// opened is an error of the first call.
    pub fn new(function: P, key: impl Fn(&I) -> K + Send + Sync + 'static) -> Self {
        Self { harness: Harness::open(Process::new(function), key) }
    }

    /// As [`new`](Self::new), with what another harness has stored.
    pub fn restore(
        function: P,
        key: impl Fn(&I) -> K + Send + Sync + 'static,
        stored: Stored,
    ) -> Self {
        Self { harness: Harness::restore(Process::new(function), key, stored) }
    }

    /// Hands one record over, with or without a timestamp.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn push(&mut self, value: I, at: impl Into<Option<Timestamp>>) -> Result<()> {
        Ok(opened(&mut self.harness)?.push(value, at)?)
    }

    /// Moves the watermark; event-time timers up to it fire.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn watermark(&mut self, at: Timestamp) -> Result<()> {
        Ok(opened(&mut self.harness)?.watermark(at)?)
    }

    /// Moves the clock; processing-time timers that are due fire.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn advance(&mut self, by: Duration) -> Result<()> {
        Ok(opened(&mut self.harness)?.advance(by)?)
    }

    /// Ends the input: the greatest watermark comes.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn end(&mut self) -> Result<()> {
        Ok(opened(&mut self.harness)?.end()?)
    }

    /// Takes a snapshot of state, timers and watermark, to [`restore`](Self::restore) from.
    ///
    /// # Errors
    ///
    /// What the state says.
    pub fn snapshot(&mut self) -> Result<Stored> {
        Ok(opened(&mut self.harness)?.snapshot()?)
    }

    /// Takes what has come out since the last call.
    #[must_use]
    pub fn output(&mut self) -> Vec<O> {
        self.harness.as_mut().map(Harness::output).unwrap_or_default()
    }

    /// As [`output`](Self::output), each with its timestamp.
    #[must_use]
    pub fn stamped_output(&mut self) -> Vec<(O, Option<Timestamp>)> {
        self.harness.as_mut().map(Harness::stamped_output).unwrap_or_default()
    }

    /// Listens to a side output, from here on.
    ///
    /// # Errors
    ///
    /// Why the function could not be opened.
    pub fn side_output<T: Send + 'static>(&mut self, tag: &SideTag<T>) -> Result<SideTape<T>> {
        Ok(opened(&mut self.harness)?.side_output(tag))
    }

    /// Timers that wait, of both kinds.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.harness.as_ref().map_or(0, Harness::timers)
    }
}

/// The harness of a function of two inputs.
type CoHarness<K, A, B, O, P> = Harness<K, Either<A, B>, O, CoProcess<P, A, B>>;

/// A [`KeyedCoProcessFunction`] with state in memory, run record by record on the test's thread. One
/// watermark stands for both inputs.
pub struct KeyedCoHarness<K: Key, A: Record, B: Record, O, P: KeyedCoProcessFunction<K, A, B, O>> {
    harness: Opened<CoHarness<K, A, B, O, P>>,
}

impl<K, A, B, O, P> KeyedCoHarness<K, A, B, O, P>
where
    K: Key,
    A: Record,
    B: Record,
    O: Send + 'static,
    P: KeyedCoProcessFunction<K, A, B, O>,
{
    /// Runs `function` over keys found by `left` and `right`; the clock is at the epoch.
    pub fn new(
        function: P,
        left: impl Fn(&A) -> K + Send + Sync + 'static,
        right: impl Fn(&B) -> K + Send + Sync + 'static,
    ) -> Self {
        let key = move |value: &Either<A, B>| match value {
            Either::Left(value) => left(value),
            Either::Right(value) => right(value),
        };
        Self { harness: Harness::open(CoProcess::new(function), key) }
    }

    /// Hands one record of the left input over.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn push_left(&mut self, value: A, at: impl Into<Option<Timestamp>>) -> Result<()> {
        Ok(opened(&mut self.harness)?.push(Either::Left(value), at)?)
    }

    /// Hands one record of the right input over.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn push_right(&mut self, value: B, at: impl Into<Option<Timestamp>>) -> Result<()> {
        Ok(opened(&mut self.harness)?.push(Either::Right(value), at)?)
    }

    /// Moves the watermark of both inputs.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn watermark(&mut self, at: Timestamp) -> Result<()> {
        Ok(opened(&mut self.harness)?.watermark(at)?)
    }

    /// Moves the clock.
    ///
    /// # Errors
    ///
    /// What the function says.
    pub fn advance(&mut self, by: Duration) -> Result<()> {
        Ok(opened(&mut self.harness)?.advance(by)?)
    }

    /// Takes what has come out since the last call.
    #[must_use]
    pub fn output(&mut self) -> Vec<O> {
        self.harness.as_mut().map(Harness::output).unwrap_or_default()
    }
}
