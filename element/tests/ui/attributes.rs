//! What the derives do not know is an error at its place.

#[derive(derive::Record)]
#[record(crate = "element")]
struct Misspelt {
    #[record(defualt)]
    field: u8,
}

#[derive(derive::Record)]
#[record(crate = "element")]
struct Borrowed<'a>(&'a str);

#[derive(derive::Record)]
#[record(crate = "element")]
union Either {
    a: u8,
    b: i8,
}

const HIDDEN: isize = 3;

#[derive(Clone, PartialEq, Eq, derive::Key)]
#[key(crate = "element")]
enum Computed {
    A = HIDDEN,
}

fn main() {}
