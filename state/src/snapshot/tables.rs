//! Snapshots that share immutable tables: a store's own files, each written to the checkpoint
//! storage once and named by every later snapshot that still holds it.
//!
//! ```text
//!   view of hard links -- a completed checkpoint has the table? -- yes --> named again
//!                                    | no
//!                                    '--> copied, durable --> chk-7/shared/...sst
//!
//!   restore: tables copied to a scratch directory and checked -> opened -> read by range of the hash
//! ```
//!
//! A table is shared only by the store that wrote it, and only once a checkpoint that names it is
//! complete: a store that has been opened anew, after a failure or a restore, shares nothing
//! with the one before it. Timers, the header and the store's small files are written every time.
//!
//! Left out on purpose: deleting. The JobMaster counts which checkpoints name a table. Values that
//! have expired stay in their tables; they are cleaned up on access.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use element::{CheckpointId, CodecError, FileRole, Record, Schema, SchemaError, SpillStore, Value};
use parking_lot::Mutex;

use super::SnapshotError;
use super::writer::{failed, part_name};
use crate::StoreFailure;

/// Bytes copied at once.
pub(super) const PIECE: usize = 64 << 10;

/// One file of a store, as a part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Its name in the checkpoint storage.
    pub name: String,
    /// What the store calls it.
    pub table: String,
    /// Its length.
    pub bytes: u64,
    /// The CRC-32 of all of it.
    pub checksum: u32,
}

impl SnapshotFile {
    /// Whether later snapshots may name it.
    pub(super) fn is_shared(&self) -> bool {
        is_immutable(&self.table)
    }

    /// Whether the snapshot of this name has written it.
    pub(super) fn is_written_by(&self, snapshot: &str) -> bool {
        self.name == file_name(snapshot, &self.table)
    }
}

type Parts = (String, String, u64, u32);

impl Record for SnapshotFile {
    fn encode(&self, out: &mut Vec<u8>) {
        self.name.encode(out);
        self.table.encode(out);
        self.bytes.encode(out);
        self.checksum.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let (name, table, bytes, checksum) = Parts::decode(input)?;
        Ok(Self { name, table, bytes, checksum })
    }

    fn schema() -> Schema {
        Parts::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        let (name, table, bytes, checksum) = Parts::from_value(value)?;
        Ok(Self { name, table, bytes, checksum })
    }
}

/// Which tables of one store lie in the checkpoint storage. Shared by the store, which hears of
/// completed checkpoints, and by its views, which are written on another thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptTables(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// What each checkpoint under way consists of.
    written: BTreeMap<CheckpointId, Vec<SnapshotFile>>,
    /// The tables of the newest completed one.
    completed: Vec<SnapshotFile>,
}

impl KeptTables {
    /// A checkpoint is complete: later ones may name its tables.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn completed(&self, id: CheckpointId) {
        let mut kept = self.0.lock();
        if let Some(files) = kept.written.remove(&id) {
            kept.completed = files;
        }
        kept.written = kept.written.split_off(&id);
    }

    fn find(&self, table: &str, bytes: u64) -> Option<SnapshotFile> {
        let kept = self.0.lock();
        let same = |file: &&SnapshotFile| file.table == table && file.bytes == bytes;
        kept.completed.iter().find(same).cloned()
    }

    fn written(&self, id: CheckpointId, files: Vec<SnapshotFile>) {
        self.0.lock().written.insert(id, files);
    }
}

/// The files that a view of a store consists of. Only stores of this crate have any.
#[derive(Debug)]
pub struct StoreTables {
    pub(crate) directory: PathBuf,
    pub(crate) kept: KeptTables,
}

/// Whether a file never changes once it is there.
fn is_immutable(table: &str) -> bool {
    table.ends_with(".sst")
}

