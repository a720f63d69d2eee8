//! [`Record`] for what holds other records: options, boxes, lists, arrays, maps and tuples.
//!
//! A count that was read is a claim: nothing is reserved for it beyond the length of the input, values
//! of no bytes are counted, and each list or box is one level of a bounded nesting.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use crate::codec::{Nesting, check_empty, take};
use crate::fields::heap_bytes;
use crate::record_impls::{decode_len, encode_len};
use crate::{CodecError, Record, Schema, SchemaError, Value};

impl<T: Record> Record for Option<T> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(0),
            Some(value) => {
                out.push(1);
                value.encode(out);
            }
        }
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        match take::<1>(input, "Option")? {
            [0] => Ok(None),
            [1] => T::decode(input).map(Some),
            [other] => Err(CodecError::Tag { what: "Option", found: u64::from(other) }),
        }
    }

    fn schema() -> Schema {
        Schema::Option(Box::new(T::schema()))
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        match value {
            Value::Option(None) => Ok(None),
            Value::Option(Some(value)) => T::from_value(*value).map(Some),
            plain => T::from_value(plain).map(Some),
        }
    }

    fn estimated_bytes(&self) -> usize {
        size_of::<Self>() + self.as_ref().map_or(0, heap_bytes)
    }
}

impl<T: Record> Record for Box<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let _nesting = Nesting::enter()?;
        T::decode(input).map(Self::new)
    }

    fn schema() -> Schema {
        T::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        T::from_value(value).map(Self::new)
    }

    fn estimated_bytes(&self) -> usize {
        size_of::<Self>() + (**self).estimated_bytes()
    }
}

impl<T: Record> Record for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_len(self.len(), out);
        T::encode_slice(self, out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let len = decode_len(input)?;
        let _nesting = Nesting::enter()?;
        T::decode_list(len, input)
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
        let inner: usize = self.iter().map(Record::estimated_bytes).sum();
        let spare = (self.capacity() - self.len()) * size_of::<T>();
        size_of::<Self>() + inner + spare
    }
}

/// Values of a list, one by one.
pub(crate) fn list_of_each<T: Record>(len: usize, input: &mut &[u8]) -> Result<Vec<T>, CodecError> {
    // A damaged length must not become an allocation: no more is reserved than `input` is long. Nor a
    // loop without end: values of no bytes are counted.
    let mut values = Vec::with_capacity(len.min(input.len() / size_of::<T>().max(1)));
    for done in 0..len {
        let before = input.len();
        values.push(T::decode(input)?);
        if input.len() == before {
            check_empty(done + 1)?;
        }
    }
    Ok(values)
}

/// Arrays up to this length are filled in place; longer ones by way of the heap, so that they do not
/// lie on the stack several times.
const IN_PLACE: usize = 64;

/// Values of an array, one by one.
pub(crate) fn array_of_each<T: Record, const N: usize>(
    input: &mut &[u8],
) -> Result<[T; N], CodecError> {
    if N <= IN_PLACE {
        let mut slots = [const { None }; N];
        for slot in &mut slots {
            *slot = Some(T::decode(input)?);
        }
        return Ok(slots.map(|slot: Option<T>| slot.expect("every slot has been filled")));
    }
    let mut values = Vec::with_capacity(N.min(input.len()));
    for _ in 0..N {
        values.push(T::decode(input)?);
    }
    values.try_into().map_err(|left: Vec<T>| CodecError::Short {
        what: "array",
        needed: N,
        left: left.len(),
    })
}

impl<T: Record, const N: usize> Record for [T; N] {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        T::encode_slice(self, out);
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        T::decode_array(input)
    }

    #[inline]
    fn decode_list(len: usize, input: &mut &[u8]) -> Result<Vec<Self>, CodecError> {
        T::decode_arrays(len, input)
    }

    fn schema() -> Schema {
        Schema::Array(Box::new(T::schema()), u32::try_from(N).unwrap_or(u32::MAX))
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        let name = Self::schema().to_string();
        match value {
            Value::List(values) if values.len() == N => {
                let values: Vec<T> =
                    values.into_iter().map(T::from_value).collect::<Result<_, _>>()?;
                values.try_into().map_err(|_| Value::List(Vec::new()).mismatch(&name))
            }
            other => Err(other.mismatch(&name)),
        }
    }

    fn estimated_bytes(&self) -> usize {
        self.iter().map(Record::estimated_bytes).sum()
    }
}

macro_rules! map_records {
    ($map:ident, [$($bound:tt)*], $($extra:ident: $limit:path)?) => {
        impl<K: Record + $($bound)*, V: Record $(, $extra: $limit + Default + Send + 'static)?> Record
            for $map<K, V $(, $extra)?>
        {
            fn encode(&self, out: &mut Vec<u8>) {
                encode_len(self.len(), out);
                for (key, value) in self {
                    key.encode(out);
                    value.encode(out);
                }
            }

            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                let len = decode_len(input)?;
                let _nesting = Nesting::enter()?;
                let pair = |done| {
                    let before = input.len();
                    let pair = (K::decode(input)?, V::decode(input)?);
                    if input.len() == before {
                        check_empty(done + 1)?;
                    }
                    Ok(pair)
                };
                (0..len).map(pair).collect()
            }

            fn schema() -> Schema {
                Schema::Map(Box::new(K::schema()), Box::new(V::schema()))
            }

            fn from_value(value: Value) -> Result<Self, SchemaError> {
                match value {
                    Value::Map(pairs) => pairs
                        .into_iter()
                        .map(|(key, value)| Ok((K::from_value(key)?, V::from_value(value)?)))
                        .collect(),
                    other => Err(other.mismatch(&Self::schema().to_string())),
                }
            }

            fn estimated_bytes(&self) -> usize {
                let pairs = self.iter().map(|(k, v)| k.estimated_bytes() + v.estimated_bytes());
                size_of::<Self>() + pairs.sum::<usize>()
            }
        }
    };
}

map_records!(BTreeMap, [Ord],);
map_records!(HashMap, [Eq + Hash], S: BuildHasher);

macro_rules! tuple_records {
    ($($count:literal: $($name:ident $slot:tt),+;)*) => {$(
        impl<$($name: Record),+> Record for ($($name,)+) {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$slot.encode(out);)+
            }

            #[inline]
            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                Ok(($($name::decode(input)?,)+))
            }

            fn schema() -> Schema {
                Schema::Tuple(vec![$($name::schema()),+])
            }

            fn from_value(value: Value) -> Result<Self, SchemaError> {
                match value {
                    Value::List(values) if values.len() == $count => {
                        let mut values = values.into_iter();
                        Ok(($({
                            let part = values.next().unwrap_or(Value::Unit);
                            $name::from_value(part)
                                .map_err(|error| error.inside(stringify!($slot)))?
                        },)+))
                    }
                    other => Err(other.mismatch(&Self::schema().to_string())),
                }
            }

            fn estimated_bytes(&self) -> usize {
                let heap = 0 $(+ heap_bytes(&self.$slot))+;
                size_of::<Self>() + heap
            }
        }
    )*};
}

tuple_records! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}
