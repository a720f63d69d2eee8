//! [`Record`] and [`Key`] for [`CompactString`]: text of up to 24 bytes that lies in the value itself.
//!
//! A word, a code or a name as a `String` costs an allocation and a release for each record. Such text
//! travels, rests and is grouped as a `String` of the same letters: its bytes, schema and hash are equal,
//! so a program may change from one to the other and still read its state.

use compact_str::CompactString;

use crate::key_impls::{decode_escaped, encode_escaped};
use crate::record_impls::{encode_text, take_text};
use crate::{CodecError, Key, Record, Schema, SchemaError, Value};

impl Record for CompactString {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_text(self, out);
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let bytes = take_text(input)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(text)),
            // Once more, for the error that a `String` has.
            Err(_) => Ok(String::from_utf8(bytes.to_vec())?.into()),
        }
    }

    fn schema() -> Schema {
        Schema::String
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        String::from_value(value).map(Self::from)
    }

    fn estimated_bytes(&self) -> usize {
        size_of::<Self>() + if self.is_heap_allocated() { self.capacity() } else { 0 }
    }
}

impl Key for CompactString {
    #[inline]
    fn encode_key(&self, out: &mut Vec<u8>) {
        encode_escaped(self.as_bytes(), out);
    }

    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(String::from_utf8(decode_escaped(input)?)?.into())
    }
}
