//! Time to live: both clocks, what renews, what is seen, and when it is cleaned up.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use element::{ManualClock, MemoryStore, Timestamp};
use slackwater_state::{
    ListState, MapState, SnapshotReader, TtlClock, TtlConfig, TtlUpdate, TtlVisibility, ValueState,
};
use support::{Kind, Subject, every_kind, set_key};

fn ttl() -> TtlConfig {
    TtlConfig::new(Duration::from_millis(100))
}

fn at_time(kind: Kind) -> (Subject, ManualClock) {
    let clock = ManualClock::default();
    let mut subject = kind.open();
    subject.backend = subject.backend.with_clock(Arc::new(clock.clone()));
    set_key(&mut subject.backend, &1_u64);
    (subject, clock)
}

#[test]
fn a_read_renews_where_reads_renew() {
    for kind in every_kind() {
        let (mut subject, clock) = at_time(kind);
        let value =
            ValueState::<u8>::new("value").with_ttl(ttl().with_update(TtlUpdate::OnReadAndWrite));
        let list =
            ListState::<u8>::new("list").with_ttl(ttl().with_update(TtlUpdate::OnReadAndWrite));
        let map =
            MapState::<u8, u8>::new("map").with_ttl(ttl().with_update(TtlUpdate::OnReadAndWrite));
        let backend = &mut subject.backend;
        value.set(backend, 1).unwrap();
        list.add(backend, 1).unwrap();
        map.put(backend, &1, 1).unwrap();
        for now in [99, 198, 297] {
            clock.set(Timestamp(now));
            assert_eq!(value.get(backend).unwrap(), Some(1));
            assert_eq!(list.get(backend).unwrap(), [1]);
            assert_eq!(map.get(backend, &1).unwrap(), Some(1));
        }
        clock.set(Timestamp(397));
        assert_eq!(value.get(backend).unwrap(), None);
        assert_eq!(list.get(backend).unwrap(), []);
        assert_eq!(map.get(backend, &1).unwrap(), None);
    }
}

#[test]
fn an_expired_value_may_be_seen_once_where_that_is_allowed() {
    let shows = ttl().with_visibility(TtlVisibility::ReturnExpiredIfNotCleanedUp);
    for kind in every_kind() {
        let (mut subject, clock) = at_time(kind);
        let backend = &mut subject.backend;
        let value = ValueState::<u8>::new("value").with_ttl(shows);
        let map = MapState::<u8, u8>::new("map").with_ttl(shows);
        value.set(backend, 1).unwrap();
        map.put(backend, &1, 1).unwrap();
        clock.set(Timestamp(100));
        assert_eq!(value.get(backend).unwrap(), Some(1));
        assert_eq!(value.get(backend).unwrap(), None, "the first access cleaned it up");
        assert_eq!(map.get(backend, &1).unwrap(), Some(1));
        assert_eq!(map.get(backend, &1).unwrap(), None);
    }
}

#[test]
fn elements_and_entries_expire_each_by_its_own_time() {
    for kind in every_kind() {
        let (mut subject, clock) = at_time(kind);
        let backend = &mut subject.backend;
        let list = ListState::<u8>::new("list").with_ttl(ttl());
        let map = MapState::<u8, u8>::new("map").with_ttl(ttl());
        for (now, element) in [(0, 1), (60, 2)] {
            clock.set(Timestamp(now));
            list.add(backend, element).unwrap();
            map.put(backend, &element, element).unwrap();
        }
        clock.set(Timestamp(100));
        assert_eq!(list.get(backend).unwrap(), [2]);
        assert_eq!(map.entries(backend).unwrap(), [(2, 2)]);
        clock.set(Timestamp(160));
        assert_eq!(list.get(backend).unwrap(), []);
        assert!(map.is_empty(backend).unwrap());
    }
}

#[test]
fn event_time_is_the_watermarks() {
    for kind in every_kind() {
        let (mut subject, clock) = at_time(kind);
        let backend = &mut subject.backend;
        let value = ValueState::<u8>::new("value").with_ttl(ttl().with_clock(TtlClock::EventTime));
        backend.set_watermark(Timestamp(1_000));
        value.set(backend, 1).unwrap();
        clock.set(Timestamp(1_000_000));
        backend.set_watermark(Timestamp(1_099));
        assert_eq!(value.get(backend).unwrap(), Some(1));
        backend.set_watermark(Timestamp(1_100));
        assert_eq!(value.get(backend).unwrap(), None);
    }
}

