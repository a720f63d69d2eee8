//! [`Scope`]: the named types that a schema is read inside of, innermost first.
//!
//! Serves the decoder and the comparison of schemas: both meet [`Schema::Recursive`] and must find
//! the type it names. A name stands for the nearest enclosing type of that name; `Name^1` skips one,
//! which happens only where two types share a name and one holds the other.

use crate::Schema;

/// An open named type, and what it is inside of. Lives on the stack of a recursion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    schema: &'a Schema,
    outer: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    /// Opens `schema` inside of `outer`.
    pub(crate) fn inside(outer: Option<&'a Self>, schema: &'a Schema) -> Self {
        Self { schema, outer }
    }

    /// The type that a recursive mention means, and the scope that the type itself stands in.
    pub(crate) fn find(
        mut scope: Option<&'a Self>,
        mention: &str,
    ) -> Option<(&'a Schema, Option<&'a Self>)> {
        let (name, mut skip) = match mention.rsplit_once('^') {
            Some((name, skip)) => (name, skip.parse::<usize>().ok()?),
            None => (mention, 0),
        };
        while let Some(here) = scope {
            if here.schema.type_name() == Some(name) {
                if skip == 0 {
                    return Some((here.schema, here.outer));
                }
                skip -= 1;
            }
            scope = here.outer;
        }
        None
    }
}

/// How a mention of a type is written that skips `skip` nearer ones of its name.
pub(crate) fn mention(name: &str, skip: usize) -> String {
    if skip == 0 { name.to_owned() } else { format!("{name}^{skip}") }
}
