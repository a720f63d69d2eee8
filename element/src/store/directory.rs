//! Files in one directory of the local disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
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

    /// Lists below `directory`. What goes away meanwhile is left out, and nothing else.
    fn collect(
        directory: &Path,
        prefix: &str,
        names: &mut Vec<String>,
        base: &str,
    ) -> io::Result<()> {
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
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

/// Makes the directories of `path` that are not there; true if any was made.
fn make_directory_of(path: &Path) -> io::Result<bool> {
    match path.parent() {
        Some(parent) if !parent.is_dir() => fs::create_dir_all(parent).map(|()| true),
        _ => Ok(false),
    }
}

/// Makes the entry of `path` in its directory durable; with `up_to_root`, those of its directories
/// too, for they are as young as the file.
fn sync_directory_of(path: &Path, root: &Path, up_to_root: bool) -> io::Result<()> {
    for directory in path.ancestors().skip(1) {
        File::open(directory)?.sync_all()?;
        if !up_to_root || directory == root {
            break;
        }
    }
    Ok(())
}

/// Parts that one call of the system takes at most (`IOV_MAX` of Linux).
const PARTS: usize = 1_024;

/// Writes all of `slices`, however little the system takes at once.
fn write_all(file: &mut File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Empty ones in front go, so that a write of nothing always means a file that takes nothing.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl SpillStore for DirectoryStore {
    fn create(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreWriter>, StoreError> {
        let path = self.root.join(name);
        let make = || {
            let new_directory = make_directory_of(&path)?;
            let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            Ok((file, new_directory))
        };
        let (file, new_directory) = make().map_err(self.failed(Operation::Create, role, name))?;
        Ok(Box::new(DirectoryWriter { file, path, root: self.root.clone(), new_directory, role }))
    }

    fn open(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreReader>, StoreError> {
        let path = self.root.join(name);
        let file = File::open(&path).map_err(self.failed(Operation::Open, role, name))?;
        Ok(Box::new(DirectoryReader { file, path, role }))
    }

    fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), StoreError> {
        let target = self.root.join(to);
        let rename = || {
            let new_directory = make_directory_of(&target)?;
            fs::rename(self.root.join(from), &target)?;
            sync_directory_of(&target, &self.root, new_directory)
        };
        rename().map_err(self.failed(Operation::Rename, role, from))
    }

    fn delete(&self, role: FileRole, name: &str) -> Result<(), StoreError> {
        fs::remove_file(self.root.join(name)).map_err(self.failed(Operation::Delete, role, name))
    }

    fn list(&self, role: FileRole, prefix: &str) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        Self::collect(&self.root, prefix, &mut names, "").map_err(self.failed(
            Operation::List,
            role,
            prefix,
        ))?;
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
    root: PathBuf,
    /// Whether the file's directory was made for it.
    new_directory: bool,
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

    fn write_parts(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        for parts in parts.chunks(PARTS) {
            let mut slices: Vec<IoSlice<'_>> =
                parts.iter().map(|part| IoSlice::new(part)).collect();
            write_all(&mut self.file, &mut slices)
                .map_err(|error| self.failed(Operation::Write, error))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.file
            .sync_all()
            .and_then(|()| sync_directory_of(&self.path, &self.root, self.new_directory))
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
