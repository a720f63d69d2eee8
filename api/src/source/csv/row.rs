//! [`Layout`]: which cell of a row goes to which field of a record.
//!
//! A record's field names are learnt from serde with the first row; from then on only the cells that
//! have a field are looked at.

use std::fmt;

use csv::ByteRecord;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};

use super::cell::Cell;
use crate::source::bad_record::Defect;

/// The columns of a file, and the way from them to a record.
pub(super) struct Layout {
    names: Option<Vec<String>>,
    nulls: Vec<Vec<u8>>,
    /// The columns that the record has a field for; unknown before the first row.
    wanted: Option<Vec<usize>>,
}

/// Why a row is no record.
#[derive(Debug)]
pub(super) struct RowError {
    column: Option<String>,
    reason: String,
}

impl RowError {
    pub(super) fn into_defect(self) -> Defect {
        Defect { column: self.column, reason: self.reason }
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for RowError {}

impl de::Error for RowError {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self { column: None, reason: message.to_string() }
    }
}

impl Layout {
    pub(super) fn new(names: Option<ByteRecord>, nulls: Vec<Vec<u8>>) -> Self {
        let names = names.map(|names| {
            names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
        });
        Self { names, nulls, wanted: None }
    }

    /// Makes a row a record.
    pub(super) fn row<T: DeserializeOwned>(&mut self, cells: &ByteRecord) -> Result<T, RowError> {
        let Self { names, nulls, wanted } = self;
        if let Some(names) = names
            && names.len() != cells.len()
        {
            let (found, expected) = (cells.len(), names.len());
            let cells = if found == 1 { "cell" } else { "cells" };
            return Err(de::Error::custom(format!(
                "{found} {cells} where the header has {expected}"
            )));
        }
        T::deserialize(RowDeserializer { names: names.as_deref(), nulls, wanted, cells })
    }
}

struct RowDeserializer<'l, 'r> {
    names: Option<&'l [String]>,
    nulls: &'l [Vec<u8>],
    wanted: &'l mut Option<Vec<usize>>,
    cells: &'r ByteRecord,
}

impl<'l, 'r> RowDeserializer<'l, 'r> {
    /// The only cell of the row: what a record is that has no fields of its own.
    fn only(self) -> Result<Cell<'l, 'r>, RowError> {
        match (self.cells.get(0), self.cells.len()) {
            (Some(text), 1) => Ok(Cell { text, nulls: self.nulls }),
            (_, found) => Err(de::Error::custom(format!("{found} cells for a single value"))),
        }
    }

    fn seq(self) -> Cells<'l, 'r> {
        Cells { names: self.names, nulls: self.nulls, cells: self.cells, columns: All(0), at: None }
    }
}

/// The columns to visit, in order.
trait Columns {
    fn next(&mut self) -> Option<usize>;
}

/// Each of them.
struct All(usize);

impl Columns for All {
    fn next(&mut self) -> Option<usize> {
        self.0 += 1;
        Some(self.0 - 1)
    }
}

/// Those that a record has a field for.
struct Wanted<'l>(std::slice::Iter<'l, usize>);

impl Columns for Wanted<'_> {
    fn next(&mut self) -> Option<usize> {
        self.0.next().copied()
    }
}

struct Cells<'l, 'r, C = All> {
    names: Option<&'l [String]>,
    nulls: &'l [Vec<u8>],
    cells: &'r ByteRecord,
    columns: C,
    at: Option<usize>,
}

impl<'l, 'r, C: Columns> Cells<'l, 'r, C> {
    fn next(&mut self) -> Option<Cell<'l, 'r>> {
        self.at = self.columns.next();
        self.at.and_then(|at| self.cells.get(at)).map(|text| Cell { text, nulls: self.nulls })
    }

    /// The name of the column at hand, or its number.
    fn column(&self) -> Option<String> {
        let at = self.at?;
        let name = self.names.and_then(|names| names.get(at));
        Some(name.map_or_else(|| (at + 1).to_string(), |name| format!("`{name}`")))
    }

    fn within<V>(&self, result: Result<V, RowError>) -> Result<V, RowError> {
        result.map_err(|error| RowError { column: error.column.or_else(|| self.column()), ..error })
    }
}

impl<'de, C: Columns> de::SeqAccess<'de> for Cells<'_, 'de, C> {
    type Error = RowError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, RowError> {
        let Some(cell) = self.next() else { return Ok(None) };
        let value = seed.deserialize(cell);
        self.within(value).map(Some)
    }
}

struct Fields<'l, 'r, C> {
    cells: Cells<'l, 'r, C>,
    cell: Option<Cell<'l, 'r>>,
}

impl<'de, C: Columns> de::MapAccess<'de> for Fields<'_, 'de, C> {
    type Error = RowError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, RowError> {
        self.cell = self.cells.next();
        let (Some(_), Some(at)) = (&self.cell, self.cells.at) else { return Ok(None) };
        let name = self.cells.names.and_then(|names| names.get(at)).map_or("", String::as_str);
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        let cell = self.cell.take().ok_or_else(|| de::Error::custom("a value without its name"))?;
        let value = seed.deserialize(cell);
        self.cells.within(value)
    }
}

/// A record that is one value takes the only cell of its row.
macro_rules! single {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            self.only()?.$method(visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for RowDeserializer<'_, 'de> {
    type Error = RowError;

    single! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.names.is_some() {
            self.deserialize_map(visitor)
        } else {
            self.deserialize_seq(visitor)
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        let Self { names: Some(names), nulls, wanted, cells } = self else {
            return visitor.visit_seq(self.seq());
        };
        let wanted = wanted.get_or_insert_with(|| {
            let wanted = |name: &String| fields.contains(&name.as_str());
            names.iter().enumerate().filter(|(_, name)| wanted(name)).map(|(at, _)| at).collect()
        });
        let columns = Wanted(wanted.iter());
        let cells = Cells { names: Some(names), nulls, cells, columns, at: None };
        visitor.visit_map(Fields { cells, cell: None })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_map(Fields { cells: self.seq(), cell: None })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_seq(self.seq())
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_seq(self.seq())
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_seq(self.seq())
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }
}
