//! State whose type has changed since it was written: read by field name, or refused by name.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use derive::Record;
use slackwater_state::{
    ListState, MapState, NonRestored, SnapshotError, StateError, ValueState, check_restorable,
};
use support::{Subject, every_kind, set_key};

mod old {
    use super::Record;

    #[derive(Clone, Debug, PartialEq, Record)]
    #[record(crate = "element")]
    pub(super) struct Account {
        pub(super) id: u32,
        pub(super) owner: String,
        pub(super) closed: bool,
    }
}

/// Reordered, widened, one field removed, one become optional, one added.
#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
struct Account {
    owner: Option<String>,
    id: u64,
    #[record(default)]
    visits: u32,
}

fn written(kind: support::Kind) -> Subject {
    let mut subject = kind.open();
    let account = |id: u32| old::Account { id, owner: format!("owner {id}"), closed: false };
    for id in 0..300_u32 {
        set_key(&mut subject.backend, &id);
        ValueState::new("account").set(&mut subject.backend, account(id)).unwrap();
        ListState::new("list").add(&mut subject.backend, account(id)).unwrap();
        MapState::new("map").put(&mut subject.backend, &id, account(id)).unwrap();
        ValueState::<u64>::new("untouched").set(&mut subject.backend, 1).unwrap();
    }
    subject
}

#[test]
fn fields_added_removed_reordered_and_widened_restore_by_name() {
    for kind in every_kind() {
        let mut subject = written(support::Kind(support::Where::Heap, 0)).moved_to(kind);
        let backend = &mut subject.backend;
        for id in 0..300_u32 {
            set_key(backend, &id);
            let expected = Account { owner: Some(format!("owner {id}")), id: id.into(), visits: 0 };
            let value = ValueState::<Account>::new("account");
            assert_eq!(value.get(backend).unwrap().as_ref(), Some(&expected));
            let list = ListState::<Account>::new("list");
            assert_eq!(list.get(backend).unwrap(), std::slice::from_ref(&expected));
            let map = MapState::<u32, Account>::new("map");
            assert_eq!(map.get(backend, &id).unwrap(), Some(expected));
            assert_eq!(ValueState::<u64>::new("untouched").get(backend).unwrap(), Some(1));
        }
    }
}

#[test]
fn any_other_change_is_an_error_that_names_state_field_old_and_new_type() {
    #[derive(Clone, Debug, PartialEq, Record)]
    #[record(crate = "element")]
    struct Narrowed {
        id: u16,
        owner: String,
        closed: bool,
    }
    for kind in every_kind() {
        let mut subject = written(kind).moved_to(kind);
        let error = ValueState::<Narrowed>::new("account").bind(&mut subject.backend).unwrap_err();
        let StateError::Schema { state, source } = &error else { panic!("{error}") };
        assert_eq!(state, "account");
        assert_eq!(source.to_string(), "id: cannot read u32 as u16");
    }
}

#[test]
fn a_state_of_another_kind_is_refused() {
    let kind = support::Kind(support::Where::Heap, 0);
    let mut subject = written(kind).moved_to(kind);
    let error = MapState::<u32, u64>::new("untouched").bind(&mut subject.backend).unwrap_err();
    assert!(matches!(error, StateError::KindChanged { .. }), "{error}");
}

#[test]
fn a_restored_state_that_is_refused_stays_refused_and_is_not_lost() {
    let kind = support::Kind(support::Where::Heap, 0);
    let mut subject = written(kind).moved_to(kind);
    for _ in 0..2 {
        assert!(ValueState::<bool>::new("untouched").bind(&mut subject.backend).is_err());
    }
    let mut again = subject.moved_to(kind);
    set_key(&mut again.backend, &1_u32);
    assert_eq!(ValueState::<u64>::new("untouched").get(&mut again.backend).unwrap(), Some(1));
}

#[test]
fn a_state_removed_from_the_program_is_an_error_unless_it_may_be_left_out() {
    let mut subject = written(support::Kind(support::Where::Heap, 0));
    let pending = subject.backend.snapshot(&subject.timers).unwrap();
    let declared = [
        ValueState::<Account>::new("account").descriptor(),
        ListState::<Account>::new("list").descriptor(),
        MapState::<u32, Account>::new("map").descriptor(),
    ];
    let error = check_restorable(pending.header(), &declared, NonRestored::Refuse).unwrap_err();
    let StateError::Snapshot(SnapshotError::NotRestored { state, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!(state, "untouched");
    check_restorable(pending.header(), &declared, NonRestored::LeaveOut).unwrap();
}

#[test]
fn one_name_for_two_states_is_an_error() {
    for kind in every_kind() {
        let mut subject = kind.open();
        let backend = &mut subject.backend;
        ValueState::<u64>::new("state").bind(backend).unwrap();
        ValueState::<u64>::new("state").bind(backend).unwrap();
        assert!(ValueState::<u32>::new("state").bind(backend).is_err());
        assert!(ListState::<u64>::new("state").bind(backend).is_err());
        assert!(MapState::<u64, u64>::new("state").bind(backend).is_err());
    }
}

#[test]
fn state_without_a_key_is_an_error_that_names_it() {
    for kind in every_kind() {
        let mut subject = kind.open();
        let error = ValueState::<u64>::new("count").get(&mut subject.backend).unwrap_err();
        assert!(matches!(&error, StateError::NoKey { state } if state == "count"), "{error}");
        assert!(MapState::<u64, u64>::new("map").put(&mut subject.backend, &1, 1).is_err());
    }
}
