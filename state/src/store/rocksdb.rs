//! A byte store on RocksDB (feature `rocksdb`).
//!
//! One database and one ordered space per operator and subtask. Tuned for state: a block cache of the
//! size asked, bloom filters of 10 bits, lz4, index and filter blocks in the cache and pinned at the
//! first level, a hash of the keys in each block and a bloom filter over what is in memory, no
//! write-ahead log, for what must survive is in snapshots. Live records go first: compaction runs at a
//! low priority, and it and flushes pause between small pieces, for a task that wakes where another
//! thread runs may have to wait for the scheduler's next tick, milliseconds away. A view is a checkpoint
//! of hard links, whose tables later views share; while a thread makes it, writes wait beside the
//! database. A bulk load is table files, ingested whole, and not compressed: entries of hashed keys pack
//! badly, and the load waits for it; compactions pack what stays.

mod view;

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use element::CheckpointId;
use rocksdb::compaction_filter::Decision;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRawIterator, DataBlockIndexType, Env,
    IngestExternalFileOptions, Options, ReadOptions, SstFileWriter, WriteOptions,
};

use self::view::{Links, RocksDbSnapshot};
use super::background::{BackgroundLoad, Batches};
use super::cleaner::Cleaner;
use super::held::HeldWrites;
use super::{BulkLoad, ByteStore, StoreContext, StoreSnapshot, Visit, WriteBatch};
use crate::snapshot::KeptTables;
use crate::{Expiry, StoreFailure};

pub(super) use self::view::view_of;

/// Bytes of one table file of a bulk load, about.
const TABLE_BYTES: u64 = 64 << 20;
/// Memory of writes that wait for a view; with more the task waits, too.
const HELD_BYTES: usize = 16 << 20;
/// Writes that waited and follow a write at hand into the database, at least: so few that those of a
/// batch of live records make none of them late.
const RELEASED: usize = 8;
/// Bytes that flushes and compactions write between two looks at their rate: some tenths of a
/// millisecond of work.
const PIECE_BYTES: u64 = 32 << 10;
/// How often they may go on, if they are ahead of their rate.
const PAUSE_MICROS: i64 = 1_000;
/// Bytes a second of a store's flushes and compactions: a twentieth where there is little to write, more
/// and more, up to this, while there always is. The twentieth is a piece a pause.
const MOST_WRITTEN: i64 = 640 << 20;
/// Share of a write buffer for the filter that says which keys are not in it.
const BUFFER_FILTER: f64 = 0.02;

