//! One value per key, kept across records and failures.
//!
//! A user declares state by handles ([`ValueState`], [`ListState`], [`MapState`], [`ReducingState`],
//! [`AggregatingState`]); a [`KeyedStateBackend`] of each subtask holds what they name, for the key
//! that is current:
//!
//! | phase | backend | where values are |
//! |---|---|---|
//! | batch over sorted input | [`KeyedStateBackend::one_key`] | the current key's, and nothing else |
//! | streaming, in memory | [`KeyedStateBackend::heap`] | all of them, typed, by hash range |
//! | streaming, on disk | [`KeyedStateBackend::over`] | a [`ByteStore`], behind a write-back cache of typed values |
//! | sorted backlog, on disk | the same, between [`KeyedStateBackend::begin_sorted_input`] and its end | read in step with the input, written as a bulk load |
//!
//! [`TimerService`] holds the timers beside it. A snapshot has one format whatever the backend, so
//! it is restored into any other and at any parallelism.
//!
//! Left out on purpose: when to snapshot, which key is current, what the watermark is. The runtime
//! decides those.

#![deny(unsafe_code)]
#![deny(missing_docs)]

mod aggregating;
mod backend;
mod broadcast;
mod cache;
mod cell;
mod counters;
mod current_key;
mod entry_key;
mod error;
mod expiry;
mod handle;
mod heap;
pub mod inspect;
mod link;
mod list;
mod map;
mod map_cell;
mod migrate;
mod operator_state;
mod reducing;
mod slot;
mod slots;
mod snapshot;
mod sorted;
mod store;
mod store_key;
mod timers;
mod ttl;
mod value;

pub use aggregating::{AggregateFunction, AggregatingState};
pub use backend::{ComingKeys, KeyEntry, KeyedState, KeyedStateBackend, StateAccess, WriteMode};
pub use broadcast::{BroadcastRead, BroadcastState, BroadcastWrite, ReadOnly};
pub use counters::StateCounters;
pub use error::{StateError, StoreFailure};
pub use expiry::Expiry;
pub use handle::{StateDescriptor, StateKind};
pub use list::ListState;
pub use map::MapState;
pub use operator_state::{
    OperatorListState, OperatorStateBackend, OperatorStateSnapshot, Redistribution,
};
pub use reducing::ReducingState;
pub use snapshot::{
    NonRestored, PendingSnapshot, RestoredSnapshot, SHARED, SnapshotEntry, SnapshotError,
    SnapshotFile, SnapshotHandle, SnapshotHeader, SnapshotReader, SnapshotSource, StateHeader,
    StoreTables, check_restorable, check_source,
};
#[cfg(feature = "rocksdb")]
pub use store::RocksByteStore;
pub use store::{
    BulkLoad, ByteStore, ByteStoreFactory, FjallByteStore, MemoryByteStore, StoreContext,
    StoreSnapshot, Visit, WriteBatch,
};
pub use timers::{Timer, TimerKind, TimerService};
pub use ttl::{TtlClock, TtlConfig, TtlUpdate, TtlVisibility};
pub use value::ValueState;
