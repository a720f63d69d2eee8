//! A byte store on RocksDB (feature `rocksdb`).
//!
//! One database and one ordered space per operator and subtask. Tuned for state: a block cache of the
//! size asked, bloom filters of 10 bits, lz4, index and filter blocks in the cache and pinned at the
//! first level, no write-ahead log, for what must survive is in snapshots. A view is a checkpoint of
//! hard links, opened read-only, whose tables later views share; a bulk load is table files, ingested
//! whole.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use element::CheckpointId;
use rocksdb::checkpoint::Checkpoint;
use rocksdb::compaction_filter::Decision;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRawIterator, IngestExternalFileOptions,
    Options, ReadOptions, SstFileWriter, WriteOptions,
};

use super::background::{BackgroundLoad, Batches};
use super::cleaner::Cleaner;
use super::{BulkLoad, ByteStore, StoreContext, StoreSnapshot, Visit, WriteBatch};
use crate::snapshot::{KeptTables, StoreTables};
use crate::{Expiry, StoreFailure};

/// Bytes of one table file of a bulk load, about.
const TABLE_BYTES: u64 = 64 << 20;

/// A store in one directory, deleted with the directory by whoever opened it.
pub struct RocksByteStore {
    database: Arc<DB>,
    directory: PathBuf,
    /// Numbers checkpoints and bulk loads apart.
    next: Arc<AtomicU64>,
    /// Which tables lie in checkpoints already.
    kept: KeptTables,
    cleaner: Arc<Cleaner>,
}

impl RocksByteStore {
    /// Opens an empty store in a directory that is made if it is not there.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Self, StoreFailure> {
        let make = std::fs::create_dir_all(directory);
        make.map_err(|error| StoreFailure::new("open", error))?;
        let mut options = table_options();
        let mut blocks = BlockBasedOptions::default();
        let cache_bytes = usize::try_from(cache_bytes).unwrap_or(usize::MAX);
        blocks.set_block_cache(&Cache::new_lru_cache(cache_bytes));
        blocks.set_bloom_filter(10.0, false);
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
        options.set_block_based_table_factory(&blocks);
        options.create_if_missing(true);
        options.set_write_buffer_size(64 << 20);
        options.set_max_background_jobs(2);
        let cleaner = Arc::new(Cleaner::default());
        let filter = Arc::clone(&cleaner);
        options.set_compaction_filter("expired state", move |_, key, value| {
            if filter.removes(key, value) { Decision::Remove } else { Decision::Keep }
        });
        let database = DB::open(&options, directory.join("db")).map_err(failed("open"))?;
        Ok(Self {
            database: Arc::new(database),
            directory: directory.to_owned(),
            next: Arc::default(),
            kept: KeptTables::default(),
            cleaner,
        })
    }

    /// A factory that opens a store in the context's directory.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`].
    pub fn factory(context: &StoreContext) -> Result<Box<dyn ByteStore>, StoreFailure> {
        Ok(Box::new(Self::open(&context.directory, context.cache_bytes)?))
    }

    fn next_path(&self, what: &str) -> PathBuf {
        self.directory.join(format!("{what}-{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }
}

#[cfg(test)]
impl RocksByteStore {
    /// Rewrites all tables.
    pub(super) fn compact(&self) {
        self.database.compact_range::<&[u8], &[u8]>(None, None);
    }
}

fn table_options() -> Options {
    let mut options = Options::default();
    options.set_compression_type(DBCompressionType::Lz4);
    options
}

fn failed(operation: &'static str) -> impl FnOnce(rocksdb::Error) -> StoreFailure {
    move |error| StoreFailure::new(operation, error)
}

fn visit_all(
    database: &DB,
    from: &[u8],
    to: Option<&[u8]>,
    visit: Visit<'_>,
) -> Result<(), StoreFailure> {
    if to.is_some_and(|to| to <= from) {
        return Ok(());
    }
    let mut options = ReadOptions::default();
    if let Some(to) = to {
        options.set_iterate_upper_bound(to);
    }
    let mut entries: DBRawIterator<'_> = database.raw_iterator_opt(options);
    entries.seek(from);
    while let (Some(key), Some(value)) = (entries.key(), entries.value()) {
        if let ControlFlow::Break(()) = visit(key, value) {
            return Ok(());
        }
        entries.next();
    }
    entries.status().map_err(failed("scan"))
}

impl ByteStore for RocksByteStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFailure> {
        self.database.get(key).map_err(failed("get"))
    }

    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        visit_all(&self.database, from, to, visit)
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        let mut writes = rocksdb::WriteBatch::default();
        for (key, value) in batch.iter() {
            match value {
                Some(value) => writes.put(key, value),
                None => writes.delete(key),
            }
        }
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.database.write_opt(writes, &options).map_err(failed("write"))
    }

    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreFailure> {
        let directory = self.next_path("view");
        Checkpoint::new(&self.database)
            .and_then(|checkpoint| checkpoint.create_checkpoint(&directory))
            .map_err(failed("snapshot"))?;
        Ok(Box::new(RocksDbSnapshot { directory, kept: self.kept.clone() }))
    }

    fn expire_by(&mut self, expiry: Arc<Expiry>) {
        self.cleaner.expire_by(expiry);
    }

    fn checkpoint_completed(&mut self, id: CheckpointId) {
        self.kept.completed(id);
    }

    fn bulk_load(&mut self) -> Result<Option<Box<dyn BulkLoad>>, StoreFailure> {
        let (database, directory) = (Arc::clone(&self.database), self.next_path("load"));
        let load = BackgroundLoad::spawn("rocksdb-bulk-load", move |batches| {
            let loaded = load_tables(&database, &directory, &batches);
            // Ingested files have been moved out; what is left is of a load that failed.
            let _ = std::fs::remove_dir_all(&directory);
            loaded
        })?;
        Ok(Some(Box::new(load)))
    }
}

