//! Removes what killed processes left: only what is provably ours, and dead.
//!
//! Ours and dead is a subdirectory with our prefix that is a directory and no symbolic link, has our
//! owner, and holds a plain `lock` file that nobody has locked. In it, plain files with our suffix
//! go, then directories that are empty. Everything else stays: strangers' files, symbolic links and
//! what they point to, and files that a durable backlog has recorded.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::place::{LOCK, PREFIX, SUFFIX};

/// Sweeps `directory`, in which `own` is the caller's. What cannot be removed stays for the next.
pub(super) fn sweep(directory: &Path, own: &Path, durable: &[PathBuf]) {
    let Ok(owner) = fs::symlink_metadata(own).map(|metadata| metadata.uid()) else { return };
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_named_so = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_named_so && path != own && is_plain_directory_of(&path, owner) {
            sweep_one(&path, durable);
        }
    }
}

fn is_plain_directory_of(path: &Path, owner: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == owner)
}

fn sweep_one(root: &Path, durable: &[PathBuf]) {
    let path = root.join(LOCK);
    if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        // Nothing proves that it is ours; an empty one is of no use to anybody.
        let _ = fs::remove_dir(root);
        return;
    }
    let Ok(lock) = File::open(&path) else { return };
    if lock.try_lock().is_err() {
        return;
    }
    remove_files(root, durable);
    remove_empty_directories(root);
    // The lock goes last, and only if nothing needs its proof any more.
    if fs::read_dir(root).is_ok_and(|entries| entries.count() == 1) {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(root);
    }
}

fn remove_files(directory: &Path, durable: &[PathBuf]) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        // The type of the entry itself: a link is neither a directory nor a file.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            remove_files(&path, durable);
        } else if kind.is_file()
            && path.to_string_lossy().ends_with(SUFFIX)
            && !durable.contains(&path)
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Removes the directories below `root` that are empty; not `root`.
pub(super) fn remove_empty_directories(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty_directories(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}
