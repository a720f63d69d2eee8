//! [`Key`]: what records may be grouped by.
//!
//! Every key has one canonical byte encoding: two keys are equal if and only if their bytes are
//! equal, and the bytes compare as the keys do. Integers are big-endian with the sign flipped, text
//! is UTF-8 with an escaped end. The encoding of one value is never a prefix of that of another of
//! its type, so encodings can be put one behind the other and still be taken apart.
//!
//! From the bytes comes the one hash of the engine ([`crate::hash_key_bytes`]).

use crate::CodecError;

/// A value that records can be grouped by.
///
/// Implemented for the integers, `bool`, `char`, `String`, `Vec<u8>`-like lists, tuples, `Option`,
/// arrays and [`crate::Timestamp`]; made for own types by `#[derive(Key)]`. Floats are not keys, for
/// NaN is not equal to itself: [`crate::OrderedF64`] and [`crate::OrderedF32`] are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a `Key`",
    note = "floats are no keys, for NaN is not equal to itself: wrap them in `OrderedF64` or `OrderedF32`",
    note = "own types become keys by `#[derive(Key)]` (with `Clone, PartialEq, Eq`)"
)]
pub trait Key: Clone + Eq + Send + Sync + 'static {
    /// Appends the canonical bytes of this key to `out`.
    fn encode_key(&self, out: &mut Vec<u8>);

    /// Reads one key from the front of `input` and moves `input` behind it.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the bytes are cut or not canonical.
    fn decode_key(input: &mut &[u8]) -> Result<Self, CodecError>;

    /// A number that no other key of the type has, if this one has such a number at hand; always the same
    /// for one key. Tables find a key by it without its bytes.
    #[inline]
    fn as_number(&self) -> Option<u64> {
        None
    }

    /// The canonical bytes, if they are eight and at hand; always or never so for one key. Keys that have
    /// such a word are hashed and compared without a buffer.
    #[inline]
    fn as_word(&self) -> Option<[u8; 8]> {
        None
    }
}

/// The canonical bytes of one key.
pub fn key_bytes<K: Key>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_key(&mut out);
    out
}

/// Reads a key that fills `bytes` exactly.
///
/// # Errors
///
/// [`CodecError`], also when bytes are left over.
pub fn decode_key_exact<K: Key>(mut bytes: &[u8]) -> Result<K, CodecError> {
    let key = K::decode_key(&mut bytes)?;
    if bytes.is_empty() {
        Ok(key)
    } else {
        Err(CodecError::Trailing { what: std::any::type_name::<K>(), left: bytes.len() })
    }
}
