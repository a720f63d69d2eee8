//! A byte store on disk in pure Rust: fjall, a log-structured merge tree.
//!
//! One database and one ordered keyspace per operator and subtask, in a directory of its own. Nothing
//! is synced by itself: what must survive is in snapshots. Bulk loads run on a thread of their own, so
//! that encoding and compressing tables does not hold up the task.

use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
};
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, Readable, Snapshot};

use super::background::BackgroundLoad;
use super::cleaner::{Cleaner, OpenView};
use super::{BulkLoad, ByteStore, StoreContext, StoreSnapshot, Visit, WriteBatch};
use crate::{Expiry, StoreFailure};

/// Tables that are flushed or loaded, of the first two levels, are not packed: entries of hashed keys pack
/// badly, and a load waits for it. Compactions pack what stays.
const PACKED: [CompressionType; 3] =
    [CompressionType::None, CompressionType::None, CompressionType::Lz4];

/// The longest key that fjall takes.
const MAX_KEY: usize = 65_535;

/// A store in one directory, deleted with the directory by whoever opened it.
pub struct FjallByteStore {
    database: Database,
    entries: Keyspace,
    cleaner: Arc<Cleaner>,
}

impl FjallByteStore {
    /// Opens an empty store in a directory that is made if it is not there.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Self, StoreFailure> {
        let cleaner = Arc::new(Cleaner::default());
        let open = || {
            let filters = Arc::clone(&cleaner);
            let database = Database::builder(directory)
                .cache_size(cache_bytes)
                .manual_journal_persist(true)
                .worker_threads(1)
                .with_compaction_filter_factories(Arc::new(move |_| {
                    let factory = CleanerFactory(AssertUnwindSafe(Arc::clone(&filters)));
                    Some(Arc::new(factory) as Arc<dyn Factory>)
                }))
                .open()?;
            let entries = database.keyspace("state", || {
                KeyspaceCreateOptions::default()
                    .manual_journal_persist(true)
                    .data_block_compression_policy(CompressionPolicy::new(PACKED))
            })?;
            Ok(Self { database, entries, cleaner: Arc::clone(&cleaner) })
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

#[cfg(test)]
impl FjallByteStore {
    /// Rewrites all tables.
    pub(super) fn compact(&self) {
        self.entries.rotate_memtable_and_wait().expect("the store flushes");
        self.entries.major_compact().expect("the store compacts");
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

    fn snapshot(&mut self) -> Result<Box<dyn StoreSnapshot>, StoreFailure> {
        let guard = OpenView::of(&self.cleaner);
        let view = self.database.snapshot();
        Ok(Box::new(FjallSnapshot { view, entries: self.entries.clone(), _guard: guard }))
    }

    fn expire_by(&mut self, expiry: Arc<Expiry>) {
        self.cleaner.expire_by(expiry);
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
    _guard: OpenView,
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

/// Makes a filter for each compaction. What it shares is whole after a panic: counters, and words
/// that are replaced as one.
struct CleanerFactory(AssertUnwindSafe<Arc<Cleaner>>);

impl Factory for CleanerFactory {
    fn name(&self) -> &'static str {
        "expired state"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(CleanerFilter(Arc::clone(&self.0.0)))
    }
}

struct CleanerFilter(Arc<Cleaner>);

impl CompactionFilter for CleanerFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        let removes = self.0.removes(item.key(), &item.value()?);
        Ok(if removes { Verdict::Remove } else { Verdict::Keep })
    }
}
