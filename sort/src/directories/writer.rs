//! [`MovingWriter`]: writes one file, and takes it to another directory when it cannot go on.

use std::io;
use std::sync::Arc;

use element::{FileRole, Operation, StoreError, StoreWriter};

use super::Shared;

/// Bytes copied at once when a file moves.
const COPY: usize = 64 << 10;

/// Writes one file. `written` bytes of it are known to be there; there may be more, of a write that
/// failed half way.
#[derive(Debug)]
pub(super) struct MovingWriter {
    shared: Arc<Shared>,
    inner: Box<dyn StoreWriter>,
    place: usize,
    role: FileRole,
    name: String,
    written: u64,
}

impl MovingWriter {
    pub(super) fn new(
        shared: Arc<Shared>,
        inner: Box<dyn StoreWriter>,
        place: usize,
        role: FileRole,
        name: &str,
    ) -> Self {
        Self { shared, inner, place, role, name: name.to_owned(), written: 0 }
    }

    /// Appends all parts where the file is.
    fn write_here(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        let place = &self.shared.places[self.place];
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        if !place.reserve(&self.name, bytes) {
            return Err(self.over_quota());
        }
        place.note(match parts {
            [bytes] => self.inner.write(bytes),
            parts => self.inner.write_parts(parts),
        })?;
        self.written += bytes;
        Ok(())
    }

    fn over_quota(&self) -> StoreError {
        StoreError {
            operation: Operation::Write,
            role: self.role,
            name: self.name.clone(),
            source: io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "the limit on temporary data is reached",
            ),
        }
    }

    /// Takes the file to place `to`, with what is known to be in it.
    fn move_to(&mut self, to: usize) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let target = &shared.places[to];
        let mut writer = target.create(self.role, &self.name)?;
        let copied = if target.reserve(&self.name, self.written) {
            self.copy_into(&mut *writer)
        } else {
            Err(self.over_quota())
        };
        if let Err(error) = copied {
            drop(writer);
            let _ = target.delete(self.role, &self.name);
            return Err(error);
        }
        self.inner = writer;
        // A file that cannot be deleted where it was is in nobody's way but the next sweep's.
        let _ = shared.places[self.place].delete(self.role, &self.name);
        shared.files.lock().insert(self.name.clone(), to);
        self.place = to;
        Ok(())
    }

    fn copy_into(&self, writer: &mut dyn StoreWriter) -> Result<(), StoreError> {
        if self.written == 0 {
            return Ok(());
        }
        let reader = self.shared.places[self.place].open_file(self.role, &self.name)?;
        let mut chunk = vec![0; COPY];
        let mut offset = 0;
        while offset < self.written {
            let length = (self.written - offset).min(COPY as u64);
            let part = &mut chunk[..length as usize];
            reader.read_at(offset, part)?;
            writer.write(part)?;
            offset += length;
        }
        Ok(())
    }
}

impl StoreWriter for MovingWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.write_parts(&[bytes])
    }

    fn write_parts(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        let Err(first) = self.write_here(parts) else { return Ok(()) };
        let from = self.place;
        for place in self.shared.order() {
            if place != from && self.move_to(place).is_ok() && self.write_here(parts).is_ok() {
                return Ok(());
            }
        }
        // What stopped it first is the cause; the other directories did not help.
        Err(first)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.inner.sync()
    }
}
