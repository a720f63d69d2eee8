//! [`RocksDbSnapshot`]: a view of a database, as hard links to its files.
//!
//! ```text
//!   snapshot -> a thread writes what is in memory to a table, syncs it, links all files
//!                  |                                             '--> whoever reads the view waits
//!                  '--> the store holds its writes back until then
//! ```
//!
//! Flushing and syncing take tens of milliseconds, which the task does not wait for.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rocksdb::DB;
use rocksdb::checkpoint::Checkpoint;

use super::{failed, table_options, visit_all};
use crate::StoreFailure;
use crate::snapshot::{KeptTables, StoreTables};
use crate::store::cleaner::{Cleaner, OpenView};
use crate::store::{StoreSnapshot, Visit};

/// What came of a view.
type Outcome = Result<(), rocksdb::Error>;

#[derive(Debug)]
enum Progress {
    Making(JoinHandle<Outcome>),
    Made(Outcome),
    /// The thread has died.
    Lost,
}

/// The links of a view: made on a thread of their own, known to the store and to the view.
#[derive(Clone, Debug)]
pub(super) struct Links {
    directory: PathBuf,
    progress: Arc<Mutex<Progress>>,
}

impl Links {
    /// Begins to link what is in the database now, and whatever is written before they are made.
    /// Until then compactions leave nothing out, whatever expires.
    pub(super) fn begin(
        database: &Arc<DB>,
        cleaner: &Arc<Cleaner>,
        directory: PathBuf,
    ) -> Result<Self, StoreFailure> {
        let (database, target) = (Arc::clone(database), directory.clone());
        let open = OpenView::of(cleaner);
        let link = move || {
            let linked = Checkpoint::new(&database)?.create_checkpoint(&target);
            drop(open);
            linked
        };
        let thread = std::thread::Builder::new()
            .name("rocksdb-view".to_owned())
            .spawn(link)
            .map_err(|error| StoreFailure::new("snapshot", error))?;
        Ok(Self { directory, progress: Arc::new(Mutex::new(Progress::Making(thread))) })
    }

    /// Links that are there.
    fn made(directory: PathBuf) -> Self {
        Self { directory, progress: Arc::new(Mutex::new(Progress::Made(Ok(())))) }
    }

    /// Whether there is nothing to wait for. Never blocks.
    pub(super) fn are_made(&self) -> bool {
        // Who has the lock waits for the thread: it is soon known.
        self.progress.try_lock().is_some_and(|progress| match &*progress {
            Progress::Making(thread) => thread.is_finished(),
            Progress::Made(_) | Progress::Lost => true,
        })
    }

    /// Waits for the thread.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`] if there is no view.
    pub(super) fn wait(&self) -> Result<(), StoreFailure> {
        let mut progress = self.progress.lock();
        let outcome = match std::mem::replace(&mut *progress, Progress::Lost) {
            Progress::Making(thread) => thread.join().ok(),
            Progress::Made(outcome) => Some(outcome),
            Progress::Lost => None,
        };
        let Some(outcome) = outcome else {
            return Err(StoreFailure::new("snapshot", "the thread that made the view has died"));
        };
        *progress = Progress::Made(outcome.clone());
        outcome.map_err(failed("snapshot"))
    }
}

/// A view that the thread of its links makes, or has made.
#[derive(Debug)]
pub(super) struct RocksDbSnapshot {
    links: Links,
    kept: KeptTables,
}

impl RocksDbSnapshot {
    pub(super) fn new(links: Links, kept: KeptTables) -> Self {
        Self { links, kept }
    }
}

/// The view of a directory with copies of a view's files, which it deletes.
pub(in crate::store) fn view_of(directory: PathBuf) -> Box<dyn StoreSnapshot> {
    let links = Links::made(directory);
    Box::new(RocksDbSnapshot { links, kept: KeptTables::default() })
}

impl StoreSnapshot for RocksDbSnapshot {
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        self.links.wait()?;
        let database = DB::open_for_read_only(&table_options(), &self.links.directory, false)
            .map_err(failed("open"))?;
        visit_all(&database, from, to, visit)
    }

    fn tables(&self) -> Result<Option<StoreTables>, StoreFailure> {
        self.links.wait()?;
        let (directory, kept) = (self.links.directory.clone(), self.kept.clone());
        Ok(Some(StoreTables { directory, kept }))
    }
}

impl Drop for RocksDbSnapshot {
    fn drop(&mut self) {
        // Why there is no view was said to whoever wanted to read it.
        let _ = self.links.wait();
        // Links that cannot be removed go with the store's directory.
        let _ = std::fs::remove_dir_all(&self.links.directory);
    }
}