#[test]
fn an_update_of_an_expired_value_starts_from_nothing() {
    for kind in every_kind() {
        let (mut subject, clock) = at_time(kind);
        let backend = &mut subject.backend;
        let value = ValueState::<u8>::new("value").with_ttl(ttl());
        let map = MapState::<u8, u8>::new("map").with_ttl(ttl());
        let count = |held: &mut Option<u8>| *held.insert(held.unwrap_or(0) + 1);
        for (now, expected) in [(0, 1), (99, 2), (198, 3), (298, 1)] {
            clock.set(Timestamp(now));
            assert_eq!(value.update(backend, count).unwrap(), expected);
            assert_eq!(map.update(backend, &1, count).unwrap(), expected);
        }
    }
}

#[test]
fn what_has_expired_is_left_out_of_a_snapshot() {
    for kind in every_kind() {
        let (mut subject, clock) = at_time(kind);
        let value = ValueState::<u64>::new("value").with_ttl(ttl());
        for key in 0..10_u64 {
            clock.set(Timestamp(key as i64 * 20));
            set_key(&mut subject.backend, &key);
            value.set(&mut subject.backend, key).unwrap();
        }
        let files = MemoryStore::new();
        let pending = subject.backend.snapshot(&subject.timers).unwrap();
        let handle = pending.write(&files, "live").unwrap();
        let reader = SnapshotReader::open(&files, &handle).unwrap();
        let mut left = 0;
        reader
            .for_each(|_| {
                left += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!((left, reader.entries()), (5, 5), "{kind:?}: 100 to 180 are alive at 180");
    }
}

#[test]
fn a_time_to_live_is_in_the_snapshot_and_survives_a_restore() {
    for kind in every_kind() {
        let (mut subject, clock) = at_time(kind);
        let value = ValueState::<u64>::new("value").with_ttl(ttl());
        value.set(&mut subject.backend, 1).unwrap();
        let mut moved = subject.moved_to(kind);
        moved.backend = moved.backend.with_clock(Arc::new(clock.clone()));
        set_key(&mut moved.backend, &1_u64);
        clock.set(Timestamp(99));
        assert_eq!(value.get(&mut moved.backend).unwrap(), Some(1));
        clock.set(Timestamp(100));
        assert_eq!(value.get(&mut moved.backend).unwrap(), None);
    }
}

/// What has expired leaves memory beside accesses to other keys, a few places at each.
#[test]
fn expired_values_of_other_keys_leave_memory_beside_other_accesses() {
    const KEYS: u64 = 2_000;
    let (mut subject, clock) = at_time(Kind(support::Where::Heap, 0));
    let backend = &mut subject.backend;
    let value = ValueState::<u64>::new("value").with_ttl(ttl());
    let map = MapState::<u8, u64>::new("map").with_ttl(ttl());
    for key in 0..KEYS {
        set_key(backend, &key);
        value.set(backend, key).unwrap();
        map.put(backend, &1, key).unwrap();
        map.put(backend, &2, key).unwrap();
    }
    assert_eq!(backend.counters().cleaned_entries, 0);
    clock.set(Timestamp(100));
    set_key(backend, &KEYS);
    for _ in 0..KEYS {
        value.set(backend, 1).unwrap();
        map.put(backend, &1, 1).unwrap();
    }
    assert_eq!(backend.counters().cleaned_entries, 3 * KEYS, "all of them, and nothing else");
    assert_eq!(value.get(backend).unwrap(), Some(1));
    assert_eq!(map.entries(backend).unwrap(), [(1, 1)]);
    let other = backend.snapshot(&subject.timers);
    for _ in 0..KEYS {
        value.set(backend, 2).unwrap();
    }
    drop(other);
    assert_eq!(value.get(backend).unwrap(), Some(2), "a shard that a snapshot reads is left alone");
}
