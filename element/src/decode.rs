//! [`Schema::decode_value`]: reads a record by its schema, without its type.
//!
//! Called by the dump of a savepoint and by restores whose types have changed. It trusts nothing: a
//! count is believed only as far as there are bytes for it, recursion has a limit, and values that
//! take no bytes have a limit in number.
//!
//! Left out on purpose: keys, which do not come with a schema of their bytes.

use crate::codec::{EMPTY_VALUES_LIMIT, NESTING_LIMIT, take, take_slice};
use crate::scope::Scope;
use crate::{CodecError, Field, Record, Schema, Value, Variant};

impl Schema {
    /// Reads one value of this schema from the front of `input` and moves `input` behind it.
    ///
    /// Costs one pass. Holds at most one [`Value`] for each byte read, and 65,536 more.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the bytes are cut, hold no value of this schema, or nest deeper than 128
    /// mentions of a type in itself.
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

/// Recursion runs through small functions and plain loops, so that 128 levels fit a thread's stack
/// even where nothing is optimized.
impl Decoder {
    fn value(
        &mut self,
        schema: &Schema,
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        match schema {
            Schema::Option(inner) => self.optional(inner, within, input),
            Schema::List(inner) => self.list(inner, None, within, input),
            Schema::Array(inner, count) => self.list(inner, Some(*count), within, input),
            Schema::Map(key, value) => self.map(key, value, within, input),
            Schema::Tuple(parts) => self.tuple(parts, within, input),
            Schema::Struct { name, fields } => self.record(schema, name, fields, within, input),
            Schema::Enum { name, variants } => self.variant(schema, name, variants, within, input),
            Schema::Recursive(mention) => self.nested(mention, within, input),
            _ => scalar(schema, input),
        }
    }

    /// Reads a type inside of itself: the one way to nest without end.
    fn nested(
        &mut self,
        mention: &str,
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        let Some((found, outer)) = Scope::find(within, mention) else {
            return Err(CodecError::Unknown { name: mention.to_owned() });
        };
        if self.depth >= NESTING_LIMIT {
            return Err(CodecError::Depth { limit: NESTING_LIMIT });
        }
        self.depth += 1;
        let value = self.value(found, outer, input);
        self.depth -= 1;
        value
    }

    fn optional(
        &mut self,
        inner: &Schema,
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        match take::<1>(input, "Option")? {
            [0] => Ok(Value::Option(None)),
            [1] => Ok(Value::Option(Some(Box::new(self.value(inner, within, input)?)))),
            [other] => Err(CodecError::Tag { what: "Option", found: u64::from(other) }),
        }
    }

    fn list(
        &mut self,
        inner: &Schema,
        fixed: Option<u32>,
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        let count = match fixed {
            Some(count) => count,
            None => u32::decode(input)?,
        };
        let mut values = Vec::new();
        for _ in 0..count {
            let before = input.len();
            values.push(self.value(inner, within, input)?);
            self.charge(before, input.len())?;
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
            let before = input.len();
            let key = self.value(key, within, input)?;
            pairs.push((key, self.value(value, within, input)?));
            self.charge(before, input.len())?;
        }
        Ok(Value::Map(pairs))
    }

    /// Charges an element that took no bytes to the limit of such elements.
    fn charge(&mut self, before: usize, after: usize) -> Result<(), CodecError> {
        if before == after {
            let limit = EMPTY_VALUES_LIMIT;
            self.empty_left = self.empty_left.checked_sub(1).ok_or(CodecError::Count { limit })?;
        }
        Ok(())
    }

    fn tuple(
        &mut self,
        parts: &[Schema],
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        let mut values = Vec::new();
        for part in parts {
            values.push(self.value(part, within, input)?);
        }
        Ok(Value::List(values))
    }

    fn record(
        &mut self,
        schema: &Schema,
        name: &str,
        fields: &[Field],
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        let fields = self.fields(fields, &Scope::inside(within, schema), input)?;
        Ok(Value::Struct { name: name.to_owned(), fields })
    }

    fn variant(
        &mut self,
        schema: &Schema,
        name: &str,
        variants: &[Variant],
        within: Within<'_>,
        input: &mut &[u8],
    ) -> Result<Value, CodecError> {
        let tag = u32::decode(input)?;
        let variant = variants
            .get(tag as usize)
            .ok_or(CodecError::Tag { what: "variant", found: u64::from(tag) })?;
        let fields = self.fields(&variant.fields, &Scope::inside(within, schema), input)?;
        Ok(Value::Enum { name: name.to_owned(), variant: variant.name.clone(), fields })
    }

    fn fields(
        &mut self,
        fields: &[Field],
        scope: &Scope<'_>,
        input: &mut &[u8],
    ) -> Result<Vec<(String, Value)>, CodecError> {
        let mut values = Vec::new();
        for field in fields {
            values.push((field.name.clone(), self.value(&field.schema, Some(scope), input)?));
        }
        Ok(values)
    }
}

/// Reads a value that holds no other.
fn scalar(schema: &Schema, input: &mut &[u8]) -> Result<Value, CodecError> {
    match schema {
        Schema::Bool => bool::decode(input).map(Value::Bool),
        Schema::Int { bytes, signed } => integer(*bytes, *signed, input),
        Schema::Float { bytes } => float(*bytes, input),
        Schema::Char => char::decode(input).map(Value::Char),
        Schema::String => String::decode(input).map(Value::String),
        Schema::Timestamp => i64::decode(input).map(Value::Timestamp),
        Schema::Serde(_) => {
            let len = u32::decode(input)? as usize;
            Ok(Value::Opaque(take_slice(input, len, "a serde value")?.to_vec()))
        }
        _ => Ok(Value::Unit),
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
