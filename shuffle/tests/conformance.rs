//! The contract of a shuffle service, over every service and every way to read there is.

use std::cell::RefCell;
use std::sync::Arc;

use element::{DirectoryStore, MemoryStore, SpillStore};
use slackwater_shuffle::testing::check_shuffle_service;
use slackwater_shuffle::{FileShuffle, FileShuffleOptions, ReadMode, ShuffleService};
use tempfile::TempDir;

#[path = "../examples/memory_shuffle.rs"]
mod memory_shuffle;

/// Fresh directories, removed at the end of the test.
#[derive(Default)]
struct Directories(RefCell<Vec<TempDir>>);

impl Directories {
    fn store(&self) -> Arc<dyn SpillStore> {
        let directory = tempfile::tempdir().expect("a directory is made");
        let store = Arc::new(DirectoryStore::new(directory.path()));
        self.0.borrow_mut().push(directory);
        store
    }
}

fn file_shuffle(
    stores: Vec<Arc<dyn SpillStore>>,
    read: ReadMode,
    sync: bool,
) -> Arc<dyn ShuffleService> {
    Arc::new(FileShuffle::with_options(stores, FileShuffleOptions { read, sync }))
}

#[test]
fn files_on_disk_mapped_keep_the_contract() {
    let directories = Directories::default();
    check_shuffle_service(|| file_shuffle(vec![directories.store()], ReadMode::Mapped, false));
}

#[test]
fn files_on_disk_by_position_keep_the_contract() {
    let directories = Directories::default();
    check_shuffle_service(|| file_shuffle(vec![directories.store()], ReadMode::Positional, true));
}

#[test]
fn files_in_memory_and_in_several_stores_keep_the_contract() {
    check_shuffle_service(|| {
        let stores = (0..3).map(|_| Arc::new(MemoryStore::new()) as Arc<dyn SpillStore>);
        file_shuffle(stores.collect(), ReadMode::Mapped, false)
    });
}

#[test]
fn a_shuffle_of_ones_own_keeps_the_contract() {
    check_shuffle_service(|| Arc::new(memory_shuffle::MemoryShuffle::default()));
}
