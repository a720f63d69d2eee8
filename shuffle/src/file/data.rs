//! The data file: written in pieces of about 256 KiB, read through a map or by position.
//!
//! ```text
//! "SWPD" version:u32 identity-crc:u32 0:u32 | block*
//! ```

use std::collections::{HashMap, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use element::{FileRole, Operation, SpillStore, StoreError, StoreReader, StoreWriter};
use memmap2::Mmap;

use super::{ReadMode, mapped};

/// Bytes of one write: measured 1.4 times the speed of 32 KiB, and up to six times that of 1 MiB, for
/// which ext4 takes page cache in stretches as large that are slow to fill (Linux 6.18).
const PIECE: usize = 256 << 10;

/// Bytes that are written at once rather than copied to wait for a whole piece.
const IN_PLACE: usize = PIECE / 4;

/// What is written begins at a multiple of it, so that no page is filled by two writes, and the rest
/// that is held back is small.
const GRAIN: usize = 16 << 10;

pub(super) const FILE_HEADER: usize = 16;
const MAGIC: &[u8; 4] = b"SWPD";
const VERSION: u32 = 1;

/// Maps that are kept though nobody reads them just then, at most.
const KEPT_MAPS: usize = 64;

/// Data files that readers share, by name: all that one of them has, and the last few maps beside.
///
/// The consumers of one worker read a partition one after the other, each its subpartition, and a page
/// that one of them met is met by its neighbours too; a map that went with each reader would be
/// filled anew by the next. A map costs no open file and no memory that the system could not take
/// back, but keeps its file's place on the disk, so what is released is forgotten at once.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    shared: HashMap<String, Weak<DataFile>>,
    /// Latest last.
    kept: VecDeque<(String, Arc<DataFile>)>,
}

impl OpenFiles {
    /// The file of that name, opened if nobody has it.
    pub(super) fn get(
        &mut self,
        store: &dyn SpillStore,
        name: &str,
        mode: ReadMode,
    ) -> Result<Arc<DataFile>, StoreError> {
        let shared = self.shared.get(name).and_then(Weak::upgrade);
        if let Some(file) = shared.filter(|file| file.is_in_place()) {
            return Ok(file);
        }
        self.forget(|other| other == name);
        let file = Arc::new(DataFile::open(store, name, mode)?);
        if file.is_mapped() {
            // An earlier making of the same partition is read by nobody who comes now.
            self.forget(|other| other.split('.').next() == name.split('.').next());
            self.kept.push_back((name.to_owned(), Arc::clone(&file)));
            if self.kept.len() > KEPT_MAPS {
                self.kept.pop_front();
            }
        }
        self.shared.retain(|_, file| file.strong_count() > 0);
        self.shared.insert(name.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }

    /// Keeps no map of those files any longer.
    pub(super) fn forget(&mut self, is_released: impl Fn(&str) -> bool) {
        self.kept.retain(|(name, _)| !is_released(name));
    }
}

/// Appends to a data file: many bytes from where they lie, few by way of a buffer of less than a piece.
#[derive(Debug)]
pub(super) struct DataWriter {
    file: Box<dyn StoreWriter>,
    /// Bytes not written yet, fewer than [`PIECE`] between calls.
    buffer: Vec<u8>,
    /// Empty: the memory of the buffer before.
    spare: Vec<u8>,
    /// Length of the file with the buffer in it.
    length: u64,
}

impl DataWriter {
    pub(super) fn create(
        store: &dyn SpillStore,
        name: &str,
        identity: u32,
    ) -> Result<Self, StoreError> {
        let file = store.create(FileRole::PartitionData, name)?;
        let mut buffer = Vec::new();
        buffer.extend_from_slice(MAGIC);
        buffer.extend_from_slice(&VERSION.to_le_bytes());
        buffer.extend_from_slice(&identity.to_le_bytes());
        buffer.resize(FILE_HEADER, 0);
        Ok(Self { file, buffer, spare: Vec::new(), length: FILE_HEADER as u64 })
    }

    /// The length so far: where the next byte goes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes that may come before the next write.
    pub(super) fn room(&self) -> usize {
        PIECE - self.buffer.len()
    }

