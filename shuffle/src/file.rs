//! [`FileShuffle`]: blocking partitions as files, the shuffle that comes with the engine (FLIP-148).
//!
//! One data file and one index file a partition, whatever the number of subpartitions:
//!
//! ```text
//! <partition>.<unique>.data    header | block*             blocks in the order written
//! <partition>.index            header | table | runs       where the blocks of a subpartition lie
//!
//! absent -> data being written -> data whole, index under another name -> index renamed: readable
//!                                                                    release: index, then data gone
//! ```
//!
//! The rename of the index is the one moment at which a partition comes to be; the index names its
//! data file. A data file without an index is rubbish of a writer that has failed.
//!
//! Left out on purpose: how long a partition is wanted, and syncing by default. A partition that a
//! power cut has torn is found out by its checksums and made anew.

mod block;
mod data;
mod index;
mod mapped;
mod reader;
mod writer;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use element::option_table::Compression;
use element::{FileRole, SpillStore, StoreError};
use parking_lot::Mutex;

use crate::{
    Damage, PartitionDescriptor, PartitionIdentity, ResultPartitionReader, ResultPartitionWriter,
    ShuffleError, ShuffleService,
};
use data::{DataFile, OpenFiles};
use index::Index;
use reader::FileReader;
use writer::FileWriter;

/// How data files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReadMode {
    /// Mapped into memory where the store is a local directory, by position elsewhere.
    #[default]
    Mapped,
    /// By position, through the store, into a buffer of each reader that is at work.
    Positional,
}

/// How a [`FileShuffle`] writes and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileShuffleOptions {
    /// How data files are read.
    pub read: ReadMode,
    /// Whether a partition is made durable before it becomes visible.
    pub sync: bool,
}

/// Keeps partitions as files in one or several stores.
///
/// A partition lies whole in one store; where one refuses a new file the next is tried. Readers look
/// into all. Open files do not depend on the number of subpartitions: a writer has one, and all
/// readers of a partition share one (a mapped one is closed after mapping).
#[derive(Debug)]
pub struct FileShuffle {
    stores: Vec<Arc<dyn SpillStore>>,
    options: FileShuffleOptions,
    open_files: Mutex<OpenFiles>,
}

/// Makes names of data files unique within this process.
static FILES: AtomicU32 = AtomicU32::new(0);

impl FileShuffle {
    /// Partitions in one store.
    #[must_use]
    pub fn new(store: Arc<dyn SpillStore>) -> Self {
        Self::with_options(vec![store], FileShuffleOptions::default())
    }

    /// Partitions in several stores, in turn by partition.
    #[must_use]
    pub fn with_options(stores: Vec<Arc<dyn SpillStore>>, options: FileShuffleOptions) -> Self {
        Self { stores, options, open_files: Mutex::default() }
    }

    /// All complete partitions, in no particular order: what a TaskManager reports.
    ///
    /// # Errors
    ///
    /// The store's, if one cannot be listed.
    pub fn partitions(&self) -> Result<Vec<PartitionIdentity>, StoreError> {
        let mut found = Vec::new();
        for store in &self.stores {
            let names = store.list(FileRole::PartitionIndex, "")?;
            found.extend(names.iter().filter_map(|name| index::identity_of_name(name)));
        }
        Ok(found)
    }