/// A store in one directory, deleted with the directory by whoever opened it.
pub struct RocksByteStore {
    database: Arc<DB>,
    directory: PathBuf,
    reads: ReadOptions,
    writes: WriteOptions,
    /// The view that is being made: until it is there, no write may reach the database.
    links: Option<Links>,
    /// Writes behind that view, which are in the database for whoever reads.
    held: HeldWrites,
    /// Bytes of the block cache.
    cache_bytes: u64,
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
        let mut options = database_options(cache_bytes);
        let mut env = Env::new().map_err(failed("open"))?;
        env.lower_thread_pool_cpu_priority();
        options.set_env(&env);
        let cleaner = Arc::new(Cleaner::default());
        let filter = Arc::clone(&cleaner);
        options.set_compaction_filter("expired state", move |_, key, value| {
            if filter.removes(key, value) { Decision::Remove } else { Decision::Keep }
        });
        let database = DB::open(&options, directory.join("db")).map_err(failed("open"))?;
        let mut writes = WriteOptions::default();
        writes.disable_wal(true);
        Ok(Self {
            database: Arc::new(database),
            directory: directory.to_owned(),
            reads: ReadOptions::default(),
            writes,
            links: None,
            held: HeldWrites::default(),
            cache_bytes,
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

    fn put(&self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        let mut writes = rocksdb::WriteBatch::default();
        for (key, value) in batch.iter() {
            match value {
                Some(value) => writes.put(key, value),
                None => writes.delete(key),
            }
        }
        self.database.write_opt(writes, &self.writes).map_err(failed("write"))
    }

    /// Lets up to `count` held writes into the database, if no view forbids it.
    fn release(&mut self, count: usize) -> Result<(), StoreFailure> {
        let full = self.held.bytes() >= HELD_BYTES;
        if self.links.as_ref().is_some_and(|links| full || links.are_made()) {
            self.end_view();
        }
        if self.links.is_some() || self.held.is_empty() {
            return Ok(());
        }
        let mut released = WriteBatch::new();
        self.held.release(count, &mut released);
        self.put(&released)
    }

    /// Waits for the view that is being made.
    fn end_view(&mut self) {
        if let Some(links) = self.links.take() {
            // What went wrong is said to whoever reads the view; the database is as it was.
            let _ = links.wait();
        }
    }

    /// All writes are in the database, and no view is being made.
    fn settle(&mut self) -> Result<(), StoreFailure> {
        self.end_view();
        self.release(usize::MAX)
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

fn database_options(cache_bytes: u64) -> Options {
    let mut options = table_options();
    let mut blocks = BlockBasedOptions::default();
    let cache_bytes = usize::try_from(cache_bytes).unwrap_or(usize::MAX);
    blocks.set_block_cache(&Cache::new_lru_cache(cache_bytes));
    blocks.set_bloom_filter(10.0, false);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    options.set_block_based_table_factory(&blocks);
    options.create_if_missing(true);
    options.set_write_buffer_size(64 << 20);
    options.set_memtable_whole_key_filtering(true);
    options.set_memtable_prefix_bloom_ratio(BUFFER_FILTER);
    options.set_allow_concurrent_memtable_write(false);
    options.set_max_background_jobs(2);
    options.set_writable_file_max_buffer_size(PIECE_BYTES);
    options.set_auto_tuned_ratelimiter(MOST_WRITTEN, PAUSE_MICROS, 10);
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
        if !self.held.is_empty()
            && let Some(held) = self.held.get(key)
        {
            return Ok(held.map(<[u8]>::to_vec));
        }
        self.database.get_opt(key, &self.reads).map_err(failed("get"))
    }

    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        self.held.over(from, to, |visit| visit_all(&self.database, from, to, visit), visit)
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        self.release(RELEASED.max(2 * batch.len()))?;
        if self.links.is_none() && self.held.is_empty() {
            return self.put(batch);
        }
        self.held.hold(batch);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Box<dyn StoreSnapshot>, StoreFailure> {
        self.settle()?;
        let links = Links::begin(&self.database, &self.cleaner, self.next_path("view"))?;
        self.links = Some(links.clone());
        Ok(Box::new(RocksDbSnapshot::new(links, self.kept.clone())))
    }

    fn expire_by(&mut self, expiry: Arc<Expiry>) {
        self.cleaner.expire_by(expiry);
    }

    fn checkpoint_completed(&mut self, id: CheckpointId) {
        self.kept.completed(id);
    }

    fn bulk_load(&mut self) -> Result<Option<Box<dyn BulkLoad>>, StoreFailure> {
        self.settle()?;
        let (database, directory) = (Arc::clone(&self.database), self.next_path("load"));
        let warm_bytes = self.cache_bytes;
        let load = BackgroundLoad::spawn("rocksdb-bulk-load", move |batches| {
            let loaded = load_tables(&database, &directory, warm_bytes, &batches);
            // Ingested files have been moved out; what is left is of a load that failed.
            let _ = std::fs::remove_dir_all(&directory);
            loaded
        })?;
        Ok(Some(Box::new(load)))
    }
}

impl Drop for RocksByteStore {
    fn drop(&mut self) {
        // The directory is deleted next: nobody may write there any more.
        self.end_view();
    }
}

/// Writes table files from all batches, then ingests them at once.
fn load_tables(
    database: &DB,
    directory: &Path,
    warm_bytes: u64,
    batches: &Batches,
) -> Result<(), StoreFailure> {
    std::fs::create_dir_all(directory).map_err(|error| StoreFailure::new("bulk load", error))?;
    let mut options = table_options();
    options.set_compression_type(DBCompressionType::None);
    let (mut files, mut bytes) = (Vec::new(), 0);
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
            bytes += table.file_size();
            files.push(path);
        }
    }
    if files.is_empty() {
        return Ok(());
    }
    if bytes <= warm_bytes {
        warm(&files).map_err(|error| StoreFailure::new("bulk load", error))?;
    }
    let mut options = IngestExternalFileOptions::default();
    options.set_move_files(true);
    database.ingest_external_file_opts(&options, files).map_err(failed("bulk load"))
}

/// Reads files once, in order: their writer has told the system to forget them, and live records
/// would otherwise read them from disk again, block by block.
fn warm(files: &[PathBuf]) -> std::io::Result<()> {
    for file in files {
        std::io::copy(&mut std::fs::File::open(file)?, &mut std::io::sink())?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn batch(keys: std::ops::Range<u32>) -> WriteBatch {
        let mut batch = WriteBatch::new();
        keys.for_each(|key| batch.put(&key.to_be_bytes(), b"value"));
        batch
    }

    #[test]
    fn what_waited_for_a_view_follows_in_pieces_that_make_no_record_late() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = RocksByteStore::open(&directory.path().join("store"), 8 << 20).unwrap();
        let view = store.snapshot().unwrap();
        store.held.hold(&batch(0..1_000));
        store.end_view();
        store.write(&batch(1_000..1_001)).unwrap();
        assert_eq!(store.held.len(), 1_001 - RELEASED);
        // A large batch is followed by more than it adds: the rest is let in for certain.
        store.write(&batch(2_000..2_100)).unwrap();
        assert_eq!(store.held.len(), 1_001 - RELEASED - 200 + 100);
        store.settle().unwrap();
        assert!(store.held.is_empty());
        for key in (0..1_001).chain(2_000..2_100_u32) {
            assert!(store.get(&key.to_be_bytes()).unwrap().is_some(), "{key}");
        }
        drop(view);
    }
}
