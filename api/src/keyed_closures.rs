//! [`StatefulStream`]: a keyed process function written as closures over state handles.
//!
//! ```
//! use slackwater::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let env = StreamExecutionEnvironment::new();
//! let numbered = env
//!     .from_collection(["ebb", "flow", "ebb"].map(str::to_owned))
//!     .key_by(String::clone)
//!     .with_state(|| ValueState::<u64>::new("seen"))
//!     .process(|seen, word, context| {
//!         let number = seen.get(context)?.unwrap_or(0) + 1;
//!         context.collect(format!("{word} {number}"));
//!         Ok(seen.set(context, number)?)
//!     })
//!     .execute_and_collect()?;
//! assert_eq!(numbered.sorted(), ["ebb 1", "ebb 2", "flow 1"]);
//! # Ok(())
//! # }
//! ```

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Record, Timestamp};

use crate::{DataStream, Error, KeyedContext, KeyedProcessFunction, KeyedStream};

type Call<S, T, K, O> =
    dyn Fn(&S, T, &mut KeyedContext<'_, K, O>) -> Result<(), Error> + Send + Sync;

/// A keyed stream with handles to state, for closures. Made by [`KeyedStream::with_state`]; ended by
/// [`process`](Self::process).
pub struct StatefulStream<K, T, S, O> {
    keyed: KeyedStream<K, T>,
    state: Arc<dyn Fn() -> S + Send + Sync>,
    on_timer: Option<Arc<Call<S, Timestamp, K, O>>>,
    on_processing_timer: Option<Arc<Call<S, Timestamp, K, O>>>,
}

impl<K: Key, T: Record> KeyedStream<K, T> {
    /// Gives closures handles to state of each key: one handle, or a tuple or struct of several. `state`
    /// makes them, once for each subtask and attempt.
    ///
    /// The short way to a [`KeyedProcessFunction`].
    pub fn with_state<S, O>(
        self,
        state: impl Fn() -> S + Send + Sync + 'static,
    ) -> StatefulStream<K, T, S, O> {
        let state = Arc::new(state);
        StatefulStream { keyed: self, state, on_timer: None, on_processing_timer: None }
    }
}

impl<K, T, S, O> StatefulStream<K, T, S, O>
where
    K: Key,
    T: Record,
    S: Send + 'static,
    O: Send + 'static,
{
    /// Calls a closure when an event-time timer fires, with the timer's time.
    #[must_use]
    pub fn on_timer<F>(mut self, function: F) -> Self
    where
        F: Fn(&S, Timestamp, &mut KeyedContext<'_, K, O>) -> Result<(), Error>
            + Send
            + Sync
            + 'static,
    {
        self.on_timer = Some(Arc::new(function));
        self
    }

    /// Calls a closure when a processing-time timer fires, with the timer's time.
    #[must_use]
    pub fn on_processing_timer<F>(mut self, function: F) -> Self
    where
        F: Fn(&S, Timestamp, &mut KeyedContext<'_, K, O>) -> Result<(), Error>
            + Send
            + Sync
            + 'static,
    {
        self.on_processing_timer = Some(Arc::new(function));
        self
    }

    /// Calls a closure for each record.
    pub fn process<F>(self, function: F) -> DataStream<O>
    where
        F: Fn(&S, T, &mut KeyedContext<'_, K, O>) -> Result<(), Error> + Send + Sync + 'static,
    {
        let Self { keyed, state, on_timer, on_processing_timer } = self;
        let function = Arc::new(function);
        keyed.process(move || Closures {
            state: state(),
            function: Arc::clone(&function),
            on_timer: on_timer.clone(),
            on_processing_timer: on_processing_timer.clone(),
            record: PhantomData,
        })
    }
}

struct Closures<F, S, T, K, O> {
    state: S,
    function: Arc<F>,
    on_timer: Option<Arc<Call<S, Timestamp, K, O>>>,
    on_processing_timer: Option<Arc<Call<S, Timestamp, K, O>>>,
    record: PhantomData<fn(T)>,
}

impl<F, S, T, K, O> KeyedProcessFunction<K, T, O> for Closures<F, S, T, K, O>
where
    F: Fn(&S, T, &mut KeyedContext<'_, K, O>) -> Result<(), Error> + Send + Sync + 'static,
    S: Send + 'static,
    T: 'static,
    K: Key,
    O: 'static,
{
    #[inline]
    fn process(&mut self, value: T, context: &mut KeyedContext<'_, K, O>) -> Result<(), Error> {
        (self.function)(&self.state, value, context)
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        context: &mut KeyedContext<'_, K, O>,
    ) -> Result<(), Error> {
        self.on_timer.as_ref().map_or(Ok(()), |call| call(&self.state, at, context))
    }

    fn on_processing_timer(
        &mut self,
        at: Timestamp,
        context: &mut KeyedContext<'_, K, O>,
    ) -> Result<(), Error> {
        self.on_processing_timer.as_ref().map_or(Ok(()), |call| call(&self.state, at, context))
    }
}
