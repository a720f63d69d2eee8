//! [`Schema::decode_value`]: reads a record by its schema, without its type.
//!
//! Called by the dump of a savepoint and by restores whose types have changed. It trusts nothing: a
//! count is believed only as far as there are bytes for it, recursion has a limit, and values that
//! take no bytes have a limit in number.
//!
//! Left out on purpose: keys, which do not come with a schema of their bytes.

use crate::codec::{EMPTY_VALUES_LIMIT, NESTING_LIMIT, take, take_slice};
use crate::scope::Scope;
use crate::{CodecError, Field, Record, Schema, Value};

impl Schema {
    /// Reads one value of this schema from the front of `input` and moves `input` behind it.
    ///
    /// Costs one pass. Holds at most one [`Value`] for each byte read, and 65,536 more.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the bytes are cut, hold no value of this schema, or nest deeper than 512.
    /// Never panics, whatever the bytes and the schema are.
    pub fn decode_value(&self, input: &mut &[u8]) -> Result<Value, CodecError> {
        Decoder { depth: 0, empty_left: EMPTY_VALUES_LIMIT }.value(self, None, input)
    }
}

struct Decoder {
    depth: u32,
    /// How many values of no bytes may still be read.
    empty_left: usize,
}

type Within<'a> = Option<&'a Scope<'a>>;

impl Decoder {
    fn value(
        &mut self,
        schema: &Schema,
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        if self.depth >= NESTING_LIMIT {
            return Err(CodecError::Depth { limit: NESTING_LIMIT });
        }
        self.depth += 1;
        let value = match schema {
            Schema::Unit => Ok(Value::Unit),
            Schema::Bool => bool::decode(input).map(Value::Bool),
            Schema::Int { bytes, signed } => integer(*bytes, *signed, input),
            Schema::Float { bytes } => float(*bytes, input),
            Schema::Char => char::decode(input).map(Value::Char),
            Schema::String => String::decode(input).map(Value::String),
            Schema::Timestamp => i64::decode(input).map(Value::Timestamp),
            Schema::Option(inner) => match take::<1>(input, "Option")? {
                [0] => Ok(Value::Option(None)),
                [1] => {
                    let value = self.value(inner, within, input)?;
                    Ok(Value::Option(Some(Box::new(value))))
                }
                [other] => Err(CodecError::Tag { what: "Option", found: u64::from(other) }),
            },
            Schema::List(inner) => {
                let count = u32::decode(input)?;
                self.list(inner, count, within, input)
            }
            Schema::Array(inner, count) => self.list(inner, *count, within, input),
            Schema::Map(key, value) => self.map(key, value, within, input),
            Schema::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.value(part, within, input));
                parts.collect::<Result<_, _>>().map(Value::List)
            }
            Schema::Struct { name, fields } => {
                let scope = Scope::inside(within, schema);
                let fields = self.fields(fields, &scope, input)?;
                Ok(Value::Struct { name: name.clone(), fields })
            }
            Schema::Enum { .. } => self.variant(schema, within, input),
            Schema::Recursive(mention) => match Scope::find(within, mention) {
                Some((found, outer)) => self.value(found, outer, input),
                None => Err(CodecError::Unknown { name: mention.clone() }),
            },
            Schema::Serde(_) => {
                let len = u32::decode(input)? as usize;
                Ok(Value::Opaque(take_slice(input, len, "a serde value")?.to_vec()))
            }
        };
        self.depth -= 1;
        value
    }

    fn list(
        &mut self,
        inner: &Schema,
        count: u32,
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.counted(input, |this, input| this.value(inner, within, input))?);
        }
        Ok(Value::List(values))
    }

    fn map(
        &mut self,
        key: &Schema,
        value: &Schema,
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        let mut pairs = Vec::new();
        for _ in 0..u32::decode(input)? {
            pairs.push(self.counted(input, |this, input| {
                Ok((this.value(key, within, input)?, this.value(value, within, input)?))
            })?);
        }
        Ok(Value::Map(pairs))
    }

    /// Reads one element; if it took no bytes, it is charged to the limit of such elements.
    fn counted<V>(
        &mut self,
        input: &mut &[u8],
        read: impl FnOnce(&mut Self, &mut &[u8]) -> Result<V, CodecError>,
    ) -> Result<V, CodecError> {
        let before = input.len();
        let value = read(self, input)?;
        if input.len() == before {
            self.empty_left = self
                .empty_left
                .checked_sub(1)
                .ok_or(CodecError::Count { limit: EMPTY_VALUES_LIMIT })?;
        }
        Ok(value)
    }

    fn fields(
        &mut self,
        fields: &[Field],
        scope: &Scope<'_>,
        input: &mut &[u8],
    ) -> Result<Vec<(String, Value)>, CodecError> {
        fields
            .iter()
            .map(|field| Ok((field.name.clone(), self.value(&field.schema, Some(scope), input)?)))
            .collect()
    }

    fn variant(
        &mut self,
        schema: &Schema,
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        let Schema::Enum { name, variants } = schema else { return Ok(Value::Unit) };
        let tag = u32::decode(input)?;
        let variant = variants
            .get(tag as usize)
            .ok_or(CodecError::Tag { what: "variant", found: u64::from(tag) })?;
        let scope = Scope::inside(within, schema);
        let fields = self.fields(&variant.fields, &scope, input)?;
        Ok(Value::Enum { name: name.clone(), variant: variant.name.clone(), fields })
    }
}

fn integer(bytes: u8, signed: bool, input: &mut &[u8]) -> Result<Value, CodecError> {
    let value = match (bytes, signed) {
        (1, false) => Value::Unsigned(u8::decode(input)?.into()),
        (2, false) => Value::Unsigned(u16::decode(input)?.into()),
        (4, false) => Value::Unsigned(u32::decode(input)?.into()),
        (8, false) => Value::Unsigned(u64::decode(input)?.into()),
        (16, false) => Value::Unsigned(u128::decode(input)?),
        (1, true) => Value::Signed(i8::decode(input)?.into()),
        (2, true) => Value::Signed(i16::decode(input)?.into()),
        (4, true) => Value::Signed(i32::decode(input)?.into()),
        (8, true) => Value::Signed(i64::decode(input)?.into()),
        (16, true) => Value::Signed(i128::decode(input)?),
        _ => return Err(CodecError::Tag { what: "integer width", found: bytes.into() }),
    };
    Ok(value)
}

fn float(bytes: u8, input: &mut &[u8]) -> Result<Value, CodecError> {
    match bytes {
        4 => f32::decode(input).map(|float| Value::Float(float.into())),
        8 => f64::decode(input).map(Value::Float),
        _ => Err(CodecError::Tag { what: "float width", found: bytes.into() }),
    }
}
