//! Checkpoints that share RocksDB's tables: what they write, what they share, and that each of them
//! restores by itself, into any backend.

#![cfg(feature = "rocksdb")]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use element::{
    CheckpointId, FaultPlan, FaultyStore, FileRole, ManualClock, MemoryStore, Operation,
    SpillStore, Timestamp,
};
use slackwater_state::{
    MapState, SHARED, SnapshotError, SnapshotHandle, SnapshotReader, SnapshotSource, StateError,
    TimerKind, TtlConfig, ValueState,
};
use support::{Kind, Random, Subject, Where, groups_of, set_key};

const ROCKS: Kind = Kind(Where::RocksDb, 100);

fn value_of(key: u64, version: u64) -> Vec<u8> {
    let mut random = Random::new(key * 31 + version);
    (0..12).flat_map(|_| random.next().to_le_bytes()).collect()
}

fn put(subject: &mut Subject, keys: impl Iterator<Item = u64>, version: u64) {
    let state = ValueState::<Vec<u8>>::new("value");
    for key in keys {
        set_key(&mut subject.backend, &key);
        state.set(&mut subject.backend, value_of(key, version)).unwrap();
    }
}

fn check(subject: &mut Subject, keys: impl Iterator<Item = u64>, version: u64) {
    let state = ValueState::<Vec<u8>>::new("value");
    for key in keys {
        set_key(&mut subject.backend, &key);
        assert_eq!(state.get(&mut subject.backend).unwrap(), Some(value_of(key, version)));
    }
}

/// Takes checkpoint `id` of a subject.
fn checkpoint(subject: &mut Subject, files: &dyn SpillStore, id: u64) -> SnapshotHandle {
    let id = CheckpointId(id);
    let pending = subject.backend.incremental_snapshot(&subject.timers, id).unwrap();
    pending.write(files, &format!("chk-{id}/0-0.1-0")).unwrap()
}

fn completed(subject: &mut Subject, id: u64) {
    subject.backend.checkpoint_completed(CheckpointId(id));
}

fn restored(files: &Arc<dyn SpillStore>, handle: &SnapshotHandle, kind: Kind) -> Subject {
    let mut subject = kind.open();
    let source = SnapshotSource { store: Arc::clone(files), handle: handle.clone() };
    subject.backend.restore(&mut subject.timers, &[source]).unwrap();
    subject
}

fn memory() -> (MemoryStore, Arc<dyn SpillStore>) {
    let memory = MemoryStore::new();
    (memory.clone(), Arc::new(memory))
}

fn shared(handle: &SnapshotHandle) -> BTreeSet<String> {
    handle.shared_files().map(|file| file.name.clone()).collect()
}

/// After a hundredth of the keys has changed at most a twentieth of the bytes is written, and what is
/// then there restores, twice, into any store.
#[test]
fn a_hundredth_of_the_keys_changed_writes_a_twentieth_of_the_bytes_at_most() {
    const KEYS: u64 = 20_000;
    let (_, files) = memory();
    let mut subject = ROCKS.open();
    put(&mut subject, 0..KEYS, 0);
    let first = checkpoint(&mut subject, files.as_ref(), 1);
    completed(&mut subject, 1);
    put(&mut subject, (0..KEYS).step_by(100), 1);
    let second = checkpoint(&mut subject, files.as_ref(), 2);
    assert!(
        second.written_bytes() * 20 <= first.written_bytes(),
        "{} bytes, then {}",
        first.written_bytes(),
        second.written_bytes()
    );
    for kind in [ROCKS, ROCKS, Kind(Where::Heap, 0), Kind(Where::Fjall, 1)] {
        let mut again = restored(&files, &second, kind);
        check(&mut again, (0..KEYS).step_by(100), 1);
        check(&mut again, (0..KEYS).filter(|key| key % 100 != 0).step_by(7), 0);
        let mut earlier = restored(&files, &first, kind);
        check(&mut earlier, (0..KEYS).step_by(100), 0);
    }
}

