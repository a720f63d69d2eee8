//! [`WindowResult`]: what windows emit, and what came too late for them.

use element::Record;

use crate::stream_methods::stream_methods;
use crate::{CachedDataStream, DataStream, JobError, SideTag};

/// The results of windows over records of `T`: a [`DataStream`] that also knows what came too late.
///
/// The methods of a stream are here too; [`into_stream`](Self::into_stream) is for where a [`DataStream`]
/// itself is asked for. Records that came too late for every window are counted in the job's report as
/// late; without [`with_late_output`](Self::with_late_output) they are dropped.
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

    /// As [`DataStream::max_parallelism`].
    #[must_use]
    pub fn max_parallelism(self, groups: u32) -> Self {
        Self { results: self.results.max_parallelism(groups), late: self.late }
    }

    /// As [`DataStream::cache`]. What came too late is not in it.
    pub fn cache(self) -> CachedDataStream<O>
    where
        O: Record + Clone,
    {
        self.results.cache()
    }

    /// As [`DataStream::cache_named`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn cache_named(self, name: &str) -> Result<CachedDataStream<O>, JobError>
    where
        O: Record + Clone,
    {
        self.results.cache_named(name)
    }

    stream_methods!(O, (self) => self.results);
}

impl<T, O: Clone + Send + 'static> Clone for WindowResult<T, O> {
    fn clone(&self) -> Self {
        Self { results: self.results.clone(), late: self.late.clone() }
    }
}

impl<T: Send + 'static, O: Send + 'static> From<WindowResult<T, O>> for DataStream<O> {
    fn from(result: WindowResult<T, O>) -> Self {
        result.into_stream()
    }
}
