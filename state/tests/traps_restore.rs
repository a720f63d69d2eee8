//! What has gone wrong in other engines when state came back: one test a trap.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use derive::Record;
use element::{FileRole, MemoryStore, SpillStore, StoreError, StoreReader, StoreWriter, Timestamp};
use slackwater_state::{
    ByteStore, MapState, SnapshotReader, SnapshotSource, TimerKind, ValueState, WriteBatch,
};
use support::{Kind, Random, Subject, Where, every_kind, set_key};

#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
struct Narrow {
    a: u32,
    b: bool,
}

/// As [`Narrow`], in another order and wider.
#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
struct Wide {
    b: bool,
    a: u64,
}

fn written(subject: &mut Subject, files: &Arc<dyn SpillStore>, name: &str) -> SnapshotSource {
    let pending = subject.backend.snapshot(&subject.timers).unwrap();
    let handle = pending.write(files.as_ref(), name).unwrap();
    SnapshotSource { store: Arc::clone(files), handle }
}

fn restored(source: &SnapshotSource, kind: Kind) -> Subject {
    let mut subject = kind.open();
    let sources = std::slice::from_ref(source);
    subject.backend.restore(&mut subject.timers, sources).unwrap();
    subject
}

/// Trap tK4: a snapshot is read with the codec that its entries were written with, whether it was
/// taken before the program's new type was declared, after it, or written only then.
#[test]
fn a_snapshot_is_read_with_the_codec_it_was_written_with() {
    const KEYS: u32 = 100;
    let narrow = || ValueState::<Narrow>::new("pair");
    for kind in every_kind() {
        let files: Arc<dyn SpillStore> = Arc::new(MemoryStore::new());
        let mut first = Kind(Where::Heap, 0).open();
        for a in 0..KEYS {
            set_key(&mut first.backend, &a);
            narrow().set(&mut first.backend, Narrow { a, b: a % 2 == 0 }).unwrap();
        }
        let old = written(&mut first, &files, "old");

        let mut second = restored(&old, kind);
        let undeclared = written(&mut second, &files, "undeclared");
        let pending = second.backend.snapshot(&second.timers).unwrap();
        let wide = ValueState::<Wide>::new("pair");
        set_key(&mut second.backend, &0_u32);
        wide.set(&mut second.backend, Wide { b: true, a: 1 << 40 }).unwrap();
        let handle = pending.write(files.as_ref(), "late").unwrap();
        let late = SnapshotSource { store: Arc::clone(&files), handle };
        let declared = written(&mut second, &files, "declared");

        for (source, changed) in
            [(old, false), (undeclared, false), (late, false), (declared, true)]
        {
            let reader = SnapshotReader::open(files.as_ref(), &source.handle).unwrap();
            let schema = &reader.header().states[0].descriptor.schema;
            let expected = if changed { wide.descriptor() } else { narrow().descriptor() };
            assert_eq!(*schema, expected.schema, "{} on {kind:?}", source.handle.name);
            for target in [kind, Kind(Where::Heap, 0)] {
                let mut subject = restored(&source, target);
                for a in 0..KEYS {
                    set_key(&mut subject.backend, &a);
                    let found = ValueState::<Wide>::new("pair").get(&mut subject.backend).unwrap();
                    let a = if changed && a == 0 { 1 << 40 } else { u64::from(a) };
                    assert_eq!(found, Some(Wide { b: a % 2 == 0, a }), "{kind:?}");
                }
            }
        }
    }
}

/// Trap tK7: no option of a store changes what a range read visits, or in which order, also between
/// point look-ups, deletes and bulk loads.
#[test]
fn iteration_is_the_same_under_every_store_option() {
    for cache_bytes in [0, 1 << 12, 8 << 20] {
        for (mut store, _directory) in support::stores_with(cache_bytes) {
            let mut model = BTreeMap::<Vec<u8>, Vec<u8>>::new();
            let mut random = Random::new(cache_bytes + 1);
            for round in 0..12 {
                change(store.as_mut(), &mut random, &mut model, round % 3 == 2);
                for _ in 0..20 {
                    check_range(store.as_ref(), &mut random, &model);
                    let key = key_of(&mut random);
                    assert_eq!(store.get(&key).unwrap(), model.get(&key).cloned());
                }
            }
        }
    }
}

