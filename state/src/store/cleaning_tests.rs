//! What a compaction leaves out, on each store that compacts.

use std::sync::Arc;
use std::time::Duration;

use element::{KeyHash, ManualClock, Timestamp};

use super::{ByteStore, FjallByteStore, WriteBatch};
use crate::store_key::{StateId, StoreKey};
use crate::{Expiry, ListState, TtlClock, TtlConfig, ValueState};

/// A store, and what makes it rewrite all of its files.
type Compacting<'a, S> = (&'a mut S, fn(&S));

fn key_of(state: &str, number: u64) -> Vec<u8> {
    let (hash, key) = (KeyHash(number), number.to_be_bytes());
    let at = StoreKey { hash, key: &key, state: StateId::of(state), namespace: b"", map_key: b"" };
    let mut out = Vec::new();
    at.push(&mut out);
    out
}

fn expiry(clock: &ManualClock) -> Arc<Expiry> {
    let (expiry, ttl) = (Arc::new(Expiry::default()), TtlConfig::new(Duration::from_millis(100)));
    expiry.set_clock(Arc::new(clock.clone()));
    let by_watermark = ttl.with_clock(TtlClock::EventTime);
    let declared = [
        ValueState::<u64>::new("by clock").with_ttl(ttl).descriptor(),
        ValueState::<u64>::new("by watermark").with_ttl(by_watermark).descriptor(),
        ListState::<u64>::new("list").with_ttl(ttl).descriptor(),
        ValueState::<u64>::new("for ever").descriptor(),
    ];
    for descriptor in &declared {
        expiry.declare(StateId::of(&descriptor.name), descriptor);
    }
    expiry
}

const STATES: [&str; 4] = ["by clock", "by watermark", "list", "for ever"];

/// Two values of each state, stamped 0 and 50.
fn filled(store: &mut dyn ByteStore) {
    let mut batch = WriteBatch::new();
    for state in STATES {
        for (number, stamp) in [(1, 0_i64), (2, 50)] {
            let value = [stamp.to_le_bytes(), 7_i64.to_le_bytes()].concat();
            batch.put(&key_of(state, number), &value);
        }
    }
    store.write(&batch).expect("the store takes a batch");
}

fn left(store: &dyn ByteStore) -> Vec<(&'static str, u64)> {
    let there = |state: &str, number: u64| {
        store.get(&key_of(state, number)).expect("the store reads").is_some()
    };
    let all = STATES.into_iter().flat_map(|state| [(state, 1), (state, 2)]);
    all.filter(|(state, number)| there(state, *number)).collect()
}

#[track_caller]
fn check<S: ByteStore>((store, compact): Compacting<'_, S>, views_hold_back: bool) {
    let clock = ManualClock::default();
    let expiry = expiry(&clock);
    store.expire_by(Arc::clone(&expiry));
    filled(store);
    compact(store);
    assert_eq!(left(store).len(), 8, "nothing has expired");

    let view = store.snapshot().expect("the store gives a view");
    clock.set(Timestamp(100));
    expiry.set_watermark(Timestamp(150));
    compact(store);
    let mut seen = 0;
    let visited = view.scan(&[], None, &mut |_, _| {
        seen += 1;
        std::ops::ControlFlow::Continue(())
    });
    visited.expect("the view reads");
    assert_eq!(seen, 8, "a view that is open shows what it held");
    if views_hold_back {
        assert_eq!(expiry.removed(), 0);
    }
    drop(view);

    filled(store);
    compact(store);
    let expected = [("by clock", 2), ("list", 1), ("list", 2), ("for ever", 1), ("for ever", 2)];
    assert_eq!(left(store), expected);
    assert!(expiry.removed() >= 3, "{}", expiry.removed());
}

#[test]
fn a_compaction_of_fjall_leaves_out_what_has_expired() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = FjallByteStore::open(directory.path(), 1 << 20).expect("a store");
    check((&mut store, FjallByteStore::compact), true);
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_compaction_of_rocksdb_leaves_out_what_has_expired() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = super::RocksByteStore::open(directory.path(), 1 << 20).expect("a store");
    check((&mut store, super::RocksByteStore::compact), false);
}
