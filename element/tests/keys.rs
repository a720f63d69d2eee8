//! Keys: one encoding each. Equal if and only if the bytes are equal, and ordered as the bytes are.
//!
//! Holds the properties that routing, sorting and the order of state on disk rest on.

use std::collections::BTreeMap;
use std::sync::Arc;

use derive::Key;
use element::{
    Key, OrderedF32, OrderedF64, Timestamp, decode_key_exact, hash_key_bytes, hash_key_word,
    key_bytes,
};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
#[key(crate = "element")]
struct Wide {
    text: String,
    number: i64,
    pair: (Option<u16>, bool),
    bytes: Vec<u8>,
    float: OrderedF64,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
#[key(crate = "element")]
enum Kind {
    Plain,
    Text(String),
    Many { of: Vec<Kind>, at: Box<u8> },
}

fn kinds() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![Just(Kind::Plain), "[\0ab]{0,3}".prop_map(Kind::Text)];
    leaf.prop_recursive(3, 8, 3, |inner| {
        (prop::collection::vec(inner, 0..3), 0_u8..3)
            .prop_map(|(of, at)| Kind::Many { of, at: Box::new(at) })
    })
}

prop_compose! {
    fn wides()(
        text in "[\0\u{1}a\u{ff}]{0,3}",
        number in prop_oneof![-2_i64..2, any::<i64>()],
        pair in (prop::option::of(0_u16..3), any::<bool>()),
        bytes in prop::collection::vec(prop_oneof![Just(0_u8), Just(255), any::<u8>()], 0..3),
        float in floats().prop_map(OrderedF64::new),
        kind in kinds(),
    ) -> Wide {
        Wide { text, number, pair, bytes, float, kind }
    }
}

fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        prop::sample::select(vec![0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, 5e-324, -5e-324])
    ]
}

/// All that is promised of two keys.
#[track_caller]
fn check_pair<K: Key + Ord + std::fmt::Debug>(a: &K, b: &K) {
    let (left, right) = (key_bytes(a), key_bytes(b));
    assert_eq!(left.cmp(&right), a.cmp(b), "{a:?} {b:?}");
    assert_eq!(left == right, a == b, "{a:?} {b:?}");
    assert!(left == right || !right.starts_with(&left), "{a:?} is a prefix of {b:?}");
    assert_eq!(&decode_key_exact::<K>(&left).expect("encoded above"), a);
    if let (Some(left), Some(right)) = (a.as_number(), b.as_number()) {
        assert_eq!(left == right, a == b, "{a:?} {b:?}");
    }
    if let Some(word) = a.as_word() {
        assert_eq!(word[..], key_bytes(a)[..], "{a:?}");
        assert_eq!(hash_key_word(word), hash_key_bytes(&word));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Also trap tS15: one value has one encoding.
    #[test]
    fn key_bytes_are_equal_and_ordered_exactly_as_the_keys_are(a in wides(), b in wides()) {
        check_pair(&a, &b);
        check_pair(&a, &a.clone());
        check_pair(&a.kind, &b.kind);
    }

    #[test]
    fn integer_keys_sort_by_value(a in any::<i128>(), b in any::<i128>(), c in any::<i8>(), d in any::<i8>()) {
        check_pair(&a, &b);
        check_pair(&c, &d);
        check_pair(&(a as u64), &(b as u64));
        check_pair(&(a as i32), &(b as i32));
        check_pair(&(a as u32), &(b as u32));
        check_pair(&(a as isize), &(b as isize));
        check_pair(&[c, d], &[d, c]);
        check_pair(&Timestamp(a as i64), &Timestamp(b as i64));
    }

    #[test]
    fn text_keys_sort_by_value_and_end(a in "[\0-\u{2}a\u{10ffff}]{0,4}", b in "[\0-\u{2}a\u{10ffff}]{0,4}") {
        check_pair(&a, &b);
        check_pair(&(a.clone(), b.clone()), &(b.clone(), a.clone()));
        check_pair(&Arc::<str>::from(a.as_str()), &Arc::<str>::from(b.as_str()));
        check_pair(&Box::<str>::from(a.as_str()), &Box::<str>::from(b.as_str()));
        check_pair(&vec![a.clone(), b.clone()], &vec![a, b, String::new()]);
    }

    /// D20: one NaN, after +inf, and one zero.
    #[test]
    fn float_keys_have_one_nan_and_one_zero(a in floats(), b in floats()) {
        check_pair(&OrderedF64::new(a), &OrderedF64::new(b));
        check_pair(&OrderedF32::new(a as f32), &OrderedF32::new(b as f32));
        let plain = a.partial_cmp(&b);
        if let Some(order) = plain {
            prop_assert_eq!(OrderedF64::new(a).cmp(&OrderedF64::new(b)), order);
        }
    }

    /// What decodes is canonical: it encodes to the bytes it came from.
    #[test]
    fn bytes_that_decode_as_a_key_are_its_bytes(bytes in any::<Vec<u8>>()) {
        #[track_caller]
        fn check<K: Key>(bytes: &[u8]) {
            let mut rest = bytes;
            if let Ok(key) = K::decode_key(&mut rest) {
                assert_eq!(key_bytes(&key), bytes[..bytes.len() - rest.len()]);
            }
        }
        check::<Wide>(&bytes);
        check::<Kind>(&bytes);
        check::<OrderedF64>(&bytes);
        check::<(bool, char, Option<String>)>(&bytes);
        check::<Vec<Vec<u8>>>(&bytes);
    }
}

/// Text is looked through by the word, and words may overlap: each length and each place of a zero counts.
#[test]
fn a_zero_at_any_place_of_a_text_key_is_escaped() {
    for len in 0..40 {
        for zero in 0..=len {
            let mut text = "\u{1}\u{7f}\u{80}".chars().cycle().take(len).collect::<Vec<char>>();
            let zeros = usize::from(zero < len);
            text.iter_mut().skip(zero).take(1).for_each(|letter| *letter = '\0');
            let text = text.into_iter().collect::<String>();
            let bytes = key_bytes(&text);
            assert_eq!(bytes.len(), text.len() + zeros + 2, "{text:?}");
            assert_eq!(decode_key_exact::<String>(&bytes).unwrap(), text);
        }
    }
}

#[test]
fn every_nan_is_one_key_after_infinity_and_both_zeros_are_one() {
    let nans =
        [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), f64::from_bits(u64::MAX)];
    let bytes: Vec<_> = nans.iter().map(|nan| key_bytes(&OrderedF64::new(*nan))).collect();
    assert!(bytes.iter().all(|other| *other == bytes[0]));
    assert!(bytes[0] > key_bytes(&OrderedF64::new(f64::INFINITY)));
    assert_eq!(key_bytes(&OrderedF64::new(0.0)), key_bytes(&OrderedF64::new(-0.0)));
}

