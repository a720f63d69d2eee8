//! [`Spiller`]: what all files of one sorter share: place, names, identity, account, counts.
//!
//! Owned by a sorter, then by its stream. A file is deleted by the one [`RunFile`] that names it, on
//! the good way and on every bad one; a deletion that fails is remembered in [`Files`] and reported
//! at the end of the stream (the next start sweeps the file).

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use element::{FileRole, StoreError};
use parking_lot::Mutex;

use crate::account::Account;
use crate::rules::Rules;
use crate::run::{Run, RunWriter};
use crate::{CancelFlag, SortError, SortStats, SorterOptions, SpillTarget};

/// Counts sorters of this process, so that no two have one name.
static SORTERS: AtomicU64 = AtomicU64::new(0);

/// What becomes of the files of one sorter. Shared by them.
#[derive(Debug, Default)]
pub(crate) struct Files {
    open: AtomicU64,
    peak_open: AtomicU64,
    undeleted: Mutex<Option<StoreError>>,
}

/// One file held open, counted.
#[derive(Debug)]
pub(crate) struct OpenFile(Arc<Files>);

impl OpenFile {
    pub(crate) fn count(files: &Arc<Files>) -> Self {
        let open = files.open.fetch_add(1, Ordering::Relaxed) + 1;
        files.peak_open.fetch_max(open, Ordering::Relaxed);
        Self(Arc::clone(files))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The name of one run's file; the file goes when this does, unless it is kept.
#[derive(Debug)]
pub(crate) struct RunFile {
    pub(crate) target: SpillTarget,
    pub(crate) name: String,
    /// Whether somebody has the run's description: the file is that one's to delete.
    pub(crate) is_kept: bool,
    files: Arc<Files>,
}

impl RunFile {
    pub(crate) fn new(spiller: &Spiller, name: String) -> Self {
        let target = spiller.options.spill.clone();
        Self { target, name, is_kept: false, files: Arc::clone(&spiller.files) }
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        match self.target.store.delete(FileRole::SortRun, &self.name) {
            // A file that somebody took away is gone, which is what is wanted.
            Err(error) if !error.is_not_found() => {
                self.files.undeleted.lock().get_or_insert(error);
            }
            _ => {}
        }
    }
}

/// What all files of one sorter share.
#[derive(Debug)]
pub(crate) struct Spiller {
    pub(crate) options: SorterOptions,
    pub(crate) rules: Rules,
    pub(crate) account: Account,
    pub(crate) stats: SortStats,
    pub(crate) files: Arc<Files>,
    /// Drawn at the start: part of names and of every block's checksum.
    identity: u64,
    next_run: u64,
    /// Raised when the sorter does not need what this one writes any more.
    stop: Option<CancelFlag>,
}

impl Spiller {
    pub(crate) fn new(options: SorterOptions) -> Self {
        Self {
            rules: Rules::of(&options),
            account: Account::new(
                &options.budget,
                options.memory(),
                options.with_packed(options.block_bytes()),
            ),
            stats: SortStats::default(),
            files: Arc::default(),
            identity: draw_identity(),
            next_run: 0,
            stop: None,
            options,
        }
    }

    /// # Errors
    ///
    /// [`SortError::Cancelled`] if the flag is raised.
    pub(crate) fn check_cancel(&self) -> Result<(), SortError> {
        match &self.options.cancel {
            Some(flag) if flag.is_cancelled() => Err(SortError::Cancelled),
            _ if self.stop.as_ref().is_some_and(CancelFlag::is_cancelled) => {
                Err(SortError::Cancelled)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn cancel(&self) -> Option<&CancelFlag> {
        self.options.cancel.as_ref()
    }

    /// Starts a run. Its block buffer is taken from the account.
    pub(crate) fn create_run(&mut self) -> Result<RunWriter, SortError> {
        let number = self.next_run;
        self.next_run += 1;
        let SpillTarget { store, prefix } = &self.options.spill;
        let process = process::id();
        let name = format!("{prefix}-{process:08x}-{:016x}-{number}.run", self.identity);
        let writer = store.create(FileRole::SortRun, &name)?;
        let file = RunFile::new(self, name);
        Ok(RunWriter::new(file, writer, self.identity, number, self))
    }

    /// Completes a run that was written from memory; it is durable if the options say so.
    pub(crate) fn seal_spilled(&mut self, mut writer: RunWriter) -> Result<Run, SortError> {
        if self.options.durable_runs {
            writer.sync(self)?;
        }
        let run = self.seal_run(writer)?;
        self.stats.runs += 1;
        Ok(run)
    }

    /// Completes a run and counts it.
    pub(crate) fn seal_run(&mut self, writer: RunWriter) -> Result<Run, SortError> {
        let run = writer.finish(self)?;
        self.stats.spilled_raw += run.raw_bytes;
        self.stats.spilled_written += run.stored_bytes;
        Ok(run)
    }

    /// A spiller for one of `ways` parts of the order: the same files, a share of the memory.
    pub(crate) fn share(&self, ways: usize) -> Self {
        let mut options = self.options.clone();
        options.memory = self.options.memory() / ways.max(1) as u64;
        Self {
            rules: self.rules,
            account: Account::new(&options.budget, options.memory, 0),
            stats: self.stats(),
            files: Arc::clone(&self.files),
            identity: self.identity,
            next_run: self.next_run,
            stop: None,
            options,
        }
    }

    /// A spiller for one of `ways` buffers that are written side by side: the same files, a share of
    /// the memory, counts of its own.
    pub(crate) fn lane(&self, ways: usize, stop: CancelFlag) -> Self {
        let mut lane = self.share(ways);
        lane.stats = SortStats::default();
        lane.set_memory(lane.options.memory);
        lane.stop = Some(stop);
        lane
    }

    /// Takes the counts and the numbers of runs over from one that is about to write a run.
    pub(crate) fn go_on_from(&mut self, before: &mut Self) {
        let written = std::mem::replace(&mut self.stats, std::mem::take(&mut before.stats));
        self.stats.absorb(&written);
        self.next_run = before.next_run + 1;
    }

    /// Gives back what is borrowed; from here on it is on its own, and may borrow up to `memory`.
    pub(crate) fn set_memory(&mut self, memory: u64) {
        self.stop = None;
        self.options.memory = memory;
        let reserve = self.options.with_packed(self.options.block_bytes());
        self.account = Account::new(&self.options.budget, self.options.memory(), reserve);
    }

    /// The counts, with those that are kept elsewhere.
    pub(crate) fn stats(&self) -> SortStats {
        SortStats {
            peak_bytes: self.account.peak().max(self.stats.peak_bytes),
            peak_open_files: self.files.peak_open.load(Ordering::Relaxed),
            ..self.stats
        }
    }

    /// # Errors
    ///
    /// The first deletion that failed since this was asked last.
    pub(crate) fn check_deletions(&self) -> Result<(), SortError> {
        self.files.undeleted.lock().take().map_or(Ok(()), |error| Err(SortError::Store(error)))
    }
}

/// A number that no other sorter of this machine has, in all likelihood: time, process and count,
/// spread over 64 bits.
fn draw_identity() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = SORTERS.fetch_add(1, Ordering::Relaxed);
    let mut mixed = (since.as_nanos() as u64) ^ u64::from(process::id()).rotate_left(40);
    for word in [count, u64::from(process::id())] {
        mixed = (mixed ^ word.wrapping_mul(0x9E37_79B9_7F4A_7C15)).rotate_left(31);
        mixed = mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    mixed ^ mixed >> 32
}
