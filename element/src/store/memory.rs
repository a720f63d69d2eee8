//! Files in memory, for tests and small runs.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::{FileRole, Operation, SpillStore, StoreError, StoreReader, StoreWriter};

type Content = Arc<RwLock<Vec<u8>>>;

/// A [`SpillStore`] that forgets. Clones share their files.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    files: Arc<Mutex<BTreeMap<String, Content>>>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the bytes of a file under its reader's eyes, for tests of damage; false if there is
    /// no such file.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let content = self.files.lock().get(name).cloned();
        content.map(|content| change(&mut content.write())).is_some()
    }
}

fn failed(operation: Operation, role: FileRole, name: &str, kind: io::ErrorKind) -> StoreError {
    StoreError { operation, role, name: name.to_owned(), source: kind.into() }
}

impl SpillStore for MemoryStore {
    fn create(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreWriter>, StoreError> {
        let mut files = self.files.lock();
        if files.contains_key(name) {
            return Err(failed(Operation::Create, role, name, io::ErrorKind::AlreadyExists));
        }
        let content = Content::default();
        files.insert(name.to_owned(), Arc::clone(&content));
        Ok(Box::new(MemoryFile { content, name: name.to_owned(), role }))
    }

    fn open(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreReader>, StoreError> {
        match self.files.lock().get(name) {
            Some(content) => Ok(Box::new(MemoryFile {
                content: Arc::clone(content),
                name: name.to_owned(),
                role,
            })),
            None => Err(failed(Operation::Open, role, name, io::ErrorKind::NotFound)),
        }
    }

    fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), StoreError> {
        let mut files = self.files.lock();
        let content = files
            .remove(from)
            .ok_or_else(|| failed(Operation::Rename, role, from, io::ErrorKind::NotFound))?;
        files.insert(to.to_owned(), content);
        Ok(())
    }

    fn delete(&self, role: FileRole, name: &str) -> Result<(), StoreError> {
        match self.files.lock().remove(name) {
            Some(_) => Ok(()),
            None => Err(failed(Operation::Delete, role, name, io::ErrorKind::NotFound)),
        }
    }

    fn list(&self, _: FileRole, prefix: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.files.lock().keys().filter(|name| name.starts_with(prefix)).cloned().collect())
    }

    fn local_path(&self, _: &str) -> Option<PathBuf> {
        None
    }
}

#[derive(Debug)]
struct MemoryFile {
    content: Content,
    name: String,
    role: FileRole,
}

impl StoreWriter for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.content.write().extend_from_slice(bytes);
        Ok(())
    }

    fn write_parts(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        let mut content = self.content.write();
        parts.iter().for_each(|part| content.extend_from_slice(part));
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl StoreReader for MemoryFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let content = self.content.read();
        let found = usize::try_from(offset)
            .ok()
            .and_then(|start| content.get(start..)?.get(..into.len()))
            .ok_or_else(|| {
                failed(Operation::Read, self.role, &self.name, io::ErrorKind::UnexpectedEof)
            })?;
        into.copy_from_slice(found);
        Ok(())
    }

    fn len(&self) -> Result<u64, StoreError> {
        Ok(self.content.read().len() as u64)
    }
}
