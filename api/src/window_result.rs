//! [`WindowResult`]: what windows emit, and what came too late for them.

use element::{Key, Record};

use crate::data_stream::SinkStream;
use crate::{
    CachedDataStream, Collected, Collector, DataStream, JobError, KeyedStream, SideTag, Sink,
};

/// The results of windows over records of `T`: a [`DataStream`] that also knows what came too late.
///
/// Most methods of a stream are here too; [`into_stream`](Self::into_stream) gives all of them. Records
/// that came too late for every window are counted in the job's report as late; without
/// [`with_late_output`](Self::with_late_output) they are dropped.
pub struct WindowResult<T, O> {
    results: DataStream<O>,
    late: SideTag<T>,
}

impl<T: Send + 'static, O: Send + 'static> WindowResult<T, O> {
    pub(crate) fn new(results: DataStream<O>, late: SideTag<T>) -> Self {
        Self { results, late }
    }

    /// The results, and the records that came too late for every window.
    #[must_use]
    pub fn with_late_output(self) -> (DataStream<O>, DataStream<T>) {
        let late = self.results.side_output(&self.late);
        (self.results, late)
    }

    /// The results.
    #[must_use]
    pub fn into_stream(self) -> DataStream<O> {
        self.results
    }

    /// The results' side output under a tag of the window function's own.
    pub fn side_output<U: Send + 'static>(&self, tag: &SideTag<U>) -> DataStream<U> {
        self.results.side_output(tag)
    }

    /// As [`DataStream::name`].
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self { results: self.results.name(name), late: self.late }
    }

    /// As [`DataStream::uid`].
    #[must_use]
    pub fn uid(self, uid: &str) -> Self {
        Self { results: self.results.uid(uid), late: self.late }
    }

    /// As [`DataStream::parallelism`].
    #[must_use]
    pub fn parallelism(self, subtasks: u32) -> Self {
        Self { results: self.results.parallelism(subtasks), late: self.late }
    }

    /// As [`DataStream::map`].
    pub fn map<U, F>(self, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(O) -> U + Send + Sync + 'static,
    {
        self.results.map(function)
    }

    /// As [`DataStream::inspect`].
    pub fn inspect<F>(self, function: F) -> DataStream<O>
    where
        F: Fn(&O) + Send + Sync + 'static,
    {
        self.results.inspect(function)
    }

    /// As [`DataStream::filter`].
    pub fn filter<F>(self, predicate: F) -> DataStream<O>
    where
        F: Fn(&O) -> bool + Send + Sync + 'static,
    {
        self.results.filter(predicate)
    }

    /// As [`DataStream::flat_map`].
    pub fn flat_map<U, F>(self, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(O, &mut Collector<'_, U>) + Send + Sync + 'static,
    {
        self.results.flat_map(function)
    }

    /// As [`DataStream::filter_map`].
    pub fn filter_map<U, F>(self, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(O) -> Option<U> + Send + Sync + 'static,
    {
        self.results.filter_map(function)
    }

    /// As [`DataStream::cache`].
    pub fn cache(self) -> CachedDataStream<O>
    where
        O: Record + Clone,
    {
        self.results.cache()
    }

    /// As [`DataStream::key_by`].
    pub fn key_by<K, F>(self, key: F) -> KeyedStream<K, O>
    where
        O: Record,
        K: Key,
        F: Fn(&O) -> K + Send + Sync + 'static,
    {
        self.results.key_by(key)
    }

    /// As [`DataStream::union`].
    #[must_use]
    pub fn union(self, other: DataStream<O>) -> DataStream<O> {
        self.results.union(other)
    }

    /// As [`DataStream::sink_to`].
    pub fn sink_to(self, sink: impl Sink<O>) -> SinkStream {
        self.results.sink_to(sink)
    }

    /// As [`DataStream::for_each`].
    pub fn for_each<F>(self, function: F) -> SinkStream
    where
        F: Fn(O) + Send + Sync + 'static,
    {
        self.results.for_each(function)
    }

    /// As [`DataStream::print`].
    pub fn print(self) -> SinkStream
    where
        O: std::fmt::Display,
    {
        self.results.print()
    }

    /// As [`DataStream::print_debug`].
    pub fn print_debug(self) -> SinkStream
    where
        O: std::fmt::Debug,
    {
        self.results.print_debug()
    }

    /// As [`DataStream::execute_and_collect`].
    ///
    /// # Errors
    ///
    /// [`JobError`]: what could not be planned, started or finished, by name.
    pub fn execute_and_collect(self) -> Result<Collected<O>, JobError> {
        self.results.execute_and_collect()
    }

    /// As [`DataStream::take`].
    ///
    /// # Errors
    ///
    /// [`JobError`]: what could not be planned, started or finished, by name.
    pub fn take(self, n: u64) -> Result<Collected<O>, JobError> {
        self.results.take(n)
    }
}

impl<T: Send + 'static, O: Send + 'static> From<WindowResult<T, O>> for DataStream<O> {
    fn from(result: WindowResult<T, O>) -> Self {
        result.into_stream()
    }
}
