//! [`stream_methods`]: the methods of a [`DataStream`](crate::DataStream) for what holds one.
//!
//! Written once for [`WindowResult`](crate::WindowResult), [`Attempted`](crate::Attempted) and
//! [`CachedDataStream`](crate::CachedDataStream), which say how they are taken and how a stream is made of
//! them; `api/tests/stream_methods.rs` holds the list against the stream's own. Left out on purpose: `name`
//! and its like, `cache` and `side_output`, which each of them means in its own way.

/// Methods over records of `$record`, on `$receiver` (`self` or `&self`), each by way of `$stream`.
macro_rules! stream_methods {
    ($record:ident, ($($receiver:tt)+) => $stream:expr) => {
        /// As [`DataStream::map`].
        pub fn map<U, F>($($receiver)+, function: F) -> crate::DataStream<U>
        where
            U: Send + 'static,
            F: Fn($record) -> U + Send + Sync + 'static,
        {
            $stream.map(function)
        }

        /// As [`DataStream::try_map`].
        pub fn try_map<U, F>($($receiver)+, function: F) -> crate::DataStream<U>
        where
            U: Send + 'static,
            F: Fn($record) -> Result<U, crate::Error> + Send + Sync + 'static,
        {
            $stream.try_map(function)
        }

        /// As [`DataStream::filter`].
        pub fn filter<F>($($receiver)+, predicate: F) -> crate::DataStream<$record>
        where
            F: Fn(&$record) -> bool + Send + Sync + 'static,
        {
            $stream.filter(predicate)
        }

        /// As [`DataStream::inspect`].
        pub fn inspect<F>($($receiver)+, function: F) -> crate::DataStream<$record>
        where
            F: Fn(&$record) + Send + Sync + 'static,
        {
            $stream.inspect(function)
        }

        /// As [`DataStream::flat_map`].
        pub fn flat_map<U, F>($($receiver)+, function: F) -> crate::DataStream<U>
        where
            U: Send + 'static,
            F: Fn($record, &mut crate::Collector<'_, U>) + Send + Sync + 'static,
        {
            $stream.flat_map(function)
        }

        /// As [`DataStream::try_flat_map`].
        pub fn try_flat_map<U, F>($($receiver)+, function: F) -> crate::DataStream<U>
        where
            U: Send + 'static,
            F: Fn($record, &mut crate::Collector<'_, U>) -> Result<(), crate::Error>
                + Send
                + Sync
                + 'static,
        {
            $stream.try_flat_map(function)
        }

        /// As [`DataStream::filter_map`].
        pub fn filter_map<U, F>($($receiver)+, function: F) -> crate::DataStream<U>
        where
            U: Send + 'static,
            F: Fn($record) -> Option<U> + Send + Sync + 'static,
        {
            $stream.filter_map(function)
        }

        /// As [`DataStream::process`].
        pub fn process<U, F>(
            $($receiver)+,
            make: impl Fn() -> F + Send + Sync + 'static,
        ) -> crate::DataStream<U>
        where
            U: Send + 'static,
            F: crate::ProcessFunction<$record, U>,
        {
            $stream.process(make)
        }

        /// As [`DataStream::skip_failures`].
        #[must_use]
        pub fn skip_failures($($receiver)+) -> crate::TolerantStream<$record>
        where
            $record: Clone,
        {
            $stream.skip_failures()
        }

        /// As [`DataStream::map_async`].
        pub fn map_async<U, F>(
            $($receiver)+,
            settings: crate::AsyncSettings,
            function: F,
        ) -> crate::DataStream<U>
        where
            $record: element::Record + Clone,
            U: Send + 'static,
            F: Fn($record) -> Result<U, crate::Error> + Send + Sync + 'static,
        {
            $stream.map_async(settings, function)
        }

        /// As [`DataStream::map_async_or`].
        pub fn map_async_or<U, F, S>(
            $($receiver)+,
            settings: crate::AsyncSettings,
            function: F,
            substitute: S,
        ) -> crate::DataStream<U>
        where
            $record: element::Record + Clone,
            U: Send + 'static,
            F: Fn($record) -> Result<U, crate::Error> + Send + Sync + 'static,
            S: Fn($record) -> Option<U> + Send + Sync + 'static,
        {
            $stream.map_async_or(settings, function, substitute)
        }

        /// As [`DataStream::assign_timestamps_and_watermarks`].
        pub fn assign_timestamps_and_watermarks(
            $($receiver)+,
            strategy: crate::WatermarkStrategy<$record>,
        ) -> crate::DataStream<$record> {
            $stream.assign_timestamps_and_watermarks(strategy)
        }

        /// As [`DataStream::union`].
        #[must_use]
        pub fn union(
            $($receiver)+,
            other: impl Into<crate::DataStream<$record>>,
        ) -> crate::DataStream<$record> {
            $stream.union(other)
        }

        /// As [`DataStream::connect`].
        pub fn connect<C>($($receiver)+, other: C) -> C::Connected
        where
            $record: element::Record,
            C: crate::Connect<crate::DataStream<$record>>,
        {
            $stream.connect(other)
        }

        /// As [`DataStream::key_by`].
        pub fn key_by<K, F>($($receiver)+, key: F) -> crate::KeyedStream<K, $record>
        where
            $record: element::Record,
            K: element::Key,
            F: Fn(&$record) -> K + Send + Sync + 'static,
        {
            $stream.key_by(key)
        }

        /// As [`DataStream::key_by_ref`].
        pub fn key_by_ref<K, F>($($receiver)+, key: F) -> crate::KeyedStream<K, $record>
        where
            $record: element::Record,
            K: element::Key,
            F: for<'a> Fn(&'a $record) -> &'a K + Send + Sync + 'static,
        {
            $stream.key_by_ref(key)
        }

        /// As [`DataStream::rebalance`].
        #[must_use]
        pub fn rebalance($($receiver)+) -> crate::DataStream<$record>
        where
            $record: element::Record,
        {
            $stream.rebalance()
        }

        /// As [`DataStream::rescale`].
        #[must_use]
        pub fn rescale($($receiver)+) -> crate::DataStream<$record>
        where
            $record: element::Record,
        {
            $stream.rescale()
        }

        /// As [`DataStream::shuffle`].
        #[must_use]
        pub fn shuffle($($receiver)+) -> crate::DataStream<$record>
        where
            $record: element::Record,
        {
            $stream.shuffle()
        }

        /// As [`DataStream::global`].
        #[must_use]
        pub fn global($($receiver)+) -> crate::DataStream<$record>
        where
            $record: element::Record,
        {
            $stream.global()
        }

        /// As [`DataStream::forward`].
        #[must_use]
        pub fn forward($($receiver)+) -> crate::DataStream<$record>
        where
            $record: element::Record,
        {
            $stream.forward()
        }

        /// As [`DataStream::broadcast`].
        #[must_use]
        pub fn broadcast($($receiver)+) -> crate::DataStream<$record>
        where
            $record: element::Record + Clone,
        {
            $stream.broadcast()
        }

        /// As [`DataStream::partition_custom`].
        #[must_use]
        pub fn partition_custom<F>($($receiver)+, function: F) -> crate::DataStream<$record>
        where
            $record: element::Record,
            F: Fn(&$record, u32) -> u32 + Send + Sync + 'static,
        {
            $stream.partition_custom(function)
        }

        /// As [`DataStream::broadcast_state`].
        #[must_use]
        pub fn broadcast_state($($receiver)+) -> crate::BroadcastStream<$record>
        where
            $record: element::Record + Clone,
        {
            $stream.broadcast_state()
        }

        /// As [`DataStream::sort_partition`].
        pub fn sort_partition<K, F>($($receiver)+, key: F) -> crate::DataStream<$record>
        where
            $record: element::Record,
            K: element::Key,
            F: Fn(&$record) -> K + Send + Sync + 'static,
        {
            $stream.sort_partition(key)
        }

        /// As [`DataStream::map_partition`].
        pub fn map_partition<U, F>($($receiver)+, function: F) -> crate::DataStream<U>
        where
            $record: element::Record,
            U: Send + 'static,
            F: Fn(
                    &mut dyn Iterator<Item = $record>,
                    &mut crate::Collector<'_, U>,
                ) -> Result<(), crate::Error>
                + Send
                + Sync
                + 'static,
        {
            $stream.map_partition(function)
        }

        /// As [`DataStream::sink_to`].
        pub fn sink_to(
            $($receiver)+,
            sink: impl crate::Sink<$record>,
        ) -> crate::data_stream::SinkStream {
            $stream.sink_to(sink)
        }

        /// As [`DataStream::for_each`].
        pub fn for_each<F>($($receiver)+, function: F) -> crate::data_stream::SinkStream
        where
            F: Fn($record) + Send + Sync + 'static,
        {
            $stream.for_each(function)
        }

        /// As [`DataStream::try_for_each`].
        pub fn try_for_each<F>($($receiver)+, function: F) -> crate::data_stream::SinkStream
        where
            F: Fn($record) -> Result<(), crate::Error> + Send + Sync + 'static,
        {
            $stream.try_for_each(function)
        }

        /// As [`DataStream::print`].
        pub fn print($($receiver)+) -> crate::data_stream::SinkStream
        where
            $record: std::fmt::Display,
        {
            $stream.print()
        }

        /// As [`DataStream::print_debug`].
        pub fn print_debug($($receiver)+) -> crate::data_stream::SinkStream
        where
            $record: std::fmt::Debug,
        {
            $stream.print_debug()
        }

        /// As [`DataStream::execute_and_collect`].
        ///
        /// # Errors
        ///
        /// As there.
        pub fn execute_and_collect(
            $($receiver)+,
        ) -> Result<crate::Collected<$record>, crate::JobError> {
            $stream.execute_and_collect()
        }

        /// As [`DataStream::take`].
        ///
        /// # Errors
        ///
        /// As there.
        pub fn take($($receiver)+, n: u64) -> Result<crate::Collected<$record>, crate::JobError> {
            $stream.take(n)
        }
    };
}

pub(crate) use stream_methods;
