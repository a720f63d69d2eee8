//! [`PendingSnapshot`]: a consistent view that is yet to be written, on any thread.
//!
//! Of memory it holds the shards of every table, which it lets go of one by one; of a store the
//! store's own view. Timers in memory are copied when the snapshot is taken; of those in a store there
//! is a view, too.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use element::{CheckpointId, KeyHash, SpillStore, Timestamp};

use super::pending_timers::TimersInOrder;
use super::writer::SnapshotWriter;
use super::{
    MAGIC, PendingTimers, SnapshotError, SnapshotHandle, SnapshotHeader, StoreTables, TABLES_MAGIC,
    tables,
};
use crate::cell::Cell;
use crate::entry_key::EntryKey;
use crate::expiry::{is_expired, stamped};
use crate::heap::{Cut, Entry, SharedShard, TableKey};
use crate::slot::Meta;
use crate::store::{StoreSnapshot, WriteBatch};
use crate::store_key::{StateId, StoreKey, hash_of};
use crate::{StateError, StoreFailure, TtlClock};

/// A snapshot that was taken and is not yet written. Processing goes on meanwhile.
#[derive(Debug)]
pub struct PendingSnapshot {
    pub(crate) header: SnapshotHeader,
    pub(crate) timers: PendingTimers,
    pub(crate) body: Body,
    /// The checkpoint whose tables later ones may name; none for a snapshot that stands alone.
    pub(crate) shared_by: Option<CheckpointId>,
    /// Processing time and watermark at the snapshot: what has expired by then is left out.
    pub(crate) now: (Timestamp, Timestamp),
}

#[derive(Debug)]
pub(crate) enum Body {
    Heap {
        cut: Cut,
        slots: Vec<Box<dyn FrozenSlot>>,
        /// Restored entries of states that were not declared since, by store key.
        unclaimed: WriteBatch,
    },
    Store(Box<dyn StoreSnapshot>),
}

/// The shards of one state's table.
pub(crate) trait FrozenSlot: Send {
    /// Adds the entries of one shard, in no order, and lets go of it. Asked for shard by shard, from the first.
    fn emit(&mut self, shard: usize, batch: &mut WriteBatch);
}

impl std::fmt::Debug for dyn FrozenSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FrozenSlot")
    }
}

/// The table of one state.
pub(crate) struct FrozenTable<C> {
    meta: Meta,
    cells: FrozenCells<C>,
}

enum FrozenCells<C> {
    /// By the shards of the cut.
    Many(Vec<Option<SharedShard<C>>>),
    /// What is left of few entries; from the first part on the greatest hash is the first of them.
    Few(Vec<Entry<EntryKey, C>>, Cut),
}

impl<C: Cell> FrozenTable<C> {
    /// All shards of a table.
    pub(crate) fn many(meta: Meta, shards: Vec<SharedShard<C>>) -> Self {
        Self { meta, cells: FrozenCells::Many(shards.into_iter().map(Some).collect()) }
    }

    /// All entries of a table, which will be taken apart by `cut`.
    pub(crate) fn few(meta: Meta, entries: Vec<Entry<EntryKey, C>>, cut: Cut) -> Self {
        Self { meta, cells: FrozenCells::Few(entries, cut) }
    }
}

impl<C: Cell> FrozenSlot for FrozenTable<C> {
    fn emit(&mut self, shard: usize, batch: &mut WriteBatch) {
        let Self { meta, cells } = self;
        let mut emit = |hash, key: &dyn TableKey, cell: &C| {
            let (key, namespace) = key.parts();
            cell.emit_all(&mut |map_key, value| {
                let at = StoreKey { hash: KeyHash(hash), key, state: meta.id, namespace, map_key };
                if let Some(encode) = value {
                    batch.put_with(|out| at.push(out), encode);
                }
            });
        };
        match cells {
            FrozenCells::Many(shards) => {
                let Some(shard) = shards.get_mut(shard).and_then(Option::take) else { return };
                shard.lock().for_each(emit);
            }
            FrozenCells::Few(entries, cut) => {
                if shard == 0 {
                    entries.sort_unstable_by_key(|entry| Reverse(entry.hash));
                }
                let is_here = |entry: &mut Entry<_, C>| cut.shard_of(entry.hash) <= shard;
                while let Some(entry) = entries.pop_if(is_here) {
                    emit(entry.hash, &entry.key, &entry.cell);
                }
            }
        }
    }
}

