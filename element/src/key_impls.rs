//! [`Key`] for the types that can be one.

use std::sync::Arc;

use crate::codec::{Nesting, take};
use crate::{CodecError, Key, Timestamp};

macro_rules! unsigned_keys {
    ($($int:ty => $number:expr, $word:expr;)*) => {$(
        impl Key for $int {
            #[inline]
            fn encode_key(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            #[inline]
            fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
                take(input, stringify!($int)).map(<$int>::from_be_bytes)
            }

            #[inline]
            fn as_number(&self) -> Option<u64> {
                $number(*self)
            }

            #[inline]
            fn as_word(&self) -> Option<[u8; 8]> {
                $word(*self)
            }
        }
    )*};
}

unsigned_keys! {
    u8 => |key| Some(u64::from(key)), |_| None;
    u16 => |key| Some(u64::from(key)), |_| None;
    u32 => |key| Some(u64::from(key)), |_| None;
    u64 => Some, |key: u64| Some(key.to_be_bytes());
    u128 => |_| None, |_| None;
}

macro_rules! signed_keys {
    ($($int:ty as $unsigned:ty => $number:expr, $word:expr;)*) => {$(
        impl Key for $int {
            #[inline]
            fn encode_key(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&(self ^ <$int>::MIN).to_be_bytes());
            }

            #[inline]
            fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
                take(input, stringify!($int)).map(|bytes| <$int>::from_be_bytes(bytes) ^ <$int>::MIN)
            }

            #[inline]
            fn as_number(&self) -> Option<u64> {
                $number(*self)
            }

            #[inline]
            fn as_word(&self) -> Option<[u8; 8]> {
                $word(*self)
            }
        }
    )*};
}

signed_keys! {
    i8 as u8 => |key: i8| Some(u64::from(key.cast_unsigned())), |_| None;
    i16 as u16 => |key: i16| Some(u64::from(key.cast_unsigned())), |_| None;
    i32 as u32 => |key: i32| Some(u64::from(key.cast_unsigned())), |_| None;
    i64 as u64 => |key: i64| Some(key.cast_unsigned()), |key: i64| Some((key ^ i64::MIN).to_be_bytes());
    i128 as u128 => |_| None, |_| None;
}

macro_rules! size_keys {
    ($($int:ty as $wide:ty;)*) => {$(
        impl Key for $int {
            fn encode_key(&self, out: &mut Vec<u8>) {
                (*self as $wide).encode_key(out);
            }

            fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
                let wide = <$wide>::decode_key(input)?;
                <$int>::try_from(wide)
                    .map_err(|_| CodecError::Tag { what: stringify!($int), found: wide as u64 })
            }

            #[inline]
            fn as_number(&self) -> Option<u64> {
                (*self as $wide).as_number()
            }

            #[inline]
            fn as_word(&self) -> Option<[u8; 8]> {
                (*self as $wide).as_word()
            }
        }
    )*};
}

size_keys! { usize as u64; isize as i64; }

impl Key for () {
    fn encode_key(&self, _: &mut Vec<u8>) {}

    fn decode_key(_: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(())
    }
}

impl Key for bool {
    fn encode_key(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        match take::<1>(input, "bool")? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(CodecError::Tag { what: "bool", found: u64::from(other) }),
        }
    }

    #[inline]
    fn as_number(&self) -> Option<u64> {
        Some(u64::from(*self))
    }
}

impl Key for char {
    fn encode_key(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode_key(out);
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        let code = u32::decode_key(input)?;
        Self::from_u32(code).ok_or(CodecError::Tag { what: "char", found: u64::from(code) })
    }

    #[inline]
    fn as_number(&self) -> Option<u64> {
        u32::from(*self).as_number()
    }
}

impl Key for Timestamp {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.0.encode_key(out);
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        i64::decode_key(input).map(Self)
    }

    #[inline]
    fn as_number(&self) -> Option<u64> {
        self.0.as_number()
    }

    #[inline]
    fn as_word(&self) -> Option<[u8; 8]> {
        self.0.as_word()
    }
}

/// Escapes bytes so that they end: 0 becomes 0, 255; the end is 0, 0. Order is kept.
#[inline]
pub(crate) fn encode_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    if !has_zero(bytes) {
        out.reserve(bytes.len() + 2);
        out.extend_from_slice(bytes);
        out.extend_from_slice(&[0, 0]);
        return;
    }
    encode_zeros(bytes, out);
}

