//! [`Cell`]: what a state holds for one key and namespace, typed.
//!
//! There are two: [`One`] holds a value, a list or an accumulator as one record; the cells of maps are
//! in [`crate::map_cell`]. Tables and caches are generic over cells and know nothing of handles.

use element::{CodecError, Record, Schema};

use crate::StateError;
use crate::link::Reader;

/// Puts an entry of a cell somewhere: its map key (empty for a record) and its value's bytes, or
/// `None` where the entry is to be deleted.
pub(crate) type Emit<'a> = &'a mut dyn FnMut(&[u8], Option<&dyn Fn(&mut Vec<u8>)>);

/// The content of one state for one key and namespace.
pub(crate) trait Cell: Default + Clone + Send + 'static {
    /// What each entry holds.
    type Value: Record;

    /// Whether a fetched cell is all that the store has: a vacant one says that there is nothing.
    const WHOLE: bool;

    /// The schema of the values.
    fn schema() -> Schema {
        Self::Value::schema()
    }

    /// Reads the cell of the reader's key and namespace, or what of it must be read at once.
    fn fetch(reader: &mut Reader<'_>) -> Result<Self, StateError>;

    /// Whether there is nothing in it.
    fn is_vacant(&self) -> bool;

    /// Hands out all that is in it.
    fn emit_all(&self, emit: Emit<'_>);

    /// Hands out what has changed since it was last asked. Called only for cells known to be dirty.
    fn emit_changes(&mut self, emit: Emit<'_>);

    /// Takes one stored entry in.
    fn accept(&mut self, map_key: &[u8], value: &[u8]) -> Result<(), CodecError>;
}

/// One record, or nothing.
#[derive(Clone, Debug)]
pub(crate) struct One<V>(pub(crate) Option<V>);

impl<V> Default for One<V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<V: Record + Clone> Cell for One<V> {
    type Value = V;

    const WHOLE: bool = true;

    fn fetch(reader: &mut Reader<'_>) -> Result<Self, StateError> {
        reader.get(&[]).map(Self)
    }

    #[inline]
    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }

    fn emit_all(&self, emit: Emit<'_>) {
        if let Some(value) = &self.0 {
            emit(&[], Some(&|out| value.encode(out)));
        }
    }

    fn emit_changes(&mut self, emit: Emit<'_>) {
        match &self.0 {
            Some(value) => emit(&[], Some(&|out| value.encode(out))),
            None => emit(&[], None),
        }
    }

    fn accept(&mut self, _: &[u8], value: &[u8]) -> Result<(), CodecError> {
        self.0 = Some(element::decode_exact(value)?);
        Ok(())
    }
}
