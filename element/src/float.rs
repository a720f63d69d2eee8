//! Floats that can be keys (decision D20): one NaN, after positive infinity, and one zero.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::codec::take;
use crate::{CodecError, Key, Record, Schema, SchemaError, Value};

macro_rules! ordered_float {
    ($(#[$doc:meta])* $name:ident, $float:ty, $bits:ty, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default)]
        pub struct $name($float);

        impl $name {
            /// Takes a float; any NaN becomes the one NaN, minus zero becomes zero.
            #[must_use]
            pub fn new(value: $float) -> Self {
                if value.is_nan() {
                    Self(<$float>::NAN)
                } else if value == 0.0 {
                    Self(0.0)
                } else {
                    Self(value)
                }
            }

            /// The float.
            #[must_use]
            pub const fn get(self) -> $float {
                self.0
            }

            /// Bits that compare as the floats do, NaN last.
            fn ordered_bits(self) -> $bits {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                if self.0.is_nan() {
                    return <$bits>::MAX;
                }
                let bits = self.0.to_bits();
                if bits & SIGN == 0 { bits | SIGN } else { !bits }
            }

            fn from_ordered_bits(bits: $bits) -> Self {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                Self::new(<$float>::from_bits(if bits & SIGN == 0 { !bits } else { bits & !SIGN }))
            }
        }

        impl From<$float> for $name {
            fn from(value: $float) -> Self {
                Self::new(value)
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.ordered_bits() == other.ordered_bits()
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.ordered_bits().cmp(&other.ordered_bits())
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.ordered_bits().hash(state);
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl Key for $name {
            fn encode_key(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.ordered_bits().to_be_bytes());
            }

            fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
                let bits = <$bits>::from_be_bytes(take(input, stringify!($name))?);
                let value = Self::from_ordered_bits(bits);
                if value.ordered_bits() == bits {
                    Ok(value)
                } else {
                    Err(CodecError::Tag { what: stringify!($name), found: u64::from(bits) })
                }
            }
        }

        impl Record for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }

            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                <$float>::decode(input).map(Self::new)
            }

            fn schema() -> Schema {
                Schema::Float { bytes: $bytes }
            }

            fn from_value(value: Value) -> Result<Self, SchemaError> {
                <$float>::from_value(value).map(Self::new)
            }
        }
    };
}

ordered_float!(
    /// An `f64` that can be a key: ordered, with one NaN after positive infinity and one zero.
    OrderedF64, f64, u64, 8
);
ordered_float!(
    /// An `f32` that can be a key: ordered, with one NaN after positive infinity and one zero.
    OrderedF32, f32, u32, 4
);