/// Trap tK16: a table is named again only by the store that wrote it, and only after a checkpoint that
/// names it is complete; a store restored from it writes tables of its own.
#[test]
fn a_table_is_shared_by_its_own_store_and_after_a_complete_checkpoint_alone() {
    let (_, files) = memory();
    let mut subject = ROCKS.open();
    put(&mut subject, 0..1_000, 0);
    let first = checkpoint(&mut subject, files.as_ref(), 1);
    let second = checkpoint(&mut subject, files.as_ref(), 2);
    assert!(shared(&first).is_disjoint(&shared(&second)), "checkpoint 1 is not complete");
    completed(&mut subject, 2);
    completed(&mut subject, 1);
    let third = checkpoint(&mut subject, files.as_ref(), 3);
    assert_eq!(shared(&third), shared(&second), "and is not the newest when it is");
    assert!(shared(&third).iter().all(|name| name.contains(SHARED)));
    let own = third.files.len() - third.shared_files().count();
    assert!(own > 0, "the store's small files are written each time");

    for sources in [[&third, &third], [&first, &second]] {
        for source in sources {
            let mut next = restored(&files, source, ROCKS);
            let fourth = checkpoint(&mut next, files.as_ref(), 4);
            assert!(fourth.shared_files().all(|file| file.name.starts_with("chk-4/")));
            check(&mut next, 0..1_000, 0);
            for file in fourth.files {
                files.delete(FileRole::Snapshot, &file.name).unwrap();
            }
            files.delete(FileRole::Snapshot, &fourth.name).unwrap();
        }
    }
}

/// Two subtasks become three, each with its own keys and timers.
#[test]
fn tables_are_clipped_to_the_key_groups_of_who_restores() {
    let (_, files) = memory();
    let mut sources = Vec::new();
    for index in 0..2 {
        let groups = groups_of(index, 2);
        let mut subject = ROCKS.open_for(groups);
        for key in 0..1_000_u64 {
            let bytes = element::key_bytes(&key);
            let hash = element::hash_key_bytes(&bytes);
            if groups.hash_range().unwrap().contains(&hash.0) {
                put(&mut subject, std::iter::once(key), 0);
                subject.timers.register(TimerKind::EventTime, Timestamp(5), hash, &bytes, b"");
            }
        }
        let pending =
            subject.backend.incremental_snapshot(&subject.timers, CheckpointId(1)).unwrap();
        let handle = pending.write(files.as_ref(), &format!("chk-1/{index}")).unwrap();
        sources.push(SnapshotSource { store: Arc::clone(&files), handle });
    }
    for kind in [ROCKS, Kind(Where::Heap, 0), Kind(Where::Memory, 1)] {
        let (mut entries, mut timers) = (0, 0);
        for index in 0..3 {
            let mut subject = kind.open_for(groups_of(index, 3));
            let report = subject.backend.restore(&mut subject.timers, &sources).unwrap();
            let own = subject.timers.len(TimerKind::EventTime);
            assert_eq!(report.entries, 2 * own as u64);
            entries += report.entries;
            timers += own;
        }
        assert_eq!((entries, timers), (2_000, 1_000), "{kind:?}");
    }
}

/// Trap tK5: whichever file fails, this checkpoint's files are gone, and an earlier one's stay.
#[test]
fn a_checkpoint_in_tables_that_fails_leaves_nothing_behind() {
    let (memory, files) = memory();
    let faulty = FaultyStore::new(Arc::clone(&files));
    let mut subject = ROCKS.open();
    put(&mut subject, 0..500, 0);
    let first = checkpoint(&mut subject, files.as_ref(), 1);
    completed(&mut subject, 1);
    let before = memory.list(FileRole::Snapshot, "").unwrap();
    put(&mut subject, 0..500, 1);
    for operation in [Operation::Create, Operation::Write, Operation::Sync, Operation::Rename] {
        for nth in 1..100 {
            let kind = ErrorKind::StorageFull;
            faulty.plan(Some(FaultPlan { operation, nth, and_after: false, kind }));
            let id = CheckpointId(2);
            let pending = subject.backend.incremental_snapshot(&subject.timers, id).unwrap();
            if let Ok(handle) = pending.write(&faulty, "chk-2/0") {
                assert!(nth > 3, "{operation} is tried for each file");
                let own = handle.files.iter().map(|file| &file.name).chain([&handle.name]);
                own.filter(|name| name.starts_with("chk-2/"))
                    .for_each(|name| files.delete(FileRole::Snapshot, name).unwrap());
                break;
            }
            assert_eq!(memory.list(FileRole::Snapshot, "").unwrap(), before);
        }
    }
    check(&mut restored(&files, &first, ROCKS), 0..500, 0);
}

