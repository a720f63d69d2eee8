//! Types that have changed since their data was written.
//!
//! Each row writes with an old type, asks whether the new one can read it, and reads it.

use derive::Record;
use element::{Record, Schema, encode_to_vec};

mod old {
    use super::Record;
    #[derive(Debug, PartialEq, Record)]
    #[record(crate = "element")]
    pub(super) struct Account {
        pub id: u32,
        pub name: String,
        pub gone: bool,
        pub history: Vec<Entry>,
        pub state: State,
    }
    #[derive(Debug, PartialEq, Record)]
    #[record(crate = "element")]
    pub(super) struct Entry {
        pub amount: i16,
        pub undo: Option<Box<Entry>>,
    }
    #[derive(Debug, PartialEq, Record)]
    #[record(crate = "element")]
    pub(super) enum State {
        Open,
        Closed { at: u64 },
    }
}

mod new {
    use super::Record;
    #[derive(Debug, PartialEq, Record)]
    #[record(crate = "element")]
    pub(super) struct Account {
        pub name: Option<String>,
        pub id: i64,
        #[record(default)]
        pub limit: Option<u32>,
        pub state: State,
        pub history: Vec<Entry>,
    }
    #[derive(Debug, PartialEq, Record)]
    #[record(crate = "element")]
    pub(super) struct Entry {
        #[record(default)]
        pub note: String,
        pub undo: Option<Box<Entry>>,
        pub amount: i32,
    }
    #[derive(Debug, PartialEq, Record)]
    #[record(crate = "element")]
    pub(super) enum State {
        Suspended,
        Closed { at: u128 },
        Open,
    }
}

#[test]
fn a_type_reads_what_it_wrote_before_it_changed() {
    let inner = old::Entry { amount: 5, undo: None };
    let entry = old::Entry { amount: -5, undo: Some(Box::new(inner)) };
    let written = old::Account {
        id: 9,
        name: "ebb".into(),
        gone: true,
        history: vec![entry],
        state: old::State::Closed { at: 3 },
    };
    let (old_schema, new_schema) = (old::Account::schema(), new::Account::schema());
    new_schema.check_readable(&old_schema).unwrap();
    let bytes = encode_to_vec(&written);
    let value = old_schema.decode_value(&mut bytes.as_slice()).unwrap();
    let inner = new::Entry { note: String::new(), undo: None, amount: 5 };
    let entry = new::Entry { note: String::new(), undo: Some(Box::new(inner)), amount: -5 };
    assert_eq!(
        new::Account::from_value(value).unwrap(),
        new::Account {
            name: Some("ebb".into()),
            id: 9,
            limit: None,
            state: new::State::Closed { at: 3 },
            history: vec![entry],
        }
    );
}

#[test]
fn a_change_that_loses_data_names_path_old_and_new() {
    let error = old::Account::schema().check_readable(&new::Account::schema()).unwrap_err();
    assert_eq!(error.to_string(), "id: cannot read i64 as u32");
    let error = old::Entry::schema().check_readable(&new::Entry::schema()).unwrap_err();
    assert_eq!(error.to_string(), "amount: cannot read i32 as i16");
    let error = old::State::schema().check_readable(&new::State::schema()).unwrap_err();
    assert_eq!(error.to_string(), "Suspended: cannot read variant `Suspended` as no variant");
}

#[test]
fn only_changes_that_keep_every_value_are_readable() {
    #[track_caller]
    fn check<New: Record, Old: Record>(expected: Result<(), &str>) {
        let found = New::schema().check_readable(&Old::schema()).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }
    check::<u64, u8>(Ok(()));
    check::<i16, u8>(Ok(()));
    check::<i8, u8>(Err("cannot read u8 as i8"));
    check::<u16, i8>(Err("cannot read i8 as u16"));
    check::<u8, u16>(Err("cannot read u16 as u8"));
    check::<f64, f32>(Ok(()));
    check::<f32, f64>(Err("cannot read f64 as f32"));
    check::<f64, i8>(Err("cannot read i8 as f64"));
    check::<Option<u8>, u8>(Ok(()));
    check::<Option<u16>, Option<u8>>(Ok(()));
    check::<u8, Option<u8>>(Err("cannot read Option<u8> as u8"));
    check::<Box<u8>, u8>(Ok(()));
    check::<Vec<u16>, Vec<u8>>(Ok(()));
    check::<Vec<u8>, Vec<u16>>(Err("[]: cannot read u16 as u8"));
    check::<Vec<u8>, [u8; 4]>(Err("cannot read [u8; 4] as Vec<u8>"));
    check::<[u16; 4], [u8; 4]>(Ok(()));
    check::<(u8, String), (u8, u8)>(Err("1: cannot read u8 as String"));
    check::<(u8,), (u8, u8)>(Err("cannot read (u8, u8) as (u8)"));
    check::<std::collections::HashMap<u16, String>, std::collections::BTreeMap<u8, String>>(Ok(()));
    check::<(), ()>(Ok(()));
    check::<element::Timestamp, i64>(Err("cannot read i64 as Timestamp"));
}

mod a {
    use super::Record;
    #[derive(Debug, PartialEq, Record)]
    #[record(crate = "element")]
    pub(super) struct Node {
        pub value: u8,
        pub other: Option<Box<super::b::Node>>,
    }
}

mod b {
    use super::Record;
    #[derive(Debug, PartialEq, Record)]
    #[record(crate = "element")]
    pub(super) struct Node {
        pub text: String,
        pub mine: Option<Box<Node>>,
        pub back: Option<Box<super::a::Node>>,
    }
}

#[test]
fn types_that_share_a_name_and_hold_each_other_are_told_apart() {
    let innermost = a::Node { value: 3, other: None };
    let mine = b::Node { text: "mine".into(), mine: None, back: Some(Box::new(innermost)) };
    let outer = b::Node { text: "outer".into(), mine: Some(Box::new(mine)), back: None };
    let value = a::Node { value: 1, other: Some(Box::new(outer)) };
    let schema = a::Node::schema();
    let bytes = encode_to_vec(&value);
    let mut rest = bytes.as_slice();
    let dynamic = schema.decode_value(&mut rest).unwrap();
    assert!(rest.is_empty());
    assert_eq!(a::Node::from_value(dynamic).unwrap(), value);
    schema.check_readable(&schema).unwrap();
    assert!(schema.check_readable(&b::Node::schema()).is_err());
}

#[test]
fn a_schema_that_names_a_type_it_does_not_hold_is_an_error() {
    let schema = Schema::List(Box::new(Schema::Recursive("Gone".into())));
    let error = schema.decode_value(&mut [1, 0, 0, 0, 0].as_slice()).unwrap_err();
    assert_eq!(error.to_string(), "schema names `Gone` outside of it");
    assert!(schema.check_readable(&schema).is_err());
}
