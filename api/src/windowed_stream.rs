//! [`WindowedStream`]: records of each key, grouped into windows.
//!
//! Left out on purpose: what a window is and when it fires; `runtime`'s window operator holds that.

use std::sync::Arc;
use std::time::Duration;

use element::{Key, Record};
use graph::OperatorAttributes;
use runtime::factory::NodePayload;
use runtime::nodes::KeyedNode;
use runtime::operator::window::{
    AggregateBody, CountEvictor, CountTrigger, Evictor, GlobalWindows, LATE_RECORDS, ListBody,
    ProcessWindowFunction, PurgingTrigger, SlidingPanes, Trigger, Window, WindowAssigner,
    WindowBody, WindowClosure, WindowOperator, WindowSettings, WindowTime,
};

use crate::aggregates::Reduce;
use crate::window_result::WindowResult;
use crate::{Aggregator, Error, KeyedContext, KeyedStream, SideTag};

/// A keyed stream whose records are grouped into windows. Made by [`KeyedStream::window`]; ended by
/// one of [`aggregate`](Self::aggregate), [`reduce`](Self::reduce), [`apply`](Self::apply) and
/// [`process`](Self::process).
///
/// Results carry the last instant of their window as timestamp.
pub struct WindowedStream<K, T> {
    keyed: KeyedStream<K, T>,
    settings: WindowSettings<T>,
    /// Whether the trigger is the assigner's own.
    default_trigger: bool,
    evictor: Option<Arc<dyn Evictor<T>>>,
}

impl<K: Key, T: Record + Clone> KeyedStream<K, T> {
    /// Groups the records of each key into windows.
    pub fn window(self, assigner: impl WindowAssigner<T>) -> WindowedStream<K, T> {
        let trigger = assigner.default_trigger();
        let assigner: Arc<dyn WindowAssigner<T>> = Arc::new(assigner);
        let settings = WindowSettings { assigner, trigger, allowed_lateness: Duration::ZERO };
        WindowedStream { keyed: self, settings, default_trigger: true, evictor: None }
    }

    /// Groups every `size` records of a key into a window, by arrival. Fewer at the end of the input
    /// give no result.
    pub fn count_window(self, size: u64) -> WindowedStream<K, T> {
        self.window(GlobalWindows).trigger(PurgingTrigger::of(CountTrigger::of(size)))
    }

    /// With every `slide` records of a key, a window of its last `size`, by arrival. Windows keep
    /// records, so aggregates are made anew for each.
    pub fn count_window_sliding(self, size: usize, slide: u64) -> WindowedStream<K, T> {
        self.window(GlobalWindows).trigger(CountTrigger::of(slide)).evictor(CountEvictor::of(size))
    }
}

impl<K: Key, T: Record + Clone> WindowedStream<K, T> {
    /// Decides when windows fire, in place of the assigner's own trigger.
    #[must_use]
    pub fn trigger(mut self, trigger: impl Trigger<T>) -> Self {
        self.settings.trigger = Arc::new(trigger);
        self.default_trigger = false;
        self
    }

    /// Leaves records of a window out when it fires. Windows with an evictor keep all their records.
    #[must_use]
    pub fn evictor(mut self, evictor: impl Evictor<T>) -> Self {
        self.evictor = Some(Arc::new(evictor));
        self
    }

    /// Keeps windows for so long behind their end, in event time; each record that comes in that time
    /// fires its window again.
    #[must_use]
    pub fn allowed_lateness(mut self, lateness: Duration) -> Self {
        self.settings.allowed_lateness = lateness;
        self
    }

    /// Aggregates the records of each window: key, window and result.
    pub fn aggregate<A: Aggregator<T>>(
        self,
        aggregator: A,
    ) -> WindowResult<T, (K, Window, A::Output)> {
        self.aggregate_with(aggregator, |result, window, out| {
            let key = out.key().clone();
            out.collect((key, window, result));
        })
    }