/// Whether a byte is 0. Text that fits two words is read as two, which may overlap: a loop over bytes ends
/// where no processor foresees it.
#[inline]
fn has_zero(bytes: &[u8]) -> bool {
    if let (Some(first), Some(last), ..=16) = (bytes.first_chunk(), bytes.last_chunk(), bytes.len())
    {
        return zero_in(u64::from_le_bytes(*first)) | zero_in(u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last), ..8) = (bytes.first_chunk(), bytes.last_chunk(), bytes.len()) {
        let halves = [u32::from_le_bytes(*first), u32::from_le_bytes(*last)];
        return zero_in(u64::from(halves[0]) << 32 | u64::from(halves[1]));
    }
    bytes.contains(&0)
}

/// Whether one of the eight bytes is 0: it alone borrows from its highest bit.
#[inline]
fn zero_in(word: u64) -> bool {
    const LOWEST: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_le_bytes([0x80; 8]);
    word.wrapping_sub(LOWEST) & !word & HIGHEST != 0
}

/// The rare case apart, so that the common one stays small enough to inline.
#[cold]
fn encode_zeros(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        let (head, tail) = rest.split_at(zero + 1);
        out.extend_from_slice(head);
        out.push(255);
        rest = tail;
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

pub(crate) fn decode_escaped(input: &mut &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    loop {
        let short = CodecError::Short { what: "text key", needed: 2, left: input.len() };
        let zero = input.iter().position(|byte| *byte == 0).ok_or(short)?;
        bytes.extend_from_slice(input.get(..zero).unwrap_or_default());
        *input = input.get(zero + 1..).unwrap_or_default();
        match take::<1>(input, "text key")? {
            [0] => return Ok(bytes),
            [255] => bytes.push(0),
            [other] => {
                return Err(CodecError::Tag { what: "text key", found: u64::from(other) });
            }
        }
    }
}

impl Key for String {
    #[inline]
    fn encode_key(&self, out: &mut Vec<u8>) {
        encode_escaped(self.as_bytes(), out);
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(Self::from_utf8(decode_escaped(input)?)?)
    }
}

impl Key for Box<str> {
    fn encode_key(&self, out: &mut Vec<u8>) {
        encode_escaped(self.as_bytes(), out);
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        String::decode_key(input).map(Into::into)
    }
}

impl Key for Arc<str> {
    fn encode_key(&self, out: &mut Vec<u8>) {
        encode_escaped(self.as_bytes(), out);
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        String::decode_key(input).map(Into::into)
    }
}

impl<K: Key> Key for Box<K> {
    fn encode_key(&self, out: &mut Vec<u8>) {
        (**self).encode_key(out);
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        let _nesting = Nesting::enter()?;
        K::decode_key(input).map(Self::new)
    }

    #[inline]
    fn as_number(&self) -> Option<u64> {
        (**self).as_number()
    }

    #[inline]
    fn as_word(&self) -> Option<[u8; 8]> {
        (**self).as_word()
    }
}

/// Each element stands behind a 1; the end is a 0.
impl<K: Key> Key for Vec<K> {
    fn encode_key(&self, out: &mut Vec<u8>) {
        for element in self {
            out.push(1);
            element.encode_key(out);
        }
        out.push(0);
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        let _nesting = Nesting::enter()?;
        let mut elements = Self::new();
        loop {
            match take::<1>(input, "list key")? {
                [0] => return Ok(elements),
                [1] => elements.push(K::decode_key(input)?),
                [other] => {
                    return Err(CodecError::Tag { what: "list key", found: u64::from(other) });
                }
            }
        }
    }
}

/// None is 0 and comes first; Some is 1 and the value.
impl<K: Key> Key for Option<K> {
    fn encode_key(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(0),
            Some(key) => {
                out.push(1);
                key.encode_key(out);
            }
        }
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        match take::<1>(input, "optional key")? {
            [0] => Ok(None),
            [1] => K::decode_key(input).map(Some),
            [other] => Err(CodecError::Tag { what: "optional key", found: u64::from(other) }),
        }
    }
}

impl<K: Key, const N: usize> Key for [K; N] {
    fn encode_key(&self, out: &mut Vec<u8>) {
        for element in self {
            element.encode_key(out);
        }
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        let elements: Vec<K> = (0..N).map(|_| K::decode_key(input)).collect::<Result<_, _>>()?;
        elements.try_into().map_err(|left: Vec<K>| CodecError::Short {
            what: "array key",
            needed: N,
            left: left.len(),
        })
    }
}

macro_rules! tuple_keys {
    ($($($name:ident $slot:tt),+;)*) => {$(
        impl<$($name: Key),+> Key for ($($name,)+) {
            #[inline]
            fn encode_key(&self, out: &mut Vec<u8>) {
                $(self.$slot.encode_key(out);)+
            }

            #[inline]
            fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
                Ok(($($name::decode_key(input)?,)+))
            }
        }
    )*};
}

tuple_keys! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
}
