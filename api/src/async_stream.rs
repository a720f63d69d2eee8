//! `map_async`: a slow function, such as a look-up over the network, called for several records at a
//! time.

use std::sync::Arc;

use element::Record;
use graph::{ChainingPolicy, OperatorAttributes};
use runtime::factory::NodePayload;
use runtime::nodes::OneInputNode;
use runtime::operator::async_function::{AsyncCall, AsyncFunction, AsyncSettings, Substitute};

use crate::{DataStream, Error};

impl<T: Record + Clone> DataStream<T> {
    /// Applies a function that takes its time, on threads of its own: each subtask makes up to
    /// `settings.concurrency` calls at once. Results carry their record's timestamp, and none passes a
    /// watermark.
    ///
    /// Records that wait are in checkpoints and are called anew after a restore: calls are made at least
    /// once. A call that fails, panics or takes longer than `settings.timeout` fails the job.
    pub fn map_async<U, F>(self, settings: AsyncSettings, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(T) -> Result<U, Error> + Send + Sync + 'static,
    {
        self.async_calls(settings, None, Arc::new(function))
    }

    /// As [`map_async`](Self::map_async); a record whose call takes too long gives what `substitute`
    /// makes of it, or nothing.
    pub fn map_async_or<U, F, S>(
        self,
        settings: AsyncSettings,
        function: F,
        substitute: S,
    ) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(T) -> Result<U, Error> + Send + Sync + 'static,
        S: Fn(T) -> Option<U> + Send + Sync + 'static,
    {
        self.async_calls(settings, Some(Arc::new(substitute)), Arc::new(function))
    }

    fn async_calls<U: Send + 'static>(
        self,
        settings: AsyncSettings,
        substitute: Option<Arc<Substitute<T, U>>>,
        call: Arc<AsyncCall<T, U>>,
    ) -> DataStream<U> {
        let attributes =
            OperatorAttributes { chaining: ChainingPolicy::Head, ..OperatorAttributes::operator() };
        let make = move |context: &Arc<_>| {
            AsyncFunction::<T, U>::open(settings, &call, substitute.clone(), context)
        };
        self.operator("async map", NodePayload::new(OneInputNode::<T, U, _>::new(attributes, make)))
    }
}
