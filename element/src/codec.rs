//! [`Record`]: what can travel between tasks, rest in a file, and be kept as state.
//!
//! The encoding is compact and fixed little-endian: numbers in their width, lengths as `u32`,
//! options and variants behind one tag byte. It is *not* self-describing: [`Record::schema`] says
//! what the bytes mean, and [`Record::from_value`] reads a value that was written with an earlier
//! schema, field by field and by name.
//!
//! Left out on purpose: the encoding of keys. Keys compare by their bytes and have one encoding of
//! their own ([`crate::Key`]).

use std::cell::Cell;

use crate::{CodecError, Schema, SchemaError, Value};

/// How deep boxed values may nest when they are read: damaged bytes must not use up the stack.
pub(crate) const NESTING_LIMIT: u32 = 128;

/// How many values of no bytes one list may hold: no bytes stand against their count.
pub(crate) const EMPTY_VALUES_LIMIT: usize = 65_536;

thread_local! {
    static NESTING: Cell<u32> = const { Cell::new(0) };
}

/// One level of nesting, left on drop. Taken by every type through which a type can hold itself.
pub(crate) struct Nesting(());

impl Nesting {
    /// Goes one level deeper.
    ///
    /// # Errors
    ///
    /// [`CodecError::Depth`] at the limit.
    #[inline]
    pub(crate) fn enter() -> Result<Self, CodecError> {
        let depth = NESTING.get();
        if depth >= NESTING_LIMIT {
            return Err(CodecError::Depth { limit: NESTING_LIMIT });
        }
        NESTING.set(depth + 1);
        Ok(Self(()))
    }
}

impl Drop for Nesting {
    #[inline]
    fn drop(&mut self) {
        NESTING.set(NESTING.get() - 1);
    }
}

/// Refuses a count of values of which the first `done` took no bytes.
pub(crate) fn check_empty(done: usize) -> Result<(), CodecError> {
    if done > EMPTY_VALUES_LIMIT {
        return Err(CodecError::Count { limit: EMPTY_VALUES_LIMIT });
    }
    Ok(())
}

/// A value that can be written as bytes and read back.
///
/// Implemented for the numbers, `bool`, `char`, `String`, tuples, `Option`, `Vec`, arrays, `Box`,
/// maps, sets, `VecDeque`, `Arc<str>`, `Duration` and [`crate::Timestamp`]; made for own types by `#[derive(Record)]`; types that only have
/// serde travel inside [`crate::Serde`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel between tasks: it is not a `Record`",
    label = "not a `Record`",
    note = "add `#[derive(Record)]` to your own type, or wrap a serde type in `Serde<T>`"
)]
pub trait Record: Sized + Send + 'static {
    /// Appends the bytes of this value to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads one value from the front of `input` and moves `input` behind it.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the bytes are cut, or hold no value of this type; also for values that nest
    /// deeper than 128 boxes and lists. Never panics, and never reserves more than `input` is long.
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError>;

    /// Field names and types, as snapshots record them.
    fn schema() -> Schema;

    /// Reads a value that was written under another schema, by field name.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] names the field, its old and its new type.
    fn from_value(value: Value) -> Result<Self, SchemaError>;

    /// The bytes this value takes in memory, its heap parts included, by estimate.
    fn estimated_bytes(&self) -> usize {
        size_of::<Self>()
    }

    /// Appends the bytes of values that lie one behind the other: those of [`encode`](Self::encode) for
    /// each in turn. Numbers do it at once.
    fn encode_slice(values: &[Self], out: &mut Vec<u8>) {
        for value in values {
            value.encode(out);
        }
    }

    /// Reads `N` values: those of [`decode`](Self::decode) in turn. Numbers do it at once.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    fn decode_array<const N: usize>(input: &mut &[u8]) -> Result<[Self; N], CodecError> {
        crate::record_containers::array_of_each(input)
    }

    /// Reads `len` values, a count that is not to be trusted: those of [`decode`](Self::decode) in turn.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    fn decode_list(len: usize, input: &mut &[u8]) -> Result<Vec<Self>, CodecError> {
        crate::record_containers::list_of_each(len, input)
    }

    /// Reads `len` arrays of `N` values, a count that is not to be trusted: those of
    /// [`decode_array`](Self::decode_array) in turn. Bytes are copied all at once.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    fn decode_arrays<const N: usize>(
        len: usize,
        input: &mut &[u8],
    ) -> Result<Vec<[Self; N]>, CodecError> {
        crate::record_containers::list_of_each(len, input)
    }
}

/// The bytes of one record.
pub fn encode_to_vec<T: Record>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// Reads one record that fills `bytes` exactly.
///
/// # Errors
///
/// [`CodecError`], also when bytes are left over.
pub fn decode_exact<T: Record>(mut bytes: &[u8]) -> Result<T, CodecError> {
    let value = T::decode(&mut bytes)?;
    if bytes.is_empty() {
        Ok(value)
    } else {
        Err(CodecError::Trailing { what: std::any::type_name::<T>(), left: bytes.len() })
    }
}

/// Takes `N` bytes off the front of `input`.
pub(crate) fn take<const N: usize>(
    input: &mut &[u8],
    what: &'static str,
) -> Result<[u8; N], CodecError> {
    match input.split_first_chunk::<N>() {
        Some((head, rest)) => {
            *input = rest;
            Ok(*head)
        }
        None => Err(CodecError::Short { what, needed: N, left: input.len() }),
    }
}

/// Takes `len` bytes off the front of `input`.
pub(crate) fn take_slice<'a>(
    input: &mut &'a [u8],
    len: usize,
    what: &'static str,
) -> Result<&'a [u8], CodecError> {
    match input.split_at_checked(len) {
        Some((head, rest)) => {
            *input = rest;
            Ok(head)
        }
        None => Err(CodecError::Short { what, needed: len, left: input.len() }),
    }
}
