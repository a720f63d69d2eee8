//! Snapshots and restores of a backend, and the states that wait to be declared.

use std::path::PathBuf;

use element::{CheckpointId, Timestamp};

use super::KeyedStateBackend;
use super::engine::Engine;
use crate::snapshot::{
    PendingBody, PendingSnapshot, RestoredSnapshot, Scratch, SnapshotHeader, SnapshotSource,
    Source, StateHeader, open_all,
};
use crate::store::{BulkLoad, WriteBatch};
use crate::timers::TimerService;
use crate::{StateError, TtlClock};

/// Bytes of restored entries that are handed to a store at once.
const RESTORE_BYTES: usize = 1 << 20;

impl KeyedStateBackend {
    /// A consistent view of all state and of `timers`, to be written on any thread while processing
    /// goes on. Memory is shared and copied where it changes; a store is flushed and gives a view of
    /// its own.
    ///
    /// # Errors
    ///
    /// [`StateError::NotSupported`] for one-key state and within sorted input; [`StateError::Store`].
    pub fn snapshot(&mut self, timers: &TimerService) -> Result<PendingSnapshot, StateError> {
        self.take_snapshot(timers, None)
    }

    /// As [`snapshot`](Self::snapshot), for the checkpoint `id`: a store whose tables never change
    /// writes those that no checkpoint has which it was told is [complete](Self::checkpoint_completed).
    /// Any other store, and memory, write everything.
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Self::snapshot).
    pub fn incremental_snapshot(
        &mut self,
        timers: &TimerService,
        id: CheckpointId,
    ) -> Result<PendingSnapshot, StateError> {
        self.take_snapshot(timers, Some(id))
    }

    /// A checkpoint is complete: whoever keeps it keeps its tables while a later one names them.
    pub fn checkpoint_completed(&mut self, id: CheckpointId) {
        if let Engine::Cached(engine) = &mut self.engine
            && let Some(store) = &mut engine.link.store
        {
            store.checkpoint_completed(id);
        }
    }

    fn take_snapshot(
        &mut self,
        timers: &TimerService,
        shared_by: Option<CheckpointId>,
    ) -> Result<PendingSnapshot, StateError> {
        let now = (self.now(TtlClock::ProcessingTime), self.watermark);
        let header = self.snapshot_header();
        let body = match &mut self.engine {
            Engine::Heap(cut) => PendingBody::Heap {
                cut: *cut,
                slots: self.slots.iter_mut().filter_map(|slot| slot.freeze()).collect(),
                unclaimed: self.restored.entries(),
            },
            Engine::Cached(engine) => PendingBody::Store(engine.snapshot(&mut self.slots)?),
        };
        Ok(PendingSnapshot { header, timers: timers.pending()?, body, shared_by, now })
    }

    fn snapshot_header(&self) -> SnapshotHeader {
        let declared = self.slots.iter().map(|slot| {
            let meta = slot.meta();
            StateHeader { descriptor: meta.descriptor(), id: meta.id }
        });
        let mut states: Vec<_> = declared.chain(self.restored.headers().cloned()).collect();
        states.sort_by(|a, b| a.descriptor.name.cmp(&b.descriptor.name));
        let (operator, groups) = (self.operator.clone(), self.groups);
        SnapshotHeader { operator, groups, watermark: self.watermark, states }
    }

    /// Takes over what `sources` hold for the key groups of this backend, timers included. Its own
    /// state must be empty. Snapshots of any backend and parallelism will do; those that hold none of
    /// its groups are not opened.
    ///
    /// Reads the blocks of its hash range once; a store gets them as one bulk load.
    ///
    /// # Errors
    ///
    /// [`StateError::Snapshot`] for files that are missing, damaged or foreign; [`StateError::Schema`]
    /// and [`StateError::KindChanged`] for states that are declared already and do not fit.
    pub fn restore(
        &mut self,
        timers: &mut TimerService,
        sources: &[SnapshotSource],
    ) -> Result<RestoredSnapshot, StateError> {
        let scratch = Scratch(self.scratch());
        let readers = open_all(sources, self.groups, &self.operator, &scratch.0)?;
        let mut report =
            RestoredSnapshot { watermark: Timestamp::MIN, entries: 0, states: Vec::new() };
        for Source { reader, .. } in &readers {
            self.restored.announce(reader.header(), reader.name())?;
        }
        let watermarks = readers.iter().map(|source| source.reader.header().watermark);
        report.watermark = watermarks.min().unwrap_or(Timestamp::MIN);
        report.states = self.restored.headers().map(|state| state.descriptor.clone()).collect();
        self.set_watermark(self.watermark.max(report.watermark));
        report.entries = match self.engine {
            Engine::Heap(_) => self.restore_heap(timers, &readers)?,
            Engine::Cached(_) => self.restore_store(timers, &readers)?,
        };
        timers.check()?;
        for slot in self.slots.iter_mut() {
            if let Some(restored) =
                self.restored.claim(slot.meta().id, &slot.meta().descriptor())?
            {
                slot.adopt(restored, self.engine.link())?;
            }
        }
        Ok(report)
    }

    /// Leaves restored states that no handle has declared out of all further snapshots: the program
    /// has them no more.
    pub fn leave_out_unclaimed(&mut self) {
        self.restored.leave_out();
    }

    /// Where this backend may put copies of tables.
    fn scratch(&self) -> PathBuf {
        let own = || format!("slackwater-restore-{}-{}", std::process::id(), self.slots.id());
        self.scratch.clone().unwrap_or_else(|| std::env::temp_dir().join(own()))
    }

    fn restore_heap(
        &mut self,
        timers: &mut TimerService,
        readers: &[Source],
    ) -> Result<u64, StateError> {
        let mut entries = 0;
        let restored = &mut self.restored;
        for reader in readers {
            reader.for_each_of(self.groups, &mut |parts, key, value| {
                entries += 1;
                if !timers.restore(&parts) {
                    restored.keep(parts.state, key, value);
                }
                Ok(())
            })?;
        }
        Ok(entries)
    }

    fn restore_store(
        &mut self,
        timers: &mut TimerService,
        readers: &[Source],
    ) -> Result<u64, StateError> {
        let not_supported =
            StateError::NotSupported { backend: "one-key", what: "restoring a snapshot" };
        let Engine::Cached(engine) = &mut self.engine else { return Err(not_supported) };
        let Some(store) = &mut engine.link.store else { return Err(not_supported) };
        let mut load = store.bulk_load()?;
        let (mut entries, mut batch) = (0, WriteBatch::new());
        for reader in readers {
            reader.for_each_of(self.groups, &mut |parts, key, value| {
                entries += 1;
                if !timers.restore(&parts) {
                    batch.put(key, value);
                }
                if batch.bytes() >= RESTORE_BYTES {
                    match &mut load {
                        Some(load) => load.write(std::mem::take(&mut batch))?,
                        None => store.write(&std::mem::take(&mut batch))?,
                    }
                }
                Ok(())
            })?;
        }
        match load {
            Some(mut load) => {
                load.write(batch)?;
                BulkLoad::finish(load)?;
            }
            None => store.write(&batch)?,
        }
        Ok(entries)
    }
}
