//! State that belongs to an operator's subtask and to no key: lists that are split or handed to all on
//! a restore, and the maps of [`crate::BroadcastState`], which all subtasks hold alike.
//!
//! It is small, so lists are held as bytes and a snapshot is a copy; the checkpoint's manifest carries
//! it.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use element::{CodecError, Record, Schema, SchemaError, Value, decode_exact, encode_to_vec};

use crate::StateError;
use crate::broadcast::BroadcastMaps;

/// Who gets which elements when the parallelism changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redistribution {
    /// Each element goes to one subtask, in contiguous parts of nearly equal length.
    Split,
    /// All elements go to every subtask.
    Union,
    /// Every subtask holds the same; each gets what any had.
    Broadcast,
}

const MODES: [Redistribution; 3] =
    [Redistribution::Split, Redistribution::Union, Redistribution::Broadcast];

/// One named list or map; a list's elements have empty keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) mode: Redistribution,
    pub(crate) schema: Schema,
    pub(crate) entries: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The operator state of one subtask.
#[derive(Debug, Default)]
pub struct OperatorStateBackend {
    /// Lists, and restored maps that no handle has asked for yet.
    parts: BTreeMap<String, Part>,
    /// Maps that a handle has asked for.
    pub(crate) maps: BroadcastMaps,
}

/// The operator state of one subtask at a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorStateSnapshot {
    parts: BTreeMap<String, Part>,
}

impl OperatorStateSnapshot {
    /// Whether nothing was ever declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

impl OperatorStateBackend {
    /// No state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What there is at this moment.
    #[must_use]
    pub fn snapshot(&self) -> OperatorStateSnapshot {
        let mut parts = self.parts.clone();
        parts.extend(self.maps.parts());
        OperatorStateSnapshot { parts }
    }

    /// The state of subtask `index` of `parallelism`, from the snapshots of all subtasks in the order
    /// of their indices.
    #[must_use]
    pub fn restore(snapshots: &[OperatorStateSnapshot], index: usize, parallelism: usize) -> Self {
        let mut parts = BTreeMap::<String, Part>::new();
        for (name, part) in snapshots.iter().flat_map(|snapshot| &snapshot.parts) {
            match parts.get_mut(name) {
                None => {
                    parts.insert(name.clone(), part.clone());
                }
                Some(_) if part.mode == Redistribution::Broadcast => {}
                Some(all) => all.entries.extend_from_slice(&part.entries),
            }
        }
        for part in parts.values_mut().filter(|part| part.mode == Redistribution::Split) {
            let (len, parallelism) = (part.entries.len(), parallelism.max(1));
            let (start, end) = (len * index / parallelism, len * (index + 1) / parallelism);
            part.entries = part.entries.get(start..end).unwrap_or_default().to_vec();
        }
        Self { parts, maps: BroadcastMaps::default() }
    }

    /// A restored part, for the map that is made of it.
    pub(crate) fn take_part(&mut self, name: &str) -> Option<Part> {
        self.parts.remove(name)
    }

    fn part<V: Record>(
        &mut self,
        name: &str,
        mode: Redistribution,
    ) -> Result<&mut Part, StateError> {
        let empty = || Part { mode, schema: V::schema(), entries: Vec::new() };
        let part = self.parts.entry(name.to_owned()).or_insert_with(empty);
        if part.mode != mode {
            return Err(StateError::Redeclared {
                state: name.to_owned(),
                declared: format!("{:?}", part.mode),
                again: format!("{mode:?}"),
            });
        }
        if part.schema != V::schema() {
            migrate::<V>(name, part)?;
        }
        Ok(part)
    }
}

/// Reads the values of an earlier type by field name.
pub(crate) fn migrate<V: Record>(name: &str, part: &mut Part) -> Result<(), StateError> {
    let schema = |source| StateError::Schema { state: name.to_owned(), source };
    V::schema().check_readable(&part.schema).map_err(schema)?;
    for (_, bytes) in &mut part.entries {
        let value = part
            .schema
            .decode_value(&mut &bytes[..])
            .map_err(|source| StateError::Decode { state: name.to_owned(), source })?;
        *bytes = encode_to_vec(&V::from_value(value).map_err(schema)?);
    }
    part.schema = V::schema();
    Ok(())
}

fn decoded<T>(name: &str, value: Result<T, CodecError>) -> Result<T, StateError> {
    value.map_err(|source| StateError::Decode { state: name.to_owned(), source })
}

/// A list of one subtask.
pub struct OperatorListState<V> {
    name: String,
    mode: Redistribution,
    values: PhantomData<fn() -> V>,
}

impl<V: Record> OperatorListState<V> {
    /// A list whose elements are split among the subtasks on a restore.
    #[must_use]
    pub fn split(name: impl Into<String>) -> Self {
        Self { name: name.into(), mode: Redistribution::Split, values: PhantomData }
    }

    /// A list of which every subtask gets all elements on a restore.
    #[must_use]
    pub fn union(name: impl Into<String>) -> Self {
        Self { name: name.into(), mode: Redistribution::Union, values: PhantomData }
    }

    /// All elements, in the order added.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn get(&self, backend: &mut OperatorStateBackend) -> Result<Vec<V>, StateError> {
        let entries = &backend.part::<V>(&self.name, self.mode)?.entries;
        entries.iter().map(|(_, bytes)| decoded(&self.name, decode_exact(bytes))).collect()
    }

    /// Appends an element.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn add(&self, backend: &mut OperatorStateBackend, value: &V) -> Result<(), StateError> {
        let part = backend.part::<V>(&self.name, self.mode)?;
        part.entries.push((Vec::new(), encode_to_vec(value)));
        Ok(())
    }

    /// Puts elements in the place of what was there.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    pub fn update<'a>(
        &self,
        backend: &mut OperatorStateBackend,
        values: impl IntoIterator<Item = &'a V>,
    ) -> Result<(), StateError> {
        let part = backend.part::<V>(&self.name, self.mode)?;
        part.entries = values.into_iter().map(|value| (Vec::new(), encode_to_vec(value))).collect();
        Ok(())
    }
}

impl Record for OperatorStateSnapshot {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.parts.len() as u32).encode(out);
        for (name, part) in &self.parts {
            name.encode(out);
            out.push(MODES.iter().position(|mode| *mode == part.mode).unwrap_or_default() as u8);
            part.schema.encode(out);
            part.entries.encode(out);
        }
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let mut parts = BTreeMap::new();
        for _ in 0..u32::decode(input)? {
            let name = String::decode(input)?;
            let tag = u8::decode(input)?;
            let mode = *MODES
                .get(usize::from(tag))
                .ok_or(CodecError::Tag { what: "redistribution", found: tag.into() })?;
            let (schema, entries) = (Schema::decode(input)?, Record::decode(input)?);
            parts.insert(name, Part { mode, schema, entries });
        }
        Ok(Self { parts })
    }

    fn schema() -> Schema {
        Schema::Serde("OperatorStateSnapshot".to_owned())
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        Err(value.mismatch("OperatorStateSnapshot"))
    }
}

impl<V> fmt::Debug for OperatorListState<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorListState").field("name", &self.name).finish_non_exhaustive()
    }
}
