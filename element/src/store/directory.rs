//! Files in one directory of the local disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{FileRole, Operation, SpillStore, StoreError, StoreReader, StoreWriter};

/// A [`SpillStore`] below one directory. It makes directories as names need them, and removes none.
#[derive(Clone, Debug)]
pub struct DirectoryStore {
    root: PathBuf,
}

impl DirectoryStore {
    /// A store below `root`, which is made when the first file is.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn failed(
        &self,
        operation: Operation,
        role: FileRole,
        name: &str,
    ) -> impl FnOnce(io::Error) -> StoreError {
        let name = self.root.join(name).display().to_string();
        move |source| StoreError { operation, role, name, source }
    }

    fn collect(
        directory: &Path,
        prefix: &str,
        names: &mut Vec<String>,
        base: &str,
    ) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = format!("{base}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                Self::collect(&entry.path(), prefix, names, &format!("{name}/"))?;
            } else if name.starts_with(prefix) {
                names.push(name);
            }
        }
        Ok(())
    }
}

/// Makes the entry of `path` in its directory durable.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

impl SpillStore for DirectoryStore {
    fn create(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreWriter>, StoreError> {
        let path = self.root.join(name);
        let make = || {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            OpenOptions::new().write(true).create_new(true).open(&path)
        };
        let file = make().map_err(self.failed(Operation::Create, role, name))?;
        Ok(Box::new(DirectoryWriter { file, path, role }))
    }

    fn open(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreReader>, StoreError> {
        let path = self.root.join(name);
        let file = File::open(&path).map_err(self.failed(Operation::Open, role, name))?;
        Ok(Box::new(DirectoryReader { file, path, role }))
    }

    fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), StoreError> {
        let target = self.root.join(to);
        fs::rename(self.root.join(from), &target)
            .and_then(|()| sync_directory_of(&target))
            .map_err(self.failed(Operation::Rename, role, from))
    }

    fn delete(&self, role: FileRole, name: &str) -> Result<(), StoreError> {
        fs::remove_file(self.root.join(name)).map_err(self.failed(Operation::Delete, role, name))
    }

    fn list(&self, role: FileRole, prefix: &str) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        match Self::collect(&self.root, prefix, &mut names, "") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(self.failed(Operation::List, role, prefix)(error));
            }
            _ => {}
        }
        names.sort_unstable();
        Ok(names)
    }

    fn local_path(&self, name: &str) -> Option<PathBuf> {
        Some(self.root.join(name))
    }
}

#[derive(Debug)]
struct DirectoryWriter {
    file: File,
    path: PathBuf,
    role: FileRole,
}

impl DirectoryWriter {
    fn failed(&self, operation: Operation, source: io::Error) -> StoreError {
        StoreError { operation, role: self.role, name: self.path.display().to_string(), source }
    }
}

impl StoreWriter for DirectoryWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(bytes).map_err(|error| self.failed(Operation::Write, error))
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.file
            .sync_all()
            .and_then(|()| sync_directory_of(&self.path))
            .map_err(|error| self.failed(Operation::Sync, error))
    }
}

#[derive(Debug)]
struct DirectoryReader {
    file: File,
    path: PathBuf,
    role: FileRole,
}

impl DirectoryReader {
    fn failed(&self, operation: Operation, source: io::Error) -> StoreError {
        StoreError { operation, role: self.role, name: self.path.display().to_string(), source }
    }
}

impl StoreReader for DirectoryReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.file.read_exact_at(into, offset).map_err(|error| self.failed(Operation::Read, error))
    }

    fn len(&self) -> Result<u64, StoreError> {
        let metadata = self.file.metadata().map_err(|error| self.failed(Operation::Read, error))?;
        Ok(metadata.len())
    }
}
