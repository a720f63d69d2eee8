//! [`SlidingPanes`]: sliding windows of aggregates at a cost that does not depend on their overlap.
//!
//! ```text
//!   windows   |----------------|
//!                |----------------|
//!   panes     |--|--|--|--|--|--|      cut where a window begins or ends: at most two a slide
//!             <-- suffixes -><back>    result of a window = suffix at its start, then back
//! ```
//!
//! A record goes to one pane, its accumulator in keyed state under the pane's name. When a window
//! fires, the panes that it has more than the one before go into `back`; once a pane of `back` must
//! leave again, the aggregates of all suffixes of the window are made at one go, each kept beside its
//! first pane, and `back` begins anew. So each pane is taken in twice and each window merged once,
//! whatever the overlap. The two parts are the two stacks of a queue that knows its aggregate
//! (Tangwongsan, Hirzel, Schneider: "General incremental sliding-window aggregation").
//!
//! Only the next window of a key has a timer; a firing window registers the one after it while the
//! key has records left. A record behind the watermark that later windows still take makes the next
//! firing look at all of its panes again.
//!
//! A window that fires costs three accesses of panes: its last pane is read, its first one taken out,
//! and one given its suffix. Memory does not keep the panes of an hour near, so each is a wait for it.
//!
//! Left out on purpose: allowed lateness, other triggers, evictors; such windows go by
//! [`super::WindowOperator`].

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use element::{Key, Timestamp};
use state::{KeyedStateBackend, StateAccess, Timer, TimerKind, ValueState};

use super::LATE_RECORDS;
use super::assigner::{Aligned, WindowAssigner, WindowError};
use super::bounds::Window;
use super::folding::{PartFold, Parts, pane_of_part};
use super::grid::{Name, PaneGrid};
use crate::operator::aggregate::Aggregator;
use crate::operator::function::KeyedFunction;
use crate::operator::keyed_context::KeyedContext;
use crate::operator::keyed_parts::{KeyedParts, key_of};
use crate::operator::side_output::SideTag;

/// What a pane has: the aggregate of its records, and its suffix, which goes on over the panes behind
/// it up to where suffixes end.
type Held<A> = (Option<A>, Option<A>);

/// How far the windows of a key have come: up to where panes are taken in (`None`: all of the next
/// window's are to be looked at), where suffixes end, the first and last pane that has records, and
/// the aggregate of the panes behind the suffixes.
type Progress<A> = (Option<i128>, i128, i128, i128, Option<A>);

/// Sliding windows of an aggregate, by panes.
pub struct SlidingPanes<A: Aggregator<I>, I, F> {
    aggregator: Arc<A>,
    assigner: Arc<dyn WindowAssigner<I>>,
    emit: Arc<F>,
    grid: PaneGrid,
    /// The pane of the record before, of whatever key: most records follow in the same one.
    recent: Pane,
    panes: ValueState<Held<A::Accumulator>>,
    progress: ValueState<Progress<A::Accumulator>>,
    late: SideTag<I>,
    input: PhantomData<fn(I)>,
}

/// A pane, and what of it does not depend on the key.
#[derive(Clone, Debug)]
struct Pane {
    number: i128,
    name: Name,
    times: Range<i128>,
    /// The last instant of the last window that has it: a watermark there makes its records late.
    over: Timestamp,
}

