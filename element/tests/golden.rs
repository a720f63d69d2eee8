//! Golden vectors: the encoding and the hash of keys are the same on every machine, for ever.
//!
//! Routing, state on disk and savepoints rest on them, so a vector that changes here means that
//! existing data cannot be read. There is no way to rewrite them but by hand.

use derive::Key;
use element::{
    Key, MaxParallelism, OrderedF64, SubtaskIndex, Timestamp, encode_to_vec, hash_key_bytes,
    key_bytes,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Clone, PartialEq, Eq, Key)]
#[key(crate = "element")]
struct Route {
    carrier: String,
    origin: String,
    stops: Vec<u16>,
}

#[derive(Clone, PartialEq, Eq, Key)]
#[key(crate = "element")]
#[allow(dead_code)]
enum Kind {
    Plain,
    Numbered(i32),
}

/// Trap tK9: a hash that differs between machines would send a key to the wrong subtask.
#[test]
fn key_bytes_and_hashes_are_the_same_for_ever() {
    #[track_caller]
    fn check<K: Key>(key: K, bytes: &str, hash: u64) {
        let found = key_bytes(&key);
        assert_eq!(
            (hex(&found).as_str(), format!("{:#018x}", hash_key_bytes(&found).0)),
            (bytes, format!("{hash:#018x}"))
        );
    }
    check((), "", 0x880c_2674_d4e1_03b9);
    check(true, "01", 0x5007_1af8_b1db_afed);
    check(7_u8, "07", 0xa550_570c_8a78_ebfc);
    check(-1_i8, "7f", 0x31fb_22d3_ca44_bc96);
    check(258_u16, "0102", 0xf0cd_e1ff_81a5_ab34);
    check(-258_i32, "7ffffefe", 0x9823_0817_b917_1e97);
    check(1_u64 << 40, "0000010000000000", 0x52d6_b56c_db3d_d3f1);
    check(i64::MIN, "0000000000000000", 0xb9f1_9b82_b66a_8fcc);
    check(42_usize, "000000000000002a", 0xa318_58f0_413c_392a);
    check(-42_isize, "7fffffffffffffd6", 0x1c94_8df2_9179_0adf);
    check(1_i128, "80000000000000000000000000000001", 0x014a_17ed_7e1d_def7);
    check('\u{df}', "000000df", 0xe5e1_a7b7_d71d_32cb);
    check(String::new(), "0000", 0xf797_d2d9_3ef3_1a2a);
    check("tide".to_owned(), "746964650000", 0x0a0b_d428_c7b9_e697);
    check("a\0b".to_owned(), "6100ff620000", 0xc728_6d24_c6da_515e);
    check(
        "a fairly long key of more than sixty-four bytes, so that the loop of the hash runs"
            .to_owned(),
        "6120666169726c79206c6f6e67206b6579206f66206d6f7265207468616e2073697874\
         792d666f75722062797465732c20736f207468617420746865206c6f6f70206f662074686520686173682072756e730000",
        0x70d3_697c_8895_f1de,
    );
    check(Some(1_u8), "0101", 0x4627_40ef_4229_7d08);
    check(None::<u8>, "00", 0x244e_c3c2_47e8_0773);
    check(vec![1_u8, 0], "0101010000", 0x78d3_f0f6_f19e_a4d3);
    check([1_u16, 2], "00010002", 0xfaa9_d754_ce91_addd);
    check(("AA".to_owned(), 5_u32), "4141000000000005", 0x2ffb_0dca_e9c4_c724);
    check(Timestamp(1_000), "80000000000003e8", 0x1cce_de21_eb2d_ac40);
    check(OrderedF64::new(1.5), "bff8000000000000", 0x9f6e_ac4e_0154_8d10);
    check(OrderedF64::new(-0.0), "8000000000000000", 0x8eeb_6b0b_58c8_95e7);
    check(OrderedF64::new(f64::NAN), "ffffffffffffffff", 0x4345_5d2f_dbd2_69b2);
    check(
        Route { carrier: "B6".into(), origin: "JFK".into(), stops: vec![1] },
        "423600004a464b000001000100",
        0x16f3_c15a_f131_27ff,
    );
    check(Kind::Numbered(1), "0180000001", 0x0994_32c9_1645_c14f);
}

#[test]
fn a_key_goes_to_the_same_group_and_subtask_for_ever() {
    #[track_caller]
    fn check(key: u64, group: u32, of_three: u32, of_128: u32) {
        let hash = hash_key_bytes(&key_bytes(&key));
        let all = MaxParallelism::DEFAULT;
        let coarse = MaxParallelism::new(128).unwrap();
        assert_eq!(
            (all.group_of(hash).0, all.subtask_of(hash, 3), coarse.group_of(hash).0),
            (group, SubtaskIndex(of_three), of_128)
        );
    }
    check(0, 23_800, 2, 92);
    check(1, 3_980, 0, 15);
    check(2, 14_437, 1, 56);
    check(u64::MAX, 8_610, 0, 33);
}

#[test]
fn record_bytes_are_the_same_for_ever() {
    let record = (7_u16, -2_i32, "ebb".to_owned(), Some(true), vec![1_u8, 2], 1.5_f64);
    assert_eq!(
        hex(&encode_to_vec(&record)),
        "0700feffffff03000000656262010102000000\
         0102000000000000f83f"
    );
}
