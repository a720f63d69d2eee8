//! Records of every shape: they read back as they were written, and damaged bytes are errors.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use derive::Record;
use element::{
    CodecError, CompactString, OrderedF64, Record, Schema, Serde, Timestamp, Value, decode_exact,
    encode_to_vec,
};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
struct Everything {
    numbers: (u8, u16, u32, u64, u128, usize),
    signed: (i8, i16, i32, i64, i128, isize),
    floats: [f64; 2],
    ordered: OrderedF64,
    flag: bool,
    letter: char,
    text: String,
    at: Timestamp,
    list: Vec<Option<String>>,
    map: BTreeMap<u32, Vec<u8>>,
    table: HashMap<String, i32>,
    serde: Serde<(u32, String)>,
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq, Record)]
#[record(crate = "element")]
enum Shape {
    Point,
    Line(f32, f32),
    Group { parts: Vec<Shape> },
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        Just(Shape::Point),
        (-9_f32..9.0, -9_f32..9.0).prop_map(|(a, b)| Shape::Line(a, b))
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(|parts| Shape::Group { parts })
    })
}

prop_compose! {
    fn everything()(
        numbers in any::<(u8, u16, u32, u64, u128, usize)>(),
        signed in any::<(i8, i16, i32, i64, i128, isize)>(),
        floats in prop::array::uniform2(-1e9_f64..1e9),
        ordered in any::<f64>().prop_map(OrderedF64::new),
        (flag, letter, text, at) in (any::<bool>(), any::<char>(), ".*", any::<i64>().prop_map(Timestamp)),
        list in prop::collection::vec(prop::option::of(".{0,8}"), 0..5),
        map in prop::collection::btree_map(any::<u32>(), any::<Vec<u8>>(), 0..4),
        table in prop::collection::hash_map(".{0,4}", any::<i32>(), 0..4),
        serde in (any::<u32>(), ".*").prop_map(Serde),
        shape in shapes(),
    ) -> Everything {
        Everything { numbers, signed, floats, ordered, flag, letter, text, at, list, map, table, serde, shape }
    }
}

