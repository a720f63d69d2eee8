//! [`IntervalJoin`]: pairs of records of two inputs whose timestamps lie within bounds of each other.
//!
//! A right record matches a left one if it lies from `lower` to `upper` around it. Records wait in
//! buckets as wide as the interval, so that a record looks at three buckets of the other side at most,
//! however many records a key has. A bucket goes when the watermark says that nothing can match its
//! last instant any more.
//!
//! Left out on purpose: pairs of records without timestamps; those are an error.
//!
//! Source: FLINK-8480, "interval join of streams".

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Record, Timestamp};
use state::{KeyedStateBackend, ListState, Timer, TimerKind};

use super::either::Either;
use super::function::{KeyedFunction, NoFold};
use super::keyed_context::KeyedContext;
use super::side_output::SideTag;
use super::window::{LATE_RECORDS, WindowError};

/// From where to where a right record may lie around a left one, in milliseconds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The least distance; negative for right records before the left one.
    pub lower: i64,
    /// The greatest distance.
    pub upper: i64,
}

/// Why an interval cannot be joined by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the interval of a join is empty: from {lower} to {upper} ms")]
pub struct EmptyInterval {
    /// The least distance.
    pub lower: i64,
    /// The greatest distance.
    pub upper: i64,
}

/// What is done with a pair; the context's timestamp is the later of the two.
pub type JoinCall<K, A, B, O> =
    dyn Fn(&A, &B, &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> + Send + Sync;

/// An interval join as the keyed operator of two inputs runs it.
pub struct IntervalJoin<K, A, B, O> {
    interval: Interval,
    width: i128,
    call: Arc<JoinCall<K, A, B, O>>,
    left: ListState<(Timestamp, A)>,
    right: ListState<(Timestamp, B)>,
    late: SideTag<Either<A, B>>,
    types: PhantomData<fn(K) -> O>,
}

impl<K, A: Record + Clone, B: Record + Clone, O> IntervalJoin<K, A, B, O> {
    /// Gives each pair within `interval` to `call`.
    #[must_use]
    pub fn new(interval: Interval, call: Arc<JoinCall<K, A, B, O>>) -> Self {
        Self {
            interval,
            width: (i128::from(interval.upper) - i128::from(interval.lower)).max(1),
            call,
            left: ListState::new("left records"),
            right: ListState::new("right records"),
            late: SideTag::new(LATE_RECORDS),
            types: PhantomData,
        }
    }

    fn bucket(&self, at: i128) -> i128 {
        at.div_euclid(self.width)
    }

    /// The buckets of the other side that may match a record, and its bounds.
    fn matches(&self, at: Timestamp, lower: i64, upper: i64) -> (i128, i128) {
        (i128::from(at.0) + i128::from(lower), i128::from(at.0) + i128::from(upper))
    }

    /// Asks to be called when the watermark is so far behind a bucket that nothing matches it.
    fn forget_later<O2>(
        &self,
        side: u8,
        bucket: i128,
        reach: i64,
        context: &mut KeyedContext<'_, K, O2>,
    ) where
        K: Key,
    {
        // The bucket's last instant is one before the next; a record at the watermark still counts.
        let at = (bucket + 1) * self.width + i128::from(reach.max(0));
        let held = at.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
        let at = Timestamp(i64::try_from(held).unwrap_or(i64::MAX));
        let namespace = timer_namespace(side, bucket);
        context.timers_in(&namespace).register_event(at);
    }
}

const LEFT: u8 = 0;
const RIGHT: u8 = 1;

fn namespace(bucket: i128) -> [u8; 16] {
    (bucket ^ i128::MIN).to_be_bytes()
}

fn timer_namespace(side: u8, bucket: i128) -> [u8; 17] {
    let mut bytes = [side; 17];
    if let Some((_, rest)) = bytes.split_first_mut() {
        rest.copy_from_slice(&namespace(bucket));
    }
    bytes
}

impl<K, A, B, O> KeyedFunction<K, Either<A, B>, O> for IntervalJoin<K, A, B, O>
where
    K: Key,
    A: Record + Clone,
    B: Record + Clone,
{
    type Fold = NoFold<Either<A, B>>;

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        let Interval { lower, upper } = self.interval;
        if lower > upper {
            return Err(EmptyInterval { lower, upper }.into());
        }
        self.left.bind(backend)?;
        Ok(self.right.bind(backend)?)
    }

    fn element(
        &mut self,
        value: Either<A, B>,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let at = context.timestamp().ok_or(WindowError::NoTimestamp)?;
        if at < context.watermark() {
            context.parts.metrics.late();
            context.side_output(&self.late, value);
            return Ok(());
        }
        let Interval { lower, upper } = self.interval;
        let bucket = self.bucket(i128::from(at.0));
        let call = Arc::clone(&self.call);
        match value {
            Either::Left(left) => {
                let (from, to) = self.matches(at, lower, upper);
                for other in self.bucket(from)..=self.bucket(to) {
                    for (time, right) in self.right.get_in(context, &namespace(other))? {
                        if (from..=to).contains(&i128::from(time.0)) {
                            context.timestamp = Some(at.max(time));
                            call(&left, &right, context)?;
                        }
                    }
                }
                self.left.add_in(context, &namespace(bucket), (at, left))?;
                self.forget_later(LEFT, bucket, upper, context);
            }
            Either::Right(right) => {
                let (from, to) = self.matches(at, upper.saturating_neg(), lower.saturating_neg());
                for other in self.bucket(from)..=self.bucket(to) {
                    for (time, left) in self.left.get_in(context, &namespace(other))? {
                        if (from..=to).contains(&i128::from(time.0)) {
                            context.timestamp = Some(at.max(time));
                            call(&left, &right, context)?;
                        }
                    }
                }
                self.right.add_in(context, &namespace(bucket), (at, right))?;
                self.forget_later(RIGHT, bucket, lower.saturating_neg(), context);
            }
        }
        Ok(())
    }

    fn on_timer(
        &mut self,
        timer: &Timer,
        _: TimerKind,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        match timer.namespace.split_first() {
            Some((&LEFT, bucket)) => Ok(self.left.clear_in(context, bucket)?),
            Some((_, bucket)) => Ok(self.right.clear_in(context, bucket)?),
            None => Ok(()),
        }
    }
}
