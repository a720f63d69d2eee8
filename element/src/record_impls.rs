//! [`Record`] for numbers, text and time: the types that hold no other.
//!
//! What holds other records is in [`crate::record_containers`].

use crate::codec::{take, take_slice};
use crate::{CodecError, Record, Schema, SchemaError, Timestamp, Value};

macro_rules! integer_records {
    ($($int:ty: $bytes:literal, $signed:literal, $from:path;)*) => {$(
        impl Record for $int {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                take(input, stringify!($int)).map(<$int>::from_le_bytes)
            }

            fn schema() -> Schema {
                Schema::Int { bytes: $bytes, signed: $signed }
            }

            fn from_value(value: Value) -> Result<Self, SchemaError> {
                let narrowed = match &value {
                    Value::Unsigned(n) => <$int>::try_from(*n).ok(),
                    Value::Signed(n) => <$int>::try_from(*n).ok(),
                    _ => None,
                };
                narrowed.ok_or_else(|| value.mismatch(stringify!($int)))
            }
        }
    )*};
}

integer_records! {
    u8: 1, false, Value::Unsigned;
    u16: 2, false, Value::Unsigned;
    u32: 4, false, Value::Unsigned;
    u64: 8, false, Value::Unsigned;
    u128: 16, false, Value::Unsigned;
    i8: 1, true, Value::Signed;
    i16: 2, true, Value::Signed;
    i32: 4, true, Value::Signed;
    i64: 8, true, Value::Signed;
    i128: 16, true, Value::Signed;
}

/// Pointer-sized integers travel as 64 bits, whatever the machine.
macro_rules! size_records {
    ($($int:ty as $wide:ty;)*) => {$(
        impl Record for $int {
            fn encode(&self, out: &mut Vec<u8>) {
                (*self as $wide).encode(out);
            }

            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                let wide = <$wide>::decode(input)?;
                <$int>::try_from(wide)
                    .map_err(|_| CodecError::Tag { what: stringify!($int), found: wide as u64 })
            }

            fn schema() -> Schema {
                <$wide>::schema()
            }

            fn from_value(value: Value) -> Result<Self, SchemaError> {
                let wide = <$wide>::from_value(value)?;
                <$int>::try_from(wide).map_err(|_| SchemaError {
                    path: String::new(),
                    old: wide.to_string(),
                    new: stringify!($int).to_owned(),
                })
            }
        }
    )*};
}

size_records! {
    usize as u64;
    isize as i64;
}

macro_rules! float_records {
    ($($float:ty: $bytes:literal;)*) => {$(
        impl Record for $float {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                take(input, stringify!($float)).map(<$float>::from_le_bytes)
            }

            fn schema() -> Schema {
                Schema::Float { bytes: $bytes }
            }

            fn from_value(value: Value) -> Result<Self, SchemaError> {
                match value {
                    Value::Float(float) => Ok(float as $float),
                    other => Err(other.mismatch(stringify!($float))),
                }
            }
        }
    )*};
}

float_records! {
    f32: 4;
    f64: 8;
}

impl Record for () {
    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(())
    }

    fn schema() -> Schema {
        Schema::Unit
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        match value {
            Value::Unit => Ok(()),
            other => Err(other.mismatch("()")),
        }
    }
}

impl Record for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        match take::<1>(input, "bool")? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(CodecError::Tag { what: "bool", found: u64::from(other) }),
        }
    }

    fn schema() -> Schema {
        Schema::Bool
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        match value {
            Value::Bool(flag) => Ok(flag),
            other => Err(other.mismatch("bool")),
        }
    }
}

impl Record for char {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let code = u32::decode(input)?;
        Self::from_u32(code).ok_or(CodecError::Tag { what: "char", found: u64::from(code) })
    }

    fn schema() -> Schema {
        Schema::Char
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        match value {
            Value::Char(c) => Ok(c),
            other => Err(other.mismatch("char")),
        }
    }
}

/// Appends a length as `u32`. Longer values than 4 GiB are cut off by the caller's memory first.
#[inline]
pub(crate) fn encode_len(len: usize, out: &mut Vec<u8>) {
    u32::try_from(len).unwrap_or(u32::MAX).encode(out);
}

#[inline]
pub(crate) fn decode_len(input: &mut &[u8]) -> Result<usize, CodecError> {
    u32::decode(input).map(|len| len as usize)
}

impl Record for String {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(4 + self.len());
        encode_len(self.len(), out);
        out.extend_from_slice(self.as_bytes());
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let len = decode_len(input)?;
        Ok(Self::from_utf8(take_slice(input, len, "text")?.to_vec())?)
    }

    fn schema() -> Schema {
        Schema::String
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(other.mismatch("String")),
        }
    }

    fn estimated_bytes(&self) -> usize {
        size_of::<Self>() + self.capacity()
    }
}

impl Record for Timestamp {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        i64::decode(input).map(Self)
    }

    fn schema() -> Schema {
        Schema::Timestamp
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        match value {
            Value::Timestamp(millis) => Ok(Self(millis)),
            other => i64::from_value(other).map(Self),
        }
    }
}
