//! Snapshots: consistent, clipped, checked, and never half there.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::io::ErrorKind;
use std::sync::Arc;

use element::{
    FaultPlan, FaultyStore, FileRole, MemoryStore, Operation, SpillStore, Timestamp, decode_exact,
    encode_to_vec,
};
use slackwater_state::{
    KeyedStateBackend, ListState, MapState, SnapshotError, SnapshotFile, SnapshotHandle,
    SnapshotReader, SnapshotSource, StateError, TimerKind, TimerService, ValueState, WriteMode,
};
use support::{Kind, Subject, Where, all_groups, every_kind, groups_of, in_order, set_key};

/// A thousand keys with a value, some with a list, a map and a timer.
fn filled(kind: Kind) -> Subject {
    let mut subject = kind.open();
    let value = ValueState::<u64>::new("value");
    let list = ListState::<String>::new("list");
    let map = MapState::<u8, u64>::new("map");
    for (hash, bytes, key) in in_order(0..1_000) {
        subject.backend.set_current_key(hash, &bytes);
        value.set(&mut subject.backend, key).unwrap();
        if key % 10 == 0 {
            list.add_in(&mut subject.backend, b"window", "x".repeat(key as usize)).unwrap();
            map.put(&mut subject.backend, &(key as u8), key).unwrap();
            subject.timers.register(TimerKind::EventTime, Timestamp(7), hash, &bytes, b"");
        }
    }
    subject
}

#[track_caller]
fn check_filled(backend: &mut KeyedStateBackend, keys: impl Iterator<Item = u64>) {
    let value = ValueState::<u64>::new("value");
    let list = ListState::<String>::new("list");
    let map = MapState::<u8, u64>::new("map");
    for key in keys {
        set_key(backend, &key);
        assert_eq!(value.get(backend).unwrap(), Some(key));
        let tenth = key % 10 == 0;
        let expected = if tenth { vec!["x".repeat(key as usize)] } else { vec![] };
        assert_eq!(list.get_in(backend, b"window").unwrap(), expected);
        assert_eq!(map.get(backend, &(key as u8)).unwrap(), tenth.then_some(key));
    }
}

fn written(subject: &mut Subject, files: &Arc<dyn SpillStore>, name: &str) -> SnapshotSource {
    let pending = subject.backend.snapshot(&subject.timers).unwrap();
    let handle = pending.write(files.as_ref(), name).unwrap();
    SnapshotSource { store: Arc::clone(files), handle }
}

fn memory() -> Arc<dyn SpillStore> {
    Arc::new(MemoryStore::new())
}

#[test]
fn a_snapshot_of_any_backend_restores_into_any_other() {
    for from in every_kind() {
        let mut subject = filled(from);
        for to in [Kind(Where::Heap, 0), Kind(Where::Memory, 0), Kind(Where::Fjall, 100)] {
            let mut moved = subject.moved_to(to);
            check_filled(&mut moved.backend, 0..1_000);
            assert_eq!(moved.timers.len(TimerKind::EventTime), 100);
        }
        check_filled(&mut subject.backend, 0..1_000);
    }
}

#[test]
fn a_snapshot_holds_the_moment_it_was_taken_while_processing_goes_on() {
    let value = ValueState::<u64>::new("value");
    for kind in every_kind() {
        let mut subject = filled(kind);
        let pending = subject.backend.snapshot(&subject.timers).unwrap();
        for key in 0..2_000_u64 {
            set_key(&mut subject.backend, &key);
            value.set(&mut subject.backend, key + 1).unwrap();
        }
        let files = memory();
        let store = Arc::clone(&files);
        let writer = std::thread::spawn(move || pending.write(store.as_ref(), "moment").unwrap());
        for key in 0..2_000_u64 {
            set_key(&mut subject.backend, &key);
            assert_eq!(value.get(&mut subject.backend).unwrap(), Some(key + 1));
        }
        let handle = writer.join().unwrap();
        let mut restored = Kind(Where::Heap, 0).open();
        let sources = [SnapshotSource { store: files, handle }];
        restored.backend.restore(&mut restored.timers, &sources).unwrap();
        check_filled(&mut restored.backend, 0..1_000);
        set_key(&mut restored.backend, &1_500_u64);
        assert_eq!(value.get(&mut restored.backend).unwrap(), None);
    }
}

/// L4: with the cache off and of any size, and in memory.
#[test]
fn every_backend_writes_the_same_bytes() {
    let files: Vec<Vec<u8>> = every_kind()
        .into_iter()
        .map(|kind| {
            let files = memory();
            let source = written(&mut filled(kind), &files, "same");
            let file = files.open(FileRole::Snapshot, "same").unwrap();
            let mut bytes = vec![0; source.handle.bytes as usize];
            file.read_at(0, &mut bytes).unwrap();
            bytes
        })
        .collect();
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]));
}

