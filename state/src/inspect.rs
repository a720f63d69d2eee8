//! Looking into snapshots without the program that wrote them: list, dump and compare.
//!
//! Values are read by the schema in the snapshot's header. Keys carry no schema: they are shown as
//! the hex of their canonical bytes.

use std::fmt::Write as _;
use std::io::{self, Write};

use element::{Timestamp, decode_key_exact};

use crate::snapshot::{SnapshotEntry, SnapshotError, SnapshotReader, SnapshotSource};
use crate::{StateDescriptor, TimerKind};

/// What a set of snapshots holds of one state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateSummary {
    /// The operator's uid.
    pub operator: String,
    /// Name, kind and schema.
    pub descriptor: StateDescriptor,
    /// Distinct keys.
    pub keys: u64,
    /// Entries: one a key and namespace, for a map one a map key.
    pub entries: u64,
    /// Bytes of all values.
    pub bytes: u64,
}

/// Lists the states of the snapshots of one operator's subtasks, by name.
///
/// # Errors
///
/// [`SnapshotError`].
pub fn list(sources: &[SnapshotSource]) -> Result<Vec<StateSummary>, SnapshotError> {
    let mut summaries = Vec::<StateSummary>::new();
    for source in sources {
        let reader = SnapshotReader::open(source.store.as_ref(), &source.handle)?;
        let mut last_key = Vec::new();
        let mut seen_at_key = Vec::<usize>::new();
        for state in &reader.header().states {
            find(&mut summaries, &reader.header().operator, &state.descriptor);
        }
        reader.for_each(|entry| {
            let Some(state) = entry.state else { return Ok(()) };
            let at = find(&mut summaries, &reader.header().operator, state);
            if last_key != entry.key {
                entry.key.clone_into(&mut last_key);
                seen_at_key.clear();
            }
            let summary = &mut summaries[at];
            if !seen_at_key.contains(&at) {
                seen_at_key.push(at);
                summary.keys += 1;
            }
            summary.entries += 1;
            summary.bytes += entry.value.len() as u64;
            Ok(())
        })?;
    }
    summaries.sort_by(|a, b| a.descriptor.name.cmp(&b.descriptor.name));
    Ok(summaries)
}

fn find(summaries: &mut Vec<StateSummary>, operator: &str, state: &StateDescriptor) -> usize {
    let same =
        |held: &StateSummary| held.operator == operator && held.descriptor.name == state.name;
    summaries.iter().position(same).unwrap_or_else(|| {
        summaries.push(StateSummary {
            operator: operator.to_owned(),
            descriptor: state.clone(),
            keys: 0,
            entries: 0,
            bytes: 0,
        });
        summaries.len() - 1
    })
}

/// Why a dump ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The snapshot could not be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The output could not be written.
    #[error("the dump cannot be written")]
    Output(#[from] io::Error),
}

/// Writes all entries of a snapshot, or of one state of it, as JSON lines in the order of the file.
///
/// # Errors
///
/// [`DumpError`].
pub fn dump(
    source: &SnapshotSource,
    state: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), DumpError> {
    let reader = SnapshotReader::open(source.store.as_ref(), &source.handle)?;
    let mut failure = None;
    reader.for_each(|entry| {
        let wanted = state.is_none_or(|name| entry.state.is_some_and(|held| held.name == name));
        if wanted && failure.is_none() {
            failure = writeln!(out, "{}", line(&entry)).err();
        }
        Ok(())
    })?;
    failure.map_or(Ok(()), |error| Err(error.into()))
}

fn line(entry: &SnapshotEntry<'_>) -> String {
    let mut line = format!("{{\"key\":\"{}\"", hex(entry.key));
    if !entry.namespace.is_empty() {
        let _ = write!(line, ",\"namespace\":\"{}\"", hex(entry.namespace));
    }
    match (entry.state, entry.timer) {
        (Some(state), _) => {
            let _ = write!(line, ",\"state\":{}", quoted(&state.name));
            if !entry.map_key.is_empty() {
                let _ = write!(line, ",\"map_key\":\"{}\"", hex(entry.map_key));
            }
            let _ = write!(line, ",\"value\":{}", json(state, entry.value));
        }
        (None, timer) => {
            let kind = if timer == Some(TimerKind::EventTime) { "event" } else { "processing" };
            let time = decode_key_exact::<Timestamp>(entry.map_key).map_or(0, |time| time.0);
            let _ = write!(line, ",\"timer\":\"{kind}\",\"time\":{time}");
        }
    }
    line.push('}');
    line
}

/// The value as JSON; bytes that do not decode are shown as hex.
fn json(state: &StateDescriptor, bytes: &[u8]) -> String {
    match state.schema.decode_value(&mut &bytes[..]) {
        Ok(value) => value.to_json(),
        Err(_) => format!("\"{}\"", hex(bytes)),
    }
}

fn quoted(text: &str) -> String {
    element::Value::String(text.to_owned()).to_json()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// An entry that is not the same in two sets of snapshots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The state's name.
    pub state: String,
    /// The key's canonical bytes.
    pub key: Vec<u8>,
    /// The namespace.
    pub namespace: Vec<u8>,
    /// The map key's canonical bytes.
    pub map_key: Vec<u8>,
    /// The value in the first set as JSON, if it is there.
    pub before: Option<String>,
    /// The value in the second, if it is there.
    pub after: Option<String>,
}

/// Compares the states of two sets of snapshots of one operator by key; the parallelism may differ.
/// Holds the first set in memory.
///
/// # Errors
///
/// [`SnapshotError`].
pub fn diff(
    before: &[SnapshotSource],
    after: &[SnapshotSource],
) -> Result<Vec<Difference>, SnapshotError> {
    let mut held = std::collections::BTreeMap::new();
    for_each_value(before, |place, value| {
        held.insert(place, value);
    })?;
    let mut differences = Vec::new();
    for_each_value(after, |place, value| {
        let was = held.remove(&place);
        if was.as_ref() != Some(&value) {
            differences.push(difference(place, was, Some(value)));
        }
    })?;
    differences.extend(held.into_iter().map(|(place, was)| difference(place, Some(was), None)));
    differences.sort();
    Ok(differences)
}

/// State, key, namespace and map key.
type Place = (String, Vec<u8>, Vec<u8>, Vec<u8>);

fn difference(place: Place, before: Option<String>, after: Option<String>) -> Difference {
    let (state, key, namespace, map_key) = place;
    Difference { state, key, namespace, map_key, before, after }
}

fn for_each_value(
    sources: &[SnapshotSource],
    mut visit: impl FnMut(Place, String),
) -> Result<(), SnapshotError> {
    for source in sources {
        let reader = SnapshotReader::open(source.store.as_ref(), &source.handle)?;
        reader.for_each(|entry| {
            if let Some(state) = entry.state {
                let (key, namespace) = (entry.key.to_vec(), entry.namespace.to_vec());
                let place = (state.name.clone(), key, namespace, entry.map_key.to_vec());
                visit(place, json(state, entry.value));
            }
            Ok(())
        })?;
    }
    Ok(())
}
