//! [`TolerantStream`]: a stream whose functions may fail for single records.
//!
//! ```
//! use slackwater::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let env = StreamExecutionEnvironment::new();
//! let (numbers, dead) = env
//!     .from_collection(["1", "two", "3"])
//!     .skip_failures()
//!     .try_map(|text| Ok(text.parse::<u64>()?))
//!     .name("parse")
//!     .with_dead_letters();
//! numbers.for_each(|_| {});
//! let dead = dead.execute_and_collect()?;
//! assert_eq!((dead[0].record, dead[0].operator.as_str(), dead[0].position), ("two", "parse", 2));
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use element::{Key, Record};
use graph::OperatorAttributes;
use runtime::factory::NodePayload;
use runtime::nodes::{KeyedNode, SidedNode};
use runtime::operator::process::Process;
use runtime::operator::side_output::SideOutputs;
use runtime::operator::tolerant::{DEAD_LETTERS, TolerantFlatMap, TolerantFunction};

use crate::stream_methods::stream_methods;
use crate::{
    CachedDataStream, Collector, DataStream, DeadLetter, Error, KeyedProcessFunction, KeyedStream,
    SideTag,
};

/// A stream whose functions may fail for single records. Made by [`DataStream::skip_failures`].
pub struct TolerantStream<T>(DataStream<T>);

/// A keyed stream whose function may fail for single records. Made by [`KeyedStream::skip_failures`].
pub struct TolerantKeyedStream<K, T>(KeyedStream<K, T>);

impl<T: Clone + Send + 'static> DataStream<T> {
    /// Lets the next function fail for single records, by an error or a panic: such a record does not
    /// fail the job. It is counted ([`OperatorReport::skipped`](crate::OperatorReport::skipped)), or
    /// put aside with the reason ([`Attempted::with_dead_letters`]). Costs a clone a record.
    #[must_use]
    pub fn skip_failures(self) -> TolerantStream<T> {
        TolerantStream(self)
    }
}

impl<K: Key, T: Record + Clone> KeyedStream<K, T> {
    /// As [`DataStream::skip_failures`]. What a failed call has done to state before it failed stays;
    /// a timer that fails fails the job.
    #[must_use]
    pub fn skip_failures(self) -> TolerantKeyedStream<K, T> {
        TolerantKeyedStream(self)
    }
}

impl<T: Clone + Send + 'static> TolerantStream<T> {
    /// Applies a function to each record. Order and timestamps stay.
    pub fn try_map<U, F>(self, function: F) -> Attempted<T, U>
    where
        U: Send + 'static,
        F: Fn(T) -> Result<U, Error> + Send + Sync + 'static,
    {
        self.try_flat_map(move |value, out: &mut Collector<'_, U>| {
            out.collect(function(value)?);
            Ok(())
        })
        .name("map")
    }

    /// Applies a function that emits any number of results for each record. What it has emitted before
    /// it fails stays.
    pub fn try_flat_map<U, F>(self, function: F) -> Attempted<T, U>
    where
        U: Send + 'static,
        F: Fn(T, &mut Collector<'_, U>) -> Result<(), Error> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        let make = move |context: &Arc<_>, side: SideOutputs| {
            TolerantFlatMap::<F, T, U>::new(Arc::clone(&function), side, context)
        };
        let node = SidedNode::<T, U, _>::new(make);
        Attempted::new(self.0.operator("flat map", NodePayload::new(node)))
    }
}

impl<K: Key, T: Record + Clone> TolerantKeyedStream<K, T> {
    /// Runs a function with state and timers; `make` is called for each subtask and attempt.
    pub fn process<O, F>(self, make: impl Fn() -> F + Send + Sync + 'static) -> Attempted<T, O>
    where
        O: Send + 'static,
        F: KeyedProcessFunction<K, T, O>,
    {
        let make = move || TolerantFunction::<_, T>::new(Process::<F, T>::new(make()));
        let selector = self.0.selector.clone();
        let node = KeyedNode::<K, T, O, _>::new(selector, OperatorAttributes::keyed(), make);
        Attempted::new(self.0.keyed("process", NodePayload::new(node)))
    }
}

/// The results of a function over records of `T` that may fail, and the records that it failed for.
pub struct Attempted<T, O> {
    results: DataStream<O>,
    letters: SideTag<DeadLetter<T>>,
}

impl<T: Send + 'static, O: Send + 'static> Attempted<T, O> {
    fn new(results: DataStream<O>) -> Self {
        Self { results, letters: SideTag::new(DEAD_LETTERS) }
    }

    /// As [`DataStream::name`].
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self { results: self.results.name(name), ..self }
    }

    /// As [`DataStream::uid`].
    #[must_use]
    pub fn uid(self, uid: &str) -> Self {
        Self { results: self.results.uid(uid), ..self }
    }

    /// As [`DataStream::parallelism`].
    #[must_use]
    pub fn parallelism(self, subtasks: u32) -> Self {
        Self { results: self.results.parallelism(subtasks), ..self }
    }

    /// As [`DataStream::max_parallelism`].
    #[must_use]
    pub fn max_parallelism(self, groups: u32) -> Self {
        Self { results: self.results.max_parallelism(groups), ..self }
    }

    /// The results, and the records that the function has failed for, with operator, position and
    /// reason.
    #[must_use]
    pub fn with_dead_letters(self) -> (DataStream<O>, DataStream<DeadLetter<T>>) {
        let letters = self.results.side_output(&self.letters);
        (self.results, letters)
    }

    /// The results; records that the function fails for are counted as skipped.
    #[must_use]
    pub fn into_stream(self) -> DataStream<O> {
        self.results
    }

    /// As [`DataStream::cache`]. Records that the function fails for are not in it.
    pub fn cache(self) -> CachedDataStream<O>
    where
        O: Record + Clone,
    {
        self.results.cache()
    }

    /// The results' side output under a tag of the function's own.
    pub fn side_output<U: Send + 'static>(&self, tag: &SideTag<U>) -> DataStream<U> {
        self.results.side_output(tag)
    }

    stream_methods!(O, (self) => self.results);
}

impl<T: Send + 'static, O: Send + 'static> From<Attempted<T, O>> for DataStream<O> {
    fn from(attempted: Attempted<T, O>) -> Self {
        attempted.into_stream()
    }
}
