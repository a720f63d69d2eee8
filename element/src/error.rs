//! What goes wrong while bytes become values.

use std::string::FromUtf8Error;

/// Why bytes could not be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes end before the value does.
    #[error("{needed} bytes of {what} expected, {left} left")]
    Short {
        /// What was being read.
        what: &'static str,
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// Bytes remain behind a value that should have used them all.
    #[error("{left} bytes left behind {what}")]
    Trailing {
        /// What was being read.
        what: &'static str,
        /// Bytes that remain.
        left: usize,
    },
    /// A tag or flag byte that no variant has.
    #[error("{found} is no {what}")]
    Tag {
        /// The type whose variant was looked for.
        what: &'static str,
        /// The tag found.
        found: u64,
    },
    /// Text that is not UTF-8.
    #[error("text is not utf-8")]
    Utf8(#[from] FromUtf8Error),
    /// A value nests too deep to be read.
    #[error("a value nests deeper than {limit}")]
    Depth {
        /// How deep values may nest.
        limit: u32,
    },
    /// A list holds too many values that take no bytes.
    #[error("more than {limit} values of no bytes")]
    Count {
        /// How many there may be.
        limit: usize,
    },
    /// A schema names a type that it does not hold.
    #[error("schema names `{name}` outside of it")]
    Unknown {
        /// The type's name.
        name: String,
    },
    /// A value that only serde knows.
    #[error("serde value: {0}")]
    Serde(String),
}

/// Why a value written with one schema cannot be read with another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}cannot read {old} as {new}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
pub struct SchemaError {
    /// The field, from the outermost type inwards, separated by dots; empty for the whole value.
    pub path: String,
    /// The type as written.
    pub old: String,
    /// The type as the program has it.
    pub new: String,
}

impl SchemaError {
    /// Puts `outer` in front of the path, as the error travels outwards.
    #[must_use]
    pub fn inside(mut self, outer: &str) -> Self {
        self.path =
            if self.path.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.path) };
        self
    }
}