impl PendingSnapshot {
    /// What the snapshot says about itself.
    #[must_use]
    pub fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// Writes the snapshot: under a temporary name, then durable, then under `name`. Of a store's
    /// tables, where they are shared, only those that no completed checkpoint has.
    ///
    /// # Errors
    ///
    /// [`StateError::Snapshot`] or [`StateError::Store`]; nothing is left under `name`, and what was
    /// written under the temporary name is deleted as far as the store lets it.
    pub fn write(self, store: &dyn SpillStore, name: &str) -> Result<SnapshotHandle, StateError> {
        let Self { header, timers, body, shared_by, now } = self;
        if let (Body::Store(view), Some(id)) = (&body, shared_by)
            && let Some(tables) = view.tables()?
        {
            return write_tables(store, name, id, &tables, &header, &timers);
        }
        let filter = Filter { header: &header, now };
        let mut writer = SnapshotWriter::create(store, name, MAGIC, &header)?;
        let written = match body {
            Body::Heap { cut, slots, unclaimed } => {
                write_heap(&mut writer, &filter, cut, slots, &unclaimed, &timers)
            }
            Body::Store(snapshot) => write_store(&mut writer, &filter, snapshot.as_ref(), &timers),
        };
        match written {
            Ok(()) => Ok(writer.finish()?),
            Err(error) => {
                writer.discard();
                Err(error)
            }
        }
    }
}

/// Tables first: the file that stands for the snapshot is the last to get its name.
fn write_tables(
    store: &dyn SpillStore,
    name: &str,
    id: CheckpointId,
    view: &StoreTables,
    header: &SnapshotHeader,
    timers: &PendingTimers,
) -> Result<SnapshotHandle, StateError> {
    let files = view.write(store, name, id)?;
    match write_timers(store, name, header, timers) {
        Ok(handle) => Ok(SnapshotHandle { files, ..handle }),
        Err(error) => {
            tables::discard(store, name, &files);
            Err(error)
        }
    }
}

fn write_timers(
    store: &dyn SpillStore,
    name: &str,
    header: &SnapshotHeader,
    timers: &PendingTimers,
) -> Result<SnapshotHandle, StateError> {
    let mut writer = SnapshotWriter::create(store, name, TABLES_MAGIC, header)?;
    match push_timers(&mut writer, &mut timers.in_order()) {
        Ok(()) => Ok(writer.finish()?),
        Err(error) => {
            writer.discard();
            Err(error)
        }
    }
}

/// Pushes all timers that are left.
fn push_timers(
    writer: &mut SnapshotWriter<'_>,
    timers: &mut TimersInOrder<'_>,
) -> Result<(), StateError> {
    while let Some(timer) = timers.next_if(|_| true)? {
        writer.push(&timer, &[])?;
    }
    Ok(())
}

fn write_heap(
    writer: &mut SnapshotWriter<'_>,
    filter: &Filter<'_>,
    cut: Cut,
    mut slots: Vec<Box<dyn FrozenSlot>>,
    unclaimed: &WriteBatch,
    timers: &PendingTimers,
) -> Result<(), StateError> {
    let mut batch = WriteBatch::new();
    let (mut unclaimed, mut timers) = (unclaimed.iter().peekable(), timers.in_order());
    for shard in 0..cut.shards() {
        batch.clear();
        slots.iter_mut().for_each(|slot| slot.emit(shard, &mut batch));
        let in_shard = |key: &[u8]| hash_of(key).is_none_or(|hash| cut.shard_of(hash.0) <= shard);
        while let Some((key, value)) = unclaimed.next_if(|(key, _)| in_shard(key)) {
            batch.put(key, value.unwrap_or_default());
        }
        while let Some(timer) = timers.next_if(in_shard)? {
            batch.put(&timer, &[]);
        }
        batch.sort_from(0);
        for (key, value) in batch.iter() {
            filter.push(writer, key, value.unwrap_or_default())?;
        }
    }
    Ok(())
}

fn write_store(
    writer: &mut SnapshotWriter<'_>,
    filter: &Filter<'_>,
    snapshot: &dyn StoreSnapshot,
    timers: &PendingTimers,
) -> Result<(), StateError> {
    let mut timers = timers.in_order();
    let mut failure: Option<StateError> = None;
    let scanned: Result<(), StoreFailure> = snapshot.scan(&[], None, &mut |key, value| {
        let mut push = || {
            while let Some(timer) = timers.next_if(|timer| timer < key)? {
                writer.push(&timer, &[])?;
            }
            Ok(filter.push(writer, key, value)?)
        };
        match push() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    scanned?;
    failure.map_or(Ok(()), Err)?;
    push_timers(writer, &mut timers)
}

/// Leaves out what has expired, and what belongs to no state.
struct Filter<'a> {
    header: &'a SnapshotHeader,
    now: (Timestamp, Timestamp),
}

impl Filter<'_> {
    fn push(
        &self,
        writer: &mut SnapshotWriter<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), SnapshotError> {
        let keep = StoreKey::parse(key).is_some_and(|key| self.keeps(key.state, value));
        if keep { writer.push(key, value) } else { Ok(()) }
    }

    fn keeps(&self, state: StateId, value: &[u8]) -> bool {
        if state.is_timers() {
            return true;
        }
        let Some(state) = self.header.state(state) else { return false };
        // The elements of a list each have a stamp; they are cleaned up on access.
        let Some(ttl) = stamped(&state.descriptor) else { return true };
        let now = if ttl.clock == TtlClock::EventTime { self.now.1 } else { self.now.0 };
        !is_expired(&ttl, value, now)
    }
}
