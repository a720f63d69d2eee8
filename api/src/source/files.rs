//! [`Files`]: which files a source reads, in which order, and in which pieces.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use element::option_table::CacheSourceIdentity;

use super::bad_record::OnBadRecord;
use super::glob;
use super::split::{FileSplit, is_gzip};
use crate::{ByteSize, SplitEnumerator, StaticSplits};

/// A piece of a big file.
const SPLIT_SIZE: ByteSize = ByteSize(16 << 20);

/// How much is read at once.
const BUFFER_SIZE: ByteSize = ByteSize(1 << 20);

/// Why files cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A file or directory cannot be opened: it does not exist, or may not be read.
    #[error("cannot open `{}`", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be read on: the disk fails, or compressed data is damaged.
    #[error("cannot read `{path}` behind byte {offset}")]
    Read {
        /// Which.
        path: String,
        /// Where a row had ended last; an offset into the decompressed text.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// A pattern matches nothing.
    #[error("no file matches `{pattern}`")]
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// A path is not UTF-8.
    #[error("the path `{}` is not UTF-8", path.display())]
    Name {
        /// Which.
        path: PathBuf,
    },
}

/// What to read, and how.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    path: PathBuf,
    pub(crate) on_bad_record: OnBadRecord,
    pub(crate) split_size: ByteSize,
    pub(crate) buffer_size: ByteSize,
}

/// Whether rows can be told from each other anywhere in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Big files are cut into splits at line ends.
    AtLines,
    /// A file is one split.
    Never,
}

impl Files {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            on_bad_record: OnBadRecord::default(),
            split_size: SPLIT_SIZE,
            buffer_size: BUFFER_SIZE,
        }
    }

    /// Splits of all files in order of path, or those that a checkpoint has left.
    pub(crate) fn enumerator(
        &self,
        cut: Cut,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<FileSplit>>> {
        let splits = if restored.is_some() { Vec::new() } else { self.splits(cut)? };
        Ok(Box::new(StaticSplits::new(splits, restored)?))
    }

    fn splits(&self, cut: Cut) -> Result<Vec<FileSplit>, FileError> {
        let mut splits = Vec::new();
        for path in self.list()? {
            let failed = |source| FileError::Open { path: path.clone(), source };
            let bytes = path.metadata().map_err(failed)?.len();
            let Some(path) = path.to_str() else { return Err(FileError::Name { path }) };
            if cut == Cut::Never || is_gzip(path) {
                splits.push(FileSplit::whole(path));
                continue;
            }
            let size = self.split_size.0.max(1);
            let parts = (0..bytes.div_ceil(size)).map(|i| i * size);
            splits.extend(parts.map(|at| FileSplit::part(path, at, bytes.min(at + size))));
        }
        Ok(splits)
    }

    /// What tells the contents of all files from others.
    pub(crate) fn identity(&self, by: CacheSourceIdentity) -> Result<String, FileError> {
        let mut text = String::new();
        for path in self.list()? {
            let failed = |source| FileError::Open { path: path.clone(), source };
            let metadata = path.metadata().map_err(failed)?;
            let seen = match by {
                CacheSourceIdentity::Metadata => {
                    let since = metadata.modified().map_err(failed)?.duration_since(UNIX_EPOCH);
                    format!("of {} ns", since.unwrap_or_default().as_nanos())
                }
                CacheSourceIdentity::Content => {
                    format!(
                        "with hash {:016x}",
                        runtime::cluster::hash_file(&path).map_err(failed)?
                    )
                }
            };
            let place = if text.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(text, "{place}`{}` {} bytes {seen}", path.display(), metadata.len());
        }
        Ok(text)
    }

    /// The files, in order of path.
    fn list(&self) -> Result<Vec<PathBuf>, FileError> {
        let failed = |source| FileError::Open { path: self.path.clone(), source };
        let roots = match (self.path.metadata(), self.path.to_str()) {
            (Ok(_), _) => vec![self.path.clone()],
            (Err(_), Some(pattern)) if glob::has_wildcards(pattern) => {
                let found = glob::expand(pattern).map_err(failed)?;
                if found.is_empty() {
                    return Err(FileError::NoMatch { pattern: pattern.to_owned() });
                }
                found
            }
            (Err(source), _) => return Err(failed(source)),
        };
        let mut files = Vec::new();
        for root in roots {
            walk(root, &mut files)?;
        }
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// Adds a file, or all files of a folder and its folders. Names that begin with a dot or an underscore
/// are left out there: half-written files of sinks, and markers of other programs.
fn walk(path: PathBuf, files: &mut Vec<PathBuf>) -> Result<(), FileError> {
    if !path.is_dir() {
        files.push(path);
        return Ok(());
    }
    let failed = |source| FileError::Open { path: path.clone(), source };
    for entry in std::fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with('.') && !name.starts_with('_') {
            walk(entry.path(), files)?;
        }
    }
    Ok(())
}
