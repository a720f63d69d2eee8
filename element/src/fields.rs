//! [`Fields`]: the fields of a value, taken out by name. Serves the derived `from_value`.
//!
//! Left out on purpose: whether two schemas fit at all, which [`crate::Schema::check_readable`] says
//! before any value is read.

use crate::{Record, SchemaError, Value};

/// The fields of a struct or variant as they were written.
#[derive(Debug)]
pub struct Fields(Vec<(String, Value)>);

impl Fields {
    /// The fields of a struct.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if `value` is none.
    pub fn of_struct(value: Value, type_name: &'static str) -> Result<Self, SchemaError> {
        match value {
            Value::Struct { fields, .. } => Ok(Self(fields)),
            other => Err(other.mismatch(type_name)),
        }
    }

    /// The variant of an enum, and its fields.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if `value` is none.
    pub fn of_enum(value: Value, type_name: &'static str) -> Result<(String, Self), SchemaError> {
        match value {
            Value::Enum { variant, fields, .. } => Ok((variant, Self(fields))),
            other => Err(other.mismatch(type_name)),
        }
    }

    /// The error of a variant that the program does not have.
    #[must_use]
    pub fn no_variant(variant: &str, type_name: &'static str) -> SchemaError {
        SchemaError {
            path: variant.to_owned(),
            old: format!("variant `{variant}`"),
            new: type_name.to_owned(),
        }
    }

    /// Takes a field out. Fields in the order written cost one comparison each.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] with the field's path, if it is missing or of another type.
    pub fn take<T: Record>(&mut self, name: &'static str) -> Result<T, SchemaError> {
        match self.remove(name) {
            Some(value) => T::from_value(value).map_err(|error| error.inside(name)),
            None => Err(SchemaError {
                path: name.to_owned(),
                old: "a missing field".to_owned(),
                new: T::schema().to_string(),
            }),
        }
    }

    /// Takes a field out, or makes the type's default if it is missing.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] with the field's path, if it is of another type.
    pub fn take_or_default<T: Record + Default>(
        &mut self,
        name: &'static str,
    ) -> Result<T, SchemaError> {
        match self.remove(name) {
            Some(value) => T::from_value(value).map_err(|error| error.inside(name)),
            None => Ok(T::default()),
        }
    }

    fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(field, _)| field == name)?;
        Some(self.0.remove(at).1)
    }
}

/// What a value holds outside of its own size.
pub fn heap_bytes<T: Record>(value: &T) -> usize {
    value.estimated_bytes().saturating_sub(size_of::<T>())
}
