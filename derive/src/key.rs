//! The code of `#[derive(Key)]`.
//!
//! Reads an [`Input`]. Fields stand one behind the other: every key's encoding ends by itself. An
//! enum's variant goes first, as its rank in the order that `derive(Ord)` gives: by discriminant.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Expr, ExprLit, ExprUnary, Lit, UnOp};

use crate::input::{Field, Input, Shape, Variant, construct};

const TRAIT: &str = "Key";

/// The whole impl.
///
/// # Errors
///
/// Those of [`Input::read`]; a discriminant whose order cannot be seen.
pub(crate) fn expand(input: DeriveInput) -> syn::Result<TokenStream> {
    let input = Input::read(input, "key", TRAIT)?;
    let (ident, private) = (&input.ident, &input.private);
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let (encode, decode) = match &input.shape {
        Shape::Struct(fields) => (encode_struct(&input, fields), decode_struct(&input, fields)),
        Shape::Enum(variants) => {
            let ranks = ranks(variants)?;
            (encode_enum(&input, variants, &ranks), decode_enum(&input, variants, &ranks))
        }
    };
    let short_forms = short_forms(&input);
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #private::Key for #ident #type_generics #where_clause {
            #[inline]
            fn encode_key(&self, out: &mut ::std::vec::Vec<u8>) {
                #encode
            }

            #[inline]
            fn decode_key(
                input: &mut &[u8],
            ) -> ::core::result::Result<Self, #private::CodecError> {
                #decode
            }

            #short_forms
        }
    })
}

/// Number and word of a struct of one field are those of the field.
fn short_forms(input: &Input) -> TokenStream {
    let Shape::Struct(fields) = &input.shape else { return TokenStream::new() };
    let [field] = fields.as_slice() else { return TokenStream::new() };
    let member = &field.member;
    let number = field.call(&input.private, TRAIT, "as_number");
    let word = field.call(&input.private, TRAIT, "as_word");
    quote! {
        #[inline]
        fn as_number(&self) -> ::core::option::Option<u64> {
            #number(&self.#member)
        }

        #[inline]
        fn as_word(&self) -> ::core::option::Option<[u8; 8]> {
            #word(&self.#member)
        }
    }
}

fn encode_struct(input: &Input, fields: &[Field]) -> TokenStream {
    let writes = fields.iter().map(|field| {
        let (member, call) = (&field.member, field.call(&input.private, TRAIT, "encode_key"));
        quote!(#call(&self.#member, out);)
    });
    quote!(let _ = &out; #(#writes)*)
}

fn read(input: &Input) -> impl Fn(&Field) -> TokenStream {
    |field| {
        let call = field.call(&input.private, TRAIT, "decode_key");
        quote!(#call(input)?)
    }
}

fn decode_struct(input: &Input, fields: &[Field]) -> TokenStream {
    let whole = construct(&quote!(Self), fields, read(input));
    quote!(let _ = &input; ::core::result::Result::Ok(#whole))
}

fn encode_enum(input: &Input, variants: &[Variant], ranks: &[TokenStream]) -> TokenStream {
    if variants.is_empty() {
        return quote!(let _ = out; match *self {});
    }
    let arms = variants.iter().zip(ranks).map(|(variant, rank)| {
        let pattern = variant.pattern();
        let writes = variant.fields.iter().enumerate().map(|(index, field)| {
            let call = field.call(&input.private, TRAIT, "encode_key");
            let local = Field::local(index);
            quote!(#call(#local, out);)
        });
        quote! {
            #pattern => {
                out.extend_from_slice(&#rank.to_be_bytes());
                #(#writes)*
            }
        }
    });
    quote!(match self { #(#arms)* })
}

fn decode_enum(input: &Input, variants: &[Variant], ranks: &[TokenStream]) -> TokenStream {
    let (private, name) = (&input.private, input.name());
    let tag = if wide(variants) { quote!(u16) } else { quote!(u8) };
    let arms = variants.iter().zip(ranks).map(|(variant, rank)| {
        let ident = &variant.ident;
        let whole = construct(&quote!(Self::#ident), &variant.fields, read(input));
        quote!(#rank => ::core::result::Result::Ok(#whole),)
    });
    quote! {
        match <#tag as #private::Key>::decode_key(input)? {
            #(#arms)*
            other => ::core::result::Result::Err(#private::CodecError::Tag {
                what: #name,
                found: ::core::convert::From::from(other),
            }),
        }
    }
}

/// Whether one byte does not hold every rank.
fn wide(variants: &[Variant]) -> bool {
    variants.len() > 256
}

/// Each variant's place in the order of discriminants, as a literal of the tag's type.
fn ranks(variants: &[Variant]) -> syn::Result<Vec<TokenStream>> {
    let mut discriminants = Vec::with_capacity(variants.len());
    let mut next = 0_i128;
    for variant in variants {
        if let Some(expression) = &variant.discriminant {
            next = literal(expression).ok_or_else(|| {
                syn::Error::new_spanned(
                    expression,
                    "a `Key` sorts its variants by discriminant: write it as a literal",
                )
            })?;
        }
        discriminants.push(next);
        next = next.saturating_add(1);
    }
    let rank_of = |own: &i128| discriminants.iter().filter(|other| *other < own).count();
    discriminants
        .iter()
        .map(|own| {
            let rank = u16::try_from(rank_of(own)).map_err(|_| {
                syn::Error::new(
                    proc_macro2::Span::call_site(),
                    "a `Key` has at most 65536 variants",
                )
            })?;
            Ok(match u8::try_from(rank) {
                Ok(narrow) if !wide(variants) => quote!(#narrow),
                _ => quote!(#rank),
            })
        })
        .collect()
}

fn literal(expression: &Expr) -> Option<i128> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => literal(expr).map(|n| -n),
        Expr::Group(group) => literal(&group.expr),
        Expr::Paren(paren) => literal(&paren.expr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks_of(source: &str) -> Vec<String> {
        let input = syn::parse_str(source).expect("a type");
        let input = Input::read(input, "key", TRAIT).expect("a type that can be a key");
        let Shape::Enum(variants) = input.shape else { return Vec::new() };
        ranks(&variants).expect("literal discriminants").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn variants_rank_by_discriminant_as_derived_order_does() {
        assert_eq!(ranks_of("enum E { A, B(u8), C }"), ["0u8", "1u8", "2u8"]);
        assert_eq!(ranks_of("enum E { A = 5, B = -1, C, D = 2 }"), ["3u8", "0u8", "1u8", "2u8"]);
    }

    #[test]
    fn more_variants_than_a_byte_holds_take_two() {
        let source = |count: usize| {
            let variants: Vec<String> = (0..count).map(|n| format!("V{n}")).collect();
            format!("enum E {{ {} }}", variants.join(", "))
        };
        assert_eq!(ranks_of(&source(256)).last().map(String::as_str), Some("255u8"));
        let wide = ranks_of(&source(257));
        assert_eq!((wide[0].as_str(), wide[256].as_str()), ("0u16", "256u16"));
    }
}
