//! [`Serde`]: the way in for types that only have serde.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{take, take_slice};
use crate::{CodecError, Record, Schema, SchemaError, Value};

/// Wraps a serde type as a [`Record`], in postcard's format.
///
/// Slower than a derived record (2 to 25 times, by shape), and a snapshot of it cannot be read after
/// the type has changed, for postcard does not describe itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serde<T>(pub T);

impl<T: Serialize + DeserializeOwned + Send + 'static> Record for Serde<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        // A serde implementation that refuses its own value leaves no bytes, which decoding names.
        if let Ok(bytes) = postcard::to_stdvec(&self.0) {
            out.extend_from_slice(&bytes);
        }
        let len = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX).to_le_bytes();
        if let Some(head) = out.get_mut(start..start + 4) {
            head.copy_from_slice(&len);
        }
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let len = u32::from_le_bytes(take(input, "a serde length")?);
        let bytes = take_slice(input, len as usize, "a serde value")?;
        postcard::from_bytes(bytes).map(Self).map_err(|error| CodecError::Serde(error.to_string()))
    }

    fn schema() -> Schema {
        Schema::Serde(std::any::type_name::<T>().to_owned())
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        match value {
            Value::Opaque(bytes) => postcard::from_bytes(&bytes)
                .map(Self)
                .map_err(|_| Value::Opaque(bytes).mismatch(std::any::type_name::<T>())),
            other => Err(other.mismatch(std::any::type_name::<Self>())),
        }
    }
}
