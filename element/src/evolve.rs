//! [`Schema::check_readable`]: whether data of an old schema can be read by today's type.
//!
//! Called once a state on restore, before any value is read, so that a change that loses data is
//! named at the start and not at the first record that shows it.

use crate::scope::Scope;
use crate::{Field, Schema, SchemaError, Variant};

impl Schema {
    /// Whether every value written under `old` can be read under `self`, the new schema.
    ///
    /// Fine are: a field added with a default, a field removed, fields and variants reordered, a
    /// variant added, an integer or float widened, and `T` become `Option<T>`. Names of types do not
    /// count, names of fields and variants do. Costs one walk over both schemas.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] for the first field, in the new order, that fits none of these.
    pub fn check_readable(&self, old: &Self) -> Result<(), SchemaError> {
        Check { assumed: Vec::new() }.readable((self, None), (old, None))
    }

    /// The name of a struct or enum.
    pub(crate) fn type_name(&self) -> Option<&str> {
        match self {
            Self::Struct { name, .. } | Self::Enum { name, .. } => Some(name),
            _ => None,
        }
    }
}

/// A schema and the named types that it stands inside of.
type Place<'a> = (&'a Schema, Option<&'a Scope<'a>>);

struct Check {
    /// Pairs of named types that are being compared further out, by address: a recursive mention of
    /// such a pair is fine if the rest is.
    assumed: Vec<(usize, usize)>,
}

impl Check {
    fn readable(&mut self, new: Place<'_>, old: Place<'_>) -> Result<(), SchemaError> {
        let (new, old) = (resolve(new)?, resolve(old)?);
        let scopes = (new.1, old.1);
        match (new.0, old.0) {
            (Schema::Int { .. }, Schema::Int { .. }) if holds(new.0, old.0) => Ok(()),
            (Schema::Float { bytes: new }, Schema::Float { bytes: old }) if new >= old => Ok(()),
            (Schema::Option(a), Schema::Option(b)) => self.readable((a, new.1), (b, old.1)),
            (Schema::Option(inner), _) => self.readable((inner, new.1), old),
            (Schema::List(a), Schema::List(b)) => self.part(a, b, scopes, "[]"),
            (Schema::Array(a, m), Schema::Array(b, n)) if m == n => self.part(a, b, scopes, "[]"),
            (Schema::Map(new_key, new_value), Schema::Map(old_key, old_value)) => {
                self.part(new_key, old_key, scopes, "key")?;
                self.part(new_value, old_value, scopes, "value")
            }
            (Schema::Tuple(a), Schema::Tuple(b)) if a.len() == b.len() => (0..)
                .zip(a.iter().zip(b))
                .try_for_each(|(index, (a, b))| self.part(a, b, scopes, &format!("{index}"))),
            (Schema::Struct { fields: a, .. }, Schema::Struct { fields: b, .. }) => {
                self.named(new, old, |this, new, old| this.fields((a, new), (b, old)))
            }
            (Schema::Enum { variants: a, .. }, Schema::Enum { variants: b, .. }) => {
                self.named(new, old, |this, new, old| this.variants((a, new), (b, old)))
            }
            (a, b) if a == b && a.type_name().is_none() => Ok(()),
            (a, b) => Err(mismatch(a, b)),
        }
    }

    /// Compares what stands inside of two unnamed types.
    fn part<'a>(
        &mut self,
        new: &'a Schema,
        old: &'a Schema,
        (new_scope, old_scope): (Option<&'a Scope<'a>>, Option<&'a Scope<'a>>),
        name: &str,
    ) -> Result<(), SchemaError> {
        self.readable((new, new_scope), (old, old_scope)).map_err(|error| error.inside(name))
    }

    /// Compares two named types, unless that is under way further out.
    fn named(
        &mut self,
        new: Place<'_>,
        old: Place<'_>,
        compare: impl FnOnce(&mut Self, &Scope<'_>, &Scope<'_>) -> Result<(), SchemaError>,
    ) -> Result<(), SchemaError> {
        let pair = (address(new.0), address(old.0));
        if self.assumed.contains(&pair) {
            return Ok(());
        }
        self.assumed.push(pair);
        compare(self, &Scope::inside(new.1, new.0), &Scope::inside(old.1, old.0))
    }

    fn fields(
        &mut self,
        (new, new_scope): (&[Field], &Scope<'_>),
        (old, old_scope): (&[Field], &Scope<'_>),
    ) -> Result<(), SchemaError> {
        new.iter().try_for_each(|field| {
            match old.iter().find(|written| written.name == field.name) {
                Some(written) => self
                    .readable((&field.schema, Some(new_scope)), (&written.schema, Some(old_scope)))
                    .map_err(|error| error.inside(&field.name)),
                None if field.has_default => Ok(()),
                None => Err(SchemaError {
                    path: field.name.clone(),
                    old: "a missing field".to_owned(),
                    new: field.schema.to_string(),
                }),
            }
        })
    }

    fn variants(
        &mut self,
        (new, new_scope): (&[Variant], &Scope<'_>),
        (old, old_scope): (&[Variant], &Scope<'_>),
    ) -> Result<(), SchemaError> {
        old.iter().try_for_each(|written| {
            match new.iter().find(|variant| variant.name == written.name) {
                Some(variant) => self
                    .fields((&variant.fields, new_scope), (&written.fields, old_scope))
                    .map_err(|error| error.inside(&variant.name)),
                None => Err(SchemaError {
                    path: written.name.clone(),
                    old: format!("variant `{}`", written.name),
                    new: "no variant".to_owned(),
                }),
            }
        })
    }
}

/// The type that a recursive mention means; anything else as it is.
fn resolve((schema, within): Place<'_>) -> Result<Place<'_>, SchemaError> {
    match schema {
        Schema::Recursive(mention) => Scope::find(within, mention).ok_or_else(|| SchemaError {
            path: String::new(),
            old: mention.clone(),
            new: "a type that is not there".to_owned(),
        }),
        _ => Ok((schema, within)),
    }
}

/// Whether every integer of `old` is one of `new`.
fn holds(new: &Schema, old: &Schema) -> bool {
    let (Schema::Int { bytes: a, signed: to }, Schema::Int { bytes: b, signed: from }) = (new, old)
    else {
        return false;
    };
    match (to, from) {
        (true, false) => a > b,
        (false, true) => false,
        _ => a >= b,
    }
}

fn address(schema: &Schema) -> usize {
    std::ptr::from_ref(schema).addr()
}

fn mismatch(new: &Schema, old: &Schema) -> SchemaError {
    SchemaError { path: String::new(), old: old.to_string(), new: new.to_string() }
}
