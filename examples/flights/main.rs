//! Placeholder while the path is built.
fn main() {}
