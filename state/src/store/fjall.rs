//! A byte store on disk in pure Rust: fjall, a log-structured merge tree.
//!
//! One database and one ordered keyspace per operator and subtask, in a directory of its own. Nothing
//! is synced by itself: what must survive is in snapshots. Bulk loads run on a thread of their own, so
//! that encoding and compressing tables does not hold up the task.

use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::path::Path;

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, Readable, Snapshot};

use super::background::BackgroundLoad;
use super::{BulkLoad, ByteStore, StoreContext, StoreSnapshot, Visit, WriteBatch};
use crate::StoreFailure;

/// The longest key that fjall takes.
const MAX_KEY: usize = 65_535;

/// A store in one directory, deleted with the directory by whoever opened it.
pub struct FjallByteStore {
    database: Database,
    entries: Keyspace,
}

impl FjallByteStore {
    /// Opens an empty store in a directory that is made if it is not there.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Self, StoreFailure> {
        let open = || {
            let database = Database::builder(directory)
                .cache_size(cache_bytes)
                .manual_journal_persist(true)
                .worker_threads(1)
                .open()?;
            let entries = database.keyspace("state", || {
                KeyspaceCreateOptions::default()
                    .manual_journal_persist(true)
                    .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            })?;
            Ok(Self { database, entries })
        };
        open().map_err(failed("open"))
    }

    /// A factory that opens a store in the context's directory.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    pub fn factory(context: &StoreContext) -> Result<Box<dyn ByteStore>, StoreFailure> {
        Ok(Box::new(Self::open(&context.directory, context.cache_bytes)?))
    }
}

fn failed(operation: &'static str) -> impl FnOnce(fjall::Error) -> StoreFailure {
    move |error| StoreFailure::new(operation, error)
}

fn check_key(key: &[u8]) -> Result<(), StoreFailure> {
    if key.len() <= MAX_KEY {
        return Ok(());
    }
    let len = key.len();
    Err(StoreFailure::new("write", format!("a key of {len} bytes is longer than {MAX_KEY}")))
}

/// Visits entries until the visitor has enough.
fn visit_all(entries: fjall::Iter, visit: Visit<'_>) -> Result<(), StoreFailure> {
    for entry in entries {
        let (key, value) = entry.into_inner().map_err(failed("scan"))?;
        if let ControlFlow::Break(()) = visit(&key, &value) {
            break;
        }
    }
    Ok(())
}

type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The range of a scan; `None` if it is empty.
fn bounds<'a>(from: &'a [u8], to: Option<&'a [u8]>) -> Option<Range<'a>> {
    to.is_none_or(|to| from < to)
        .then(|| (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded)))
}

impl ByteStore for FjallByteStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFailure> {
        if key.len() > MAX_KEY {
            return Ok(None);
        }
        Ok(self.entries.get(key).map_err(failed("get"))?.map(|value| value.to_vec()))
    }

    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        let Some(range) = bounds(from, to) else { return Ok(()) };
        visit_all(self.entries.range::<&[u8], _>(range), visit)
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        batch.iter().try_for_each(|(key, _)| check_key(key))?;
        let mut writes = self.database.batch();
        for (key, value) in batch.iter() {
            match value {
                Some(value) => writes.insert(&self.entries, key, value),
                None => writes.remove(&self.entries, key),
            }
        }
        writes.commit().map_err(failed("write"))
    }

    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreFailure> {
        let view = self.database.snapshot();
        Ok(Box::new(FjallSnapshot { view, entries: self.entries.clone() }))
    }

    fn bulk_load(&mut self) -> Result<Option<Box<dyn BulkLoad>>, StoreFailure> {
        let entries = self.entries.clone();
        let load = BackgroundLoad::spawn("fjall-bulk-load", move |batches| {
            let mut load = entries.start_ingestion().map_err(failed("bulk load"))?;
            while let Some(batch) = batches.next()? {
                for (key, value) in batch.iter() {
                    check_key(key)?;
                    match value {
                        Some(value) => load.write(key, value),
                        None => load.write_tombstone(key),
                    }
                    .map_err(failed("bulk load"))?;
                }
            }
            load.finish().map_err(failed("bulk load"))
        })?;
        Ok(Some(Box::new(load)))
    }
}

impl fmt::Debug for FjallByteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FjallByteStore").field("path", &self.entries.path()).finish()
    }
}

struct FjallSnapshot {
    view: Snapshot,
    entries: Keyspace,
}

impl StoreSnapshot for FjallSnapshot {
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        let Some(range) = bounds(from, to) else { return Ok(()) };
        visit_all(self.view.range::<&[u8], _>(&self.entries, range), visit)
    }
}

impl fmt::Debug for FjallSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FjallSnapshot").finish_non_exhaustive()
    }
}