/// The format is fixed: these bytes must be readable for ever.
#[test]
fn the_format_is_that_of_the_golden_file() {
    let mut subject = Kind(Where::Heap, 0).open();
    let value = ValueState::<u32>::new("value");
    let map = MapState::<u8, String>::new("map");
    set_key(&mut subject.backend, &1_u64);
    value.set(&mut subject.backend, 7).unwrap();
    map.put_in(&mut subject.backend, b"w", &2, "two".to_owned()).unwrap();
    let (hash, key) = subject.backend.current_key().unwrap();
    subject.timers.register(TimerKind::ProcessingTime, Timestamp(-1), hash, key, b"w");
    let files = memory();
    let source = written(&mut subject, &files, "golden");
    let mut bytes = vec![0; source.handle.bytes as usize];
    files.open(FileRole::Snapshot, "golden").unwrap().read_at(0, &mut bytes).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, include_str!("golden/snapshot.hex").trim());
}

#[test]
fn a_range_of_keys_reads_only_the_blocks_it_needs() {
    let files = memory();
    let faulty = FaultyStore::new(Arc::clone(&files));
    let mut subject = Kind(Where::Heap, 0).open();
    let value = ValueState::<Vec<u8>>::new("value");
    for key in 0..2_000_u64 {
        set_key(&mut subject.backend, &key);
        value.set(&mut subject.backend, vec![0; 2_000]).unwrap();
    }
    let mut source = written(&mut subject, &files, "blocks");
    source.store = Arc::new(faulty.clone());
    let reads = |groups| {
        faulty.plan(None);
        let mut timers = TimerService::new();
        let mut backend = KeyedStateBackend::heap(groups).with_operator("operator");
        backend.restore(&mut timers, std::slice::from_ref(&source)).unwrap();
        faulty.count(Operation::Read)
    };
    let (all, tenth) = (reads(all_groups()), reads(groups_of(3, 10)));
    assert!(tenth * 5 < all, "{tenth} reads for a tenth of the keys, {all} for all");
}

#[test]
fn snapshots_of_other_key_groups_are_not_even_opened() {
    let files = memory();
    let missing = SnapshotHandle {
        name: "missing".to_owned(),
        bytes: 1,
        checksum: 0,
        groups: groups_of(1, 2),
        entries: 0,
        files: Vec::new(),
    };
    let mut backend = KeyedStateBackend::heap(groups_of(0, 2));
    let source = SnapshotSource { store: Arc::clone(&files), handle: missing };
    let mut timers = TimerService::new();
    backend.restore(&mut timers, std::slice::from_ref(&source)).unwrap();
    let mut backend = KeyedStateBackend::heap(all_groups());
    let error = backend.restore(&mut timers, &[source]).unwrap_err();
    assert!(matches!(error, StateError::Snapshot(SnapshotError::File { .. })), "{error}");
}

fn restore_all(source: &SnapshotSource) -> Result<(), StateError> {
    let mut backend = KeyedStateBackend::heap(all_groups()).with_operator("operator");
    backend.restore(&mut TimerService::new(), std::slice::from_ref(source)).map(|_| ())
}

#[test]
fn every_flipped_bit_is_noticed_and_named() {
    let store = MemoryStore::new();
    let files: Arc<dyn SpillStore> = Arc::new(store.clone());
    let mut subject = Kind(Where::Heap, 0).open();
    let value = ValueState::<u64>::new("value");
    for key in 0..5_u64 {
        set_key(&mut subject.backend, &key);
        value.set(&mut subject.backend, key).unwrap();
    }
    let source = written(&mut subject, &files, "flipped");
    restore_all(&source).unwrap();
    for byte in 0..source.handle.bytes as usize {
        for bit in [0, 7] {
            store.damage("flipped", |bytes| bytes[byte] ^= 1 << bit);
            let error = restore_all(&source).unwrap_err();
            assert!(error.to_string().contains("flipped"), "byte {byte}: {error}");
            store.damage("flipped", |bytes| bytes[byte] ^= 1 << bit);
        }
    }
    restore_all(&source).unwrap();
}

