//! What both derives read from a type: its fields, its variants, and the bounds of its impl.
//!
//! Read by [`crate::record`] and [`crate::key`]. Left out on purpose: what is generated.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Generics, Index, Member, Path, Type, parse_quote};

use crate::attributes;

/// A type that a derive stands on.
pub(crate) struct Input {
    pub(crate) ident: Ident,
    pub(crate) generics: Generics,
    /// The path of the traits: `<crate>::__private`.
    pub(crate) private: TokenStream,
    pub(crate) shape: Shape,
}

/// A struct's fields, or an enum's variants.
pub(crate) enum Shape {
    Struct(Vec<Field>),
    Enum(Vec<Variant>),
}

/// One field.
pub(crate) struct Field {
    /// As the program names it: `name`, or `0`.
    pub(crate) member: Member,
    /// As a snapshot names it: without `r#`.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) has_default: bool,
}

/// One variant of an enum.
pub(crate) struct Variant {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) discriminant: Option<syn::Expr>,
}

impl Input {
    /// Reads a type; every type parameter gets `bound`, a trait in `__private`.
    ///
    /// # Errors
    ///
    /// Unions, lifetimes, and attributes that are not known.
    pub(crate) fn read(input: DeriveInput, namespace: &str, bound: &str) -> syn::Result<Self> {
        let path = attributes::crate_path(&input.attrs, namespace)?;
        if let Some(lifetime) = input.generics.lifetimes().next() {
            return Err(syn::Error::new_spanned(
                lifetime,
                format!("a `{bound}` owns its data: a type with a lifetime cannot be one"),
            ));
        }
        let shape = match input.data {
            Data::Struct(data) => Shape::Struct(read_fields(data.fields, namespace)?),
            Data::Enum(data) => Shape::Enum(
                data.variants
                    .into_iter()
                    .map(|variant| read_variant(variant, namespace))
                    .collect::<syn::Result<_>>()?,
            ),
            Data::Union(data) => {
                return Err(syn::Error::new_spanned(
                    data.union_token,
                    format!("a union cannot be a `{bound}`: use an enum"),
                ));
            }
        };
        let generics = with_bound(input.generics, &path, &format_ident!("{bound}"));
        let private = quote!(#path::__private);
        Ok(Self { ident: input.ident, generics, private, shape })
    }

    /// The type's name, as snapshots record it.
    pub(crate) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }
}

impl Field {
    /// A local name for this field, the `index`th of its variant.
    pub(crate) fn local(index: usize) -> Ident {
        Ident::new(&format!("__field_{index}"), Span::mixed_site())
    }

    /// `<Type as Trait>::method`, placed at the field's type, so that errors point there.
    pub(crate) fn call(&self, private: &TokenStream, bound: &str, method: &str) -> TokenStream {
        let (ty, bound, method) = (&self.ty, format_ident!("{bound}"), format_ident!("{method}"));
        quote_spanned!(self.ty.span()=> <#ty as #private::#bound>::#method)
    }
}

impl Variant {
    /// `Self::Name { member: local, ... }`.
    pub(crate) fn pattern(&self) -> TokenStream {
        let ident = &self.ident;
        let members = self.fields.iter().map(|field| &field.member);
        let locals = (0..self.fields.len()).map(Field::local);
        quote!(Self::#ident { #(#members: #locals),* })
    }
}

/// `Path { member: expression, ... }` over all fields, in order.
pub(crate) fn construct(
    path: &TokenStream,
    fields: &[Field],
    expression: impl Fn(&Field) -> TokenStream,
) -> TokenStream {
    let members = fields.iter().map(|field| &field.member);
    let expressions = fields.iter().map(expression);
    quote!(#path { #(#members: #expressions),* })
}

fn read_variant(variant: syn::Variant, namespace: &str) -> syn::Result<Variant> {
    attributes::refuse(&variant.attrs, namespace)?;
    Ok(Variant {
        name: variant.ident.unraw().to_string(),
        fields: read_fields(variant.fields, namespace)?,
        discriminant: variant.discriminant.map(|(_, expression)| expression),
        ident: variant.ident,
    })
}

fn read_fields(fields: Fields, namespace: &str) -> syn::Result<Vec<Field>> {
    let read = |(index, field): (usize, syn::Field)| {
        let has_default = attributes::has_default(&field.attrs, namespace)?;
        let (member, name) = match field.ident {
            Some(ident) => (Member::Named(ident.clone()), ident.unraw().to_string()),
            None => (Member::Unnamed(Index::from(index)), index.to_string()),
        };
        Ok(Field { member, name, ty: field.ty, has_default })
    };
    fields.into_iter().enumerate().map(read).collect()
}

fn with_bound(mut generics: Generics, path: &Path, bound: &Ident) -> Generics {
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#path::__private::#bound));
    }
    generics
}
