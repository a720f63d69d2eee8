//! Programs that must not compile, and what their authors are told.
//!
//! The expected messages lie beside the programs in `tests/ui`.

/// D20: the message for a float key names the wrapper that can be one.
#[test]
fn what_cannot_be_a_key_or_a_record_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
