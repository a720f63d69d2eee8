//! [`Schema`]: what encoded bytes mean, by field names and types.
//!
//! Snapshots carry it in their header, so that a state can be listed, dumped, and read by a program
//! whose types have changed since.

use std::cell::RefCell;
use std::fmt;

use crate::{Record, scope};

/// The type of a [`Record`], as snapshots record it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schema {
    /// `()`.
    Unit,
    /// `bool`, one byte.
    Bool,
    /// An integer of `bytes` bytes, little-endian.
    Int {
        /// Width in bytes: 1, 2, 4, 8 or 16.
        bytes: u8,
        /// Whether it has a sign.
        signed: bool,
    },
    /// A float of `bytes` bytes, little-endian.
    Float {
        /// Width in bytes: 4 or 8.
        bytes: u8,
    },
    /// A `char`, as a 4-byte number.
    Char,
    /// UTF-8 text behind a 4-byte length.
    String,
    /// A [`crate::Timestamp`], as an 8-byte signed number.
    Timestamp,
    /// A tag byte, then the value if there is one.
    Option(Box<Schema>),
    /// A 4-byte count, then the values.
    List(Box<Schema>),
    /// A 4-byte count, then pairs.
    Map(Box<Schema>, Box<Schema>),
    /// A fixed number of values.
    Array(Box<Schema>, u32),
    /// Values one behind the other.
    Tuple(Vec<Schema>),
    /// Named fields, one behind the other.
    Struct {
        /// The type's name.
        name: String,
        /// Its fields, in order.
        fields: Vec<Field>,
    },
    /// A 4-byte tag, then the variant's fields.
    Enum {
        /// The type's name.
        name: String,
        /// Its variants; the tag is the position.
        variants: Vec<Variant>,
    },
    /// A struct or enum that contains itself, named further out: the nearest of this name, or with
    /// `^n` behind the name the one after `n` nearer ones.
    Recursive(String),
    /// A serde value in postcard's format, behind a 4-byte length.
    Serde(String),
}

/// A named field of a struct or of an enum's variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name; its position for tuple structs.
    pub name: String,
    /// The field's type.
    pub schema: Schema,
    /// Whether a value that lacks the field reads as the type's default.
    pub has_default: bool,
}

/// A variant of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The variant's name.
    pub name: String,
    /// Its fields; none for a unit variant.
    pub fields: Vec<Field>,
}

thread_local! {
    /// The named types whose schema is being built: identity and name, the innermost last.
    static OPEN: RefCell<Vec<(&'static str, String)>> = const { RefCell::new(Vec::new()) };
}

impl Schema {
    /// The schema of a type.
    #[must_use]
    pub fn of<T: Record>() -> Self {
        T::schema()
    }

    /// The schema of a named type, cut short where the type contains itself. `identity` tells types
    /// apart that share a name.
    pub fn named(identity: &'static str, name: &str, build: impl FnOnce() -> Self) -> Self {
        let nearer = OPEN.with_borrow(|open| {
            let at = open.iter().rposition(|(other, _)| *other == identity)?;
            Some(open.iter().skip(at + 1).filter(|(_, other)| other == name).count())
        });
        if let Some(skip) = nearer {
            return Self::Recursive(scope::mention(name, skip));
        }
        OPEN.with_borrow_mut(|open| open.push((identity, name.to_owned())));
        let schema = build();
        OPEN.with_borrow_mut(Vec::pop);
        schema
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit => f.write_str("()"),
            Self::Bool => f.write_str("bool"),
            Self::Int { bytes, signed } => {
                write!(f, "{}{}", if *signed { 'i' } else { 'u' }, u32::from(*bytes) * 8)
            }
            Self::Float { bytes } => write!(f, "f{}", u32::from(*bytes) * 8),
            Self::Char => f.write_str("char"),
            Self::String => f.write_str("String"),
            Self::Timestamp => f.write_str("Timestamp"),
            Self::Option(inner) => write!(f, "Option<{inner}>"),
            Self::List(inner) => write!(f, "Vec<{inner}>"),
            Self::Map(key, value) => write!(f, "Map<{key}, {value}>"),
            Self::Array(inner, len) => write!(f, "[{inner}; {len}]"),
            Self::Tuple(parts) => {
                f.write_str("(")?;
                for (i, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
            Self::Struct { name, .. } | Self::Enum { name, .. } | Self::Recursive(name) => {
                f.write_str(name)
            }
            Self::Serde(name) => write!(f, "serde {name}"),
        }
    }
}
