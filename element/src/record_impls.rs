//! [`Record`] for numbers, text and time: the types that hold no other.
//!
//! What holds other records is in [`crate::record_containers`].

use crate::codec::{take, take_slice};
use crate::{CodecError, Record, Schema, SchemaError, Timestamp, Value};

/// Numbers of a fixed width are read and written many at once.
macro_rules! fixed_width_slices {
    ($number:ty, $bytes:literal) => {
        #[inline]
        fn encode_slice(values: &[Self], out: &mut Vec<u8>) {
            let start = out.len();
            out.resize(start + values.len() * $bytes, 0);
            let (chunks, _) = out.split_at_mut(start).1.as_chunks_mut::<$bytes>();
            for (chunk, value) in chunks.iter_mut().zip(values) {
                *chunk = value.to_le_bytes();
            }
        }

        #[inline]
        fn decode_array<const N: usize>(input: &mut &[u8]) -> Result<[Self; N], CodecError> {
            let (what, needed) = (stringify!($number), N * $bytes);
            let (chunks, _) = take_slice(input, needed, what)?.as_chunks::<$bytes>();
            match <[[u8; $bytes]; N]>::try_from(chunks) {
                Ok(chunks) => Ok(chunks.map(<$number>::from_le_bytes)),
                Err(_) => Err(CodecError::Short { what, needed, left: chunks.len() }),
            }
        }

        #[inline]
        fn decode_list(len: usize, input: &mut &[u8]) -> Result<Vec<Self>, CodecError> {
            let needed = len.saturating_mul($bytes);
            let bytes = take_slice(input, needed, stringify!($number))?;
            let (chunks, _) = bytes.as_chunks::<$bytes>();
            Ok(chunks.iter().map(|b| <$number>::from_le_bytes(*b)).collect())
        }
    };
}

/// Bytes are copied as they are.
macro_rules! byte_slices {
    ($number:ty, $bytes:literal) => {
        #[inline]
        fn encode_slice(values: &[Self], out: &mut Vec<u8>) {
            out.extend_from_slice(values);
        }

        #[inline]
        fn decode_array<const N: usize>(input: &mut &[u8]) -> Result<[Self; N], CodecError> {
            take(input, "u8")
        }

        #[inline]
        fn decode_list(len: usize, input: &mut &[u8]) -> Result<Vec<Self>, CodecError> {
            take_slice(input, len, "u8").map(<[u8]>::to_vec)
        }

        #[inline]
        fn decode_arrays<const N: usize>(
            len: usize,
            input: &mut &[u8],
        ) -> Result<Vec<[Self; N]>, CodecError> {
            if N == 0 {
                return crate::record_containers::list_of_each(len, input);
            }
            let bytes = take_slice(input, len.saturating_mul(N), "u8")?;
            Ok(bytes.as_chunks().0.to_vec())
        }
    };
}

macro_rules! integer_records {
    ($($int:ty: $bytes:literal, $signed:literal, $from:path, $slices:ident;)*) => {$(
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

            $slices!($int, $bytes);
        }
    )*};
}

integer_records! {
    u8: 1, false, Value::Unsigned, byte_slices;
    u16: 2, false, Value::Unsigned, fixed_width_slices;
    u32: 4, false, Value::Unsigned, fixed_width_slices;
    u64: 8, false, Value::Unsigned, fixed_width_slices;
    u128: 16, false, Value::Unsigned, fixed_width_slices;
    i8: 1, true, Value::Signed, fixed_width_slices;
    i16: 2, true, Value::Signed, fixed_width_slices;
    i32: 4, true, Value::Signed, fixed_width_slices;
    i64: 8, true, Value::Signed, fixed_width_slices;
    i128: 16, true, Value::Signed, fixed_width_slices;
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

            fixed_width_slices!($float, $bytes);
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

/// Appends text as every type of text does.
#[inline]
pub(crate) fn encode_text(text: &str, out: &mut Vec<u8>) {
    out.reserve(4 + text.len());
    encode_len(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

/// Takes the bytes of text off.
#[inline]
pub(crate) fn take_text<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], CodecError> {
    let len = decode_len(input)?;
    take_slice(input, len, "text")
}

impl Record for String {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_text(self, out);
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(Self::from_utf8(take_text(input)?.to_vec())?)
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
