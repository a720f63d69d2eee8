//! [`SessionDirectory`]: the directory of one session, and the sweep of those that killed processes left.
//!
//! ```text
//!   slackwater-session-XXXXXX/lock   locked while its process lives, unlocked by the system if it dies
//!                            /...    partitions, state and checkpoints of the session
//! ```
//!
//! Ours and dead is a directory with our prefix that is no symbolic link, has our owner, and holds a
//! plain `lock` file that nobody has locked. Such a one is removed with all that is in it, without
//! following links; everything else stays. Left out on purpose: the files of sorters, which lie beside
//! and are swept by `sort::SpillDirectories`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "slackwater-session-";
const LOCK: &str = "lock";

/// How often a directory is made anew because a sweep took it before it was locked.
const ATTEMPTS: u32 = 16;

/// The directory of a session, removed when dropped.
#[derive(Debug)]
pub(crate) struct SessionDirectory {
    directory: TempDir,
    /// Locked; unlocked by closing, also when the process is killed.
    _lock: File,
}

impl SessionDirectory {
    /// Makes one below `parent`, which is made if it is not there, and removes what killed processes
    /// left there. What cannot be removed stays for the next.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub(crate) fn create_in(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        for _ in 0..ATTEMPTS {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            if let Some(lock) = locked(directory.path())? {
                sweep(parent, directory.path());
                return Ok(Self { directory, _lock: lock });
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Makes and locks the lock file; `None` if a sweep was faster.
fn locked(directory: &Path) -> io::Result<Option<File>> {
    let path = directory.join(LOCK);
    let lock = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        made => made?,
    };
    let still_there = lock.try_lock().is_ok() && fs::symlink_metadata(&path).is_ok();
    Ok(still_there.then_some(lock))
}

fn sweep(parent: &Path, own: &Path) {
    let Ok(owner) = fs::symlink_metadata(own).map(|metadata| metadata.uid()) else { return };
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_named_so = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_ours = |found: fs::Metadata| found.is_dir() && found.uid() == owner;
        if is_named_so && path != own && fs::symlink_metadata(&path).is_ok_and(is_ours) {
            remove_if_dead(&path);
        }
    }
}

fn remove_if_dead(directory: &Path) {
    let path = directory.join(LOCK);
    if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        return;
    }
    let Ok(lock) = File::open(&path) else { return };
    if lock.try_lock().is_ok()
        && let Err(error) = fs::remove_dir_all(directory)
    {
        tracing::debug!(directory = %directory.display(), %error, "cannot be swept");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(format!("{PREFIX}{name}"));
        for name in ["dead", "stranger"] {
            fs::create_dir_all(at(name).join("worker-1")).unwrap();
            fs::write(at(name).join("worker-1/data"), b"x").unwrap();
        }
        fs::write(at("dead").join(LOCK), b"").unwrap();
        fs::create_dir_all(parent.path().join("slackwater-other")).unwrap();
        fs::write(parent.path().join("slackwater-other").join(LOCK), b"").unwrap();
        fs::create_dir(parent.path().join("target")).unwrap();
        fs::write(parent.path().join("target").join(LOCK), b"").unwrap();
        std::os::unix::fs::symlink(parent.path().join("target"), at("link")).unwrap();
        std::os::unix::fs::symlink(parent.path().join("target"), at("dead").join("link")).unwrap();

        let living = SessionDirectory::create_in(parent.path()).unwrap();
        assert!(!at("dead").exists(), "nobody has it locked");
        assert!(at("stranger").join("worker-1/data").exists(), "no lock proves that it is ours");
        assert!(parent.path().join("slackwater-other").exists(), "another name");
        assert!(parent.path().join("target").join(LOCK).exists(), "links are not followed");

        let second = SessionDirectory::create_in(parent.path()).unwrap();
        assert!(living.path().exists(), "its process lives");
        let gone = second.path().to_owned();
        drop(second);
        assert!(!gone.exists());
        drop(living);
        SessionDirectory::create_in(parent.path()).unwrap();
    }
}
