//! Joins of two keyed streams: by window, and by an interval of time.
//!
//! Both streams have keys of one type, or the program does not compile. Records of both inputs go to
//! one keyed operator, which sorts a backlog by itself.

use std::sync::Arc;
use std::time::Duration;

use element::{Key, Record};
use graph::OperatorAttributes;
use runtime::operator::either::Either;
use runtime::operator::interval_join::{Interval, IntervalJoin, JoinCall};
use runtime::operator::window::{
    LATE_RECORDS, ListBody, Trigger, WindowAssigner, WindowClosure, WindowOperator, WindowSettings,
};

use crate::window_result::WindowResult;
use crate::{Error, KeyedContext, KeyedStream, SideTag, TwoInputBacklog, Window};

/// A distance in time that may go backwards, for [`IntervalJoined::between`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOffset {
    millis: i64,
}

impl TimeOffset {
    /// So long before.
    #[must_use]
    pub fn before(distance: Duration) -> Self {
        Self { millis: -Self::from(distance).millis }
    }

    /// So long after; as the duration itself.
    #[must_use]
    pub fn after(distance: Duration) -> Self {
        Self::from(distance)
    }
}

impl From<Duration> for TimeOffset {
    fn from(distance: Duration) -> Self {
        Self { millis: i64::try_from(distance.as_millis()).unwrap_or(i64::MAX) }
    }
}

impl<K: Key, A: Record + Clone> KeyedStream<K, A> {
    /// Joins records of this stream and another one that fall into one window.
    pub fn join<B: Record + Clone>(self, other: KeyedStream<K, B>) -> JoinedStreams<K, A, B> {
        JoinedStreams { left: self, right: other }
    }

    /// Joins records of this stream and another one that lie near each other in event time.
    pub fn interval_join<B: Record + Clone>(
        self,
        other: KeyedStream<K, B>,
    ) -> IntervalJoined<K, A, B> {
        let interval = Interval { lower: 0, upper: 0 };
        IntervalJoined {
            left: self,
            right: other,
            interval,
            excludes_lower: false,
            excludes_upper: false,
            rule: TwoInputBacklog::default(),
        }
    }
}

/// Two keyed streams to be joined by window. Made by [`KeyedStream::join`].
pub struct JoinedStreams<K, A, B> {
    left: KeyedStream<K, A>,
    right: KeyedStream<K, B>,
}

impl<K: Key, A: Record + Clone, B: Record + Clone> JoinedStreams<K, A, B> {
    /// By which windows.
    pub fn window(self, assigner: impl WindowAssigner<Either<A, B>>) -> WindowedJoin<K, A, B> {
        let trigger = assigner.default_trigger();
        let assigner: Arc<dyn WindowAssigner<Either<A, B>>> = Arc::new(assigner);
        let settings = WindowSettings { assigner, trigger, allowed_lateness: Duration::ZERO };
        WindowedJoin {
            left: self.left,
            right: self.right,
            settings,
            default_trigger: true,
            rule: TwoInputBacklog::default(),
        }
    }
}

/// Two keyed streams whose records are grouped into windows together. Ended by
/// [`inner`](Self::inner), one of the outer joins, or [`co_group`](Self::co_group).
///
/// Windows keep the records of both sides; results carry the window's last instant.
pub struct WindowedJoin<K, A, B> {
    left: KeyedStream<K, A>,
    right: KeyedStream<K, B>,
    settings: WindowSettings<Either<A, B>>,
    /// Whether the trigger is the assigner's own.
    default_trigger: bool,
    rule: TwoInputBacklog,
}

impl<K: Key, A: Record + Clone, B: Record + Clone> WindowedJoin<K, A, B> {
    /// Decides when windows fire, in place of the assigner's own trigger.
    #[must_use]
    pub fn trigger(mut self, trigger: impl Trigger<Either<A, B>>) -> Self {
        self.settings.trigger = Arc::new(trigger);
        self.default_trigger = false;
        self
    }

    /// Keeps windows for so long behind their end; each record that comes in that time fires its
    /// window again.
    #[must_use]
    pub fn allowed_lateness(mut self, lateness: Duration) -> Self {
        self.settings.allowed_lateness = lateness;
        self
    }

    /// When the sorting of a backlog ends (decision D3).
    #[must_use]
    pub fn backlog(mut self, rule: TwoInputBacklog) -> Self {
        self.rule = rule;
        self
    }

    /// Calls a function for each pair of a window.
    pub fn inner<O, F>(self, function: F) -> WindowResult<Either<A, B>, O>
    where
        O: Send + 'static,
        F: Fn(&A, &B, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        self.outer(Sides { left: false, right: false }, move |left, right, out| {
            if let (Some(left), Some(right)) = (left, right) {
                function(left, right, out);
            }
        })
    }

    /// As [`inner`](Self::inner), and for each left record of a window without a right one.
    pub fn left_outer<O, F>(self, function: F) -> WindowResult<Either<A, B>, O>
    where
        O: Send + 'static,
        F: Fn(&A, Option<&B>, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        self.outer(Sides { left: true, right: false }, move |left, right, out| {
            if let Some(left) = left {
                function(left, right, out);
            }
        })
    }

    /// As [`inner`](Self::inner), and for each right record of a window without a left one.
    pub fn right_outer<O, F>(self, function: F) -> WindowResult<Either<A, B>, O>
    where
        O: Send + 'static,
        F: Fn(Option<&A>, &B, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        self.outer(Sides { left: false, right: true }, move |left, right, out| {
            if let Some(right) = right {
                function(left, right, out);
            }
        })
    }

