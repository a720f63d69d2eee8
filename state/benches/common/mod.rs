//! What the benches of state share: sizes, keys, the stores, and updates through a handle.
#![allow(dead_code, reason = "each bench takes a part")]

use element::{Key, KeyGroups, MaxParallelism, hash_key_bytes};
use slackwater_state::{
    ByteStore, FjallByteStore, KeyedStateBackend, MemoryByteStore, ValueState, WriteMode,
};
use tempfile::TempDir;

pub(crate) fn is_smoke() -> bool {
    std::env::var_os("SLACKWATER_BENCH_SMOKE").is_some()
}

pub(crate) fn mix(i: u64) -> u64 {
    let z = (i ^ (i >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// In the order of a sorted backlog.
pub(crate) fn sorted(mut keys: Vec<u64>) -> Vec<u64> {
    keys.sort_by_cached_key(|key| (hash_key_bytes(&key.to_be_bytes()), *key));
    keys
}

/// Folds each key into its 16-byte value.
pub(crate) fn through(
    backend: &mut KeyedStateBackend,
    state: &ValueState<(u64, u64)>,
    keys: impl IntoIterator<Item = u64>,
) {
    let mut bytes = Vec::with_capacity(8);
    for key in keys {
        bytes.clear();
        key.encode_key(&mut bytes);
        backend.set_current_key(hash_key_bytes(&bytes), &bytes);
        let fold = |held: &mut Option<(u64, u64)>| {
            let (count, greatest) = held.unwrap_or_default();
            *held = Some((count + 1, greatest.max(key)));
        };
        state.update(backend, fold).expect("the store works");
    }
}

/// As [`through`], as sorted input.
pub(crate) fn through_sorted(
    backend: &mut KeyedStateBackend,
    state: &ValueState<(u64, u64)>,
    keys: &[u64],
    mode: WriteMode,
) {
    backend.begin_sorted_input(mode).expect("the store works");
    through(backend, state, keys.iter().copied());
    backend.end_sorted_input().expect("the store works");
}

pub(crate) fn groups() -> KeyGroups {
    KeyGroups::all(MaxParallelism::DEFAULT)
}

pub(crate) type Open = fn() -> (Box<dyn ByteStore>, Option<TempDir>);

pub(crate) const STORES: &[(&str, Open)] = &[
    ("memory map", memory),
    ("fjall", fjall),
    #[cfg(feature = "rocksdb")]
    ("rocksdb", rocksdb),
];

pub(crate) fn on_disk() -> impl Iterator<Item = &'static (&'static str, Open)> {
    STORES.iter().filter(|(name, _)| *name != "memory map")
}

fn memory() -> (Box<dyn ByteStore>, Option<TempDir>) {
    (Box::new(MemoryByteStore::new()), None)
}

fn fjall() -> (Box<dyn ByteStore>, Option<TempDir>) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = FjallByteStore::open(directory.path(), 256 << 20).expect("a store");
    (Box::new(store), Some(directory))
}

#[cfg(feature = "rocksdb")]
fn rocksdb() -> (Box<dyn ByteStore>, Option<TempDir>) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = slackwater_state::RocksByteStore::open(directory.path(), 256 << 20);
    (Box::new(store.expect("a store")), Some(directory))
}
