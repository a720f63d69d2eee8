//! The code of `#[derive(Record)]`.
//!
//! Reads an [`Input`]; every method of the trait is one function here. The reading of values by name
//! is kept out of the generated code: `__private::Fields` does it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::input::{Field, Input, Shape, Variant, construct};

const TRAIT: &str = "Record";

/// The whole impl.
///
/// # Errors
///
/// Those of [`Input::read`].
pub(crate) fn expand(input: DeriveInput) -> syn::Result<TokenStream> {
    let input = Input::read(input, "record", TRAIT)?;
    let (ident, private) = (&input.ident, &input.private);
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let (encode, decode) = (encode(&input), decode(&input));
    let (schema, from_value, heap) = (schema(&input), from_value(&input), heap_bytes(&input));
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #private::Record for #ident #type_generics #where_clause {
            #[inline]
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                #encode
            }

            #[inline]
            fn decode(input: &mut &[u8]) -> ::core::result::Result<Self, #private::CodecError> {
                #decode
            }

            fn schema() -> #private::Schema {
                #schema
            }

            fn from_value(
                value: #private::Value,
            ) -> ::core::result::Result<Self, #private::SchemaError> {
                #from_value
            }

            fn estimated_bytes(&self) -> usize {
                ::core::mem::size_of::<Self>() + #heap
            }
        }
    })
}

fn encode(input: &Input) -> TokenStream {
    let private = &input.private;
    let write = |field: &Field, place: TokenStream| {
        let call = field.call(private, TRAIT, "encode");
        quote!(#call(#place, out);)
    };
    match &input.shape {
        Shape::Struct(fields) => {
            let writes = fields.iter().map(|field| {
                let member = &field.member;
                write(field, quote!(&self.#member))
            });
            quote!(let _ = &out; #(#writes)*)
        }
        Shape::Enum(variants) if variants.is_empty() => quote!(let _ = out; match *self {}),
        Shape::Enum(variants) => {
            let arms = (0_u32..).zip(variants).map(|(tag, variant)| {
                let pattern = variant.pattern();
                let writes = variant.fields.iter().enumerate().map(|(index, field)| {
                    let local = Field::local(index);
                    write(field, quote!(#local))
                });
                quote! {
                    #pattern => {
                        out.extend_from_slice(&#tag.to_le_bytes());
                        #(#writes)*
                    }
                }
            });
            quote!(match self { #(#arms)* })
        }
    }
}

fn decode(input: &Input) -> TokenStream {
    let (private, name) = (&input.private, input.name());
    let read = |field: &Field| {
        let call = field.call(private, TRAIT, "decode");
        quote!(#call(input)?)
    };
    match &input.shape {
        Shape::Struct(fields) => {
            let whole = construct(&quote!(Self), fields, read);
            quote!(let _ = &input; ::core::result::Result::Ok(#whole))
        }
        Shape::Enum(variants) => {
            let arms = (0_u32..).zip(variants).map(|(tag, variant)| {
                let ident = &variant.ident;
                let whole = construct(&quote!(Self::#ident), &variant.fields, read);
                quote!(#tag => ::core::result::Result::Ok(#whole),)
            });
            quote! {
                match <u32 as #private::Record>::decode(input)? {
                    #(#arms)*
                    other => ::core::result::Result::Err(#private::CodecError::Tag {
                        what: #name,
                        found: ::core::convert::From::from(other),
                    }),
                }
            }
        }
    }
}

fn schema(input: &Input) -> TokenStream {
    let (private, name) = (&input.private, input.name());
    let list = |fields: &[Field]| {
        let fields = fields.iter().map(|field| {
            let (name, has_default) = (&field.name, field.has_default);
            let call = field.call(private, TRAIT, "schema");
            quote! {
                #private::Field {
                    name: ::std::string::String::from(#name),
                    schema: #call(),
                    has_default: #has_default,
                }
            }
        });
        quote!(::std::vec![#(#fields),*])
    };
    let build = match &input.shape {
        Shape::Struct(fields) => {
            let fields = list(fields);
            quote!(#private::Schema::Struct {
                name: ::std::string::String::from(#name),
                fields: #fields,
            })
        }
        Shape::Enum(variants) => {
            let variants = variants.iter().map(|Variant { name, fields, .. }| {
                let fields = list(fields);
                quote!(#private::Variant {
                    name: ::std::string::String::from(#name),
                    fields: #fields,
                })
            });
            quote!(#private::Schema::Enum {
                name: ::std::string::String::from(#name),
                variants: ::std::vec![#(#variants),*],
            })
        }
    };
    quote!(#private::Schema::named(::core::any::type_name::<Self>(), #name, || #build))
}

fn from_value(input: &Input) -> TokenStream {
    let (private, name) = (&input.private, input.name());
    let take = |field: &Field| {
        let (name, ty) = (&field.name, &field.ty);
        if field.has_default {
            quote!(fields.take_or_default::<#ty>(#name)?)
        } else {
            quote!(fields.take::<#ty>(#name)?)
        }
    };
    match &input.shape {
        Shape::Struct(fields) => {
            let whole = construct(&quote!(Self), fields, take);
            quote! {
                #[allow(unused_mut)]
                let mut fields = #private::Fields::of_struct(value, #name)?;
                ::core::result::Result::Ok(#whole)
            }
        }
        Shape::Enum(variants) => {
            let arms = variants.iter().map(|variant| {
                let (ident, name) = (&variant.ident, &variant.name);
                let whole = construct(&quote!(Self::#ident), &variant.fields, take);
                quote!(#name => ::core::result::Result::Ok(#whole),)
            });
            quote! {
                #[allow(unused_mut)]
                let (variant, mut fields) = #private::Fields::of_enum(value, #name)?;
                match variant.as_str() {
                    #(#arms)*
                    _ => ::core::result::Result::Err(#private::Fields::no_variant(&variant, #name)),
                }
            }
        }
    }
}

fn heap_bytes(input: &Input) -> TokenStream {
    let private = &input.private;
    match &input.shape {
        Shape::Struct(fields) => {
            let members = fields.iter().map(|field| &field.member);
            quote!(0 #(+ #private::heap_bytes(&self.#members))*)
        }
        Shape::Enum(variants) if variants.is_empty() => quote!(match *self {}),
        Shape::Enum(variants) => {
            let arms = variants.iter().map(|variant| {
                let pattern = variant.pattern();
                let locals = (0..variant.fields.len()).map(Field::local);
                quote!(#pattern => 0 #(+ #private::heap_bytes(#locals))*,)
            });
            quote!(match self { #(#arms)* })
        }
    }
}
