//! [`SnapshotHandle`]: what a checkpoint's manifest keeps of one snapshot.

use std::sync::Arc;

use super::SnapshotFile;
use element::{
    CodecError, KeyGroups, MaxParallelism, Record, Schema, SchemaError, SpillStore, Value,
};

/// A snapshot that was written: enough to find it, and to notice that it is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHandle {
    /// The file's name in its store.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The CRC-32 of all bytes before the footer.
    pub checksum: u32,
    /// The key groups whose entries it holds.
    pub groups: KeyGroups,
    /// The number of entries in the file, timers included.
    pub entries: u64,
    /// The files of a store in which the rest of the entries lie; none for a full snapshot.
    pub files: Vec<SnapshotFile>,
}

/// A snapshot to restore from, and the store it lies in.
#[derive(Clone, Debug)]
pub struct SnapshotSource {
    /// Where the file is.
    pub store: Arc<dyn SpillStore>,
    /// Which file.
    pub handle: SnapshotHandle,
}

type Parts = (String, u64, u32, (u32, u32, u32), u64, Vec<SnapshotFile>);

impl SnapshotHandle {
    fn from_parts((name, bytes, checksum, groups, entries, files): Parts) -> Option<Self> {
        let groups = groups_from(groups)?;
        Some(Self { name, bytes, checksum, groups, entries, files })
    }

    /// Whether it may hold state or timers.
    #[must_use]
    pub fn holds_entries(&self) -> bool {
        self.entries > 0 || self.shared_files().next().is_some()
    }

    /// The files that other snapshots may name too.
    pub fn shared_files(&self) -> impl Iterator<Item = &SnapshotFile> {
        self.files.iter().filter(|file| file.is_shared())
    }

    /// Bytes that were written for this snapshot: without what an earlier one had written.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        let own = self.files.iter().filter(|file| file.is_written_by(&self.name));
        self.bytes + own.map(|file| file.bytes).sum::<u64>()
    }
}

pub(crate) fn groups_parts(groups: KeyGroups) -> (u32, u32, u32) {
    (groups.start, groups.end, groups.max.get())
}

pub(crate) fn groups_from((start, end, max): (u32, u32, u32)) -> Option<KeyGroups> {
    let max = MaxParallelism::new(max)?;
    (start <= end && end <= max.get()).then_some(KeyGroups { start, end, max })
}

impl Record for SnapshotHandle {
    fn encode(&self, out: &mut Vec<u8>) {
        self.name.encode(out);
        self.bytes.encode(out);
        self.checksum.encode(out);
        groups_parts(self.groups).encode(out);
        self.entries.encode(out);
        self.files.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let parts = Parts::decode(input)?;
        let max = u64::from(parts.3.2);
        Self::from_parts(parts).ok_or(CodecError::Tag { what: "key groups", found: max })
    }

    fn schema() -> Schema {
        Parts::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        let parts = Parts::from_value(value)?;
        Self::from_parts(parts).ok_or_else(|| Value::Unit.mismatch("SnapshotHandle"))
    }
}