/// Writes table files from all batches, then ingests them at once.
fn load_tables(database: &DB, directory: &Path, batches: &Batches) -> Result<(), StoreFailure> {
    std::fs::create_dir_all(directory).map_err(|error| StoreFailure::new("bulk load", error))?;
    let options = table_options();
    let mut files = Vec::new();
    let mut next = batches.next()?;
    while next.is_some() {
        let path = directory.join(format!("{}.sst", files.len()));
        let mut table = SstFileWriter::create(&options);
        table.open(&path).map_err(failed("bulk load"))?;
        let mut entries = 0;
        while let Some(batch) = next.take() {
            entries += batch.len();
            write_table(&mut table, &batch)?;
            next = batches.next()?;
            if table.file_size() >= TABLE_BYTES {
                break;
            }
        }
        if entries > 0 {
            table.finish().map_err(failed("bulk load"))?;
            files.push(path);
        }
    }
    if files.is_empty() {
        return Ok(());
    }
    let mut options = IngestExternalFileOptions::default();
    options.set_move_files(true);
    database.ingest_external_file_opts(&options, files).map_err(failed("bulk load"))
}

fn write_table(table: &mut SstFileWriter<'_>, batch: &WriteBatch) -> Result<(), StoreFailure> {
    for (key, value) in batch.iter() {
        match value {
            Some(value) => table.put(key, value),
            None => table.delete(key),
        }
        .map_err(failed("bulk load"))?;
    }
    Ok(())
}

impl fmt::Debug for RocksByteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksByteStore").field("directory", &self.directory).finish()
    }
}

/// Hard links to the files of the moment.
#[derive(Debug)]
struct RocksDbSnapshot {
    directory: PathBuf,
    kept: KeptTables,
}

/// The view of a directory with copies of a view's files, which it deletes.
pub(super) fn view_of(directory: PathBuf) -> Box<dyn StoreSnapshot> {
    Box::new(RocksDbSnapshot { directory, kept: KeptTables::default() })
}

impl StoreSnapshot for RocksDbSnapshot {
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        let database = DB::open_for_read_only(&table_options(), &self.directory, false)
            .map_err(failed("open"))?;
        visit_all(&database, from, to, visit)
    }

    fn tables(&self) -> Option<StoreTables> {
        Some(StoreTables { directory: self.directory.clone(), kept: self.kept.clone() })
    }
}

impl Drop for RocksDbSnapshot {
    fn drop(&mut self) {
        // Links that cannot be removed go with the store's directory.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
