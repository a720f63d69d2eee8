//! Nor can a type that holds one.

#[derive(Clone, PartialEq, derive::Key)]
#[key(crate = "element")]
struct Reading {
    celsius: f64,
}

impl Eq for Reading {}

fn main() {}