#[test]
fn cut_missing_swapped_and_foreign_files_are_named_errors() {
    let store = MemoryStore::new();
    let files: Arc<dyn SpillStore> = Arc::new(store.clone());
    let mut subject = filled(Kind(Where::Heap, 0));
    let source = written(&mut subject, &files, "first");
    let error = |source: &SnapshotSource| match restore_all(source).unwrap_err() {
        StateError::Snapshot(error) => error,
        other => panic!("{other}"),
    };

    let mut missing = source.clone();
    missing.handle.name = "missing".to_owned();
    assert!(matches!(error(&missing), SnapshotError::File { .. }));

    let mut other = filled(Kind(Where::Heap, 0));
    set_key(&mut other.backend, &1_u64);
    ValueState::<u64>::new("value").set(&mut other.backend, 2).unwrap();
    let mut swapped = written(&mut other, &files, "second");
    assert_eq!(swapped.handle.bytes, source.handle.bytes);
    swapped.handle.checksum = source.handle.checksum;
    assert!(matches!(error(&swapped), SnapshotError::Swapped { .. }));

    let mut subject = Kind(Where::Heap, 0).open();
    subject.backend = subject.backend.with_operator("another");
    let foreign = written(&mut subject, &files, "another");
    assert!(matches!(error(&foreign), SnapshotError::OtherOperator { .. }));

    store.damage("another", |bytes| bytes[0] = b'?');
    assert!(matches!(error(&foreign), SnapshotError::Foreign { .. }));

    store.damage("first", |bytes| bytes.truncate(bytes.len() - 1));
    assert!(matches!(error(&source), SnapshotError::Length { .. }));
    for keep in (0..1_000).step_by(37) {
        store.damage("first", |bytes| bytes.truncate(1_000 - keep));
        assert!(SnapshotReader::open_named(files.as_ref(), "first").is_err());
    }
}

/// Traps tK5 and tK15: whatever fails, no file is left, and none has its name before it is durable.
#[test]
fn a_snapshot_that_fails_leaves_nothing_behind() {
    for kind in [Kind(Where::Heap, 0), Kind(Where::Memory, 1)] {
        let operations = [Operation::Create, Operation::Write, Operation::Sync, Operation::Rename];
        for operation in operations {
            for nth in 1..1_000 {
                let files = memory();
                let faulty = FaultyStore::new(Arc::clone(&files));
                faulty.plan(Some(FaultPlan {
                    operation,
                    nth,
                    and_after: false,
                    kind: ErrorKind::StorageFull,
                }));
                let mut subject = filled(kind);
                let pending = subject.backend.snapshot(&subject.timers).unwrap();
                if pending.write(&faulty, "failing").is_ok() {
                    assert!(nth > 1, "{operation} is never tried");
                    break;
                }
                assert_eq!(files.list(FileRole::Snapshot, "").unwrap(), Vec::<String>::new());
            }
        }
    }
}

#[test]
fn a_snapshot_within_sorted_input_is_refused() {
    let mut subject = Kind(Where::Memory, 1).open();
    subject.backend.begin_sorted_input(WriteMode::BulkLoad).unwrap();
    let error = subject.backend.snapshot(&subject.timers).unwrap_err();
    assert!(matches!(error, StateError::NotSupported { .. }));
    let mut batch = KeyedStateBackend::one_key();
    assert!(batch.snapshot(&TimerService::new()).is_err());
}

#[test]
fn a_state_that_nobody_has_used_since_the_restore_is_in_the_next_snapshot() {
    for kind in every_kind() {
        let mut first = filled(Kind(Where::Heap, 0));
        let mut second = first.moved_to(kind);
        let value = ValueState::<u64>::new("value");
        set_key(&mut second.backend, &0_u64);
        assert_eq!(value.get(&mut second.backend).unwrap(), Some(0));
        let mut third = second.moved_to(Kind(Where::Heap, 0));
        check_filled(&mut third.backend, 0..1_000);
    }
}

/// Trap tK11: the watermark comes back with the state.
#[test]
fn the_least_watermark_of_the_snapshots_is_handed_back() {
    let files = memory();
    let mut sources = Vec::new();
    for (index, watermark) in [(0, 70), (1, 50)] {
        let mut subject = Kind(Where::Heap, 0).open_for(groups_of(index, 2));
        subject.backend.set_watermark(Timestamp(watermark));
        sources.push(written(&mut subject, &files, &index.to_string()));
    }
    let mut subject = Kind(Where::Heap, 0).open();
    let report = subject.backend.restore(&mut subject.timers, &sources).unwrap();
    assert_eq!(report.watermark, Timestamp(50));
}

#[test]
fn a_handle_travels_as_a_record() {
    let handle = SnapshotHandle {
        name: "a/b".to_owned(),
        bytes: 9,
        checksum: 8,
        groups: groups_of(2, 5),
        entries: 7,
        files: vec![SnapshotFile {
            name: "a/shared/b-1.sst".to_owned(),
            table: "1.sst".to_owned(),
            bytes: 5,
            checksum: 4,
        }],
    };
    assert_eq!(decode_exact::<SnapshotHandle>(&encode_to_vec(&handle)).unwrap(), handle);
    for cut in 0..encode_to_vec(&handle).len() {
        assert!(decode_exact::<SnapshotHandle>(&encode_to_vec(&handle)[..cut]).is_err());
    }
}
