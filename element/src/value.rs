//! [`Value`]: a record read without its type, by its schema.
//!
//! Serves the dump of a savepoint and the reading of state that was written with an earlier schema.
//! Never in a hot path.

use crate::SchemaError;

/// A value whose type is known from a schema alone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `()`.
    Unit,
    /// `bool`.
    Bool(bool),
    /// An unsigned integer.
    Unsigned(u128),
    /// A signed integer.
    Signed(i128),
    /// A float.
    Float(f64),
    /// A character.
    Char(char),
    /// Text.
    String(String),
    /// Milliseconds since the epoch.
    Timestamp(i64),
    /// An optional value.
    Option(Option<Box<Value>>),
    /// Values of a list, array or tuple.
    List(Vec<Value>),
    /// Pairs of a map.
    Map(Vec<(Value, Value)>),
    /// A struct's fields, in the order written.
    Struct {
        /// The type's name.
        name: String,
        /// Names and values.
        fields: Vec<(String, Value)>,
    },
    /// An enum's variant.
    Enum {
        /// The type's name.
        name: String,
        /// The variant's name.
        variant: String,
        /// Names and values.
        fields: Vec<(String, Value)>,
    },
    /// Bytes that only serde can read.
    Opaque(Vec<u8>),
}

impl Value {
    /// What kind of value this is, for messages.
    #[must_use]
    pub fn kind(&self) -> String {
        match self {
            Self::Unit => "()".to_owned(),
            Self::Bool(_) => "bool".to_owned(),
            Self::Unsigned(_) => "an unsigned integer".to_owned(),
            Self::Signed(_) => "a signed integer".to_owned(),
            Self::Float(_) => "a float".to_owned(),
            Self::Char(_) => "char".to_owned(),
            Self::String(_) => "String".to_owned(),
            Self::Timestamp(_) => "Timestamp".to_owned(),
            Self::Option(_) => "Option".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a map".to_owned(),
            Self::Struct { name, .. } | Self::Enum { name, .. } => name.clone(),
            Self::Opaque(_) => "a serde value".to_owned(),
        }
    }

    /// The error of reading this value as `new`.
    #[must_use]
    pub fn mismatch(&self, new: &str) -> SchemaError {
        SchemaError { path: String::new(), old: self.kind(), new: new.to_owned() }
    }
}
