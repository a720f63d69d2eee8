//! [`Record`] for what programs also hold of the standard library: sets, queues, shared text, durations.
//!
//! Sets and queues are written as lists, shared text as text, so a field may change from one to the
//! other and still read its old data.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use crate::codec::{Nesting, check_empty};
use crate::record_impls::{decode_len, encode_len};
use crate::{CodecError, Record, Schema, SchemaError, Value};

macro_rules! list_records {
    ($($list:ident<T: $([$($bound:tt)*])? $(, $extra:ident: $limit:path)?>;)*) => {$(
        impl<T: Record $(+ $($bound)*)? $(, $extra: $limit + Default + Send + 'static)?> Record
            for $list<T $(, $extra)?>
        {
            fn encode(&self, out: &mut Vec<u8>) {
                encode_len(self.len(), out);
                self.iter().for_each(|value| value.encode(out));
            }

            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                let len = decode_len(input)?;
                let _nesting = Nesting::enter()?;
                let element = |done| {
                    let before = input.len();
                    let value = T::decode(input)?;
                    if input.len() == before {
                        check_empty(done + 1)?;
                    }
                    Ok(value)
                };
                (0..len).map(element).collect()
            }

            fn schema() -> Schema {
                Schema::List(Box::new(T::schema()))
            }

            fn from_value(value: Value) -> Result<Self, SchemaError> {
                match value {
                    Value::List(values) => values.into_iter().map(T::from_value).collect(),
                    other => Err(other.mismatch(&Self::schema().to_string())),
                }
            }

            fn estimated_bytes(&self) -> usize {
                size_of::<Self>() + self.iter().map(Record::estimated_bytes).sum::<usize>()
            }
        }
    )*};
}

list_records! {
    BTreeSet<T: [Ord]>;
    HashSet<T: [Eq + Hash], S: BuildHasher>;
    VecDeque<T:>;
}

macro_rules! text_records {
    ($($text:ty;)*) => {$(
        impl Record for $text {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                encode_len(self.len(), out);
                out.extend_from_slice(self.as_bytes());
            }

            #[inline]
            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                String::decode(input).map(Into::into)
            }

            fn schema() -> Schema {
                Schema::String
            }

            fn from_value(value: Value) -> Result<Self, SchemaError> {
                String::from_value(value).map(Into::into)
            }

            fn estimated_bytes(&self) -> usize {
                size_of::<Self>() + self.len()
            }
        }
    )*};
}

text_records! {
    Box<str>;
    Arc<str>;
}

/// Seconds, then the nanoseconds of the last one.
impl Record for Duration {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.as_secs(), self.subsec_nanos()).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let (seconds, nanos) = <(u64, u32)>::decode(input)?;
        if nanos < 1_000_000_000 {
            Ok(Self::new(seconds, nanos))
        } else {
            Err(CodecError::Tag { what: "nanoseconds of a second", found: u64::from(nanos) })
        }
    }

    fn schema() -> Schema {
        <(u64, u32)>::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        let (seconds, nanos) = <(u64, u32)>::from_value(value)?;
        if nanos < 1_000_000_000 {
            Ok(Self::new(seconds, nanos))
        } else {
            Err(Value::Unsigned(u128::from(nanos)).mismatch("nanoseconds of a second"))
        }
    }
}
