//! What travels through the engine, how it is written down, and where it may rest.
//!
//! The floor that `sort`, `state`, `shuffle` and `graph` share; it knows none of them. In reading
//! order: [`Record`] and [`Key`] say what may travel and what may be grouped by; [`Batch`] and
//! [`StreamElement`] are what moves between operators; [`RecordAttributes`] and [`Timestamp`]
//! carry the backlog signal and event time; [`MemoryBudget`] and [`SpillStore`] bound memory and
//! hold files; [`Clock`] and [`Configuration`] are the world and the options.
//!
//! Left out on purpose: anything that only one crate above needs.

#![forbid(unsafe_code)]

mod attributes;
mod batch;
mod clock;
mod codec;
mod compact_text;
mod decode;
mod duration;
mod element;
mod error;
mod evolve;
mod fields;
mod float;
mod hash;
mod id;
mod json;
mod key;
mod key_group;
mod key_impls;
mod memory;
mod options;
mod order;
mod record_containers;
mod record_impls;
mod record_std;
mod schema;
mod schema_record;
mod scope;
mod serde_record;
mod store;
mod time;
mod value;

pub use attributes::RecordAttributes;
pub use batch::{BATCH_RECORDS, Batch};
pub use clock::{Clock, ManualClock, SystemClock};
pub use codec::{Record, decode_exact, encode_to_vec};
pub use compact_str::CompactString;
pub use duration::DurationExt;
pub use element::{Barrier, BarrierKind, Control, StreamElement};
pub use error::{CodecError, SchemaError};
pub use float::{OrderedF32, OrderedF64};
pub use hash::{KeyHash, hash_key_bytes, hash_key_word};
pub use id::{
    Attempt, CheckpointId, DataSetId, EdgeId, Generation, JobId, NodeId, PartitionId,
    SubpartitionIndex, SubtaskIndex, TaskManagerId, VertexId,
};
pub use key::{Key, decode_key_exact, key_bytes};
pub use key_group::{KeyGroup, KeyGroups, MaxParallelism};
pub use memory::{ByteSize, Loan, MemoryBudget};
pub use options::{ConfigError, ConfigOption, Configuration, OptionValue, all_options};
pub use order::ElementOrder;
pub use schema::{Field, Schema, Variant};
pub use serde_record::Serde;
pub use store::{
    DirectoryStore, FaultPlan, FaultyStore, FileRole, MemoryStore, Operation, SpillStore,
    StoreError, StoreReader, StoreWriter,
};
pub use time::Timestamp;
pub use value::Value;

/// The typed table of options, one constant an option.
pub use options::table as option_table;

#[doc(hidden)]
pub mod __private {
    //! What the derives name; not for use by hand.
    pub use crate::fields::{Fields, heap_bytes};
    pub use crate::{CodecError, Field, Key, Record, Schema, SchemaError, Value, Variant};
}
