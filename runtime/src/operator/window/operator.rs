//! [`WindowOperator`]: windows over one key's records, as a keyed function.
//!
//! A window's state and timers have its bounds as their namespace. When the watermark (or the clock)
//! reaches its clean-up time, the last instant and the allowed lateness behind it, all of it goes.
//! Merging windows keep their contents in the namespace that they began with ([`super::session`]).

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use element::{Key, Record, Timestamp};
use state::{KeyedStateBackend, Timer, TimerKind, ValueState};

use super::LATE_RECORDS;
use super::assigner::{WindowAssigner, WindowError, WindowTime, millis};
use super::body::WindowBody;
use super::bounds::Window;
use super::folding::Parts;
use super::session::{Merge, Sessions};
use super::trigger::{Trigger, TriggerContext, TriggerResult};
use crate::operator::function::{Fold, KeyedFunction};
use crate::operator::keyed_context::KeyedContext;
use crate::operator::side_output::SideTag;

/// How records are windowed. Shared by the subtasks.
pub struct WindowSettings<T> {
    /// Which windows a record belongs to.
    pub assigner: Arc<dyn WindowAssigner<T>>,
    /// When they fire.
    pub trigger: Arc<dyn Trigger<T>>,
    /// How long behind their end they still take records, in event time.
    pub allowed_lateness: Duration,
}

impl<T> Clone for WindowSettings<T> {
    fn clone(&self) -> Self {
        Self {
            assigner: Arc::clone(&self.assigner),
            trigger: Arc::clone(&self.trigger),
            allowed_lateness: self.allowed_lateness,
        }
    }
}

/// Windows of one kind over contents of one kind.
pub struct WindowOperator<K, I, O, B> {
    settings: WindowSettings<I>,
    time: WindowTime,
    merging: bool,
    sees_elements: bool,
    lateness: i64,
    body: B,
    sessions: Sessions,
    trigger_state: ValueState<Vec<u8>>,
    late: SideTag<I>,
    windows: Vec<Window>,
    types: PhantomData<fn(K) -> O>,
}

