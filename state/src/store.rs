//! The byte store beneath disk-backed state: ordered keys, batches, range reads, bulk loads.
//!
//! [`KeyedStateBackend`](crate::KeyedStateBackend) encodes and caches; a store keeps bytes in the
//! order of their keys and knows nothing of what they mean. A user may plug in one of their own: the
//! four required methods suffice.
//!
//! Left out on purpose: durability of single writes. What must survive a crash is in snapshots.

mod background;
mod cleaner;
#[cfg(test)]
mod cleaning_tests;
mod fjall;
#[cfg(feature = "rocksdb")]
mod held;
mod memory;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod write_batch;

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use element::{CheckpointId, MemoryBudget, SubtaskIndex};

pub use self::fjall::FjallByteStore;
#[cfg(feature = "rocksdb")]
pub use self::rocksdb::RocksByteStore;
pub use memory::MemoryByteStore;
pub use write_batch::WriteBatch;

#[cfg(feature = "rocksdb")]
use crate::snapshot::fetch_tables;
use crate::snapshot::{SnapshotSource, StoreTables};
use crate::{Expiry, StateError, StoreFailure};

/// What a scan hands out: key and value, in the order of keys. Break ends the scan.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Ordered bytes of one operator subtask. Implemented by the stores of this crate and by users;
/// called by the backend on the task's thread.
pub trait ByteStore: Send + fmt::Debug {
    /// The value of one key.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFailure>;

    /// Visits the entries from `from` on, in the order of their keys, up to but without `to`; with
    /// `None` to the last.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`]; what was visited before stands.
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure>;

    /// Applies all puts and deletes of a batch, in order; a later one of the same key wins.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`]; some of the batch may have been applied.
    fn write(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure>;

    /// A view that does not change while writes go on, and can be read on another thread.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    fn snapshot(&mut self) -> Result<Box<dyn StoreSnapshot>, StoreFailure>;

    /// Begins a bulk load; `None` if the store has no better way than sorted batches of writes.
    ///
    /// Reads go on meanwhile and see nothing of the load until it is finished. A load dropped
    /// unfinished leaves the store as it was.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    fn bulk_load(&mut self) -> Result<Option<Box<dyn BulkLoad>>, StoreFailure> {
        Ok(None)
    }

    /// Hands over who knows which entries have expired: a store that rewrites its files may leave those
    /// out, as long as a view that is open goes on showing them. Called once, before any write.
    fn expire_by(&mut self, _expiry: Arc<Expiry>) {}

    /// A checkpoint is complete, with the view that the store gave for it.
    fn checkpoint_completed(&mut self, _id: CheckpointId) {}
}

/// Entries on their way into a store as whole files.
pub trait BulkLoad: Send + fmt::Debug {
    /// Takes entries whose keys ascend strictly, within the batch and from batch to batch.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`]; the load is then of no more use.
    fn write(&mut self, batch: WriteBatch) -> Result<(), StoreFailure>;

    /// Makes all entries visible at once.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`]; the store is as it was before the load.
    fn finish(self: Box<Self>) -> Result<(), StoreFailure>;
}

/// A consistent view of a store.
pub trait StoreSnapshot: Send + fmt::Debug {
    /// As [`ByteStore::scan`], on the view.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure>;

    /// The files that the view consists of, if snapshots may share them.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`] if the view could not be made after all.
    fn tables(&self) -> Result<Option<StoreTables>, StoreFailure> {
        Ok(None)
    }
}

/// Copies the tables of a snapshot below `scratch` and opens them; the view deletes the copies.
pub(crate) fn open_tables(
    source: &SnapshotSource,
    scratch: &Path,
) -> Result<Box<dyn StoreSnapshot>, StateError> {
    #[cfg(feature = "rocksdb")]
    {
        let directory = fetch_tables(source.store.as_ref(), &source.handle, scratch)?;
        Ok(self::rocksdb::view_of(directory))
    }
    #[cfg(not(feature = "rocksdb"))]
    {
        let _ = (source, scratch);
        let what = "a checkpoint in RocksDB tables: enable the feature `rocksdb`";
        Err(StateError::NotSupported { backend: "this build's", what })
    }
}

/// For whom a store is opened, and what it may use.
#[derive(Clone, Debug)]
pub struct StoreContext {
    /// The operator's uid.
    pub operator: String,
    /// Which of its subtasks.
    pub subtask: SubtaskIndex,
    /// A directory of the store's own, not yet made; whoever opened the store deletes it.
    pub directory: PathBuf,
    /// Where the memory of caches and write buffers is borrowed.
    pub memory: Arc<MemoryBudget>,
    /// Bytes for the store's block cache, `state.backend.store-cache.size`.
    pub cache_bytes: u64,
}

/// Opens a store for each subtask and attempt. Implemented for every closure of this shape.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not open stores",
    note = "pass a closure from `StoreContext` to a boxed `ByteStore`"
)]
pub trait ByteStoreFactory: Send + Sync {
    /// Opens an empty store.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    fn open(&self, context: &StoreContext) -> Result<Box<dyn ByteStore>, StoreFailure>;
}

impl<F> ByteStoreFactory for F
where
    F: Fn(&StoreContext) -> Result<Box<dyn ByteStore>, StoreFailure> + Send + Sync,
{
    fn open(&self, context: &StoreContext) -> Result<Box<dyn ByteStore>, StoreFailure> {
        self(context)
    }
}