    /// Aggregates the records of each window; a closure makes what comes out of the result, the
    /// window, and the context with the key.
    ///
    /// Sliding windows cost the same a record whatever their overlap, but with an allowed lateness,
    /// another trigger or an evictor.
    pub fn aggregate_with<A, O, F>(self, aggregator: A, emit: F) -> WindowResult<T, O>
    where
        A: Aggregator<T>,
        O: Send + 'static,
        F: Fn(A::Output, Window, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        let (aggregator, emit) = (Arc::new(aggregator), Arc::new(emit));
        if self.evictor.is_some() {
            return self.apply(move |records, window, out| {
                let mut records = records.into_iter();
                let Some(first) = records.next() else { return };
                let mut accumulator = aggregator.first(first);
                records.for_each(|record| aggregator.add(&mut accumulator, record));
                emit(aggregator.result(&accumulator), window, out);
            });
        }
        let event_time = self.settings.assigner.aligned().filter(|_| {
            self.settings.assigner.time() == WindowTime::Event
                && self.default_trigger
                // What is not valid is refused by the operator.
                && self.settings.assigner.check().is_ok()
        });
        let overlapping = event_time.filter(|aligned| {
            aligned.size > aligned.slide && self.settings.allowed_lateness.is_zero()
        });
        let combines = self.is_end_of_stream()
            || event_time.is_some_and(|aligned| aligned.size == aligned.slide);
        match overlapping {
            Some(aligned) => {
                let assigner = Arc::clone(&self.settings.assigner);
                let make = move || {
                    let (aggregator, emit) = (Arc::clone(&aggregator), Arc::clone(&emit));
                    SlidingPanes::<A, T, F>::new(aggregator, Arc::clone(&assigner), aligned, emit)
                };
                let selector = self.keyed.selector.clone();
                let attributes =
                    OperatorAttributes { combines: true, ..OperatorAttributes::keyed() };
                let node = KeyedNode::<K, T, O, _>::new(selector, attributes, make);
                self.finish("sliding window", NodePayload::new(node))
            }
            None => self.operator("window", combines, move || {
                AggregateBody::<A, T, F>::new(Arc::clone(&aggregator), Arc::clone(&emit))
            }),
        }
    }

    /// Combines the records of each window by an associative function.
    pub fn reduce<F>(self, function: F) -> WindowResult<T, T>
    where
        F: Fn(T, T) -> T + Send + Sync + 'static,
    {
        self.reduce_with(function, |result, _, out| out.collect(result))
    }

    /// As [`reduce`](Self::reduce); a closure makes what comes out, as in
    /// [`aggregate_with`](Self::aggregate_with).
    pub fn reduce_with<O, F, E>(self, function: F, emit: E) -> WindowResult<T, O>
    where
        O: Send + 'static,
        F: Fn(T, T) -> T + Send + Sync + 'static,
        E: Fn(T, Window, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        self.aggregate_with(Reduce::new(function), emit)
    }

    /// Gives all records of each window to a closure, in the order of their coming.
    pub fn apply<O, F>(self, function: F) -> WindowResult<T, O>
    where
        O: Send + 'static,
        F: Fn(Vec<T>, Window, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
    {
        self.try_apply(move |records, window, out: &mut KeyedContext<'_, K, O>| {
            function(records, window, out);
            Ok(())
        })
    }

    /// As [`apply`](Self::apply), with a function that may fail; the job then does.
    pub fn try_apply<O, F>(self, function: F) -> WindowResult<T, O>
    where
        O: Send + 'static,
        F: Fn(Vec<T>, Window, &mut KeyedContext<'_, K, O>) -> Result<(), Error>
            + Send
            + Sync
            + 'static,
    {
        let function = Arc::new(function);
        self.process(move || WindowClosure(Arc::clone(&function)))
    }

    /// Gives all records of each window to a function with state of its own; `make` is called for
    /// each subtask and attempt.
    pub fn process<O, P>(self, make: impl Fn() -> P + Send + Sync + 'static) -> WindowResult<T, O>
    where
        O: Send + 'static,
        P: ProcessWindowFunction<K, T, O>,
    {
        let evictor = self.evictor.clone();
        self.operator("window", false, move || ListBody::<P, T>::new(make(), evictor.clone()))
    }

    /// Whether the windows are those of the end of the input, with nothing that could make them fire
    /// earlier or leave records out: then the input is taken whole before any of it comes out (E7).
    fn is_end_of_stream(&self) -> bool {
        self.settings.assigner.is_end_of_stream() && self.default_trigger && self.evictor.is_none()
    }

    fn operator<O, B>(
        self,
        name: &str,
        combines: bool,
        body: impl Fn() -> B + Send + Sync + 'static,
    ) -> WindowResult<T, O>
    where
        O: Send + 'static,
        B: WindowBody<K, T, O>,
    {
        let settings = self.settings.clone();
        let make = move || WindowOperator::<K, T, O, B>::new(settings.clone(), body());
        let selector = self.keyed.selector.clone();
        let attributes = OperatorAttributes {
            combines,
            output_only_at_end: self.is_end_of_stream(),
            ..OperatorAttributes::keyed()
        };
        let node = KeyedNode::<K, T, O, _>::new(selector, attributes, make);
        self.finish(name, NodePayload::new(node))
    }

    fn finish<O: Send + 'static>(self, name: &str, payload: NodePayload) -> WindowResult<T, O> {
        WindowResult::new(self.keyed.keyed(name, payload), SideTag::new(LATE_RECORDS))
    }
}