    /// As [`inner`](Self::inner), and for each record of a window without one of the other side.
    pub fn full_outer<O, F>(self, function: F) -> WindowResult<Either<A, B>, O>
    where
        O: Send + 'static,
        F: Fn(Option<&A>, Option<&B>, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        self.outer(Sides { left: true, right: true }, function)
    }

    fn outer<O, F>(self, alone: Sides, function: F) -> WindowResult<Either<A, B>, O>
    where
        O: Send + 'static,
        F: Fn(Option<&A>, Option<&B>, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        self.co_group(move |lefts, rights, _, out| {
            for left in &lefts {
                for right in &rights {
                    function(Some(left), Some(right), out);
                }
            }
            if alone.left && rights.is_empty() {
                lefts.iter().for_each(|left| function(Some(left), None, out));
            }
            if alone.right && lefts.is_empty() {
                rights.iter().for_each(|right| function(None, Some(right), out));
            }
        })
    }

    /// Gives all records of a window to a closure: left, right, each in the order of their coming.
    pub fn co_group<O, F>(self, function: F) -> WindowResult<Either<A, B>, O>
    where
        O: Send + 'static,
        F: Fn(Vec<A>, Vec<B>, Window, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        let apply = move |records, window, out: &mut KeyedContext<'_, K, O>| {
            let (lefts, rights) = apart(records);
            function(lefts, rights, window, out);
            Ok(())
        };
        let apply = Arc::new(apply);
        let settings = self.settings;
        let attributes = OperatorAttributes {
            sorts_internally: true,
            // Nothing fires earlier, so both inputs are taken whole before any of it comes out (E7).
            output_only_at_end: settings.assigner.is_end_of_stream() && self.default_trigger,
            ..OperatorAttributes::keyed()
        };
        let connected = self.left.connect(self.right).backlog(self.rule);
        let results = connected.two_input("window join", attributes, move || {
            let body = ListBody::new(WindowClosure(Arc::clone(&apply)), None);
            WindowOperator::<K, Either<A, B>, O, _>::new(settings.clone(), body)
        });
        WindowResult::new(results, SideTag::new(LATE_RECORDS))
    }
}

/// Which sides' records come out alone.
#[derive(Clone, Copy)]
struct Sides {
    left: bool,
    right: bool,
}

fn apart<A, B>(records: Vec<Either<A, B>>) -> (Vec<A>, Vec<B>) {
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    for record in records {
        match record {
            Either::Left(left) => lefts.push(left),
            Either::Right(right) => rights.push(right),
        }
    }
    (lefts, rights)
}

/// Two keyed streams to be joined by nearness in time. Made by [`KeyedStream::interval_join`].
pub struct IntervalJoined<K, A, B> {
    left: KeyedStream<K, A>,
    right: KeyedStream<K, B>,
    interval: Interval,
    excludes_lower: bool,
    excludes_upper: bool,
    rule: TwoInputBacklog,
}

impl<K: Key, A: Record + Clone, B: Record + Clone> IntervalJoined<K, A, B> {
    /// A right record matches a left one if it lies from `lower` to `upper` around it, both included.
    #[must_use]
    pub fn between(mut self, lower: impl Into<TimeOffset>, upper: impl Into<TimeOffset>) -> Self {
        self.interval = Interval { lower: lower.into().millis, upper: upper.into().millis };
        self
    }

    /// The lower bound itself does not match.
    #[must_use]
    pub fn lower_bound_exclusive(mut self) -> Self {
        self.excludes_lower = true;
        self
    }

    /// The upper bound itself does not match.
    #[must_use]
    pub fn upper_bound_exclusive(mut self) -> Self {
        self.excludes_upper = true;
        self
    }

    /// When the sorting of a backlog ends (decision D3).
    #[must_use]
    pub fn backlog(mut self, rule: TwoInputBacklog) -> Self {
        self.rule = rule;
        self
    }

    /// Calls a function for each pair. Results carry the later of the two timestamps. A record behind
    /// the watermark joins nothing: it is counted as late, and goes to the late output.
    pub fn process<O, F>(self, function: F) -> WindowResult<Either<A, B>, O>
    where
        O: Send + 'static,
        F: Fn(&A, &B, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        self.try_process(move |left, right, out: &mut KeyedContext<'_, K, O>| {
            function(left, right, out);
            Ok(())
        })
    }

    /// As [`process`](Self::process), with a function that may fail; the job then does.
    pub fn try_process<O, F>(self, function: F) -> WindowResult<Either<A, B>, O>
    where
        O: Send + 'static,
        F: Fn(&A, &B, &mut KeyedContext<'_, K, O>) -> Result<(), Error> + Send + Sync + 'static,
    {
        let call: Arc<JoinCall<K, A, B, O>> = Arc::new(function);
        let interval = Interval {
            lower: self.interval.lower.saturating_add(self.excludes_lower.into()),
            upper: self.interval.upper.saturating_sub(self.excludes_upper.into()),
        };
        let attributes =
            OperatorAttributes { sorts_internally: true, ..OperatorAttributes::keyed() };
        let connected = self.left.connect(self.right).backlog(self.rule);
        let results = connected.two_input("interval join", attributes, move || {
            IntervalJoin::new(interval, Arc::clone(&call))
        });
        WindowResult::new(results, SideTag::new(LATE_RECORDS))
    }
}