impl StoreTables {
    /// The names and lengths of the files that hold anything, in order.
    fn files(&self) -> Result<Vec<(String, u64)>, StoreFailure> {
        let list = || -> std::io::Result<Vec<(String, u64)>> {
            let mut files = Vec::new();
            for entry in fs::read_dir(&self.directory)? {
                let entry = entry?;
                let bytes = entry.metadata()?.len();
                // An empty file is a log in front of which everything has been written to tables.
                if bytes > 0 {
                    files.push((entry.file_name().to_string_lossy().into_owned(), bytes));
                }
            }
            files.sort();
            Ok(files)
        };
        list().map_err(|error| StoreFailure::new("snapshot", error))
    }

    /// Writes what no completed checkpoint has; `name` is that of the snapshot.
    pub(super) fn write(
        &self,
        store: &dyn SpillStore,
        name: &str,
        id: CheckpointId,
    ) -> Result<Vec<SnapshotFile>, crate::StateError> {
        let mut files = Vec::new();
        for (table, bytes) in self.files()? {
            let known = is_immutable(&table).then(|| self.kept.find(&table, bytes)).flatten();
            let file = match known {
                Some(file) => Ok(file),
                None => {
                    copy_in(&self.directory.join(&table), store, file_name(name, &table), table)
                }
            };
            match file {
                Ok(file) => files.push(file),
                Err(error) => {
                    discard(store, name, &files);
                    return Err(error.into());
                }
            }
        }
        self.kept.written(id, files.clone());
        Ok(files)
    }
}

/// `folder/snapshot` and a table make `folder/shared/snapshot-table`; what is not shared lies beside
/// the snapshot.
fn file_name(name: &str, table: &str) -> String {
    let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
    let slash = if folder.is_empty() { "" } else { "/" };
    let shared = if is_immutable(table) { SHARED } else { "" };
    format!("{folder}{slash}{shared}{file}-{table}")
}

/// The folder, within a checkpoint's, of files that later checkpoints may name.
pub const SHARED: &str = "shared/";

/// Deletes the files that a snapshot has written itself, for one that is given up.
pub(super) fn discard(store: &dyn SpillStore, name: &str, files: &[SnapshotFile]) {
    for file in files.iter().filter(|file| file.is_written_by(name)) {
        // What cannot be deleted stays under a name that nothing reads.
        let _ = store.delete(FileRole::Snapshot, &file.name);
    }
}

/// Copies a local file into a store: under a temporary name, durable, then under its own.
fn copy_in(
    from: &Path,
    store: &dyn SpillStore,
    name: String,
    table: String,
) -> Result<SnapshotFile, SnapshotError> {
    let part = part_name(&name);
    let copy = || {
        let local = |error| local_failure(from, element::Operation::Read, error);
        let mut reader = File::open(from).map_err(local)?;
        let mut writer = store.create(FileRole::Snapshot, &part)?;
        let (mut crc, mut bytes, mut piece) = (crc32fast::Hasher::new(), 0, vec![0; PIECE]);
        loop {
            let len = reader.read(&mut piece).map_err(local)?;
            if len == 0 {
                break;
            }
            let read = piece.get(..len).unwrap_or_default();
            crc.update(read);
            writer.write(read)?;
            bytes += len as u64;
            // A task that wakes where this thread runs need not wait for the end of a long file.
            std::thread::yield_now();
        }
        writer.sync()?;
        drop(writer);
        store.rename(FileRole::Snapshot, &part, &name)?;
        Ok((bytes, crc.finalize()))
    };
    match copy() {
        Ok((bytes, checksum)) => Ok(SnapshotFile { name, table, bytes, checksum }),
        Err(source) => {
            // What cannot be deleted stays under a name that nothing reads.
            let _ = store.delete(FileRole::Snapshot, &part);
            Err(failed(&name, source))
        }
    }
}

pub(super) fn local_failure(
    path: &Path,
    operation: element::Operation,
    source: std::io::Error,
) -> element::StoreError {
    let name = path.display().to_string();
    element::StoreError { operation, role: FileRole::State, name, source }
}
