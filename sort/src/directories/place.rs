//! [`Place`]: our own subdirectory in one of the directories, locked while we live.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use element::{
    ByteSize, DirectoryStore, FileRole, SpillStore, StoreError, StoreReader, StoreWriter,
};
use parking_lot::Mutex;

/// How names of our subdirectories begin.
pub(super) const PREFIX: &str = "slackwater-spill-";
/// How names of our files end.
pub(super) const SUFFIX: &str = ".spill";
/// The file that is locked while its process lives.
pub(super) const LOCK: &str = "lock";

/// Tries to make a subdirectory; each ends by losing a race with a sweep, which needs a new name.
const ATTEMPTS: u32 = 16;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A directory that could not be taken into use.
#[derive(Debug, thiserror::Error)]
#[error("directory `{}` cannot be used for temporary files", path.display())]
pub struct UnusableDirectory {
    /// The directory, as configured.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Our subdirectory of one directory.
#[derive(Debug)]
pub(super) struct Place {
    root: PathBuf,
    store: DirectoryStore,
    /// Locked; unlocked by closing, also when the process is killed.
    _lock: File,
    quota: u64,
    /// Bytes of files here. Bounded by `quota`; the sum of `sizes`.
    used: AtomicU64,
    sizes: Mutex<HashMap<String, u64>>,
    broken: AtomicBool,
}

impl Place {
    pub(super) fn open(directory: &Path, quota: Option<ByteSize>) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::ResourceBusy);
        for _ in 0..ATTEMPTS {
            match make_own(directory) {
                Ok((root, lock)) => {
                    return Ok(Self {
                        store: DirectoryStore::new(&root),
                        root,
                        _lock: lock,
                        quota: quota.map_or(u64::MAX, |quota| quota.0),
                        used: AtomicU64::new(0),
                        sizes: Mutex::default(),
                        broken: AtomicBool::new(false),
                    });
                }
                Err(Refused::Lost) => {}
                Err(Refused::Taken) => last = io::ErrorKind::AlreadyExists.into(),
                Err(Refused::Failed(error)) => return Err(error),
            }
        }
        Err(last)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}{SUFFIX}"))
    }

    /// Counts `bytes` more of a file; false, and nothing counted, beyond the limit.
    pub(super) fn reserve(&self, name: &str, bytes: u64) -> bool {
        let add = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.quota);
        let is_granted = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok();
        if is_granted {
            *self.sizes.lock().entry(name.to_owned()).or_insert(0) += bytes;
        }
        is_granted
    }

    fn release(&self, name: &str) {
        let bytes = self.sizes.lock().remove(name).unwrap_or(0);
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Remembers whether the last attempt to use this place went well.
    pub(super) fn note<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.broken.store(result.is_err(), Ordering::Release);
        result
    }

    pub(super) fn create(
        &self,
        role: FileRole,
        name: &str,
    ) -> Result<Box<dyn StoreWriter>, StoreError> {
        self.note(self.store.create(role, &format!("{name}{SUFFIX}")))
    }

    pub(super) fn open_file(
        &self,
        role: FileRole,
        name: &str,
    ) -> Result<Box<dyn StoreReader>, StoreError> {
        self.store.open(role, &format!("{name}{SUFFIX}"))
    }

    pub(super) fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), StoreError> {
        self.store.rename(role, &format!("{from}{SUFFIX}"), &format!("{to}{SUFFIX}"))?;
        self.release(to);
        let mut sizes = self.sizes.lock();
        if let Some(bytes) = sizes.remove(from) {
            sizes.insert(to.to_owned(), bytes);
        }
        Ok(())
    }

    /// Deletes a file and counts its bytes as free; also if it is gone already.
    pub(super) fn delete(&self, role: FileRole, name: &str) -> Result<(), StoreError> {
        let deleted = self.store.delete(role, &format!("{name}{SUFFIX}"));
        if deleted.as_ref().err().is_none_or(StoreError::is_not_found) {
            self.release(name);
        }
        deleted
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Errors leave something for the next process to sweep, which is what the lock is for.
        super::sweep::remove_empty_directories(&self.root);
        let left = fs::read_dir(&self.root).map_or(0, Iterator::count);
        if left <= 1 {
            let _ = fs::remove_file(self.root.join(LOCK));
            let _ = fs::remove_dir(&self.root);
        }
    }
}

enum Refused {
    /// A sweep was faster: it took the subdirectory for an empty left-over.
    Lost,
    /// There is something of this name.
    Taken,
    Failed(io::Error),
}

fn make_own(directory: &Path) -> Result<(PathBuf, File), Refused> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let root = directory.join(format!("{PREFIX}{}-{number}", process::id()));
    match DirBuilder::new().mode(0o700).create(&root) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(Refused::Taken),
        made => made.map_err(Refused::Failed)?,
    }
    let path = root.join(LOCK);
    let mut lock = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Refused::Lost),
        made => made.map_err(Refused::Failed)?,
    };
    if lock.try_lock().is_err() || !is_same_file(&lock, &path) {
        return Err(Refused::Lost);
    }
    if let Err(error) = write!(lock, "{}", process::id()) {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(&root);
        return Err(Refused::Failed(error));
    }
    Ok((root, lock))
}

/// Whether `path` still names the file that is open.
fn is_same_file(open: &File, path: &Path) -> bool {
    match (open.metadata(), fs::symlink_metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}
