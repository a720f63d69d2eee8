//! Temporary files: which directories they go to, and what sorters are told of them.
//!
//! ```text
//! io.tmp.dirs --> the session's directory (in the first that works): partitions, state, checkpoints
//!            \--> SpillDirectories of each worker (over all that work): runs of its sorters
//! ```
//!
//! A directory that cannot be used is passed over, with a warning; only if none is left is it an
//! error. Left out on purpose: how a file moves from a directory that fails to another, and the sweep
//! of what a killed process left (`sort::SpillDirectories`, [`SessionDirectory`]).

mod session_directory;

use std::path::PathBuf;
use std::sync::Arc;

use element::{ConfigError, Configuration, MemoryBudget, SpillStore, option_table};
use option_table::SortCompression;
use sort::{BlockCompression, NoDirectory, SorterOptions, SpillDirectories, SpillTarget};

use crate::context::OperatorContext;
use crate::error::JobError;

pub(crate) use session_directory::SessionDirectory;

/// The configured directories, in order; the system's if there are none.
fn directories(config: &Configuration) -> Result<Vec<PathBuf>, ConfigError> {
    let configured = config.get(&option_table::TMP_DIRS)?.unwrap_or_default();
    let named = configured.split(',').map(str::trim).filter(|name| !name.is_empty());
    let mut directories: Vec<PathBuf> = named.map(PathBuf::from).collect();
    if directories.is_empty() {
        directories.push(std::env::temp_dir());
    }
    Ok(directories)
}

/// Makes a session's directory in the first of the configured ones that can be used.
///
/// # Errors
///
/// [`JobError::Directory`] for the first of them if none can be used.
pub(crate) fn session_directory(config: &Configuration) -> Result<SessionDirectory, JobError> {
    let mut failed = None;
    for parent in directories(config)? {
        match SessionDirectory::create_in(&parent) {
            Ok(directory) => return Ok(directory),
            Err(source) => {
                tracing::warn!(directory = %parent.display(), %source, "cannot be used");
                failed.get_or_insert(JobError::Directory { path: parent, source });
            }
        }
    }
    Err(failed.unwrap_or_else(|| JobError::Internal("no temporary directory".to_owned())))
}

/// Files of the sorters of one worker, over all configured directories, each up to its limit.
///
/// # Errors
///
/// [`JobError`] for an option without a valid value, or if no directory can be used.
pub(crate) fn spill_store(config: &Configuration) -> Result<Arc<dyn SpillStore>, JobError> {
    let directories = directories(config)?;
    let quota = config.get(&option_table::TMP_QUOTA)?;
    for directory in &directories {
        // What cannot be made cannot be opened either, which is where that is reported.
        let _ = std::fs::create_dir_all(directory);
    }
    match SpillDirectories::open(&directories, quota, &[]) {
        Ok(store) => {
            for unusable in store.unusable() {
                tracing::warn!(reason = %unusable.source, "{unusable}");
            }
            Ok(Arc::new(store))
        }
        Err(NoDirectory { unusable }) => Err(unusable.into_iter().next().map_or_else(
            || JobError::Internal("no temporary directory".to_owned()),
            |first| JobError::Directory { path: first.path, source: first.source },
        )),
    }
}

/// What a sorter of an operator is told: its memory, its task's files, and the options of all sorts.
///
/// # Errors
///
/// [`ConfigError`] for an option without a valid value.
pub(crate) fn sorter_options(
    context: &OperatorContext,
    budget: Arc<MemoryBudget>,
) -> Result<SorterOptions, ConfigError> {
    let task = &context.task;
    let fan_in = task.config.get(&option_table::SORT_FAN_IN)?;
    let compression = match task.config.get(&option_table::SORT_COMPRESSION)? {
        SortCompression::None => BlockCompression::None,
        SortCompression::Lz4 => BlockCompression::Lz4,
    };
    let spill = SpillTarget::new(Arc::clone(&task.spill), context.file_prefix());
    Ok(SorterOptions::new(budget, spill)
        .with_fan_in(fan_in.max(2) as usize)
        .with_compression(compression)
        .with_cancel(task.cancelled.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_separated_by_commas_and_default_to_the_systems() {
        let mut config = Configuration::new();
        assert_eq!(directories(&config).ok(), Some(vec![std::env::temp_dir()]));
        config.set(&option_table::TMP_DIRS, Some("/a, /b/c,,".to_owned()));
        let expected = ["/a", "/b/c"].map(PathBuf::from).to_vec();
        assert_eq!(directories(&config).ok(), Some(expected));
    }
}