    /// Deletes what writers that are gone have left behind: files without a complete partition.
    /// Called before the first writer starts. Returns how many there were.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn discard_unfinished(&self) -> Result<usize, StoreError> {
        let mut discarded = 0;
        for store in &self.stores {
            for name in store.list(FileRole::PartitionData, "")? {
                let whole = match index::data_name_parts(&name) {
                    Some((partition, unique)) => {
                        Index::unique_of(store.as_ref(), partition) == Some(unique)
                    }
                    None => !name.ends_with(index::UNFINISHED),
                };
                if !whole {
                    store.delete(FileRole::PartitionData, &name)?;
                    discarded += 1;
                }
            }
        }
        Ok(discarded)
    }

    /// The stores, beginning with the one whose turn it is for this partition.
    fn stores_for(
        &self,
        partition: &PartitionIdentity,
    ) -> impl Iterator<Item = (usize, &Arc<dyn SpillStore>)> {
        let turn = index::identity_checksum(partition) as usize % self.stores.len().max(1);
        let (before, after) = self.stores.split_at(turn);
        let after = after.iter().enumerate().map(move |(index, store)| (turn + index, store));
        after.chain(before.iter().enumerate())
    }

    /// The index of a complete partition, and the store it lies in.
    fn find(
        &self,
        descriptor: &PartitionDescriptor,
        subpartitions: Range<u32>,
    ) -> Result<(usize, Index), ShuffleError> {
        let partition = descriptor.identity;
        let mut refusal = None;
        for (number, store) in self.stores_for(&partition) {
            match Index::read(store.as_ref(), &partition, subpartitions.clone()) {
                Ok(index) => return Ok((number, index)),
                Err(ShuffleError::Lost { .. }) => {}
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal.unwrap_or(ShuffleError::Lost { partition }))
    }

    fn open_data(
        &self,
        number: usize,
        partition: &PartitionIdentity,
        index: &Index,
    ) -> Result<Arc<DataFile>, ShuffleError> {
        let name = index::data_name(partition, index.unique);
        let lost = ShuffleError::Lost { partition: *partition };
        let store = self.stores.get(number).ok_or(lost)?;
        let mut open = self.open_files.lock();
        open.get(store.as_ref(), &name, self.options.read)
            .map_err(|source| storage_error(partition, source))
    }
}

/// What a failure of the store means for a partition.
fn storage_error(partition: &PartitionIdentity, source: StoreError) -> ShuffleError {
    match source.source.kind() {
        std::io::ErrorKind::NotFound => ShuffleError::Lost { partition: *partition },
        _ => ShuffleError::Storage { partition: *partition, source },
    }
}

impl ShuffleService for FileShuffle {
    fn writer(
        &self,
        descriptor: &PartitionDescriptor,
    ) -> Result<Box<dyn ResultPartitionWriter>, ShuffleError> {
        let partition = descriptor.identity;
        block::check_supported(&partition, descriptor.compression)?;
        let mut refusal = ShuffleError::Lost { partition };
        for (_, store) in self.stores_for(&partition) {
            let unique = u64::from(std::process::id()) << 32
                | u64::from(FILES.fetch_add(1, Ordering::Relaxed));
            match FileWriter::create(Arc::clone(store), descriptor, unique, self.options.sync) {
                Ok(writer) => return Ok(Box::new(writer)),
                Err(source) => refusal = ShuffleError::Storage { partition, source },
            }
        }
        Err(refusal)
    }

    fn reader(
        &self,
        descriptor: &PartitionDescriptor,
        subpartitions: Range<u32>,
    ) -> Result<Box<dyn ResultPartitionReader>, ShuffleError> {
        let partition = descriptor.identity;
        let (number, index) = self.find(descriptor, subpartitions)?;
        let corrupt = |damage, expected: u64, found: u64| {
            Err(ShuffleError::Corrupt { partition, damage, expected, found })
        };
        if index.subpartitions != descriptor.subpartitions {
            let (expected, found) = (descriptor.subpartitions, index.subpartitions);
            return corrupt(Damage::Subpartitions, u64::from(expected), u64::from(found));
        }
        if let Some(expected) = descriptor.checksum.filter(|checksum| *checksum != index.checksum) {
            return corrupt(Damage::Identity, u64::from(expected), u64::from(index.checksum));
        }
        let file = self.open_data(number, &partition, &index)?;
        Ok(Box::new(FileReader::new(partition, file, index)?))
    }

    fn release(&self, partition: &PartitionIdentity) -> Result<(), ShuffleError> {
        self.open_files
            .lock()
            .forget(|name| index::data_name_parts(name).is_some_and(|(of, _)| of == *partition));
        for store in &self.stores {
            index::delete(store.as_ref(), partition)
                .map_err(|source| ShuffleError::Storage { partition: *partition, source })?;
        }
        Ok(())
    }
}

/// Whether this build can write and read blocks with a compression.
#[must_use]
pub fn supports_compression(compression: Compression) -> bool {
    compression != Compression::Zstd || cfg!(feature = "zstd")
}