#[test]
fn damaged_nested_keys_do_not_use_up_the_stack() {
    // Each level of `Many` is its rank and one element's mark.
    let bytes: Vec<u8> = [2, 1].into_iter().cycle().take(100_000).collect();
    assert!(decode_key_exact::<Kind>(&bytes).is_err());
}

/// Trap tK9: the hash is of the canonical bytes alone, so equal keys hash alike whatever holds them.
#[test]
fn equal_keys_of_different_types_hash_alike() {
    let hash = |bytes: Vec<u8>| hash_key_bytes(&bytes);
    let text = hash(key_bytes(&"tide".to_owned()));
    assert_eq!(text, hash(key_bytes(&Arc::<str>::from("tide"))));
    assert_eq!(text, hash(key_bytes(&Box::<str>::from("tide"))));
    assert_eq!(hash(key_bytes(&7_usize)), hash(key_bytes(&7_u64)));
    assert_eq!(hash(key_bytes(&-7_isize)), hash(key_bytes(&-7_i64)));
}

/// Case O14 (odd keys): all NaNs are one group after infinity, both zeros are one, nothing is lost.
#[test]
fn odd_floats_group_and_sort_as_the_case_expects() {
    let read = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let input = read(include_str!("cases/14-odd-keys/input.json"));
    let expected = read(include_str!("cases/14-odd-keys/expected.json"));
    let mut sums = BTreeMap::<Vec<u8>, u64>::new();
    for row in input.as_array().unwrap() {
        let bits = u64::from_str_radix(row[0].as_str().unwrap(), 16).unwrap();
        let key = OrderedF64::new(f64::from_bits(bits));
        *sums.entry(key_bytes(&key)).or_default() += row[1].as_u64().unwrap();
    }
    let found: Vec<(f64, u64)> = sums
        .into_iter()
        .map(|(bytes, sum)| (decode_key_exact::<OrderedF64>(&bytes).unwrap().get(), sum))
        .collect();
    let rows = expected["preferred"].as_array().unwrap();
    assert_eq!(found.len(), rows.len());
    for ((key, sum), row) in found.into_iter().zip(rows) {
        let wanted: f64 = row[0].as_str().unwrap().parse().unwrap();
        assert_eq!(OrderedF64::new(key), OrderedF64::new(wanted));
        assert_eq!(sum, row[1].as_u64().unwrap());
    }
}
