//! The mistakes that people make first do not compile, and say what to do instead.
//!
//! The expected messages lie beside the programs in `compile_fail`.

/// A6, D19, D20: a float as a key, a borrowed local, a type that is no record, keys of different
/// types, windows without keys, a cache on a keyed view, and their kin.
#[test]
fn first_mistakes_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
