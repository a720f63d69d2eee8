//! [`SpillDirectories`]: temporary files over several directories, with fail-over and a limit.
//!
//! ```text
//! <directory>/                            configured; may be a symbolic link, is never removed
//!   slackwater-spill-<process>-<number>/  ours: made at open, removed with the last user
//!     lock                                locked while we live: who can lock it may sweep
//!     <name>.spill                        the files
//! ```
//!
//! A file is made in the next directory that works. A write that fails, or would go over the limit,
//! moves the file to another directory and goes on there; the caller does not notice. What a killed
//! process left behind is swept when the next one opens ([`sweep`]).
//!
//! Source: FLINK-18811 (a broken directory among good ones), FLINK-8941 (names that clash).

mod place;
mod sweep;
mod writer;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use element::{ByteSize, FileRole, Operation, SpillStore, StoreError, StoreReader, StoreWriter};
use parking_lot::Mutex;

use place::Place;
use writer::MovingWriter;

pub use place::UnusableDirectory;

/// No directory can be used for temporary files.
#[derive(Debug, thiserror::Error)]
#[error("none of {} directories for temporary files can be used", unusable.len())]
pub struct NoDirectory {
    /// Every directory, and why.
    pub unusable: Vec<UnusableDirectory>,
}

/// Temporary files over several directories. Clones share them; the last one removes what is left.
#[derive(Clone, Debug)]
pub struct SpillDirectories {
    shared: Arc<Shared>,
}

/// Where each file lies. A file that is being written is there too.
#[derive(Debug)]
struct Shared {
    places: Vec<Place>,
    unusable: Vec<UnusableDirectory>,
    files: Mutex<HashMap<String, usize>>,
    next: AtomicUsize,
}

impl SpillDirectories {
    /// Takes directories into use, each with at most `quota` bytes of files, and sweeps what killed
    /// processes left in them, except the files in `durable`, by path.
    ///
    /// Directories that cannot be used are passed over; [`SpillDirectories::unusable`] names them.
    ///
    /// # Errors
    ///
    /// [`NoDirectory`] if none can be used.
    pub fn open(
        directories: &[PathBuf],
        quota: Option<ByteSize>,
        durable: &[PathBuf],
    ) -> Result<Self, NoDirectory> {
        let mut places = Vec::new();
        let mut unusable = Vec::new();
        for directory in directories {
            match Place::open(directory, quota) {
                Ok(place) => {
                    sweep::sweep(directory, place.root(), durable);
                    places.push(place);
                }
                Err(source) => {
                    unusable.push(UnusableDirectory { path: directory.clone(), source });
                }
            }
        }
        if places.is_empty() {
            return Err(NoDirectory { unusable });
        }
        let shared =
            Shared { places, unusable, files: Mutex::default(), next: AtomicUsize::new(0) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The directories that could not be taken into use, and why.
    #[must_use]
    pub fn unusable(&self) -> &[UnusableDirectory] {
        &self.shared.unusable
    }

    /// Bytes of files, over all directories.
    #[must_use]
    pub fn used(&self) -> ByteSize {
        ByteSize(self.shared.places.iter().map(Place::used).sum())
    }
}

impl Shared {
    /// Places in the order in which a new file should try them: in turns, broken ones last.
    fn order(&self) -> Vec<usize> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.places.len();
        let mut order: Vec<usize> = (0..count).map(|n| (first + n) % count).collect();
        order.sort_by_key(|place| self.places[*place].is_broken());
        order
    }

    fn place_of(
        &self,
        operation: Operation,
        role: FileRole,
        name: &str,
    ) -> Result<&Place, StoreError> {
        let place = self.files.lock().get(name).copied();
        place.and_then(|place| self.places.get(place)).ok_or_else(|| StoreError {
            operation,
            role,
            name: name.to_owned(),
            source: io::ErrorKind::NotFound.into(),
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for (name, place) in self.files.get_mut().drain() {
            // What cannot be deleted is swept by the next process.
            let _ = self.places[place].delete(FileRole::SortRun, &name);
        }
    }
}

impl SpillStore for SpillDirectories {
    fn create(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreWriter>, StoreError> {
        let mut failed = None;
        {
            let mut files = self.shared.files.lock();
            if files.contains_key(name) {
                let source = io::ErrorKind::AlreadyExists.into();
                let operation = Operation::Create;
                return Err(StoreError { operation, role, name: name.to_owned(), source });
            }
            // Entered before it is made: whatever happens, it is known and can be deleted.
            files.insert(name.to_owned(), 0);
        }
        for index in self.shared.order() {
            match self.shared.places[index].create(role, name) {
                Ok(inner) => {
                    self.shared.files.lock().insert(name.to_owned(), index);
                    let shared = Arc::clone(&self.shared);
                    return Ok(Box::new(MovingWriter::new(shared, inner, index, role, name)));
                }
                Err(error) => failed = Some(error),
            }
        }
        self.shared.files.lock().remove(name);
        Err(failed.unwrap_or_else(|| StoreError {
            operation: Operation::Create,
            role,
            name: name.to_owned(),
            source: io::ErrorKind::NotFound.into(),
        }))
    }

    fn open(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreReader>, StoreError> {
        self.shared.place_of(Operation::Open, role, name)?.open_file(role, name)
    }

    fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), StoreError> {
        self.shared.place_of(Operation::Rename, role, from)?.rename(role, from, to)?;
        let replaced = {
            let mut files = self.shared.files.lock();
            let place = files.remove(from);
            let replaced = place.and_then(|place| files.insert(to.to_owned(), place));
            replaced.filter(|replaced| Some(*replaced) != place)
        };
        // What had the name in another directory was not replaced there by itself.
        replaced.map_or(Ok(()), |replaced| self.shared.places[replaced].delete(role, to))
    }

    fn delete(&self, role: FileRole, name: &str) -> Result<(), StoreError> {
        let deleted = self.shared.place_of(Operation::Delete, role, name)?.delete(role, name);
        match deleted {
            Err(error) if !error.is_not_found() => Err(error),
            done => {
                self.shared.files.lock().remove(name);
                done
            }
        }
    }

    fn list(&self, _: FileRole, prefix: &str) -> Result<Vec<String>, StoreError> {
        let files = self.shared.files.lock();
        let mut names: Vec<String> =
            files.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
        names.sort_unstable();
        Ok(names)
    }

    fn local_path(&self, name: &str) -> Option<PathBuf> {
        let place = *self.shared.files.lock().get(name)?;
        Some(self.shared.places.get(place)?.path_of(name))
    }
}
