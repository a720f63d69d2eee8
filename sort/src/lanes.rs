//! [`Lanes`]: buffers that threads sort and write while the next one fills.
//!
//! ```text
//! push --> the sorter's buffer --full--> worker: sort, write a run --empty--> the sorter's buffer
//! ```
//!
//! Each worker has a lane: a buffer and a share of the memory; the sorter fills one more. Workers take
//! turns, so runs come back in order of arrival, whatever the threads' pace, and the same input makes
//! the same runs. A run that could not be written is reported when its worker's turn comes, or at the
//! end of the input. Dropped, the lanes stop their workers and wait for them: no thread outlives its
//! sorter.
//!
//! Made by the sorter once its first run shows that there will be more. Left out on purpose: threads
//! for reading; runs are read side by side as parts of the order ([`crate::ranges`]).

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::buffer::Buffer;
use crate::record;
use crate::run::Run;
use crate::spiller::Spiller;
use crate::window::Window;
use crate::{CancelFlag, SortError};

/// A lane with less memory is not worth a thread: a run of it is written in less time than is lost
/// between two threads.
const LEAST: u64 = 16 << 10;

/// A buffer, and all that is needed to write it.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) buffer: Buffer,
    pub(crate) spiller: Spiller,
}

/// A lane that was written, or what went wrong.
type Written = (Lane, Result<Run, SortError>);

#[derive(Debug)]
struct Worker {
    /// Its lane while there is nothing to do.
    idle: Option<Lane>,
    /// `None` once the worker is told to end.
    full: Option<SyncSender<Lane>>,
    written: Receiver<Written>,
    thread: Option<JoinHandle<()>>,
}

/// The threads that write one sorter's runs, and their buffers.
#[derive(Debug)]
pub(crate) struct Lanes {
    workers: Vec<Worker>,
    /// Whose turn it is: the one that has been at work for longest.
    next: usize,
    stop: CancelFlag,
    /// The memory that all lanes share.
    memory: u64,
}

impl Lanes {
    /// Lanes for a sorter with a spiller that has nothing in use, and the sorter's own share. `None`
    /// if one thread is all that is wanted, that the memory is worth, or that there is.
    pub(crate) fn new(spiller: &Spiller) -> Option<(Self, Lane)> {
        let threads = spiller.options.threads;
        let ways = threads + 1;
        if threads < 2 || spiller.options.memory() / (ways as u64) < LEAST {
            return None;
        }
        let stop = CancelFlag::new();
        let lane = || {
            let spiller = spiller.lane(ways, stop.clone());
            Lane { buffer: Buffer::of(&spiller.options), spiller }
        };
        let workers: Result<_, _> = (0..threads).map(|_| Worker::start(lane())).collect();
        let mut own = lane();
        own.spiller.stats = spiller.stats();
        let memory = spiller.options.memory();
        Some((Self { workers: workers.ok()?, next: 0, stop, memory }, own))
    }

    /// Gives a full lane to a worker and takes an empty one for it, and the run that was written from
    /// that before, if one was.
    ///
    /// # Errors
    ///
    /// What went wrong with that run.
    pub(crate) fn exchange(
        &mut self,
        buffer: &mut Buffer,
        spiller: &mut Spiller,
    ) -> Result<Option<Run>, SortError> {
        let Some(worker) = self.workers.get_mut(self.next) else { return Ok(None) };
        let (mut lane, written) = worker.take();
        lane.spiller.go_on_from(spiller);
        std::mem::swap(buffer, &mut lane.buffer);
        std::mem::swap(spiller, &mut lane.spiller);
        worker.give(lane);
        self.next = (self.next + 1) % self.workers.len();
        written
    }

    /// Waits for all workers, and gives their runs in order.
    ///
    /// # Errors
    ///
    /// What went wrong with the first run that could not be written.
    pub(crate) fn wait(&mut self, spiller: &mut Spiller) -> Result<Vec<Run>, SortError> {
        let mut runs = Vec::new();
        let count = self.workers.len();
        for _ in 0..count {
            let Some(worker) = self.workers.get_mut(self.next) else { continue };
            self.next = (self.next + 1) % count;
            let (mut lane, written) = worker.take();
            spiller.stats.absorb(&std::mem::take(&mut lane.spiller.stats));
            worker.idle = Some(lane);
            runs.extend(written?);
        }
        Ok(runs)
    }

    /// Ends the workers: their memory is given back, and the sorter has all of it again.
    pub(crate) fn end(self, spiller: &mut Spiller) {
        let idle = self.workers.iter().filter_map(|worker| worker.idle.as_ref());
        let peak: u64 = idle.map(|lane| lane.spiller.account.peak()).sum();
        spiller.stats.peak_bytes = spiller.stats.peak_bytes.max(peak + spiller.account.peak());
        let memory = self.memory;
        drop(self);
        spiller.set_memory(memory);
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.stop.cancel();
        for worker in &mut self.workers {
            worker.full = None;
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A worker's panic was passed on where its run was waited for, or nobody waits.
                let _ = thread.join();
            }
        }
    }
}

impl Worker {
    fn start(lane: Lane) -> std::io::Result<Self> {
        let (full, lanes) = sync_channel::<Lane>(1);
        let (done, written) = sync_channel(1);
        let work = move || {
            for mut lane in lanes {
                let run = write_run(&mut lane.buffer, 0, &mut lane.spiller);
                lane.buffer.clear_from(0, &mut lane.spiller.account);
                if done.send((lane, run)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("sort-run".to_owned()).spawn(work)?;
        Ok(Self { idle: Some(lane), full: Some(full), written, thread: Some(thread) })
    }

    /// Its lane, empty: waits for it if the worker is at work.
    fn take(&mut self) -> (Lane, Result<Option<Run>, SortError>) {
        if let Some(lane) = self.idle.take() {
            return (lane, Ok(None));
        }
        match self.written.recv() {
            Ok((lane, written)) => (lane, written.map(Some)),
            Err(_) => self.pass_panic_on(),
        }
    }

    fn give(&mut self, lane: Lane) {
        if self.full.as_ref().is_none_or(|full| full.send(lane).is_err()) {
            self.pass_panic_on();
        }
    }

    /// The worker is gone without having been told to: it has panicked, in the user's prefix.
    fn pass_panic_on(&mut self) -> ! {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => resume_unwind(panic),
            _ => unreachable!("a worker ends before its sorter only by a panic"),
        }
    }
}

/// Sorts a buffer part by part, beginning with part `from`, and writes it as a run. The buffer stays as it
/// is.
pub(crate) fn write_run(
    buffer: &mut Buffer,
    from: usize,
    spiller: &mut Spiller,
) -> Result<Run, SortError> {
    buffer.seal();
    let mut writer = spiller.create_run()?;
    let mut window = Window::new();
    let (mut entries, mut aside) = (Vec::new(), Vec::new());
    for part in from..buffer.parts() {
        let rules = spiller.rules;
        let deep = buffer.sort_part(part, &mut entries, &mut aside, &rules, spiller.cancel())?;
        spiller.stats.deep_comparisons += deep;
        let mut next = 0;
        while next < entries.len() {
            next = window.fill(buffer, &entries, next, entries.len(), &rules);
            while let Some(at) = window.step() {
                let bytes = buffer.bytes_at(at);
                writer.append(bytes, record::length(bytes), spiller)?;
            }
        }
    }
    spiller.stats.deep_comparisons += window.deep;
    spiller.seal_spilled(writer)
}