proptest! {
    #[test]
    fn a_record_reads_back_as_it_was_written_and_never_from_a_part(value in everything()) {
        let bytes = encode_to_vec(&value);
        prop_assert_eq!(&decode_exact::<Everything>(&bytes).unwrap(), &value);
        prop_assert!(value.estimated_bytes() >= size_of::<Everything>());
        for cut in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            prop_assert!(decode_exact::<Everything>(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn a_record_reads_back_through_its_schema_alone(value in everything()) {
        let bytes = encode_to_vec(&value);
        let mut rest = bytes.as_slice();
        let dynamic = Everything::schema().decode_value(&mut rest).unwrap();
        prop_assert!(rest.is_empty());
        prop_assert_eq!(Everything::from_value(dynamic).unwrap(), value);
    }

    #[test]
    fn arbitrary_bytes_decode_or_fail_but_never_panic(bytes in any::<Vec<u8>>()) {
        let _ = decode_exact::<Everything>(&bytes);
        let _ = decode_exact::<Shape>(&bytes);
        let _ = decode_exact::<Schema>(&bytes);
        let _ = Everything::schema().decode_value(&mut bytes.as_slice());
    }

    #[test]
    fn a_flipped_bit_decodes_or_fails_but_never_panics(value in everything(), at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut bytes = encode_to_vec(&value);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        let _ = decode_exact::<Everything>(&bytes);
        if let Ok(dynamic) = Everything::schema().decode_value(&mut bytes.as_slice()) {
            let _ = Everything::from_value(dynamic);
        }
    }
}

#[test]
fn a_schema_is_a_record_itself() {
    let schema = Everything::schema();
    assert_eq!(decode_exact::<Schema>(&encode_to_vec(&schema)).unwrap(), schema);
}

#[test]
fn a_damaged_count_of_empty_values_is_refused_at_once() {
    #[track_caller]
    fn check<T: Record + Debug>() {
        let error = decode_exact::<T>(&[255; 4]).unwrap_err();
        assert!(matches!(error, CodecError::Count { .. }), "{error:?}");
        let error = T::schema().decode_value(&mut [255; 4].as_slice()).unwrap_err();
        assert!(matches!(error, CodecError::Count { .. }), "{error:?}");
    }
    check::<Vec<()>>();
    check::<Vec<[(); 3]>>();
    check::<BTreeMap<(), ()>>();
    check::<HashMap<(), [u8; 0]>>();
    assert_eq!(decode_exact::<Vec<()>>(&encode_to_vec(&vec![(); 60_000])).unwrap().len(), 60_000);
}

#[test]
fn a_damaged_count_reserves_no_more_than_the_input_is_long() {
    // 4 bytes of count and 16 more: room for two values of 8 bytes, and not for 4 billion.
    let mut bytes = vec![255; 4];
    bytes.extend_from_slice(&[0; 16]);
    let error = decode_exact::<Vec<u64>>(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "34359738360 bytes of u64 expected, 16 left");
}

#[test]
fn damaged_bytes_that_nest_without_end_are_refused() {
    let endless = 2_u32.to_le_bytes().into_iter().chain(1_u32.to_le_bytes()).cycle().take(80_000);
    let bytes: Vec<u8> = endless.collect();
    let error = decode_exact::<Shape>(&bytes).unwrap_err();
    assert!(matches!(error, CodecError::Depth { .. }), "{error:?}");
    let error = Shape::schema().decode_value(&mut bytes.as_slice()).unwrap_err();
    assert!(matches!(error, CodecError::Depth { .. }), "{error:?}");
    // The level is left again: a sound value still reads.
    assert_eq!(decode_exact::<Shape>(&encode_to_vec(&Shape::Point)).unwrap(), Shape::Point);
}

#[test]
fn a_size_does_not_depend_on_the_machine() {
    assert_eq!(encode_to_vec(&7_usize), 7_u64.to_le_bytes());
    assert_eq!(encode_to_vec(&-7_isize), (-7_i64).to_le_bytes());
}

#[test]
fn a_value_prints_as_json() {
    #[track_caller]
    fn check<T: Record>(value: &T, json: &str) {
        let bytes = encode_to_vec(value);
        let dynamic = T::schema().decode_value(&mut bytes.as_slice()).unwrap();
        assert_eq!(dynamic.to_json(), json);
    }
    check(&(1_u8, -2_i64, 0.5_f64), "[1,-2,0.5]");
    check(&"tide \"in\"\n\u{1}".to_owned(), r#""tide \"in\"\n\u0001""#);
    check(&(Some('x'), None::<u8>, ()), r#"["x",null,null]"#);
    check(&[f64::NAN, f64::INFINITY, -f64::INFINITY], r#"["NaN","Infinity","-Infinity"]"#);
    check(&BTreeMap::from([("a".to_owned(), true)]), r#"{"a":true}"#);
    check(&BTreeMap::from([(1_u8, Timestamp(5))]), "[[1,5]]");
    check(&Shape::Point, r#""Point""#);
    check(&Shape::Line(1.0, 2.5), r#"{"Line":[1.0,2.5]}"#);
    check(&Shape::Group { parts: vec![Shape::Point] }, r#"{"Group":{"parts":["Point"]}}"#);
    check(&Serde(258_u32), r#""8202""#);
    assert_eq!(Value::Unsigned(u128::MAX).to_json(), u128::MAX.to_string());
}

#[test]
fn sets_queues_shared_text_and_durations_are_records() {
    #[track_caller]
    fn check<T: Record + PartialEq + Debug>(value: T) {
        let bytes = encode_to_vec(&value);
        assert_eq!(decode_exact::<T>(&bytes).unwrap(), value);
        let dynamic = T::schema().decode_value(&mut bytes.as_slice()).unwrap();
        assert_eq!(T::from_value(dynamic).unwrap(), value);
        assert!(value.estimated_bytes() >= size_of::<T>());
    }
    check(BTreeSet::from([3_u8, 1]));
    check(HashSet::<String>::from(["a".to_owned(), "b".to_owned()]));
    check(VecDeque::from([Some(1_u64), None]));
    check(Arc::<str>::from("ebb"));
    check(Box::<str>::from(""));
    check(CompactString::from("ebb"));
    check(CompactString::from("longer than what lies in the value itself"));
    check(Duration::new(3, 999_999_999));
    assert!(decode_exact::<Duration>(&[255; 12]).is_err());
    assert!(decode_exact::<VecDeque<()>>(&[255; 4]).is_err());
    // A list may become a set, and text shared text.
    assert_eq!(<BTreeSet<u8>>::schema(), <Vec<u8>>::schema());
    assert_eq!(<Arc<str>>::schema(), String::schema());
    assert_eq!(CompactString::schema(), String::schema());
    assert!(decode_exact::<CompactString>(&[1, 0, 0, 0, 255]).is_err());
}

/// Many numbers at once are the bytes of each in turn, and a cut is noticed at every length.
#[test]
fn arrays_and_lists_of_numbers_are_those_of_each_in_turn() {
    #[track_caller]
    fn check<T: Record + Clone + PartialEq + std::fmt::Debug, const N: usize>(values: [T; N]) {
        let mut each = Vec::new();
        values.iter().for_each(|value| value.encode(&mut each));
        let array = encode_to_vec(&values);
        assert_eq!(array, each);
        assert_eq!(decode_exact::<[T; N]>(&array).unwrap(), values);
        let list = values.to_vec();
        let bytes = encode_to_vec(&list);
        assert_eq!(bytes[4..], each);
        assert_eq!(decode_exact::<Vec<T>>(&bytes).unwrap(), list);
        for cut in 0..each.len() {
            assert!(decode_exact::<[T; N]>(&each[..cut]).is_err(), "cut at {cut}");
            assert!(decode_exact::<Vec<T>>(&bytes[..4 + cut]).is_err(), "cut at {cut}");
        }
    }
    check::<u8, 0>([]);
    check([1_u8; 100]);
    check([i16::MIN, -1, 0, 1, i16::MAX]);
    check([u64::MAX, 0, 7]);
    check([u128::MAX, 1]);
    check([0.5_f32, -0.0, f32::MAX]);
    check([f64::MIN_POSITIVE, 1e300]);
    check(["a".to_owned(), String::new()]);
    check::<String, 70>(std::array::from_fn(|i| i.to_string()));
    check([[1_u32, 2], [3, 4]]);
    check([[1_u8; 100], [2; 100], [3; 100]]);
    check([[0_u8; 0]; 3]);
}
