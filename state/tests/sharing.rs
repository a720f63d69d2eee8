//! What a snapshot of memory costs: nothing when it is taken, one shard's copy where state changes,
//! and nothing any more once the snapshot is written.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use element::{CodecError, MemoryStore, Record, Schema, SchemaError, Value};
use slackwater_state::{KeyedStateBackend, PendingSnapshot, ValueState};
use support::{Kind, Where, set_key};

static COPIES: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Counted(u64);

impl Clone for Counted {
    fn clone(&self) -> Self {
        COPIES.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Record for Counted {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        u64::decode(input).map(Self)
    }

    fn schema() -> Schema {
        u64::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        u64::from_value(value).map(Self)
    }
}

fn copies(work: impl FnOnce()) -> u64 {
    let before = COPIES.load(Ordering::Relaxed);
    work();
    COPIES.load(Ordering::Relaxed) - before
}

fn add_one(backend: &mut KeyedStateBackend, state: &ValueState<Counted>, key: u64) {
    set_key(backend, &key);
    state.update(backend, |held| held.get_or_insert(Counted(0)).0 += 1).unwrap();
}

#[test]
fn a_snapshot_copies_only_shards_that_change_before_it_is_written() {
    const KEYS: u64 = 64_000;
    let mut subject = Kind(Where::Heap, 0).open();
    let state = ValueState::<Counted>::new("counted");
    let backend = &mut subject.backend;
    assert_eq!(copies(|| (0..KEYS).for_each(|key| add_one(backend, &state, key))), 0, "in place");
    let mut pending = None;
    let taken = copies(|| pending = Some(backend.snapshot(&subject.timers).unwrap()));
    assert_eq!(taken, 0);
    let one = copies(|| add_one(backend, &state, 1));
    assert!((1..KEYS / 32).contains(&one), "{one} copies for one change of {KEYS} keys");
    assert_eq!(copies(|| add_one(backend, &state, 1)), 0, "the shard is its own again");
    let files = MemoryStore::new();
    let written = copies(|| {
        pending.take().map(|pending: PendingSnapshot| pending.write(&files, "one").unwrap());
    });
    assert_eq!(written, 0);
    let after = copies(|| (0..KEYS).for_each(|key| add_one(backend, &state, key)));
    assert_eq!(after, 0, "the snapshot has let go of every shard");
}

#[test]
fn backends_and_snapshots_may_change_threads() {
    fn is_send<T: Send>() {}
    is_send::<KeyedStateBackend>();
    is_send::<PendingSnapshot>();
    is_send::<ValueState<Counted>>();
}