#[test]
fn missing_cut_flipped_and_swapped_tables_are_named_errors() {
    let (memory, files) = memory();
    let mut subject = ROCKS.open();
    put(&mut subject, 0..500, 0);
    let handle = checkpoint(&mut subject, files.as_ref(), 1);
    for file in &handle.files {
        let error = |handle: &SnapshotHandle| {
            let mut subject = Kind(Where::Heap, 0).open();
            let source = SnapshotSource { store: Arc::clone(&files), handle: handle.clone() };
            match subject.backend.restore(&mut subject.timers, &[source]).unwrap_err() {
                StateError::Snapshot(error) => error,
                other => panic!("{other}"),
            }
        };
        let named = |error: SnapshotError| {
            assert!(error.to_string().contains(&file.name), "{error}");
            error
        };
        memory.damage(&file.name, |bytes| bytes[0] ^= 1);
        assert!(matches!(named(error(&handle)), SnapshotError::Swapped { .. }));
        memory.damage(&file.name, |bytes| bytes[0] ^= 1);
        let mut lost = 0;
        memory.damage(&file.name, |bytes| lost = bytes.pop().unwrap());
        assert!(matches!(named(error(&handle)), SnapshotError::Length { .. }));
        memory.damage(&file.name, |bytes| bytes.push(lost));
        files.rename(FileRole::Snapshot, &file.name, "aside").unwrap();
        assert!(matches!(named(error(&handle)), SnapshotError::File { .. }));
        files.rename(FileRole::Snapshot, "aside", &file.name).unwrap();
    }
    check(&mut restored(&files, &handle, Kind(Where::Heap, 0)), 0..500, 0);
}

#[test]
fn a_checkpoint_in_tables_says_so_to_whoever_inspects_it() {
    let (_, files) = memory();
    let mut subject = ROCKS.open();
    put(&mut subject, 0..10, 0);
    let handle = checkpoint(&mut subject, files.as_ref(), 1);
    let by_handle = SnapshotReader::open(files.as_ref(), &handle).unwrap_err();
    assert!(matches!(by_handle, SnapshotError::InTables { .. }), "{by_handle}");
    let by_name = SnapshotReader::open_named(files.as_ref(), &handle.name).unwrap_err();
    assert!(matches!(by_name, SnapshotError::InTables { .. }), "{by_name}");
}

/// What has expired, or was left out, may lie in a table, and is not there after a restore.
#[test]
fn expired_values_and_states_left_out_do_not_come_back() {
    let (_, files) = memory();
    let clock = ManualClock::default();
    let mut subject = ROCKS.open();
    let brief =
        || ValueState::<u64>::new("brief").with_ttl(TtlConfig::new(Duration::from_millis(100)));
    let dropped = MapState::<u64, u64>::new("dropped");
    subject.backend = subject.backend.with_clock(Arc::new(clock.clone()));
    for key in 0..10_u64 {
        set_key(&mut subject.backend, &key);
        brief().set(&mut subject.backend, key).unwrap();
        dropped.put(&mut subject.backend, &key, key).unwrap();
    }
    let first = checkpoint(&mut subject, files.as_ref(), 1);
    let mut second = restored(&files, &first, ROCKS);
    second.backend = second.backend.with_clock(Arc::new(clock.clone()));
    brief().bind(&mut second.backend).unwrap();
    second.backend.leave_out_unclaimed();
    let handle = checkpoint(&mut second, files.as_ref(), 2);
    clock.set(Timestamp(100));
    for kind in [ROCKS, Kind(Where::Heap, 0)] {
        let mut third = restored(&files, &handle, kind);
        third.backend = third.backend.with_clock(Arc::new(clock.clone()));
        for key in 0..10_u64 {
            set_key(&mut third.backend, &key);
            assert_eq!(brief().get(&mut third.backend).unwrap(), None, "{kind:?}");
            assert!(dropped.is_empty(&mut third.backend).unwrap(), "{kind:?}");
        }
    }
}
