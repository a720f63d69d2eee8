//! [`Cell`]: the text of one cell to a value of a field's type.
//!
//! A message names the text and the type; the row adds the column.

use std::str::FromStr;

use serde::de::{self, IntoDeserializer, Visitor};

use super::row::RowError;

/// One cell.
#[derive(Clone, Copy)]
pub(super) struct Cell<'l, 'r> {
    pub(super) text: &'r [u8],
    /// Texts that are no value, beside the empty one.
    pub(super) nulls: &'l [Vec<u8>],
}

impl<'r> Cell<'_, 'r> {
    fn is_null(&self) -> bool {
        self.text.is_empty() || self.nulls.iter().any(|null| null == self.text)
    }

    fn text(&self) -> Result<&'r str, RowError> {
        std::str::from_utf8(self.text).map_err(|_| {
            let shown = String::from_utf8_lossy(self.text);
            de::Error::custom(format!("`{shown}` is not UTF-8"))
        })
    }

    fn parse<N: FromStr<Err: std::fmt::Display>>(&self) -> Result<N, RowError> {
        let text = self.text()?;
        text.parse().map_err(|error| {
            let kind = std::any::type_name::<N>();
            de::Error::custom(format!("`{text}` is no {kind}: {error}"))
        })
    }

    /// Refuses digits that are beyond a float's range: only a cell that says so is infinite.
    fn in_range(&self, is_infinite: bool, kind: &str) -> Result<(), RowError> {
        if is_infinite && self.text.iter().any(u8::is_ascii_digit) {
            let text = self.text()?;
            return Err(de::Error::custom(format!("`{text}` is out of the range of {kind}")));
        }
        Ok(())
    }

    fn no<V>(&self, what: &str) -> Result<V, RowError> {
        Err(de::Error::custom(format!("a cell holds no {what}")))
    }
}

macro_rules! number {
    ($($method:ident $visit:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            visitor.$visit(self.parse()?)
        })*
    };
}

impl<'de> de::Deserializer<'de> for Cell<'_, 'de> {
    type Error = RowError;

    number! {
        deserialize_i8 visit_i8 deserialize_i16 visit_i16 deserialize_i32 visit_i32
        deserialize_i64 visit_i64 deserialize_i128 visit_i128
        deserialize_u8 visit_u8 deserialize_u16 visit_u16 deserialize_u32 visit_u32
        deserialize_u64 visit_u64 deserialize_u128 visit_u128
        deserialize_char visit_char
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let number: f32 = self.parse()?;
        self.in_range(number.is_infinite(), "f32")?;
        visitor.visit_f32(number)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let number: f64 = self.parse()?;
        self.in_range(number.is_infinite(), "f64")?;
        visitor.visit_f64(number)
    }

    /// For fields that take any value: a whole number, a float, a truth value, or text.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let text = self.text()?;
        if self.is_null() {
            visitor.visit_none()
        } else if let Ok(number) = text.parse::<i64>() {
            visitor.visit_i64(number)
        } else if let Ok(number) = text.parse::<u64>() {
            visitor.visit_u64(number)
        } else if let (Some(number), true) = (finite(text), has_fraction(text)) {
            visitor.visit_f64(number)
        } else if let Ok(truth) = text.parse::<bool>() {
            visitor.visit_bool(truth)
        } else {
            visitor.visit_borrowed_str(text)
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let text = self.text()?;
        if text.eq_ignore_ascii_case("true") {
            visitor.visit_bool(true)
        } else if text.eq_ignore_ascii_case("false") {
            visitor.visit_bool(false)
        } else {
            Err(de::Error::custom(format!("`{text}` is neither true nor false")))
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_bytes(self.text)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_bytes(self.text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.is_null() { visitor.visit_unit() } else { self.no("unit") }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_enum(self.text()?.into_deserializer())
    }

    fn deserialize_seq<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        self.no("list")
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, RowError> {
        self.no("tuple")
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, RowError> {
        self.no("tuple")
    }

    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        self.no("map")
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, RowError> {
        self.no("struct")
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }
}

/// A float that is in range.
fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Whether a number is written with a fraction or an exponent: a whole number of too many digits would
/// lose some as a float, and stays text.
fn has_fraction(text: &str) -> bool {
    text.contains(['.', 'e', 'E'])
}
