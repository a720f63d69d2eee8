//! The attributes `#[record(...)]` and `#[key(...)]`, read and checked.
//!
//! Read by [`crate::input`]. Anything unknown is an error at its own place, so that a misspelt
//! attribute never does nothing.

use syn::{Attribute, LitStr, Path, parse_quote};

/// The crate that holds the traits: what `crate = "..."` says, or the api crate.
///
/// # Errors
///
/// An unknown attribute, or a text that is no path.
pub(crate) fn crate_path(attributes: &[Attribute], namespace: &str) -> syn::Result<Path> {
    let mut path: Path = parse_quote!(::slackwater);
    for attribute in of(attributes, namespace) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error(format!(
                    "unknown attribute: `{namespace}` knows only `crate = \"...\"` on a type"
                )));
            }
            let text: LitStr = meta.value()?.parse()?;
            path = text.parse_with(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(path)
}

/// Whether a field is marked `default`.
///
/// # Errors
///
/// An unknown attribute; any attribute where `namespace` has none for fields.
pub(crate) fn has_default(attributes: &[Attribute], namespace: &str) -> syn::Result<bool> {
    let mut found = false;
    for attribute in of(attributes, namespace) {
        attribute.parse_nested_meta(|meta| {
            if namespace == "record" && meta.path.is_ident("default") {
                found = true;
                return Ok(());
            }
            let known = if namespace == "record" { "only `default`" } else { "no attribute" };
            Err(meta.error(format!("unknown attribute: `{namespace}` knows {known} on a field")))
        })?;
    }
    Ok(found)
}

/// Refuses attributes where none belongs.
///
/// # Errors
///
/// At the first one.
pub(crate) fn refuse(attributes: &[Attribute], namespace: &str) -> syn::Result<()> {
    match of(attributes, namespace).next() {
        None => Ok(()),
        Some(attribute) => Err(syn::Error::new_spanned(
            attribute,
            format!("`{namespace}` knows no attribute on a variant"),
        )),
    }
}

fn of<'a>(
    attributes: &'a [Attribute],
    namespace: &'a str,
) -> impl Iterator<Item = &'a Attribute> + 'a {
    attributes.iter().filter(move |attribute| attribute.path().is_ident(namespace))
}
