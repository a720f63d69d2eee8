//! [`SlidingPanes`]: sliding windows of aggregates at a cost that does not depend on their overlap.
//!
//! ```text
//!   windows   |----------------|
//!                |----------------|
//!   panes     |--|--|--|--|--|--|      cut where a window begins or ends: at most two a slide
//!             <-- suffixes -><back>    result of a window = suffix at its start, then back
//! ```
//!
//! A record goes to one pane, its accumulator in keyed state under the pane's start. When a window
//! fires, the panes that it has more than the one before go into `back`; once a pane of `back` must
//! leave again, the aggregates of all suffixes of the window are made at one go and `back` begins anew.
//! So each pane is taken in twice and each window merged once, whatever the overlap. The two parts are
//! the two stacks of a queue that knows its aggregate (Tangwongsan, Hirzel, Schneider: "General
//! incremental sliding-window aggregation").
//!
//! Only the next window of a key has a timer; a firing window registers the one after it while the
//! key has records left. A record behind the watermark that later windows still take makes the next
//! firing look at all of its panes again.
//!
//! Left out on purpose: allowed lateness, other triggers, evictors; such windows go by
//! [`super::WindowOperator`].

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Timestamp};
use state::{KeyedStateBackend, StateAccess, Timer, TimerKind, ValueState};

use super::LATE_RECORDS;
use super::assigner::{Aligned, WindowAssigner, WindowError};
use super::bounds::Window;
use super::folding::{PartFold, Parts, pane_name as namespace};
use crate::operator::aggregate::Aggregator;
use crate::operator::function::KeyedFunction;
use crate::operator::keyed_context::KeyedContext;
use crate::operator::side_output::SideTag;

/// How far the windows of a key have come: up to where panes are taken in (`None`: all of the next
/// window's are to be looked at), where suffixes end, the first and last pane that has records, and
/// the aggregate of the panes behind the suffixes.
type Progress<A> = (Option<i128>, i128, i128, i128, Option<A>);

/// Sliding windows of an aggregate, by panes.
pub struct SlidingPanes<A: Aggregator<I>, I, F> {
    aggregator: Arc<A>,
    assigner: Arc<dyn WindowAssigner<I>>,
    aligned: Aligned,
    emit: Arc<F>,
    panes: ValueState<A::Accumulator>,
    suffixes: ValueState<A::Accumulator>,
    progress: ValueState<Progress<A::Accumulator>>,
    late: SideTag<I>,
    input: PhantomData<fn(I)>,
}

fn of_namespace(bytes: &[u8]) -> Option<i128> {
    Some(i128::from_be_bytes(bytes.try_into().ok()?) ^ i128::MIN)
}

impl Aligned {
    /// The start of the pane that `at` lies in.
    pub(crate) fn pane(self, at: i128) -> i128 {
        let start = self.floor(at);
        let cut = start + i128::from(self.size % self.slide);
        if at < cut { start } else { cut }
    }

    /// The start of the pane behind the one that starts at `pane`.
    fn next_pane(self, pane: i128) -> i128 {
        let start = self.floor(pane);
        let cut = start + i128::from(self.size % self.slide);
        if pane < cut { cut } else { start + i128::from(self.slide) }
    }

    /// The start of the first window that ends behind `at`.
    fn first_ending_behind(self, at: i128) -> i128 {
        self.floor(at - i128::from(self.size)) + i128::from(self.slide)
    }
}

