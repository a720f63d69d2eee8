//! Restored entries become the cells of a declared state.
//!
//! If the state's schema is as it was, bytes are taken as they are. If it has changed, each value is
//! read by the old schema and by field name as the new type; over a store that rewrites the state's
//! entries once, when the state is declared.

use std::ops::ControlFlow;

use element::{Record, Schema, encode_to_vec};

use crate::StateError;
use crate::cell::Cell;
use crate::link::StoreLink;
use crate::slot::{Body, Meta, Slot};
use crate::snapshot::Restored;
use crate::store::{ByteStore, WriteBatch};
use crate::store_key::StoreKey;

/// Entries looked at, and bytes rewritten, at once.
const PORTION: usize = 4_096;
const PORTION_BYTES: usize = 1 << 20;

/// Takes over what was restored for a slot, which it fits.
pub(crate) fn adopt<C: Cell>(
    slot: &mut Slot<C>,
    restored: Restored,
    link: Option<&mut StoreLink>,
) -> Result<(), StateError> {
    let written = &restored.header.descriptor;
    let old = (written.schema != slot.meta.schema).then_some(&written.schema);
    match (&mut slot.body, old) {
        (Body::Heap(table), _) => {
            for (key, value) in restored.entries.iter() {
                let (Some(at), Some(value)) = (StoreKey::parse(key), value) else { continue };
                let value = convert::<C::Value>(&slot.meta, old, value)?;
                table
                    .cell_mut(at.hash.0, at.key, at.namespace)
                    .accept(at.map_key, &value)
                    .map_err(|source| undecodable(&slot.meta, source))?;
            }
            Ok(())
        }
        (Body::Cached(_), Some(old)) => match link.and_then(|link| link.store.as_mut()) {
            Some(store) => rewrite::<C::Value>(&slot.meta, old, store.as_mut()),
            None => Ok(()),
        },
        (Body::Cached(_), None) => Ok(()),
    }
}

/// The bytes of a value under the new schema.
fn convert<V: Record>(
    meta: &Meta,
    old: Option<&Schema>,
    bytes: &[u8],
) -> Result<Vec<u8>, StateError> {
    let Some(old) = old else { return Ok(bytes.to_vec()) };
    let value = old.decode_value(&mut &bytes[..]).map_err(|source| undecodable(meta, source))?;
    let value = V::from_value(value)
        .map_err(|source| StateError::Schema { state: meta.name.to_string(), source })?;
    Ok(encode_to_vec(&value))
}

fn undecodable(meta: &Meta, source: element::CodecError) -> StateError {
    StateError::Decode { state: meta.name.to_string(), source }
}

/// Rewrites all entries of a state in a store.
fn rewrite<V: Record>(
    meta: &Meta,
    old: &Schema,
    store: &mut dyn ByteStore,
) -> Result<(), StateError> {
    let mut from = Vec::new();
    loop {
        let (mut batch, mut seen, mut failure) = (WriteBatch::new(), 0, None);
        let (mut more, start) = (false, std::mem::take(&mut from));
        store.scan(&start, None, &mut |key, value| {
            seen += 1;
            more = seen > PORTION || batch.bytes() > PORTION_BYTES;
            if more {
                from = key.to_vec();
                return ControlFlow::Break(());
            }
            if StoreKey::parse(key).is_some_and(|key| key.state == meta.id) {
                match convert::<V>(meta, Some(old), value) {
                    Ok(value) => batch.put(key, &value),
                    Err(error) => {
                        failure = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        failure.map_or(Ok(()), Err)?;
        store.write(&batch)?;
        if !more {
            return Ok(());
        }
    }
}
