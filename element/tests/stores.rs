//! Stores: the disk, memory and the store that fails behave alike, and damage is an error.

use std::io::ErrorKind;
use std::sync::Arc;

use element::{
    DirectoryStore, FaultPlan, FaultyStore, FileRole, MemoryStore, Operation, SpillStore,
    StoreError,
};

const ROLE: FileRole = FileRole::SortRun;

/// Runs `check` over each kind of store.
fn each(check: impl Fn(&dyn SpillStore)) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    check(&DirectoryStore::new(directory.path().join("made/when/needed")));
    check(&MemoryStore::new());
    check(&FaultyStore::new(Arc::new(MemoryStore::new())));
}

fn put(store: &dyn SpillStore, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let mut writer = store.create(ROLE, name)?;
    writer.write(bytes)?;
    writer.sync()
}

fn get(store: &dyn SpillStore, name: &str) -> Result<Vec<u8>, StoreError> {
    let reader = store.open(ROLE, name)?;
    let mut bytes = vec![0; usize::try_from(reader.len()?).expect("a small file")];
    reader.read_at(0, &mut bytes)?;
    Ok(bytes)
}

#[test]
fn a_file_reads_back_by_position_as_it_was_appended() {
    each(|store| {
        let mut writer = store.create(ROLE, "job/run-1").unwrap();
        writer.write(b"slack").unwrap();
        writer.write(b"").unwrap();
        writer.write(b"water").unwrap();
        writer.sync().unwrap();
        let reader = store.open(ROLE, "job/run-1").unwrap();
        assert_eq!((reader.len().unwrap(), reader.is_empty().unwrap()), (10, false));
        let mut middle = [0; 4];
        reader.read_at(3, &mut middle).unwrap();
        assert_eq!(&middle, b"ckwa");
        reader.read_at(10, &mut []).unwrap();
        for (offset, len) in [(7, 4), (11, 1), (u64::MAX, 1)] {
            let error = reader.read_at(offset, &mut vec![0; len]).unwrap_err();
            assert_eq!((error.operation, error.role), (Operation::Read, ROLE), "{offset} {len}");
        }
        if let Some(path) = store.local_path("job/run-1") {
            assert_eq!(std::fs::read(path).unwrap(), b"slackwater");
        }
    });
}

/// More parts than one call of the system takes, and empty ones at any place.
#[test]
fn parts_are_appended_one_behind_the_other() {
    each(|store| {
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
        let parts: Vec<&[u8]> = bytes.chunks(7).flat_map(|part| [&[][..], part, &[]]).collect();
        let mut writer = store.create(ROLE, "parts").unwrap();
        writer.write(b"front").unwrap();
        writer.write_parts(&parts).unwrap();
        writer.write_parts(&[]).unwrap();
        writer.write_parts(&[&[], &[]]).unwrap();
        writer.write(b"end").unwrap();
        writer.sync().unwrap();
        let expected = [b"front", bytes.as_slice(), b"end"].concat();
        assert_eq!(get(store, "parts").unwrap(), expected);
    });
}

/// Parts are one write, and fail as one.
#[test]
fn parts_that_fail_are_an_error() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let mut writer = store.create(ROLE, "parts").unwrap();
    writer.write_parts(&[b"one", b"two"]).unwrap();
    assert_eq!(store.count(Operation::Write), 1);
    let kind = ErrorKind::StorageFull;
    store.plan(Some(FaultPlan { operation: Operation::Write, nth: 1, and_after: false, kind }));
    let error = writer.write_parts(&[b"three", b"four"]).unwrap_err();
    assert_eq!((error.operation, error.role), (Operation::Write, ROLE));
    assert_eq!(get(&store, "parts").unwrap(), b"onetwo");
}

#[test]
fn names_are_listed_sorted_and_by_prefix() {
    each(|store| {
        assert!(store.list(ROLE, "").unwrap().is_empty());
        for name in ["b/2", "a", "b/1", "b/c/3"] {
            put(store, name, b"x").unwrap();
        }
        assert_eq!(store.list(ROLE, "").unwrap(), ["a", "b/1", "b/2", "b/c/3"]);
        assert_eq!(store.list(ROLE, "b/").unwrap(), ["b/1", "b/2", "b/c/3"]);
        assert!(store.list(ROLE, "none").unwrap().is_empty());
    });
}

#[test]
fn a_name_is_taken_once_and_a_missing_file_is_not_found() {
    each(|store| {
        put(store, "one", b"1").unwrap();
        let error = store.create(ROLE, "one").unwrap_err();
        assert_eq!(
            (error.operation, error.source.kind()),
            (Operation::Create, ErrorKind::AlreadyExists)
        );
        assert!(error.to_string().starts_with("cannot create sort run `"), "{error}");
        assert!(error.to_string().ends_with("one`"), "{error}");
        assert!(store.open(ROLE, "two").unwrap_err().is_not_found());
        assert!(store.delete(ROLE, "two").unwrap_err().is_not_found());
        assert!(store.rename(ROLE, "two", "three").unwrap_err().is_not_found());
        assert_eq!(get(store, "one").unwrap(), b"1");
        store.delete(ROLE, "one").unwrap();
        assert!(store.open(ROLE, "one").unwrap_err().is_not_found());
    });
}

