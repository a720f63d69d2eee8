//! Snapshots of keyed state and timers: one format, whatever the backend.
//!
//! ```text
//! | magic | version | header length | header | crc |            what it is of, which states, which keys
//! | length | crc | entry ... entry |                             a block, about 64 KiB; as many as needed
//! | length | crc | first hash, offset ... |                      the index: where each block begins
//! | index offset | entries | crc of all before | magic |         the footer, of fixed length
//!
//! entry = key length, store key, value length, value             lengths are varints
//! ```
//!
//! Entries lie in the order of their store keys ([`crate::store_key`]), timers among them, so that a
//! range of the hash is a range of the file: a restore at another parallelism reads the blocks it
//! needs and clips the first and last. Numbers are little-endian; checksums are CRC-32.
//!
//! A file is written under a temporary name, made durable, then renamed.
//!
//! A snapshot that shares a store's tables ([`tables`]) has a file of the same shape with another
//! magic and, for entries, timers alone; its handle names the tables.

#[cfg(feature = "rocksdb")]
mod fetch;
mod handle;
mod header;
mod pending;
mod pending_timers;
mod reader;
mod restore;
mod tables;
mod writer;

#[cfg(feature = "rocksdb")]
pub(crate) use fetch::fetch as fetch_tables;
pub use handle::{SnapshotHandle, SnapshotSource};
pub use header::{SnapshotHeader, StateHeader};
pub use pending::PendingSnapshot;
pub(crate) use pending::{Body as PendingBody, FrozenSlot, FrozenTable};
pub(crate) use pending_timers::PendingTimers;
pub use reader::{SnapshotEntry, SnapshotReader};
pub use restore::{NonRestored, RestoredSnapshot, check_restorable, check_source};
pub(crate) use restore::{Restored, RestoredStates, Scratch, Source, open_all};
#[cfg(feature = "rocksdb")]
pub(crate) use tables::KeptTables;
pub use tables::{SHARED, SnapshotFile, StoreTables};

use element::{CodecError, StoreError};

/// The first bytes of a snapshot.
pub(crate) const MAGIC: [u8; 8] = *b"SLWKEYED";
/// The first bytes of a snapshot whose state lies in tables.
pub(crate) const TABLES_MAGIC: [u8; 8] = *b"SLWTABLE";
/// The last bytes of a snapshot.
pub(crate) const END_MAGIC: [u8; 8] = *b"SLWKEND.";
/// The version of the format that is written.
pub(crate) const VERSION: u32 = 1;
/// Bytes of the footer.
pub(crate) const FOOTER: u64 = 8 + 8 + 4 + 8;

/// Why a snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file could not be written or read; also when it is missing or cut.
    #[error("snapshot `{name}` is out of reach")]
    File {
        /// The file.
        name: String,
        /// What happened.
        #[source]
        source: StoreError,
    },
    /// The file's length is not what its handle says.
    #[error("snapshot `{name}` has {found} bytes, expected {expected}")]
    Length {
        /// The file.
        name: String,
        /// Its length.
        found: u64,
        /// The length it was written with.
        expected: u64,
    },
    /// The file is no snapshot of keyed state.
    #[error("`{name}` is no snapshot of keyed state")]
    Foreign {
        /// The file.
        name: String,
    },
    /// The state lies in tables of a store, which only a restore reads.
    #[error(
        "snapshot `{name}` lies in tables of a store: it can be restored, and not be inspected"
    )]
    InTables {
        /// The file.
        name: String,
    },
    /// The file is a snapshot of another operator.
    #[error("snapshot `{name}` is of operator `{found}`, expected `{expected}`")]
    OtherOperator {
        /// The file.
        name: String,
        /// The operator it is of.
        found: String,
        /// The operator that reads it.
        expected: String,
    },
    /// The file was swapped: it is another snapshot than its handle's.
    #[error(
        "snapshot `{name}` is not the one that was written: checksum {found:08x}, expected {expected:08x}"
    )]
    Swapped {
        /// The file.
        name: String,
        /// Its checksum.
        found: u32,
        /// The handle's.
        expected: u32,
    },
    /// The format is newer than this program.
    #[error("snapshot `{name}` has format {found}, the newest known is {known}")]
    Version {
        /// The file.
        name: String,
        /// Its format.
        found: u32,
        /// The newest that can be read.
        known: u32,
    },
    /// Bytes of the file have changed.
    #[error("snapshot `{name}` is damaged in its {part} at {offset}")]
    Damaged {
        /// The file.
        name: String,
        /// Which part: header, block, index, footer.
        part: &'static str,
        /// Where that part begins.
        offset: u64,
    },
    /// The header's checksum is right, but it cannot be decoded.
    #[error("snapshot `{name}` has a header that cannot be read")]
    Header {
        /// The file.
        name: String,
        /// What is wrong.
        #[source]
        source: CodecError,
    },
    /// Two snapshots of one operator disagree on a state.
    #[error("snapshots `{first}` and `{second}` disagree on state `{state}`")]
    Disagree {
        /// The state's name.
        state: String,
        /// The file read first.
        first: String,
        /// The other.
        second: String,
    },
    /// The program has no state of this name, and may not leave it out.
    #[error("state `{state}` of operator `{operator}` is in the snapshot, and not in the program")]
    NotRestored {
        /// The state's name.
        state: String,
        /// The operator.
        operator: String,
    },
}