    /// Appends all parts. Many bytes are written from where they lie, but for less than a grain at their
    /// end; few are held back until there is a piece.
    pub(super) fn append(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.length += bytes as u64;
        let mut buffer = std::mem::take(&mut self.buffer);
        let held = buffer.len() + bytes;
        if held < PIECE && bytes < IN_PLACE {
            parts.iter().for_each(|part| buffer.extend_from_slice(part));
            self.buffer = buffer;
            return Ok(());
        }
        let mut left = held - held % GRAIN;
        let mut parts = Parts { front: &buffer, behind: parts.iter() };
        while left > 0 {
            let piece = if left < PIECE + PIECE / 2 { left } else { PIECE };
            self.file.write_parts(&parts.take(piece))?;
            left -= piece;
        }
        // The buffer was in front, and what was written is no shorter.
        let rest = parts.take(held % GRAIN);
        rest.iter().for_each(|part| self.spare.extend_from_slice(part));
        buffer.clear();
        self.buffer = std::mem::replace(&mut self.spare, buffer);
        Ok(())
    }

    /// Writes what is held back and closes the file; its length.
    pub(super) fn finish(mut self, sync: bool) -> Result<u64, StoreError> {
        if !self.buffer.is_empty() {
            self.file.write(&self.buffer)?;
        }
        if sync {
            self.file.sync()?;
        }
        Ok(self.length)
    }
}

/// Bytes in several places, taken from the front.
struct Parts<'a> {
    front: &'a [u8],
    behind: std::slice::Iter<'a, &'a [u8]>,
}

impl<'a> Parts<'a> {
    /// The next `bytes` bytes, or all that are left.
    fn take(&mut self, mut bytes: usize) -> Vec<&'a [u8]> {
        let mut taken = Vec::with_capacity(self.behind.len() + 1);
        while bytes > 0 {
            let (head, rest) = self.front.split_at(bytes.min(self.front.len()));
            bytes -= head.len();
            self.front = rest;
            if !head.is_empty() {
                taken.push(head);
            } else if let Some(next) = self.behind.next() {
                self.front = next;
            } else {
                break;
            }
        }
        taken
    }
}

/// A complete data file, shared by its readers.
#[derive(Debug)]
pub(super) enum DataFile {
    /// Mapped; closed since.
    Mapped { map: Mmap, path: PathBuf, inode: u64 },
    /// Open, read by position.
    Open(Box<dyn StoreReader>),
}

impl DataFile {
    pub(super) fn open(
        store: &dyn SpillStore,
        name: &str,
        mode: ReadMode,
    ) -> Result<Self, StoreError> {
        let file = store.open(FileRole::PartitionData, name)?;
        let path = store.local_path(name).filter(|_| mode == ReadMode::Mapped);
        let Some(path) = path else {
            return Ok(Self::Open(file));
        };
        // An empty file is a damaged one; it cannot be mapped, and its length gives it away.
        if file.is_empty()? {
            return Ok(Self::Open(file));
        }
        let inode = std::fs::metadata(&path).map(|metadata| metadata.ino());
        match inode.and_then(|inode| Ok((inode, mapped::map(&path)?))) {
            Ok((inode, map)) => Ok(Self::Mapped { map, path, inode }),
            Err(source) => Err(StoreError {
                operation: Operation::Open,
                role: FileRole::PartitionData,
                name: path.display().to_string(),
                source,
            }),
        }
    }

    /// Whether the file still stands where it was opened: a map outlives a file that somebody deleted or
    /// replaced, which is to be found out.
    fn is_in_place(&self) -> bool {
        match self {
            Self::Open(_) => true,
            Self::Mapped { path, inode, .. } => {
                std::fs::metadata(path).is_ok_and(|metadata| metadata.ino() == *inode)
            }
        }
    }

    /// The file's length at this moment. A mapped file that was unlinked is as long as its map.
    pub(super) fn length(&self) -> Result<u64, StoreError> {
        match self {
            Self::Open(file) => file.len(),
            Self::Mapped { map, path, .. } => {
                let mapped = map.len() as u64;
                Ok(std::fs::metadata(path).map_or(mapped, |metadata| metadata.len()))
            }
        }
    }

    /// Some bytes of a mapped file; `None` if it is not mapped or ends before.
    pub(super) fn mapped(&self, offset: u64, length: usize) -> Option<&[u8]> {
        match self {
            Self::Mapped { map, .. } => {
                let start = usize::try_from(offset).ok()?;
                map.get(start..)?.get(..length)
            }
            Self::Open(_) => None,
        }
    }

    pub(super) fn is_mapped(&self) -> bool {
        matches!(self, Self::Mapped { .. })
    }

    /// Fills `into` from `offset` on.
    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        match self {
            Self::Open(file) => file.read_at(offset, into),
            Self::Mapped { path, .. } => match self.mapped(offset, into.len()) {
                Some(bytes) => {
                    into.copy_from_slice(bytes);
                    Ok(())
                }
                None => Err(StoreError {
                    operation: Operation::Read,
                    role: FileRole::PartitionData,
                    name: path.display().to_string(),
                    source: std::io::ErrorKind::UnexpectedEof.into(),
                }),
            },
        }
    }
}