impl<A: Aggregator<I>, I: 'static, F> SlidingPanes<A, I, F> {
    /// Windows of `assigner`, which are `aligned`; results go to `emit`.
    #[must_use]
    pub fn new(
        aggregator: Arc<A>,
        assigner: Arc<dyn WindowAssigner<I>>,
        aligned: Aligned,
        emit: Arc<F>,
    ) -> Self {
        Self {
            aggregator,
            assigner,
            aligned,
            emit,
            panes: ValueState::new("window panes"),
            suffixes: ValueState::new("window suffixes"),
            progress: ValueState::new("window progress"),
            late: SideTag::new(LATE_RECORDS),
            input: PhantomData,
        }
    }

    fn append(&self, into: &mut Option<A::Accumulator>, later: A::Accumulator) {
        match into {
            Some(accumulator) => self.aggregator.merge(accumulator, later),
            None => *into = Some(later),
        }
    }

    /// Asks for the next window's end. A window's own timer holds in batch mode too.
    fn register<K, O>(&self, start: i128, context: &mut KeyedContext<'_, K, O>) {
        let end = Window::clamped(start, start + i128::from(self.aligned.size)).max_timestamp();
        let current = &*context.current;
        let namespace = namespace(start);
        let timers = &mut context.parts.timers;
        timers.register(TimerKind::EventTime, end, current.hash, &current.bytes, &namespace);
    }

    /// Changes what a pane has, and sees to it that its windows fire.
    fn put<K: Key, O>(
        &self,
        pane: i128,
        context: &mut KeyedContext<'_, K, O>,
        change: impl FnOnce(&mut Option<A::Accumulator>),
    ) -> anyhow::Result<()> {
        let watermark = i128::from(context.watermark().0);
        let is_new = self.panes.update_in(context, &namespace(pane), |held| {
            let is_new = held.is_none();
            change(held);
            is_new
        })?;
        if is_new {
            let open = self.aligned.first_ending_behind(watermark + 1);
            self.register(self.aligned.first_ending_behind(pane).max(open), context);
        }
        if self.aligned.next_pane(pane) <= watermark + 1 {
            // A window that ends with the pane may have fired, and then has taken it in.
            self.progress.update(context, |held| match held {
                Some(progress) => progress.0 = None,
                None => *held = Some((None, pane, pane, pane, None)),
            })?;
        }
        Ok(())
    }

    /// Takes in the panes of the window `[start, end)` that are not taken in yet.
    fn take_in(
        &self,
        start: i128,
        end: i128,
        context: &mut impl StateAccess,
    ) -> anyhow::Result<Progress<A::Accumulator>> {
        let (mut pane, mut ends, mut oldest, mut newest, mut back) = match self
            .progress
            .get(context)?
        {
            Some((Some(upto), ends, oldest, newest, back)) => (upto, ends, oldest, newest, back),
            Some((None, ..)) => (start, start, start, start, None),
            // The first window of the key after a pause: what it has is in its last slide.
            None => (end - i128::from(self.aligned.slide), start, start, start, None),
        };
        ends = ends.max(start);
        while pane < end {
            if let Some(accumulator) = self.panes.get_in(context, &namespace(pane))? {
                if back.is_none() {
                    oldest = pane;
                }
                newest = pane;
                self.append(&mut back, accumulator);
            }
            pane = self.aligned.next_pane(pane);
        }
        Ok((Some(end), ends, oldest, newest, back))
    }

    /// Makes the suffixes of the panes from `from` to `newest`, one for each window that starts there.
    fn make_suffixes(
        &self,
        from: i128,
        newest: i128,
        context: &mut impl StateAccess,
    ) -> anyhow::Result<()> {
        let mut suffix: Option<A::Accumulator> = None;
        let mut pane = newest;
        while pane >= from {
            if let Some(mut accumulator) = self.panes.get_in(context, &namespace(pane))? {
                if let Some(later) = suffix.take() {
                    self.aggregator.merge(&mut accumulator, later);
                }
                suffix = Some(accumulator);
            }
            if self.aligned.floor(pane) == pane
                && let Some(suffix) = &suffix
            {
                self.suffixes.set_in(context, &namespace(pane), suffix.clone())?;
            }
            pane = self.aligned.pane(pane - 1);
        }
        Ok(())
    }

    /// Removes what no window behind the one at `start` has. Before the first suffixes are made
    /// there is nothing in front of the oldest pane, and nothing to remove there.
    fn drop_front(
        &self,
        start: i128,
        ends: i128,
        oldest: i128,
        context: &mut impl StateAccess,
    ) -> anyhow::Result<()> {
        let mut pane = start;
        if start < ends {
            self.suffixes.clear_in(context, &namespace(start))?;
        } else {
            pane = pane.max(oldest);
        }
        while pane < start + i128::from(self.aligned.slide) {
            self.panes.clear_in(context, &namespace(pane))?;
            pane = self.aligned.next_pane(pane);
        }
        Ok(())
    }
}

impl<K, I, O, A, F> KeyedFunction<K, I, O> for SlidingPanes<A, I, F>
where
    K: Key,
    I: Send + 'static,
    A: Aggregator<I>,
    F: Fn(A::Output, Window, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
{
    type Fold = PartFold<A, I>;

    /// Until the first watermark: nothing is late then (see `folding.rs`).
    fn fold(&self, watermark: Timestamp) -> Option<Arc<Self::Fold>> {
        (watermark == Timestamp::MIN)
            .then(|| PartFold::shared(&self.aggregator, Parts::Panes(self.aligned)))
    }

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        self.assigner.check()?;
        self.panes.bind(backend)?;
        self.suffixes.bind(backend)?;
        Ok(self.progress.bind(backend)?)
    }

    fn element(&mut self, value: I, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        let at = i128::from(context.timestamp().ok_or(WindowError::NoTimestamp)?.0);
        let watermark = context.watermark();
        let last = self.aligned.floor(at);
        if Window::clamped(last, last + i128::from(self.aligned.size)).max_timestamp() <= watermark
        {
            context.parts.metrics.late();
            context.side_output(&self.late, value);
            return Ok(());
        }
        let aggregator = &*self.aggregator;
        self.put(self.aligned.pane(at), context, |held| match held {
            Some(accumulator) => aggregator.add(accumulator, value),
            None => *held = Some(aggregator.first(value)),
        })
    }

    fn partial(
        &mut self,
        partial: A::Accumulator,
        part: &[u8],
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let Some(pane) = of_namespace(part) else { return Ok(()) };
        let aggregator = &*self.aggregator;
        self.put(pane, context, |held| match held {
            Some(accumulator) => aggregator.merge(accumulator, partial),
            None => *held = Some(partial),
        })
    }

    fn on_timer(
        &mut self,
        timer: &Timer,
        _: TimerKind,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let Some(start) = of_namespace(&timer.namespace) else { return Ok(()) };
        let end = start + i128::from(self.aligned.size);
        let (upto, mut ends, oldest, newest, mut back) = self.take_in(start, end, context)?;
        let mut result =
            if start < ends { self.suffixes.get_in(context, &namespace(start))? } else { None };
        if let Some(back) = &back {
            self.append(&mut result, back.clone());
        }
        if let Some(result) = result {
            let window = Window::clamped(start, end);
            context.timestamp = Some(window.max_timestamp()).filter(|at| *at != Timestamp::MAX);
            (self.emit)(self.aggregator.result(&result), window, context);
        }
        let next = start + i128::from(self.aligned.slide);
        self.drop_front(start, ends, oldest, context)?;
        if newest < next {
            return Ok(self.progress.clear(context)?);
        }
        if back.is_some() && oldest < next {
            self.make_suffixes(next, newest, context)?;
            ends = self.aligned.next_pane(newest);
            back = None;
        }
        self.progress.set(context, (upto, ends, oldest, newest, back))?;
        self.register(next, context);
        Ok(())
    }
}