#[test]
fn a_rename_replaces_what_had_the_name() {
    each(|store| {
        put(store, "part", b"new").unwrap();
        put(store, "final/name", b"old").unwrap();
        store.rename(ROLE, "part", "final/name").unwrap();
        assert_eq!(get(store, "final/name").unwrap(), b"new");
        assert!(store.open(ROLE, "part").unwrap_err().is_not_found());
        store.rename(ROLE, "final/name", "fresh/directory/name").unwrap();
        assert_eq!(store.list(ROLE, "").unwrap(), ["fresh/directory/name"]);
    });
}

/// Trap tF6: reads are by position, so readers do not move each other.
#[test]
fn one_reader_serves_many_threads_by_position() {
    each(|store| {
        let bytes: Vec<u8> = (0..=255).collect();
        put(store, "index", &bytes).unwrap();
        let reader = store.open(ROLE, "index").unwrap();
        std::thread::scope(|scope| {
            for start in 0..16_u8 {
                let reader = &reader;
                scope.spawn(move || {
                    for offset in (start..=255).step_by(16) {
                        let mut byte = [0];
                        reader.read_at(u64::from(offset), &mut byte).unwrap();
                        assert_eq!(byte, [offset]);
                    }
                });
            }
        });
    });
}

#[test]
fn a_planned_fault_hits_exactly_its_operation() {
    #[track_caller]
    fn check(operation: Operation, act: impl Fn(&FaultyStore) -> Result<(), StoreError>) {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        put(&store, "old", b"old").unwrap();
        let kind = ErrorKind::StorageFull;
        store.plan(Some(FaultPlan { operation, nth: 1, and_after: false, kind }));
        let error = act(&store).unwrap_err();
        assert_eq!((error.operation, error.role), (operation, ROLE));
        assert!(error.is_full());
        assert_eq!(store.count(operation), 1);
    }
    check(Operation::Create, |store| put(store, "new", b"new"));
    check(Operation::Write, |store| put(store, "new", b"new"));
    check(Operation::Sync, |store| put(store, "new", b"new"));
    check(Operation::Open, |store| get(store, "old").map(drop));
    check(Operation::Read, |store| get(store, "old").map(drop));
    check(Operation::Rename, |store| store.rename(ROLE, "old", "new"));
    check(Operation::Delete, |store| store.delete(ROLE, "old"));
    check(Operation::List, |store| store.list(ROLE, "").map(drop));
}

#[test]
fn a_fault_comes_at_its_turn_once_or_for_ever() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let plan = |and_after| FaultPlan {
        operation: Operation::Create,
        nth: 2,
        and_after,
        kind: ErrorKind::Other,
    };
    let outcomes = |tag: &str| -> Vec<bool> {
        (0..4).map(|n| put(&store, &format!("{tag}{n}"), b"").is_ok()).collect()
    };
    store.plan(Some(plan(false)));
    assert_eq!(outcomes("once"), [true, false, true, true]);
    store.plan(Some(plan(true)));
    assert_eq!(outcomes("ever"), [true, false, false, false]);
    store.plan(None);
    assert_eq!(outcomes("none"), [true; 4]);
    assert_eq!(store.count(Operation::Create), 4);
}

#[test]
fn a_file_that_is_cut_under_its_reader_is_an_error_and_not_a_short_read() {
    let store = MemoryStore::new();
    put(&store, "run", b"0123456789").unwrap();
    let reader = store.open(ROLE, "run").unwrap();
    assert!(store.damage("run", |bytes| bytes.truncate(5)));
    let mut all = [7; 10];
    let error = reader.read_at(0, &mut all).unwrap_err();
    assert_eq!(error.source.kind(), ErrorKind::UnexpectedEof);
    assert!(!store.damage("none", |_| {}));

    let directory = tempfile::tempdir().unwrap();
    let store = DirectoryStore::new(directory.path());
    put(&store, "run", b"0123456789").unwrap();
    let reader = store.open(ROLE, "run").unwrap();
    std::fs::write(directory.path().join("run"), b"01234").unwrap();
    assert_eq!(reader.read_at(0, &mut all).unwrap_err().source.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), b"").unwrap();
    let store = DirectoryStore::new(directory.path().join("file"));
    let error = store.create(FileRole::Snapshot, "chk-1/part").unwrap_err();
    assert_eq!((error.operation, error.role), (Operation::Create, FileRole::Snapshot));
    assert!(error.name.ends_with("file/chk-1/part"), "{}", error.name);
}
