//! [`WindowBody`]: what is kept of a window's records, and what comes out when it fires.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Record, Timestamp};
use state::{KeyedStateBackend, ValueState};

use super::bounds::Window;
use super::evictor::{Contents, Evictor};
use super::folding::{PartFold, Parts};
use crate::operator::aggregate::Aggregator;
use crate::operator::function::{Fold, NoFold};
use crate::operator::keyed_context::KeyedContext;

/// The contents of windows, by namespace. One a subtask; called on the task's thread for the key at
/// hand.
pub trait WindowBody<K: Key, I, O>: Send + 'static {
    /// How records of one window combine; [`NoFold`] if they do not.
    type Fold: Fold<I>;

    /// The fold over `parts`, if there is one.
    fn fold(&self, _parts: Parts) -> Option<Arc<Self::Fold>> {
        None
    }

    /// Adds what records of a window have combined to. True if the window was empty. Only called if
    /// there is a fold.
    ///
    /// # Errors
    ///
    /// What the state says.
    fn add_partial(
        &mut self,
        _namespace: &[u8],
        _partial: <Self::Fold as Fold<I>>::Partial,
        _context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<bool> {
        Ok(false)
    }

    /// Binds states.
    ///
    /// # Errors
    ///
    /// What a state or the user's function says.
    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()>;

    /// Adds a record. True if the window was empty.
    ///
    /// # Errors
    ///
    /// What the state says.
    fn add(
        &mut self,
        namespace: &[u8],
        value: I,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<bool>;

    /// Emits the result of a window, if it has contents.
    ///
    /// # Errors
    ///
    /// What the state or the user's function says.
    fn fire(
        &mut self,
        namespace: &[u8],
        window: Window,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()>;

    /// Moves the contents of `source` behind those of `target`; the source is empty afterwards.
    ///
    /// # Errors
    ///
    /// What the state says.
    fn merge(
        &mut self,
        target: &[u8],
        source: &[u8],
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()>;

    /// Lets the contents go.
    ///
    /// # Errors
    ///
    /// What the state says.
    fn clear(&mut self, namespace: &[u8], backend: &mut KeyedStateBackend) -> anyhow::Result<()>;
}

/// Keeps an accumulator; its result goes to a closure.
pub struct AggregateBody<A: Aggregator<I>, I, F> {
    aggregator: Arc<A>,
    emit: Arc<F>,
    state: ValueState<A::Accumulator>,
    input: PhantomData<fn(I)>,
}

impl<A: Aggregator<I>, I, F> AggregateBody<A, I, F> {
    /// Aggregates by `aggregator` and gives results to `emit`.
    #[must_use]
    pub fn new(aggregator: Arc<A>, emit: Arc<F>) -> Self {
        let state = ValueState::new("window contents");
        Self { aggregator, emit, state, input: PhantomData }
    }
}

impl<K, I, O, A, F> WindowBody<K, I, O> for AggregateBody<A, I, F>
where
    K: Key,
    I: 'static,
    A: Aggregator<I>,
    F: Fn(A::Output, Window, &mut KeyedContext<'_, K, O>) + Send + Sync + 'static,
{
    type Fold = PartFold<A, I>;

    fn fold(&self, parts: Parts) -> Option<Arc<Self::Fold>> {
        Some(PartFold::shared(&self.aggregator, parts))
    }

    fn add_partial(
        &mut self,
        namespace: &[u8],
        partial: A::Accumulator,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<bool> {
        let aggregator = &*self.aggregator;
        Ok(self.state.update_in(context, namespace, |held| match held {
            Some(accumulator) => {
                aggregator.merge(accumulator, partial);
                false
            }
            None => {
                *held = Some(partial);
                true
            }
        })?)
    }

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(self.state.bind(backend)?)
    }

    #[inline]
    fn add(
        &mut self,
        namespace: &[u8],
        value: I,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<bool> {
        let aggregator = &*self.aggregator;
        Ok(self.state.update_in(context, namespace, |held| match held {
            Some(accumulator) => {
                aggregator.add(accumulator, value);
                false
            }
            None => {
                *held = Some(aggregator.first(value));
                true
            }
        })?)
    }

    fn fire(
        &mut self,
        namespace: &[u8],
        window: Window,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        if let Some(accumulator) = self.state.get_in(context, namespace)? {
            (self.emit)(self.aggregator.result(&accumulator), window, context);
        }
        Ok(())
    }

    fn merge(
        &mut self,
        target: &[u8],
        source: &[u8],
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let Some(moved) = self.state.update_in(context, source, Option::take)? else {
            return Ok(());
        };
        let aggregator = &*self.aggregator;
        Ok(self.state.update_in(context, target, |held| match held {
            Some(accumulator) => aggregator.merge(accumulator, moved),
            None => *held = Some(moved),
        })?)
    }

    fn clear(&mut self, namespace: &[u8], backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(self.state.clear_in(backend, namespace)?)
    }
}

/// A function over all records of a window. One instance a subtask and attempt, made by a factory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no window function from `{I}` to `{O}` over keys of `{K}`",
    note = "implement `ProcessWindowFunction<K, I, O>`; for a closure see `apply`"
)]
pub trait ProcessWindowFunction<K: Key, I, O>: Send + 'static {
    /// Called once before the first record; the place to `bind` states.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn open(&mut self, _states: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(())
    }

    /// Takes the records of a window that fires, in the order of their coming. Results carry the
    /// window's last instant.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn process(
        &mut self,
        records: Vec<I>,
        window: Window,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()>;
}

/// A closure as a [`ProcessWindowFunction`].
pub struct WindowClosure<F>(pub Arc<F>);

impl<K, I, O, F> ProcessWindowFunction<K, I, O> for WindowClosure<F>
where
    K: Key,
    F: Fn(Vec<I>, Window, &mut KeyedContext<'_, K, O>) -> anyhow::Result<()>
        + Send
        + Sync
        + 'static,
{
    fn process(
        &mut self,
        records: Vec<I>,
        window: Window,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        (self.0)(records, window, context)
    }
}

/// Keeps all records; they go to a function.
pub struct ListBody<P, I> {
    function: P,
    evictor: Option<Arc<dyn Evictor<I>>>,
    state: ValueState<Contents<I>>,
}

impl<P, I: Record + Clone> ListBody<P, I> {
    /// Gives the records of windows to `function`, but for those that `evictor` removes.
    #[must_use]
    pub fn new(function: P, evictor: Option<Arc<dyn Evictor<I>>>) -> Self {
        Self { function, evictor, state: ValueState::new("window contents") }
    }
}

impl<K, I, O, P> WindowBody<K, I, O> for ListBody<P, I>
where
    K: Key,
    I: Record + Clone,
    P: ProcessWindowFunction<K, I, O>,
{
    type Fold = NoFold<I>;

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        self.state.bind(backend)?;
        self.function.open(backend)
    }

    fn add(
        &mut self,
        namespace: &[u8],
        value: I,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<bool> {
        let record: (I, Option<Timestamp>) = (value, context.timestamp());
        Ok(self.state.update_in(context, namespace, |held| match held {
            Some(contents) => {
                contents.push(record);
                false
            }
            None => {
                *held = Some(vec![record]);
                true
            }
        })?)
    }

    fn fire(
        &mut self,
        namespace: &[u8],
        window: Window,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let Some(mut contents) = self.state.get_in(context, namespace)? else { return Ok(()) };
        let Some(evictor) = &self.evictor else {
            let records = contents.into_iter().map(|(value, _)| value).collect();
            return self.function.process(records, window, context);
        };
        evictor.before(&mut contents, window);
        let records = contents.iter().map(|(value, _)| value.clone()).collect();
        self.function.process(records, window, context)?;
        evictor.after(&mut contents, window);
        Ok(self.state.update_in(context, namespace, |held| {
            *held = (!contents.is_empty()).then_some(contents);
        })?)
    }

    fn merge(
        &mut self,
        target: &[u8],
        source: &[u8],
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let Some(moved) = self.state.update_in(context, source, Option::take)? else {
            return Ok(());
        };
        Ok(self.state.update_in(context, target, |held| match held {
            Some(contents) => contents.extend(moved),
            None => *held = Some(moved),
        })?)
    }

    fn clear(&mut self, namespace: &[u8], backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(self.state.clear_in(backend, namespace)?)
    }
}
