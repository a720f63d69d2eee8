//! `#[derive(Record)]` and `#[derive(Key)]`: the code that a hand would write, field by field.
//!
//! Used by every program over the engine, and by the tests of the floor crate. The generated code
//! names its paths through the `__private` module of the api crate, or of the crate that the
//! container attribute `crate = "..."` names. Left out on purpose: what the traits mean
//! (`slackwater-element` says that) and options that change the encoding: there is one encoding.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod attributes;
mod input;
mod key;
mod record;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct or an enum a `Record`: it can travel, rest in a file, and be kept as state.
///
/// Fields are written in order, one behind the other; an enum has a `u32` tag in front, its
/// variant's position. Every field must be a `Record`; every type parameter is asked to be one.
/// An encoding is one pass over the fields and allocates nothing but the output.
///
/// Attributes: `#[record(default)]` on a field reads `Default::default()` where data written earlier
/// lacks the field; `#[record(crate = "path")]` on the type names the crate that holds the trait.
///
/// # Errors
///
/// Does not compile for unions, borrowed data, unknown attributes and fields that are no `Record`.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(tokens: TokenStream) -> TokenStream {
    let parsed = parse_macro_input!(tokens as DeriveInput);
    record::expand(parsed).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a struct or an enum a `Key`: records can be grouped by it.
///
/// The canonical bytes are those of the fields in order; an enum has its variant's rank in front (one
/// byte up to 256 variants, then two), so bytes compare as `#[derive(PartialOrd, Ord)]` does. The type must also be
/// `Clone`, `PartialEq` and `Eq`, by derive.
///
/// `#[key(crate = "path")]` on the type names the crate that holds the trait.
///
/// # Errors
///
/// Does not compile for unions, borrowed data, unknown attributes and fields that are no `Key`: for a
/// float the message names the wrapper that is one.
#[proc_macro_derive(Key, attributes(key))]
pub fn derive_key(tokens: TokenStream) -> TokenStream {
    let parsed = parse_macro_input!(tokens as DeriveInput);
    key::expand(parsed).unwrap_or_else(|error| error.to_compile_error()).into()
}