/// Keys of a few lengths that share prefixes.
fn key_of(random: &mut Random) -> Vec<u8> {
    let number = random.below(400) as u16;
    let mut key = number.to_be_bytes().to_vec();
    key.truncate(1 + random.below(2) as usize);
    key.extend(std::iter::repeat_n(255, random.below(3) as usize));
    key
}

fn change(
    store: &mut dyn ByteStore,
    random: &mut Random,
    model: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    in_bulk: bool,
) {
    let mut changes = BTreeMap::new();
    for _ in 0..150 {
        let value = (random.below(3) > 0).then(|| random.next().to_le_bytes().to_vec());
        changes.insert(key_of(random), value);
    }
    let mut batch = WriteBatch::new();
    for (key, value) in changes {
        match value {
            Some(value) => {
                batch.put(&key, &value);
                model.insert(key, value);
            }
            None => {
                batch.delete(&key);
                model.remove(&key);
            }
        }
    }
    let load = if in_bulk { store.bulk_load().unwrap() } else { None };
    match load {
        Some(mut load) => {
            load.write(batch).unwrap();
            load.finish().unwrap();
        }
        None => store.write(&batch).unwrap(),
    }
}

fn check_range(store: &dyn ByteStore, random: &mut Random, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let (from, to) = (key_of(random), Some(key_of(random)).filter(|_| random.below(4) > 0));
    let limit = 1 + random.below(60) as usize;
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        if found.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.scan(&from, to.as_deref(), &mut visit).unwrap();
    let within = |key: &&Vec<u8>| to.as_ref().is_none_or(|to| *key < to);
    let expected = model.range(from..).take_while(|(key, _)| within(key)).take(limit);
    let expected: Vec<_> = expected.map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(found, expected, "{store:?}");
}

/// Trap tK8: a file that is handed over byte by byte restores as any other, and one that ends early
/// is a named error at every length: never an older format, never fewer timers.
#[test]
fn a_snapshot_that_comes_byte_by_byte_is_read_whole_or_not_at_all() {
    let memory = MemoryStore::new();
    let files: Arc<dyn SpillStore> = Arc::new(memory.clone());
    let mut subject = Kind(Where::Heap, 0).open();
    let map = MapState::<u8, String>::new("map");
    for key in 0..10_u64 {
        set_key(&mut subject.backend, &key);
        map.put_in(&mut subject.backend, b"w", &1, "value".to_owned()).unwrap();
        let (hash, bytes) = subject.backend.current_key().unwrap();
        subject.timers.register(TimerKind::EventTime, Timestamp(9), hash, bytes, b"w");
    }
    let mut source = written(&mut subject, &files, "slow");
    source.store = Arc::new(ByteByByte(memory.clone()));
    for kind in every_kind() {
        let mut slow = restored(&source, kind);
        assert_eq!(slow.timers.len(TimerKind::EventTime), 10);
        for key in 0..10_u64 {
            set_key(&mut slow.backend, &key);
            assert_eq!(map.entries_in(&mut slow.backend, b"w").unwrap(), [(1, "value".to_owned())]);
        }
    }
    for _ in 0..source.handle.bytes {
        memory.damage("slow", |bytes| bytes.truncate(bytes.len() - 1));
        let error = SnapshotReader::open_named(source.store.as_ref(), "slow").unwrap_err();
        assert!(error.to_string().contains("`slow`"), "{error}");
    }
}

/// A store whose files are read one byte at a time.
#[derive(Debug)]
struct ByteByByte(MemoryStore);

impl SpillStore for ByteByByte {
    fn create(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreWriter>, StoreError> {
        self.0.create(role, name)
    }

    fn open(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreReader>, StoreError> {
        Ok(Box::new(SlowReader(self.0.open(role, name)?)))
    }

    fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), StoreError> {
        self.0.rename(role, from, to)
    }

    fn delete(&self, role: FileRole, name: &str) -> Result<(), StoreError> {
        self.0.delete(role, name)
    }

    fn list(&self, role: FileRole, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.0.list(role, prefix)
    }

    fn local_path(&self, name: &str) -> Option<PathBuf> {
        self.0.local_path(name)
    }
}

#[derive(Debug)]
struct SlowReader(Box<dyn StoreReader>);

impl StoreReader for SlowReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let single = |(at, byte): (u64, &mut u8)| self.0.read_at(at, std::slice::from_mut(byte));
        (offset..).zip(into).try_for_each(single)
    }

    fn len(&self) -> Result<u64, StoreError> {
        self.0.len()
    }
}
