//! [`SpillStore`]: where bytes rest, through one seam that can be made to fail.
//!
//! Sort runs, blocking partitions and snapshots are all written through it: appended once, made
//! visible or not, read by position, deleted. Names are relative, of plain segments separated by
//! `/`. [`DirectoryStore`] is the disk, [`MemoryStore`] serves tests and small runs, [`FaultyStore`]
//! fails where a test says so.
//!
//! Left out on purpose: who may delete what, and when. The owners of files know that.

mod directory;
mod faulty;
mod memory;

use std::fmt;
use std::io;
use std::path::PathBuf;

pub use directory::DirectoryStore;
pub use faulty::{FaultPlan, FaultyStore};
pub use memory::MemoryStore;

/// What a file is for; errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileRole {
    /// A sorted run of an external sort.
    SortRun,
    /// The data of a result partition.
    PartitionData,
    /// The index of a result partition.
    PartitionIndex,
    /// A part of a checkpoint or savepoint.
    Snapshot,
    /// The manifest of a checkpoint or savepoint.
    Manifest,
    /// A file of a keyed state store.
    State,
    /// A user's output file.
    Sink,
}

impl fmt::Display for FileRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SortRun => "sort run",
            Self::PartitionData => "partition data",
            Self::PartitionIndex => "partition index",
            Self::Snapshot => "snapshot",
            Self::Manifest => "manifest",
            Self::State => "state file",
            Self::Sink => "output file",
        })
    }
}

/// What was done to a file when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Making a new file.
    Create,
    /// Opening a file to read.
    Open,
    /// Appending bytes.
    Write,
    /// Making bytes durable.
    Sync,
    /// Reading bytes.
    Read,
    /// Giving a file its final name.
    Rename,
    /// Deleting a file.
    Delete,
    /// Listing files.
    List,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Open => "open",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Read => "read",
            Self::Rename => "rename",
            Self::Delete => "delete",
            Self::List => "list",
        })
    }
}

/// A file operation that failed: what, on which file, of which role.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {role} `{name}`")]
pub struct StoreError {
    /// What was tried.
    pub operation: Operation,
    /// What the file is for.
    pub role: FileRole,
    /// The file, as a path where it has one.
    pub name: String,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl StoreError {
    /// Whether the file, or the place for it, is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether there is no room left.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }
}

/// A place for files. Implemented by a directory, memory, and a store that fails; shared by threads.
pub trait SpillStore: Send + Sync + fmt::Debug {
    /// Makes a new file, with the directories that its name has.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; also if the file exists.
    fn create(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreWriter>, StoreError>;

    /// Opens a file that is complete.
    ///
    /// # Errors
    ///
    /// [`StoreError`], [not found](StoreError::is_not_found) among them.
    fn open(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreReader>, StoreError>;

    /// Gives a file its final name, in one step, replacing what had the name. Makes the directories
    /// that the final name has.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the old name then still stands.
    fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), StoreError>;

    /// Deletes a file. A file that is not there is an error of kind
    /// [not found](StoreError::is_not_found).
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn delete(&self, role: FileRole, name: &str) -> Result<(), StoreError>;

    /// The names of all files whose name begins with `prefix`, sorted.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn list(&self, role: FileRole, prefix: &str) -> Result<Vec<String>, StoreError>;

    /// Where a file lies on the local disk, if it does: for mapping it.
    fn local_path(&self, name: &str) -> Option<PathBuf>;
}

/// Appends to one new file. Dropping it without [`StoreWriter::sync`] leaves the file as it is: its
/// owner deletes it.
pub trait StoreWriter: Send + fmt::Debug {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; some of the bytes may have been written.
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError>;

    /// Appends all bytes of all parts, as one [`write`](Self::write) of them would. A store that can
    /// take parts where they lie does; otherwise they are brought together first.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    fn write_parts(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        self.write(&parts.concat())
    }

    /// Makes everything written durable, the file's name included.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn sync(&mut self) -> Result<(), StoreError>;
}

/// Reads one file by position. Shared by threads: there is no cursor.
pub trait StoreReader: Send + Sync + fmt::Debug {
    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; of kind `UnexpectedEof` if the file ends before.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError>;

    /// The file's length in bytes.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn len(&self) -> Result<u64, StoreError>;

    /// Whether the file is empty.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn is_empty(&self) -> Result<bool, StoreError> {
        self.len().map(|len| len == 0)
    }
}