impl<K, I, O, B> WindowOperator<K, I, O, B>
where
    K: Key,
    I: Record + Clone,
    B: WindowBody<K, I, O>,
{
    /// Windows as `settings` say, with contents in `body`.
    #[must_use]
    pub fn new(settings: WindowSettings<I>, body: B) -> Self {
        Self {
            time: settings.assigner.time(),
            merging: settings.assigner.is_merging(),
            sees_elements: settings.trigger.sees_elements(),
            lateness: millis(settings.allowed_lateness),
            settings,
            body,
            sessions: Sessions::new(),
            trigger_state: ValueState::new("window trigger"),
            late: SideTag::new(LATE_RECORDS),
            windows: Vec::new(),
            types: PhantomData,
        }
    }

    /// The time by which assigner and trigger go for the record at hand.
    fn time_of(&self, context: &KeyedContext<'_, K, O>) -> Result<Timestamp, WindowError> {
        match self.time {
            WindowTime::Event => context.timestamp().ok_or(WindowError::NoTimestamp),
            WindowTime::Processing => Ok(context.processing_time()),
            WindowTime::Timeless => Ok(context.timestamp().unwrap_or(Timestamp::MIN)),
        }
    }

    /// When everything of a window goes; never for windows that do not end.
    fn clean_up(&self, window: Window) -> Option<(TimerKind, Timestamp)> {
        let end = window.max_timestamp();
        match self.time {
            WindowTime::Event => Some((TimerKind::EventTime, end.saturating_add(self.lateness))),
            WindowTime::Processing => Some((TimerKind::ProcessingTime, end)),
            WindowTime::Timeless => None,
        }
    }

    /// Whether a window takes no more records.
    fn is_over(&self, window: Window, watermark: Timestamp) -> bool {
        self.time == WindowTime::Event
            && window.max_timestamp().saturating_add(self.lateness) <= watermark
    }

    fn trigger<'a>(
        &'a self,
        window: Window,
        context: &'a mut KeyedContext<'_, K, O>,
    ) -> TriggerContext<'a> {
        TriggerContext::new(context, window, &self.trigger_state)
    }

    fn register_clean_up(&self, window: Window, context: &mut KeyedContext<'_, K, O>) {
        match self.clean_up(window) {
            Some((TimerKind::EventTime, at)) => self.trigger(window, context).register_event(at),
            Some((TimerKind::ProcessingTime, at)) => {
                self.trigger(window, context).register_processing(at);
            }
            None => {}
        }
    }

    /// A record that no window takes.
    fn late(&self, value: I, context: &mut KeyedContext<'_, K, O>) {
        context.parts.metrics.late();
        context.side_output(&self.late, value);
    }

    /// Adds a record to the window whose contents are at `home`, and asks the trigger.
    fn add(
        &mut self,
        window: Window,
        home: Window,
        value: I,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let mut result = TriggerResult::Continue;
        if self.sees_elements {
            let trigger = Arc::clone(&self.settings.trigger);
            result = trigger.on_element(&value, &mut self.trigger(window, context))?;
        }
        let was_empty = self.body.add(&home.namespace(), value, context)?;
        self.added(window, home, was_empty, result, context)
    }

    /// Asks the trigger what to do about contents that have come to a window.
    fn added(
        &mut self,
        window: Window,
        home: Window,
        was_empty: bool,
        mut result: TriggerResult,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        if !self.sees_elements && (was_empty || window.max_timestamp() <= context.watermark()) {
            let trigger = Arc::clone(&self.settings.trigger);
            result = trigger.on_contents(&mut self.trigger(window, context))?;
        }
        if was_empty {
            self.register_clean_up(window, context);
        }
        self.obey(result, window, home, context)
    }

    /// Does what the trigger wants.
    fn obey(
        &mut self,
        result: TriggerResult,
        window: Window,
        home: Window,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        if result.fires() {
            let before = context.timestamp;
            let end = window.max_timestamp();
            // The window of all time has no last instant: its results carry the record's.
            context.timestamp =
                if end == Timestamp::MAX { before.filter(|at| *at != end) } else { Some(end) };
            self.body.fire(&home.namespace(), window, context)?;
            context.timestamp = before;
        }
        if result.purges() {
            self.body.clear(&home.namespace(), &mut context.parts.backend)?;
            // A purging trigger takes its timers back, and the clean-up may be one of them.
            if self.merging {
                self.register_clean_up(window, context);
            }
        }
        Ok(())
    }

    fn add_merging(
        &mut self,
        window: Window,
        value: I,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let merge = self.sessions.plan(context, window)?;
        if self.is_over(merge.session.window, context.watermark()) {
            self.late(value, context);
            return Ok(());
        }
        if !merge.is_inside() {
            self.merge(&merge, context)?;
        }
        self.add(merge.session.window, merge.session.home, value, context)
    }

    /// Makes one session of those that a record has joined: contents, timers, what the trigger knew.
    fn merge(&mut self, merge: &Merge, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        let home = merge.session.home.namespace();
        let trigger = Arc::clone(&self.settings.trigger);
        let mut known = Vec::new();
        for taken in &merge.taken {
            let namespace = taken.window.namespace();
            known.extend(self.trigger_state.get_in(context, &namespace)?);
            trigger.clear(&mut self.trigger(taken.window, context))?;
            self.trigger_state.clear_in(context, &namespace)?;
            match self.clean_up(taken.window) {
                Some((TimerKind::EventTime, at)) => {
                    self.trigger(taken.window, context).delete_event(at);
                }
                Some((TimerKind::ProcessingTime, at)) => {
                    self.trigger(taken.window, context).delete_processing(at);
                }
                None => {}
            }
            if taken.home != merge.session.home {
                self.body.merge(&home, &taken.home.namespace(), context)?;
            }
        }
        self.sessions.commit(context, merge)?;
        let window = merge.session.window;
        self.register_clean_up(window, context);
        if !merge.taken.is_empty() {
            trigger.on_merge(&mut self.trigger(window, context).with_merged(known))?;
        }
        Ok(())
    }

    /// Everything of a window goes.
    fn clear(
        &mut self,
        window: Window,
        home: Window,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        self.body.clear(&home.namespace(), &mut context.parts.backend)?;
        let trigger = Arc::clone(&self.settings.trigger);
        trigger.clear(&mut self.trigger(window, context))?;
        if self.merging {
            self.sessions.remove(context, window)?;
        }
        Ok(())
    }
}

