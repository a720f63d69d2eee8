//! The tables of a snapshot on their way back: copied below a scratch directory, and checked.
//!
//! Called by a restore; the view over the copies deletes them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use element::{FileRole, Operation, SpillStore};

use super::tables::{PIECE, local_failure};
use super::writer::failed;
use super::{SnapshotError, SnapshotFile, SnapshotHandle};

/// Copies all files of a snapshot into a directory of its own below `scratch`, and checks them.
pub(crate) fn fetch(
    store: &dyn SpillStore,
    handle: &SnapshotHandle,
    scratch: &Path,
) -> Result<PathBuf, SnapshotError> {
    let directory = scratch.join(handle.name.replace('/', "-"));
    let fetched = handle.files.iter().try_for_each(|file| copy_out(store, file, &directory));
    if fetched.is_err() {
        // The scratch directory's owner deletes what is left.
        let _ = fs::remove_dir_all(&directory);
    }
    fetched.map(|()| directory)
}

fn copy_out(
    store: &dyn SpillStore,
    file: &SnapshotFile,
    directory: &Path,
) -> Result<(), SnapshotError> {
    let at_store = |source| failed(&file.name, source);
    let path = directory.join(&file.table);
    let local = |error| at_store(local_failure(&path, Operation::Write, error));
    let reader = store.open(FileRole::Snapshot, &file.name).map_err(at_store)?;
    let found = reader.len().map_err(at_store)?;
    if found != file.bytes {
        let (name, expected) = (file.name.clone(), file.bytes);
        return Err(SnapshotError::Length { name, found, expected });
    }
    fs::create_dir_all(directory).map_err(local)?;
    let mut writer = File::create_new(&path).map_err(local)?;
    let (mut crc, mut at, mut piece) = (crc32fast::Hasher::new(), 0, vec![0; PIECE]);
    while at < found {
        let len = usize::try_from(found - at).unwrap_or(usize::MAX).min(PIECE);
        let read = piece.get_mut(..len).unwrap_or_default();
        reader.read_at(at, read).map_err(at_store)?;
        crc.update(read);
        writer.write_all(read).map_err(local)?;
        at += len as u64;
    }
    let (found, expected) = (crc.finalize(), file.checksum);
    if found == expected {
        return Ok(());
    }
    Err(SnapshotError::Swapped { name: file.name.clone(), found, expected })
}
