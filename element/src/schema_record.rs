//! [`Record`] for [`Schema`] itself: a snapshot's header holds schemas as bytes.
//!
//! A tag byte, then the parts. The numbers of the tags are fixed for ever.

use crate::codec::{Nesting, take};
use crate::{CodecError, Field, Record, Schema, SchemaError, Value, Variant};

impl Record for Schema {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unit => out.push(0),
            Self::Bool => out.push(1),
            Self::Int { bytes, signed } => out.extend_from_slice(&[2, *bytes, u8::from(*signed)]),
            Self::Float { bytes } => out.extend_from_slice(&[3, *bytes]),
            Self::Char => out.push(4),
            Self::String => out.push(5),
            Self::Timestamp => out.push(6),
            Self::Option(inner) => tagged(7, &**inner, out),
            Self::List(inner) => tagged(8, &**inner, out),
            Self::Map(key, value) => {
                tagged(9, &**key, out);
                value.encode(out);
            }
            Self::Array(inner, len) => {
                tagged(10, len, out);
                inner.encode(out);
            }
            Self::Tuple(parts) => tagged(11, parts, out),
            Self::Struct { name, fields } => {
                tagged(12, name, out);
                fields.encode(out);
            }
            Self::Enum { name, variants } => {
                tagged(13, name, out);
                variants.encode(out);
            }
            Self::Recursive(name) => tagged(14, name, out),
            Self::Serde(name) => tagged(15, name, out),
        }
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let _nesting = Nesting::enter()?;
        let [tag] = take(input, "a schema")?;
        Ok(match tag {
            0 => Self::Unit,
            1 => Self::Bool,
            2 => Self::Int { bytes: u8::decode(input)?, signed: bool::decode(input)? },
            3 => Self::Float { bytes: u8::decode(input)? },
            4 => Self::Char,
            5 => Self::String,
            6 => Self::Timestamp,
            7 => Self::Option(Record::decode(input)?),
            8 => Self::List(Record::decode(input)?),
            9 => Self::Map(Record::decode(input)?, Record::decode(input)?),
            10 => {
                let len = u32::decode(input)?;
                Self::Array(Record::decode(input)?, len)
            }
            11 => Self::Tuple(Record::decode(input)?),
            12 => Self::Struct { name: Record::decode(input)?, fields: Record::decode(input)? },
            13 => Self::Enum { name: Record::decode(input)?, variants: Record::decode(input)? },
            14 => Self::Recursive(Record::decode(input)?),
            15 => Self::Serde(Record::decode(input)?),
            other => return Err(CodecError::Tag { what: "schema", found: u64::from(other) }),
        })
    }

    fn schema() -> Schema {
        Self::Serde("Schema".to_owned())
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        Err(value.mismatch("Schema"))
    }
}

fn tagged<T: Record>(tag: u8, part: &T, out: &mut Vec<u8>) {
    out.push(tag);
    part.encode(out);
}

impl Record for Field {
    fn encode(&self, out: &mut Vec<u8>) {
        self.name.encode(out);
        self.schema.encode(out);
        self.has_default.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(Self {
            name: Record::decode(input)?,
            schema: Record::decode(input)?,
            has_default: Record::decode(input)?,
        })
    }

    fn schema() -> Schema {
        <Schema as Record>::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        Err(value.mismatch("Field"))
    }
}

impl Record for Variant {
    fn encode(&self, out: &mut Vec<u8>) {
        self.name.encode(out);
        self.fields.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(Self { name: Record::decode(input)?, fields: Record::decode(input)? })
    }

    fn schema() -> Schema {
        <Schema as Record>::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        Err(value.mismatch("Variant"))
    }
}
