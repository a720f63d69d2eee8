//! The derives, seen from a program that uses them.

use derive::{Key, Record};
use element::{
    OrderedF64, Record as _, Schema, Value, decode_exact, decode_key_exact, encode_to_vec,
    key_bytes,
};

#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
struct Named {
    id: u32,
    name: String,
    #[record(default)]
    r#type: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
struct Tuple(i16, f64);

#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
struct Nothing;

#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
struct Pair<A, B>
where
    A: Clone,
{
    left: A,
    right: Vec<B>,
}

#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
enum Tree {
    Leaf,
    Value(u8),
    Node { left: Box<Tree>, right: Box<Tree> },
}

#[test]
fn a_derived_record_reads_back_as_it_was_written() {
    #[track_caller]
    fn check<T: element::Record + PartialEq + std::fmt::Debug>(value: T) {
        let bytes = encode_to_vec(&value);
        assert_eq!(decode_exact::<T>(&bytes).unwrap(), value);
        for cut in 0..bytes.len() {
            assert!(decode_exact::<T>(&bytes[..cut]).is_err());
        }
    }
    check(Named { id: 7, name: "slack".into(), r#type: Some(1) });
    check(Tuple(-3, 1.5));
    check(Nothing);
    check(Pair { left: 1_u8, right: vec![true, false] });
    check(Tree::Node { left: Box::new(Tree::Leaf), right: Box::new(Tree::Value(9)) });
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
#[key(crate = "element")]
struct Route {
    carrier: String,
    leg: (u16, Option<i8>),
    weight: OrderedF64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
#[key(crate = "element")]
enum Ranked {
    Last = 7,
    First = -2,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
#[key(crate = "element")]
enum Either<A, B> {
    Left(A),
    Right { value: B },
}

#[test]
fn a_derived_key_reads_back_and_sorts_as_the_type_does() {
    #[track_caller]
    fn check<K: element::Key + Ord + std::fmt::Debug>(mut keys: Vec<K>) {
        for key in &keys {
            assert_eq!(&decode_key_exact::<K>(&key_bytes(key)).unwrap(), key);
        }
        let mut by_bytes = keys.clone();
        by_bytes.sort_by_key(key_bytes);
        keys.sort();
        assert_eq!(by_bytes, keys);
    }
    let route = |carrier: &str, leg, weight| Route {
        carrier: carrier.into(),
        leg,
        weight: OrderedF64::new(weight),
    };
    check(vec![
        route("b", (1, None), 0.5),
        route("a\0", (1, Some(-1)), f64::NAN),
        route("a", (9, Some(1)), -0.5),
        route("a", (9, None), f64::INFINITY),
        route("a", (9, None), f64::NAN),
    ]);
    check(vec![Ranked::Last, Ranked::First]);
    assert_eq!(key_bytes(&Ranked::First), [0]);
    check(vec![
        Either::Right { value: 1_u8 },
        Either::Left("x".to_owned()),
        Either::Left(String::new()),
    ]);
}

#[test]
fn a_key_of_one_field_has_the_number_and_the_word_of_the_field() {
    use element::Key as _;

    #[derive(Clone, PartialEq, Eq, Key)]
    #[key(crate = "element")]
    struct Of<K: element::Key>(K);

    assert_eq!(Of(7_u32).as_number(), Some(7));
    assert_eq!(Of(Box::new(Of('a'))).as_number(), Some(97));
    assert_eq!(Of("a".to_owned()).as_number(), None);
    assert_eq!(Ranked::First.as_number(), None, "an enum has none");
    assert_eq!(Of(Box::new(Of(-1_i64))).as_word(), Some([127, 255, 255, 255, 255, 255, 255, 255]));
    assert_eq!((Of(7_u32).as_word(), Ranked::First.as_word()), (None, None));
}

#[test]
fn a_derived_schema_names_fields_types_and_defaults() {
    let Schema::Struct { name, fields } = Named::schema() else { panic!("a struct") };
    assert_eq!(name, "Named");
    let fields: Vec<_> =
        fields.iter().map(|f| (f.name.as_str(), f.schema.to_string(), f.has_default)).collect();
    assert_eq!(
        fields,
        [
            ("id", "u32".to_owned(), false),
            ("name", "String".to_owned(), false),
            ("type", "Option<u8>".to_owned(), true)
        ]
    );
    let Schema::Enum { variants, .. } = Tree::schema() else { panic!("an enum") };
    assert_eq!(variants[2].fields[0].schema, Schema::Recursive("Tree".into()));
}

#[test]
fn an_old_value_is_read_by_field_name_with_defaults() {
    let old = |fields: Vec<(&str, Value)>| Value::Struct {
        name: "Named".into(),
        fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    };
    let text = Value::String("water".into());
    let value = old(vec![("name", text), ("gone", Value::Unit), ("id", Value::Unsigned(3))]);
    assert_eq!(
        Named::from_value(value).unwrap(),
        Named { id: 3, name: "water".into(), r#type: None }
    );
    let error = Named::from_value(old(vec![("id", Value::Unsigned(3))])).unwrap_err();
    assert_eq!(error.to_string(), "name: cannot read a missing field as String");
    let error = Named::from_value(old(vec![("id", Value::Bool(true))])).unwrap_err();
    assert_eq!(error.to_string(), "id: cannot read bool as u32");
}

#[test]
fn the_estimate_counts_the_heap_behind_each_field() {
    let named = Named { id: 1, name: String::with_capacity(100), r#type: None };
    assert_eq!(named.estimated_bytes(), size_of::<Named>() + 100);
    assert!(
        Tree::Node { left: Box::new(Tree::Leaf), right: Box::new(Tree::Leaf) }.estimated_bytes()
            >= 3 * size_of::<Tree>()
    );
}
