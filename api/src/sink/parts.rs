//! Part files of one directory: their names, their commit, and what an earlier attempt has left.
//!
//! ```text
//!   .part-<run>-<subtask>-<attempt>-<n>.json.inprogress     written, closed and synced at a barrier
//!          | rename, once the checkpoint is complete
//!   part-<run>-<subtask>-<attempt>-<n>.json                 for readers
//! ```
//!
//! The run is drawn anew by each program that makes the sink, so that a job which goes on from an older
//! savepoint never meets names of the run that came after it. Within a run a name is used once: each
//! checkpoint stores, for each subtask, the number that its next file would have had. What lies behind
//! that number when a job goes on from the checkpoint was written by an attempt that failed, and its
//! records come again: it is removed, by whichever subtask the stored number is dealt to.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::Record;

/// Why part files cannot be written or made visible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileSinkError {
    /// The directory cannot be made or listed.
    #[error("cannot write to the directory `{}`", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A part file cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A part file cannot be renamed.
    #[error("cannot commit `{}`", path.display())]
    Commit {
        /// The name that it was to get.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A prepared part file is gone and was not committed, or moved away since.
    #[error("the part file `{}` that a checkpoint has prepared is gone", path.display())]
    Lost {
        /// The name that it was to get.
        path: PathBuf,
    },
    /// A prepared part file is not what was prepared.
    #[error("the part file `{}` has {found} bytes, {expected} were prepared", path.display())]
    Changed {
        /// Which.
        path: PathBuf,
        /// Bytes it has.
        found: u64,
        /// Bytes it had.
        expected: u64,
    },
}

/// What a name says of its file.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub(super) struct PartName {
    pub(super) run: String,
    pub(super) subtask: u32,
    pub(super) attempt: u32,
    pub(super) number: u64,
}

/// What a checkpoint stores: a prepared file, or the number that the next one would have.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub(super) enum Prepared {
    /// All files of its run and subtask before this one are covered by the checkpoint.
    Next(PartName),
    /// To be committed.
    File {
        /// Its name.
        name: PartName,
        /// Its length.
        bytes: u64,
    },
}

impl PartName {
    fn stem(&self) -> String {
        let Self { run, subtask, attempt, number } = self;
        format!("part-{run}-{subtask}-{attempt}-{number}")
    }

    /// Reads what [`PartName::stem`] wrote.
    fn parse(stem: &str) -> Option<Self> {
        let mut parts = stem.strip_prefix("part-")?.split('-');
        let name = Self {
            run: parts.next()?.to_owned(),
            subtask: parts.next()?.parse().ok()?,
            attempt: parts.next()?.parse().ok()?,
            number: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(name)
    }

    /// Whether a checkpoint whose next file would have been `next` covers this one.
    fn is_behind(&self, next: &Self) -> bool {
        (self.attempt, self.number) >= (next.attempt, next.number)
    }
}

/// The directory of a sink.
#[derive(Clone, Debug)]
pub(super) struct PartDirectory {
    pub(super) path: PathBuf,
    pub(super) extension: &'static str,
}

impl PartDirectory {
    pub(super) fn create(&self) -> Result<(), FileSinkError> {
        fs::create_dir_all(&self.path).map_err(self.failed())
    }

    fn failed(&self) -> impl Fn(io::Error) -> FileSinkError + '_ {
        |source| FileSinkError::Directory { path: self.path.clone(), source }
    }

    /// The name that readers see.
    pub(super) fn target(&self, name: &PartName) -> PathBuf {
        self.path.join(format!("{}.{}", name.stem(), self.extension))
    }

    /// The name until it is committed.
    pub(super) fn temporary(&self, name: &PartName) -> PathBuf {
        self.path.join(format!(".{}.{}.inprogress", name.stem(), self.extension))
    }

    /// Makes a prepared file visible; does nothing if it is.
    pub(super) fn commit(&self, name: &PartName, bytes: u64) -> Result<(), FileSinkError> {
        let (temporary, target) = (self.temporary(name), self.target(name));
        match temporary.metadata() {
            Ok(found) if found.len() != bytes => {
                Err(FileSinkError::Changed { path: temporary, found: found.len(), expected: bytes })
            }
            Ok(_) => {
                let failed = |source| FileSinkError::Commit { path: target.clone(), source };
                fs::rename(&temporary, &target).map_err(failed)?;
                self.sync()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if target.exists() {
                    Ok(())
                } else {
                    Err(FileSinkError::Lost { path: target })
                }
            }
            Err(source) => Err(FileSinkError::Commit { path: target, source }),
        }
    }

    /// Makes names durable.
    pub(super) fn sync(&self) -> Result<(), FileSinkError> {
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(self.failed())
    }

    /// Removes what earlier attempts of `me`'s run have written that the job does not go on from.
    ///
    /// `restored` is this subtask's share of what the checkpoint stored; `None` if the job does not go
    /// on from one.
    pub(super) fn clean(
        &self,
        me: &PartName,
        restored: Option<&[Prepared]>,
    ) -> Result<(), FileSinkError> {
        let mine = |prepared: &&Prepared| match prepared {
            Prepared::Next(name) | Prepared::File { name, .. } => name.run == me.run,
        };
        let first = PartName { attempt: 0, number: 0, ..me.clone() };
        let bounds: Vec<PartName> = match restored {
            // Nothing of this run is covered: neither by no checkpoint, nor by one of another run.
            None => vec![first],
            Some(prepared) if !prepared.is_empty() && !prepared.iter().any(|p| mine(&p)) => {
                vec![first]
            }
            Some(prepared) => prepared
                .iter()
                .filter(mine)
                .filter_map(|prepared| match prepared {
                    Prepared::Next(name) => Some(name.clone()),
                    Prepared::File { .. } => None,
                })
                .collect(),
        };
        for (name, path) in self.parts()? {
            let is_left_over = |next: &PartName| {
                next.run == name.run && next.subtask == name.subtask && name.is_behind(next)
            };
            if name.attempt < me.attempt && bounds.iter().any(is_left_over) {
                fs::remove_file(&path)
                    .or_else(|error| match error.kind() {
                        io::ErrorKind::NotFound => Ok(()),
                        _ => Err(error),
                    })
                    .map_err(|source| FileSinkError::Write { path, source })?;
            }
        }
        Ok(())
    }

    /// All part files, visible or not.
    fn parts(&self) -> Result<Vec<(PartName, PathBuf)>, FileSinkError> {
        let mut parts = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(self.failed())? {
            let path = entry.map_err(self.failed())?.path();
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| {
                let name = name.strip_suffix(".inprogress").unwrap_or(name);
                let name = name.strip_suffix(self.extension)?.strip_suffix('.')?;
                PartName::parse(name.strip_prefix('.').unwrap_or(name))
            });
            parts.extend(name.map(|name| (name, path)));
        }
        Ok(parts)
    }
}

/// The path of a folder, as given.
pub(super) fn directory(path: &Path, extension: &'static str) -> PartDirectory {
    PartDirectory { path: path.to_owned(), extension }
}