impl<K, I, O, B> KeyedFunction<K, I, O> for WindowOperator<K, I, O, B>
where
    K: Key,
    I: Record + Clone,
    B: WindowBody<K, I, O>,
{
    type Fold = B::Fold;

    /// Until the first watermark, where each record has one window at most and the trigger does not
    /// ask for records (see `folding.rs`).
    fn fold(&self, watermark: Timestamp) -> Option<Arc<Self::Fold>> {
        if watermark != Timestamp::MIN || self.merging || self.sees_elements {
            return None;
        }
        let assigner = &self.settings.assigner;
        let parts = match assigner.aligned() {
            _ if assigner.is_end_of_stream() => Parts::All,
            Some(aligned) if self.time == WindowTime::Event && aligned.size == aligned.slide => {
                Parts::Windows(aligned)
            }
            _ => return None,
        };
        self.body.fold(parts)
    }

    fn partial(
        &mut self,
        partial: <B::Fold as Fold<I>>::Partial,
        part: &[u8],
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let Some(window) = Window::of_namespace(part) else { return Ok(()) };
        let was_empty = self.body.add_partial(part, partial, context)?;
        self.added(window, window, was_empty, TriggerResult::Continue, context)
    }

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        self.settings.assigner.check()?;
        self.trigger_state.bind(backend)?;
        if self.merging {
            self.sessions.bind(backend)?;
        }
        self.body.open(backend)
    }

    fn element(&mut self, value: I, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        let at = self.time_of(context)?;
        let watermark = context.watermark();
        let mut windows = std::mem::take(&mut self.windows);
        windows.clear();
        self.settings.assigner.assign(&value, at, &mut windows)?;
        if self.merging {
            for window in &windows {
                self.add_merging(*window, value.clone(), context)?;
            }
            self.windows = windows;
            return Ok(());
        }
        let assigned = windows.len();
        windows.retain(|window| !self.is_over(*window, watermark));
        match windows.split_last() {
            Some((last, others)) => {
                for window in others {
                    self.add(*window, *window, value.clone(), context)?;
                }
                self.add(*last, *last, value, context)?;
            }
            None if assigned > 0 => self.late(value, context),
            // The assigner's own gap, between windows that do not meet.
            None => {}
        }
        self.windows = windows;
        Ok(())
    }

    fn on_timer(
        &mut self,
        timer: &Timer,
        kind: TimerKind,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let Some(window) = Window::of_namespace(&timer.namespace) else { return Ok(()) };
        let home = if self.merging {
            // A session that is gone, or has grown since, has no business of its own any more.
            match self.sessions.home(context, window)? {
                Some(home) => home,
                None => return Ok(()),
            }
        } else {
            window
        };
        let trigger = Arc::clone(&self.settings.trigger);
        let mut at_hand = self.trigger(window, context);
        let result = match kind {
            TimerKind::EventTime => trigger.on_event_time(timer.time, &mut at_hand)?,
            TimerKind::ProcessingTime => trigger.on_processing_time(timer.time, &mut at_hand)?,
        };
        self.obey(result, window, home, context)?;
        if self.clean_up(window) == Some((kind, timer.time)) {
            self.clear(window, home, context)?;
        }
        Ok(())
    }
}
