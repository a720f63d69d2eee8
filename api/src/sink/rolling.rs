//! [`Rolling`]: part files that are closed at each checkpoint, or when they are big enough.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use element::{decode_exact, encode_to_vec};

use super::encoding::{Encodes, Encoding, PartFile};
use super::parts::{FileSinkError, PartDirectory, PartName, Prepared, directory};
use crate::{ByteSize, SinkContext, SinkWriter, Timestamp};

/// A part file is closed when it has so many bytes.
const ROLL_SIZE: ByteSize = ByteSize(128 << 20);

/// What readers of the files may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guarantee {
    /// A file appears whole, with the checkpoint that covers it.
    ExactlyOnce,
    /// A file appears when it is begun and grows.
    AtLeastOnce,
}

/// Rolling files of one encoding.
#[derive(Debug)]
pub(super) struct Rolling<E> {
    path: PathBuf,
    guarantee: Guarantee,
    pub(super) encoding: E,
    pub(super) roll_size: ByteSize,
    run: String,
}

impl<E: Clone> Clone for Rolling<E> {
    /// A sink of its own: in the same directory, but never with the same names.
    fn clone(&self) -> Self {
        Self {
            path: self.path.clone(),
            guarantee: self.guarantee,
            encoding: self.encoding.clone(),
            roll_size: self.roll_size,
            run: new_run(),
        }
    }
}

impl<E: Encoding> Rolling<E> {
    pub(super) fn exactly_once(path: &Path, encoding: E) -> Self {
        Self::new(path, Guarantee::ExactlyOnce, encoding)
    }

    pub(super) fn at_least_once(path: &Path, encoding: E) -> Self {
        Self::new(path, Guarantee::AtLeastOnce, encoding)
    }

    fn new(path: &Path, guarantee: Guarantee, encoding: E) -> Self {
        Self { path: path.to_owned(), guarantee, encoding, roll_size: ROLL_SIZE, run: new_run() }
    }

    /// The writer of one subtask; leftovers of its run's earlier attempts are removed.
    pub(super) fn writer<T>(
        &self,
        context: &SinkContext,
        restored: &[Vec<u8>],
    ) -> anyhow::Result<Box<dyn SinkWriter<T>>>
    where
        T: Send + 'static,
        E: Encodes<T>,
    {
        let directory = directory(&self.path, E::EXTENSION);
        directory.create()?;
        let next = PartName {
            run: self.run.clone(),
            subtask: context.subtask.0,
            attempt: context.attempt.0,
            number: 0,
        };
        let restored =
            restored.iter().map(|bytes| decode_exact(bytes)).collect::<Result<Vec<_>, _>>()?;
        if self.guarantee == Guarantee::ExactlyOnce {
            directory.clean(&next, context.is_restored.then_some(&restored))?;
        }
        Ok(Box::new(RollingWriter {
            encoding: self.encoding.clone(),
            guarantee: self.guarantee,
            roll_size: self.roll_size,
            directory,
            next,
            part: None,
            closed: Vec::new(),
        }))
    }
}

/// A name for a run that no other run has: from the time, the process, and a count within it.
fn new_run() -> String {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = RUNS.fetch_add(1, Ordering::Relaxed);
    format!("{:x}x{:x}x{count:x}", now.as_micros(), std::process::id())
}

/// Writes the part files of one subtask.
struct RollingWriter<E: Encoding> {
    encoding: E,
    guarantee: Guarantee,
    roll_size: ByteSize,
    directory: PartDirectory,
    /// The name of the file at hand, or of the next one.
    next: PartName,
    part: Option<E::Part>,
    /// Files since the last barrier, closed and synced.
    closed: Vec<Prepared>,
}

impl<E: Encoding> RollingWriter<E> {
    /// Where the file at hand is, before it is committed.
    fn path(&self) -> PathBuf {
        match self.guarantee {
            Guarantee::ExactlyOnce => self.directory.temporary(&self.next),
            Guarantee::AtLeastOnce => self.directory.target(&self.next),
        }
    }

    fn failed(&self) -> impl Fn(std::io::Error) -> FileSinkError + use<E> {
        let path = self.path();
        move |source| FileSinkError::Write { path: path.clone(), source }
    }

    fn part(&mut self) -> Result<&mut E::Part, FileSinkError> {
        let part = match self.part.take() {
            Some(part) => part,
            None => {
                let file = File::create_new(self.path()).map_err(self.failed())?;
                self.encoding.begin(PartFile { file, bytes: 0 })
            }
        };
        Ok(self.part.insert(part))
    }

    fn flush_part(&mut self) -> Result<(), FileSinkError> {
        let failed = self.failed();
        self.part.as_mut().map_or(Ok(()), E::flush).map_err(failed)
    }

    /// Closes the file at hand and makes its bytes durable.
    fn close(&mut self) -> Result<(), FileSinkError> {
        self.flush_part()?;
        let Some(part) = self.part.take() else { return Ok(()) };
        let file = E::file(&part);
        file.file.sync_all().map_err(self.failed())?;
        self.closed.push(Prepared::File { name: self.next.clone(), bytes: file.bytes });
        self.next.number += 1;
        Ok(())
    }
}

impl<T, E: Encodes<T>> SinkWriter<T> for RollingWriter<E> {
    fn write(&mut self, value: T, _: Option<Timestamp>) -> anyhow::Result<()> {
        let roll_size = self.roll_size.0;
        let part = self.part()?;
        E::write(part, &value)?;
        if E::file(part).bytes >= roll_size {
            self.close()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        match self.guarantee {
            // Nobody reads the file before its commit.
            Guarantee::ExactlyOnce => Ok(()),
            Guarantee::AtLeastOnce => Ok(self.flush_part()?),
        }
    }

    fn prepare_commit(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        self.close()?;
        let mut prepared = std::mem::take(&mut self.closed);
        if !prepared.is_empty() {
            self.directory.sync()?;
        }
        if self.guarantee == Guarantee::AtLeastOnce {
            // They have their names.
            prepared.clear();
        }
        Ok(prepared.iter().map(encode_to_vec).collect())
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        Ok(match self.guarantee {
            Guarantee::ExactlyOnce => vec![encode_to_vec(&Prepared::Next(self.next.clone()))],
            Guarantee::AtLeastOnce => Vec::new(),
        })
    }

    fn commit(&mut self, committable: &[u8]) -> anyhow::Result<()> {
        match decode_exact(committable)? {
            Prepared::File { name, bytes } => Ok(self.directory.commit(&name, bytes)?),
            Prepared::Next(_) => Ok(()),
        }
    }
}