impl Pane {
    fn of(grid: &PaneGrid, number: i128) -> Self {
        let times = grid.start(number)..grid.start(number + 1);
        let over = grid.bounds(grid.last_window(number)).max_timestamp();
        Self { number, name: Name::of(number), times, over }
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
        let grid = PaneGrid::of(aligned);
        Self {
            aggregator,
            assigner,
            emit,
            recent: Pane::of(&grid, 0),
            grid,
            panes: ValueState::new("window panes"),
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

    /// Puts the records of a pane, if it has any, in front of a suffix.
    fn prepend(&self, held: Option<&Held<A::Accumulator>>, suffix: &mut Option<A::Accumulator>) {
        if let Some((Some(records), _)) = held {
            let later = suffix.replace(records.clone());
            if let (Some(accumulator), Some(later)) = (suffix, later) {
                self.aggregator.merge(accumulator, later);
            }
        }
    }

    /// Asks for a window's end. A window's own timer holds in batch mode too.
    fn register<K, O>(&self, window: i128, context: &mut KeyedContext<'_, K, O>) {
        let end = self.grid.bounds(window).max_timestamp();
        let KeyedParts { backend, timers, .. } = &mut *context.parts;
        let (hash, key) = key_of(backend);
        timers.register(TimerKind::EventTime, end, hash, key, &Name::of(window));
    }

    /// Changes the records of a pane, and sees to it that its windows fire.
    #[inline]
    fn put<K: Key, O>(
        &self,
        pane: &Pane,
        context: &mut KeyedContext<'_, K, O>,
        change: impl FnOnce(&mut Option<A::Accumulator>),
    ) -> anyhow::Result<()> {
        let watermark = i128::from(context.watermark().0);
        let is_new = self.panes.update_in(context, &pane.name, |held| {
            let (records, _) = held.get_or_insert_with(Default::default);
            let is_new = records.is_none();
            change(records);
            is_new
        })?;
        if is_new {
            let open = self.grid.first_ending_behind(watermark + 1);
            self.register(self.grid.first_window(pane.number).max(open), context);
        }
        if pane.times.end <= watermark + 1 {
            // A window that ends with the pane may have fired, and then has taken it in.
            let number = pane.number;
            self.progress.update(context, |held| match held {
                Some(progress) => progress.0 = None,
                None => *held = Some((None, number, number, number, None)),
            })?;
        }
        Ok(())
    }

    /// Takes in the panes of a window that are not taken in yet.
    fn take_in(
        &self,
        window: i128,
        context: &mut impl StateAccess,
    ) -> anyhow::Result<Progress<A::Accumulator>> {
        let Range { start, end } = self.grid.panes(window);
        let (upto, ends, mut oldest, mut newest, mut back) = match self.progress.get(context)? {
            Some((Some(upto), ends, oldest, newest, back)) => (upto, ends, oldest, newest, back),
            Some((None, ends, ..)) => {
                self.drop_suffixes(start..ends, context)?;
                (start, start, start, start, None)
            }
            // The first window of the key after a pause: what it has is in its last slide.
            None => (self.grid.back(window).start, start, start, start, None),
        };
        for pane in upto..end {
            let held = self.panes.get_in(context, &Name::of(pane))?;
            if let Some(records) = held.and_then(|(records, _)| records) {
                if back.is_none() {
                    oldest = pane;
                }
                newest = pane;
                self.append(&mut back, records);
            }
        }
        Ok((Some(end), ends.max(start), oldest, newest, back))
    }

    /// Forgets suffixes that a late record is not in.
    fn drop_suffixes(
        &self,
        panes: Range<i128>,
        context: &mut impl StateAccess,
    ) -> anyhow::Result<()> {
        for pane in panes {
            self.panes.update_in(context, &Name::of(pane), |held| {
                *held = held.take().filter(|(records, _)| records.is_some());
                if let Some((_, suffix)) = held {
                    *suffix = None;
                }
            })?;
        }
        Ok(())
    }

    /// Makes the suffixes of the panes from `from` to `newest`, one for each window that starts there.
    fn make_suffixes(
        &self,
        from: i128,
        newest: i128,
        context: &mut impl StateAccess,
    ) -> anyhow::Result<()> {
        let mut suffix: Option<A::Accumulator> = None;
        for pane in (from..=newest).rev() {
            let name = Name::of(pane);
            if self.grid.begins_window(pane) {
                self.panes.update_in(context, &name, |held| {
                    self.prepend(held.as_ref(), &mut suffix);
                    held.get_or_insert_with(Default::default).1.clone_from(&suffix);
                })?;
            } else {
                self.prepend(self.panes.get_in(context, &name)?.as_ref(), &mut suffix);
            }
        }
        Ok(())
    }

    /// Removes what no window behind this one has, and hands out its suffix. Before the first suffixes
    /// are made there is nothing in front of the oldest pane, and nothing to remove there.
    fn drop_front(
        &self,
        window: i128,
        (ends, oldest): (i128, i128),
        context: &mut impl StateAccess,
    ) -> anyhow::Result<Option<A::Accumulator>> {
        let mut found = None;
        for pane in self.grid.front(window) {
            if pane < ends || pane >= oldest {
                let held = self.panes.update_in(context, &Name::of(pane), Option::take)?;
                found = found.or(held.and_then(|(_, suffix)| suffix));
            }
        }
        Ok(found)
    }

    /// The result of a window that has these parts.
    fn result(
        &self,
        suffix: Option<A::Accumulator>,
        back: Option<&A::Accumulator>,
    ) -> Option<A::Output> {
        let Some(mut whole) = suffix else { return back.map(|back| self.aggregator.result(back)) };
        if let Some(back) = back {
            self.aggregator.merge(&mut whole, back.clone());
        }
        Some(self.aggregator.result(&whole))
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
            .then(|| PartFold::shared(&self.aggregator, Parts::Panes(self.grid)))
    }

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        self.assigner.check()?;
        self.panes.bind(backend)?;
        Ok(self.progress.bind(backend)?)
    }

    fn element(&mut self, value: I, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        let at = i128::from(context.timestamp().ok_or(WindowError::NoTimestamp)?.0);
        if !self.recent.times.contains(&at) {
            self.recent = Pane::of(&self.grid, self.grid.pane(at));
        }
        if self.recent.over <= context.watermark() {
            context.parts.metrics.late();
            context.side_output(&self.late, value);
            return Ok(());
        }
        let aggregator = &*self.aggregator;
        self.put(&self.recent, context, |held| match held {
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
        let Some(number) = pane_of_part(part) else { return Ok(()) };
        let aggregator = &*self.aggregator;
        self.put(&Pane::of(&self.grid, number), context, |held| match held {
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
        let Some(window) = Name::number(&timer.namespace) else { return Ok(()) };
        let (upto, mut ends, oldest, newest, mut back) = self.take_in(window, context)?;
        let suffix = self.drop_front(window, (ends, oldest), context)?;
        if let Some(result) = self.result(suffix, back.as_ref()) {
            let bounds = self.grid.bounds(window);
            context.timestamp = Some(bounds.max_timestamp()).filter(|at| *at != Timestamp::MAX);
            (self.emit)(result, bounds, context);
        }
        let next = self.grid.panes(window + 1).start;
        if newest < next {
            return Ok(self.progress.clear(context)?);
        }
        if back.is_some() && oldest < next {
            self.make_suffixes(next, newest, context)?;
            ends = newest + 1;
            back = None;
        }
        self.progress.set(context, (upto, ends, oldest, newest, back))?;
        self.register(window + 1, context);
        Ok(())
    }
}
