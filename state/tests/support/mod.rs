//! What the tests of this crate share: every backend, and small ways to work with keys.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::sync::Arc;

use element::{
    CheckpointId, KeyGroups, KeyHash, MaxParallelism, MemoryStore, SpillStore, SubtaskIndex,
    hash_key_bytes, key_bytes,
};
use slackwater_state::{
    ByteStore, FjallByteStore, KeyedStateBackend, MemoryByteStore, SnapshotSource, TimerService,
};
use tempfile::TempDir;

/// Where a backend's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    Heap,
    Memory,
    Fjall,
    #[cfg(feature = "rocksdb")]
    RocksDb,
}

/// A backend to run a test over: where, and the size of its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub Where, pub usize);

/// Every backend that keeps all keys.
pub fn every_kind() -> Vec<Kind> {
    let mut kinds = vec![Kind(Where::Heap, 0)];
    let mut stores = vec![Where::Memory, Where::Fjall];
    #[cfg(feature = "rocksdb")]
    stores.push(Where::RocksDb);
    for store in stores.drain(..) {
        kinds.extend([0, 1, 3, 1_000].map(|cache| Kind(store, cache)));
    }
    kinds
}

/// Every store, behind a cache of one key.
pub fn every_store() -> Vec<Kind> {
    every_kind().into_iter().filter(|kind| kind.1 == 1).collect()
}

/// A backend and the directory that its store lies in.
pub struct Subject {
    pub backend: KeyedStateBackend,
    pub timers: TimerService,
    directory: Option<TempDir>,
}

/// One of each store, with a block cache of this many bytes.
pub fn stores_with(cache_bytes: u64) -> Vec<(Box<dyn ByteStore>, Option<TempDir>)> {
    every_store().into_iter().map(|kind| store_with(kind.0, cache_bytes)).collect()
}

pub fn store(at: Where) -> (Box<dyn ByteStore>, Option<TempDir>) {
    store_with(at, 8 << 20)
}

fn store_with(at: Where, cache_bytes: u64) -> (Box<dyn ByteStore>, Option<TempDir>) {
    match at {
        Where::Heap => unreachable!("the heap has no store"),
        Where::Memory => (Box::new(MemoryByteStore::new()), None),
        Where::Fjall => {
            let directory = tempfile::tempdir().unwrap();
            let store = FjallByteStore::open(&directory.path().join("store"), cache_bytes).unwrap();
            (Box::new(store), Some(directory))
        }
        #[cfg(feature = "rocksdb")]
        Where::RocksDb => {
            let directory = tempfile::tempdir().unwrap();
            let store = slackwater_state::RocksByteStore::open(
                &directory.path().join("store"),
                cache_bytes,
            )
            .unwrap();
            (Box::new(store), Some(directory))
        }
    }
}

impl Kind {
    pub fn open(self) -> Subject {
        self.open_for(all_groups())
    }

    pub fn open_for(self, groups: KeyGroups) -> Subject {
        let Self(at, cache) = self;
        let (backend, directory) = if at == Where::Heap {
            (KeyedStateBackend::heap(groups), None)
        } else {
            let (store, directory) = store(at);
            (KeyedStateBackend::over(store, groups, cache), directory)
        };
        let backend = backend.with_operator("operator");
        Subject { backend, timers: TimerService::new(), directory }
    }
}

impl Subject {
    /// Writes a checkpoint of everything, in tables where the store has some, and reads it into a new
    /// backend.
    pub fn moved_to(&mut self, kind: Kind) -> Subject {
        let files: Arc<dyn SpillStore> = Arc::new(MemoryStore::new());
        let pending = self.backend.incremental_snapshot(&self.timers, CheckpointId(1)).unwrap();
        let handle = pending.write(files.as_ref(), "chk-1/moved").unwrap();
        let mut next = kind.open();
        let sources = [SnapshotSource { store: files, handle }];
        next.backend.restore(&mut next.timers, &sources).unwrap();
        next
    }
}

pub fn all_groups() -> KeyGroups {
    KeyGroups::all(MaxParallelism::DEFAULT)
}

pub fn groups_of(index: u32, parallelism: u32) -> KeyGroups {
    MaxParallelism::DEFAULT.groups_of(SubtaskIndex(index), parallelism)
}

pub fn set_key(backend: &mut KeyedStateBackend, key: &impl element::Key) {
    let bytes = key_bytes(key);
    backend.set_current_key(hash_key_bytes(&bytes), &bytes);
}

/// Keys in the order of sorted input.
pub fn in_order(keys: impl IntoIterator<Item = u64>) -> Vec<(KeyHash, Vec<u8>, u64)> {
    let mut keys: Vec<_> = keys
        .into_iter()
        .map(|key| {
            let bytes = key_bytes(&key);
            (hash_key_bytes(&bytes), bytes, key)
        })
        .collect();
    keys.sort();
    keys
}

/// Numbers that a seed gives.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 33) % end
    }
}
