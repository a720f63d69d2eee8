//! All records of a subtask at once: `sort_partition` and `map_partition`; and a record with its key's
//! state: `map_with_state`.

use std::sync::Arc;

use element::{Key, Record};
use graph::OperatorAttributes;
use runtime::factory::NodePayload;
use runtime::nodes::{KeyedNode, OneInputNode};
use runtime::operator::partition::{PartitionOperator, PartitionRecords};
use runtime::operator::with_state::WithState;

use crate::{Collector, DataStream, Error, KeyedStream};

/// Emits at the end of its input only, from a sorter of its own.
const AT_END: OperatorAttributes = OperatorAttributes {
    output_only_at_end: true,
    sorts_internally: true,
    ..OperatorAttributes::operator()
};

impl<T: Record> DataStream<T> {
    /// Sorts the records of each subtask by a key, at the end of the input; equal keys stay in the order
    /// of their coming. Spills beyond the memory of `execution.sorted-inputs.memory`.
    ///
    /// For one order over all records, give it a parallelism of 1 behind
    /// [`global`](Self::global).
    pub fn sort_partition<K, F>(self, key: F) -> Self
    where
        K: Key,
        F: Fn(&T) -> K + Send + Sync + 'static,
    {
        let emit = |records: PartitionRecords<'_, K, T>, out: &mut Collector<'_, T>| {
            for (value, timestamp) in records {
                out.collect_at(value, timestamp);
                out.check()?;
            }
            Ok(())
        };
        self.partition("sort partition", key, emit)
    }

    /// Gives all records of each subtask to a function, at the end of the input, in the order of their
    /// coming. Records wait in memory up to `execution.sorted-inputs.memory`, then in files; results
    /// have no timestamps.
    ///
    /// Source: FLIP-380, "fullWindowPartition".
    pub fn map_partition<U, F>(self, function: F) -> DataStream<U>
    where
        U: Send + 'static,
        F: Fn(&mut dyn Iterator<Item = T>, &mut Collector<'_, U>) -> Result<(), Error>
            + Send
            + Sync
            + 'static,
    {
        let call = move |records: PartitionRecords<'_, (), T>, out: &mut Collector<'_, U>| {
            function(&mut records.map(|(value, _)| value), out)
        };
        self.partition("map partition", |_: &T| (), call)
    }

    fn partition<K, U, S, F>(self, name: &str, key: S, function: F) -> DataStream<U>
    where
        K: Key,
        U: Send + 'static,
        S: Fn(&T) -> K + Send + Sync + 'static,
        F: Fn(PartitionRecords<'_, K, T>, &mut Collector<'_, U>) -> Result<(), Error>
            + Send
            + Sync
            + 'static,
    {
        let (key, function) = (Arc::new(key), Arc::new(function));
        let make = move |context: &Arc<_>| {
            PartitionOperator::<K, T, U, S, F>::new(
                Arc::clone(&key),
                Arc::clone(&function),
                context,
            )
        };
        self.operator(name, NodePayload::new(OneInputNode::<T, U, _>::new(AT_END, make)))
    }
}

impl<K: Key, T: Record> KeyedStream<K, T> {
    /// Applies a function to each record and its key's state, which the function may change; `None` is
    /// no state, before and after.
    pub fn map_with_state<S, U, F>(self, function: F) -> DataStream<U>
    where
        S: Record + Clone,
        U: Send + 'static,
        F: Fn(&mut Option<S>, T) -> U + Send + Sync + 'static,
    {
        self.try_filter_map_with_state(move |state, value| Ok(Some(function(state, value))))
            .name("map with state")
    }

    /// As [`map_with_state`](Self::map_with_state); what the function returns something for goes out.
    pub fn filter_map_with_state<S, U, F>(self, function: F) -> DataStream<U>
    where
        S: Record + Clone,
        U: Send + 'static,
        F: Fn(&mut Option<S>, T) -> Option<U> + Send + Sync + 'static,
    {
        self.try_filter_map_with_state(move |state, value| Ok(function(state, value)))
    }

    /// As [`filter_map_with_state`](Self::filter_map_with_state), with a function that may fail; the job
    /// then does.
    pub fn try_filter_map_with_state<S, U, F>(self, function: F) -> DataStream<U>
    where
        S: Record + Clone,
        U: Send + 'static,
        F: Fn(&mut Option<S>, T) -> Result<Option<U>, Error> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        let make = move || WithState::<F, S, T>::new(Arc::clone(&function));
        let selector = self.selector.clone();
        let node = KeyedNode::<K, T, U, _>::new(selector, OperatorAttributes::keyed(), make);
        self.keyed("filter map with state", NodePayload::new(node))
    }
}
