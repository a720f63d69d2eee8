//! The rules that cargo does not know.
fn main() {}
