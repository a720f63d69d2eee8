//! The keys that hold something under a state, for functions that reach beyond the key at hand.

use std::ops::ControlFlow;

use element::{Key, KeyHash, Record};

use super::KeyedStateBackend;
use super::engine::Engine;
use crate::store_key::{StateId, StoreKey};
use crate::{
    AggregateFunction, AggregatingState, ListState, MapState, ReducingState, StateDescriptor,
    StateError, ValueState,
};

/// A key, by its hash and canonical bytes.
pub type KeyEntry = (KeyHash, Vec<u8>);

/// A handle to keyed state of any kind: what a walk over keys is asked for.
pub trait KeyedState {
    /// What it declares.
    fn descriptor(&self) -> StateDescriptor;

    /// Declares it to the backend.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn bind(&self, backend: &mut KeyedStateBackend) -> Result<(), StateError>;
}

macro_rules! keyed_state {
    ($([$($generics:tt)*] $handle:ty;)*) => {$(
        impl<$($generics)*> KeyedState for $handle {
            fn descriptor(&self) -> StateDescriptor {
                self.descriptor()
            }

            fn bind(&self, backend: &mut KeyedStateBackend) -> Result<(), StateError> {
                self.bind(backend)
            }
        }
    )*};
}

keyed_state! {
    [V: Record + Clone] ValueState<V>;
    [V: Record + Clone] ListState<V>;
    [K: Key, V: Record + Clone] MapState<K, V>;
    [V: Record + Clone] ReducingState<V>;
    [A: AggregateFunction] AggregatingState<A>;
}

impl KeyedStateBackend {
    /// The keys that hold something under a state, in the order (hash, key bytes), each once whatever
    /// its namespaces. Deleted ones are not among them; of a key whose value has expired the handle
    /// finds nothing, though the key may be listed until it is cleaned up.
    ///
    /// Costs a pass over the state in memory, or a flush and one scan of the whole store. State of one
    /// key at a time has no keys beside the current one: the list is empty.
    ///
    /// # Errors
    ///
    /// [`StateError::NotSupported`] within sorted input; [`StateError::Store`].
    pub fn keys_of(&mut self, state: &impl KeyedState) -> Result<Vec<KeyEntry>, StateError> {
        state.bind(self)?;
        let name = state.descriptor().name;
        let mut keys = Vec::new();
        match &mut self.engine {
            Engine::Heap(_) => {
                if let Some(slot) = self.by_name.get(name.as_str()) {
                    self.slots.any(*slot).keys(&mut keys);
                }
            }
            Engine::Cached(engine) => {
                if engine.link.phase.is_some() {
                    let what = "a walk over all keys within sorted input";
                    return Err(StateError::NotSupported { backend: "disk-backed", what });
                }
                engine.flush(&mut self.slots)?;
                let id = StateId::of(&name);
                if let Some(store) = &engine.link.store {
                    store.scan(&[], None, &mut |key, _| {
                        if let Some(parts) = StoreKey::parse(key).filter(|parts| parts.state == id)
                        {
                            keys.push((parts.hash, parts.key.to_vec()));
                        }
                        ControlFlow::Continue(())
                    })?;
                }
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }
}
