//! The index file: where the blocks of each subpartition lie in the data file.
//!
//! ```text
//! header   "SWPI" version:u32 identity:48 subpartitions:u32 checksum:u32 unique:u64 data-length:u64
//!          runs:u64 crc:u32 0:u32
//! table    one row a subpartition, then one for the blocks that belong to all:
//!          first-run:u64 runs:u32 blocks:u32 crc:u32 0:u32
//! runs     offset:u64 length:u64         blocks of one subpartition that lie one behind the other
//! ```
//!
//! Little-endian. The crc of a row covers the identity, the row and its runs, so a reader of one
//! subpartition reads the header, two rows and their runs, and nothing of the others; all reads are
//! positional. Names of files are made here too.

use crc32fast::Hasher;
use element::{
    Attempt, DataSetId, EdgeId, FileRole, Generation, JobId, PartitionId, SpillStore, StoreError,
    StoreReader, SubtaskIndex,
};
use std::io::ErrorKind;
use std::ops::Range;

use super::block::EVERY;
use super::storage_error;
use crate::{Damage, PartitionIdentity, ShuffleError};

const MAGIC: &[u8; 4] = b"SWPI";
const VERSION: u32 = 1;
const IDENTITY: usize = 48;
const HEADER: usize = 96;
const ROW: usize = 24;
const RUN: usize = 16;
const INDEX: &str = ".index";
const DATA: &str = ".data";
/// Ends the name of an index that is not complete.
pub(super) const UNFINISHED: &str = ".unfinished";

/// Blocks of one subpartition that lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The subpartition, or [`EVERY`].
    pub(super) subpartition: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// What a reader needs of an index.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) subpartitions: u32,
    pub(super) checksum: u32,
    pub(super) unique: u64,
    pub(super) data_length: u64,
    /// The runs of the subpartitions asked for and of those that belong to all, by offset.
    pub(super) runs: Vec<Run>,
    /// Blocks that all those runs have.
    pub(super) blocks: u64,
}

/// What a writer knows when it has finished.
#[derive(Debug)]
pub(super) struct Contents<'a> {
    pub(super) identity: &'a PartitionIdentity,
    pub(super) checksum: u32,
    pub(super) unique: u64,
    pub(super) data_length: u64,
    /// Runs in the order written.
    pub(super) runs: &'a [Run],
    /// Blocks of each subpartition, then those that belong to all.
    pub(super) blocks: &'a [u32],
}

/// An identity as bytes of fixed length.
fn identity_bytes(identity: &PartitionIdentity) -> [u8; IDENTITY] {
    let (kind, wide, rest) = match identity {
        PartitionIdentity::Result(id) => {
            let rest = [id.attempt.0, id.edge.0, id.producer.0];
            (1_u64, u128::from(id.job.0), rest)
        }
        PartitionIdentity::DataSet { data_set, generation, attempt, producer } => {
            (2, data_set.0, [generation.0, producer.0, attempt.0])
        }
    };
    let mut bytes = [0; IDENTITY];
    bytes[..8].copy_from_slice(&kind.to_le_bytes());
    bytes[8..24].copy_from_slice(&wide.to_le_bytes());
    for (into, number) in bytes[24..].chunks_exact_mut(8).zip(rest) {
        into.copy_from_slice(&u64::from(number).to_le_bytes());
    }
    bytes
}

/// What every checksum of a partition begins with.
pub(super) fn identity_checksum(identity: &PartitionIdentity) -> u32 {
    crc32fast::hash(&identity_bytes(identity))
}

/// The name of a partition's files, without what they end with. Plain, without directories, so that
/// no two partitions share one and nothing but files is left behind.
fn base_name(identity: &PartitionIdentity) -> String {
    match identity {
        PartitionIdentity::Result(PartitionId { job, attempt, edge, producer }) => {
            format!("result-{job}-{attempt}-{edge}-{producer}")
        }
        PartitionIdentity::DataSet { data_set, generation, attempt, producer } => {
            format!("dataset-{data_set}-{generation}-{attempt}-{producer}")
        }
    }
}

/// The name of a data file.
pub(super) fn data_name(identity: &PartitionIdentity, unique: u64) -> String {
    format!("{}.{unique:016x}{DATA}", base_name(identity))
}

/// The name of an index file.
pub(super) fn index_name(identity: &PartitionIdentity) -> String {
    format!("{}{INDEX}", base_name(identity))
}

/// Where an index is written before it is complete.
pub(super) fn unfinished_name(identity: &PartitionIdentity, unique: u64) -> String {
    format!("{}.{unique:016x}{INDEX}{UNFINISHED}", base_name(identity))
}

/// The partition of an index file's name.
pub(super) fn identity_of_name(name: &str) -> Option<PartitionIdentity> {
    identity_of_base(name.strip_suffix(INDEX)?)
}

/// The partition and the unique number of a data file's name.
pub(super) fn data_name_parts(name: &str) -> Option<(PartitionIdentity, u64)> {
    let (base, unique) = name.strip_suffix(DATA)?.rsplit_once('.')?;
    Some((identity_of_base(base)?, u64::from_str_radix(unique, 16).ok()?))
}

fn identity_of_base(base: &str) -> Option<PartitionIdentity> {
    let mut parts = base.split('-');
    let kind = parts.next()?;
    let first = parts.next()?;
    let mut numbers = parts.map(|part| part.parse::<u32>().ok());
    let mut number = || numbers.next().flatten();
    let identity = match kind {
        "result" => PartitionIdentity::Result(PartitionId {
            job: JobId(first.parse().ok()?),
            attempt: Attempt(number()?),
            edge: EdgeId(number()?),
            producer: SubtaskIndex(number()?),
        }),
        "dataset" => PartitionIdentity::DataSet {
            data_set: DataSetId(u128::from_str_radix(first, 16).ok()?),
            generation: Generation(number()?),
            attempt: Attempt(number()?),
            producer: SubtaskIndex(number()?),
        },
        _ => return None,
    };
    numbers.next().is_none().then_some(identity)
}

/// The bytes of an index.
pub(super) fn encode(contents: &Contents<'_>) -> Vec<u8> {
    let rows = contents.blocks.len();
    let row_of =
        |run: &Run| if run.subpartition == EVERY { rows - 1 } else { run.subpartition as usize };
    let mut counts = vec![0_u32; rows];
    contents.runs.iter().for_each(|run| counts[row_of(run)] += 1);
    let mut firsts = Vec::with_capacity(rows);
    let mut total = 0_u64;
    for count in &counts {
        firsts.push(total);
        total += u64::from(*count);
    }
    let runs_at = HEADER + rows * ROW;
    let mut out = vec![0; runs_at + contents.runs.len() * RUN];
    let mut next = firsts.clone();
    for run in contents.runs {
        let place = &mut next[row_of(run)];
        let at = runs_at + *place as usize * RUN;
        *place += 1;
        out[at..at + 8].copy_from_slice(&run.offset.to_le_bytes());
        out[at + 8..at + RUN].copy_from_slice(&run.length.to_le_bytes());
    }
    let seed = identity_checksum(contents.identity);
    for (index, blocks) in contents.blocks.iter().enumerate() {
        let subpartition = if index + 1 == rows { EVERY } else { index as u32 };
        let (first, count) = (firsts[index], counts[index]);
        let mut row = Row { first, runs: count, blocks: *blocks, crc: 0 };
        let start = runs_at + first as usize * RUN;
        row.crc = row.checksum(seed, subpartition, &out[start..start + count as usize * RUN]);
        let at = HEADER + index * ROW;
        out[at..at + ROW].copy_from_slice(&row.encode());
    }
    let header = encode_header(contents, total);
    out[..HEADER].copy_from_slice(&header);
    out
}

fn encode_header(contents: &Contents<'_>, runs: u64) -> [u8; HEADER] {
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&identity_bytes(contents.identity));
    header.extend_from_slice(&(contents.blocks.len() as u32 - 1).to_le_bytes());
    header.extend_from_slice(&contents.checksum.to_le_bytes());
    header.extend_from_slice(&contents.unique.to_le_bytes());
    header.extend_from_slice(&contents.data_length.to_le_bytes());
    header.extend_from_slice(&runs.to_le_bytes());
    let crc = crc32fast::hash(&header);
    header.extend_from_slice(&crc.to_le_bytes());
    let mut fixed = [0; HEADER];
    fixed[..header.len()].copy_from_slice(&header);
    fixed
}

#[derive(Clone, Copy, Debug)]
struct Row {
    first: u64,
    runs: u32,
    blocks: u32,
    crc: u32,
}

impl Row {
    fn encode(self) -> [u8; ROW] {
        let mut row = [0; ROW];
        row[..8].copy_from_slice(&self.first.to_le_bytes());
        row[8..12].copy_from_slice(&self.runs.to_le_bytes());
        row[12..16].copy_from_slice(&self.blocks.to_le_bytes());
        row[16..20].copy_from_slice(&self.crc.to_le_bytes());
        row
    }

    fn decode(row: &[u8]) -> Self {
        let (first, runs) = (number64(row, 0), number32(row, 8));
        Self { first, runs, blocks: number32(row, 12), crc: number32(row, 16) }
    }

    fn checksum(&self, identity: u32, subpartition: u32, runs: &[u8]) -> u32 {
        let mut hasher = Hasher::new_with_initial(identity);
        hasher.update(&subpartition.to_le_bytes());
        hasher.update(&self.encode()[..16]);
        hasher.update(runs);
        hasher.finalize()
    }
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    found.map_or(0, u32::from_le_bytes)
}

fn number64(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    found.map_or(0, u64::from_le_bytes)
}

/// Reads parts of one index file; every failure names the partition.
struct IndexFile<'a> {
    file: Box<dyn StoreReader>,
    length: u64,
    partition: &'a PartitionIdentity,
    identity: u32,
}

impl Index {
    /// Reads what concerns `wanted`.
    pub(super) fn read(
        store: &dyn SpillStore,
        partition: &PartitionIdentity,
        wanted: Range<u32>,
    ) -> Result<Self, ShuffleError> {
        let failed = |source| storage_error(partition, source);
        let name = index_name(partition);
        let file = store.open(FileRole::PartitionIndex, &name).map_err(failed)?;
        let length = file.len().map_err(failed)?;
        let identity = identity_checksum(partition);
        let file = IndexFile { file, length, partition, identity };
        let (mut index, all_runs) = file.header()?;
        if wanted.end > index.subpartitions || wanted.start > wanted.end {
            let (subpartitions, asked) = (index.subpartitions, wanted.end);
            let partition = *partition;
            return Err(ShuffleError::NoSuchSubpartition { partition, subpartitions, asked });
        }
        let runs_at = (HEADER + (index.subpartitions as usize + 1) * ROW) as u64;
        let whole = runs_at.saturating_add(all_runs.saturating_mul(RUN as u64));
        if whole != length {
            return Err(file.corrupt(Damage::Length, whole, length));
        }
        file.rows(wanted.clone(), runs_at, all_runs, None, &mut index)?;
        let every = index.subpartitions;
        file.rows(every..every + 1, runs_at, all_runs, Some(EVERY), &mut index)?;
        index.runs.sort_unstable_by_key(|run| run.offset);
        Ok(index)
    }

    /// The unique number of a partition's data file, if its index is there and whole.
    pub(super) fn unique_of(store: &dyn SpillStore, partition: PartitionIdentity) -> Option<u64> {
        Self::read(store, &partition, 0..0).ok().map(|index| index.unique)
    }
}

impl IndexFile<'_> {
    fn header(&self) -> Result<(Index, u64), ShuffleError> {
        let header = self.bytes(0, HEADER)?;
        let (body, rest) = header.split_at(88);
        let (expected, found) = (number32(rest, 0), crc32fast::hash(body));
        if expected != found || !body.starts_with(MAGIC) || number32(body, 4) != VERSION {
            return Err(self.corrupt(Damage::Index, u64::from(expected), u64::from(found)));
        }
        let stored = body.get(8..8 + IDENTITY).unwrap_or_default();
        if stored != identity_bytes(self.partition) {
            let found = crc32fast::hash(stored);
            return Err(self.corrupt(Damage::Identity, u64::from(self.identity), u64::from(found)));
        }
        let index = Index {
            subpartitions: number32(body, 56),
            checksum: number32(body, 60),
            unique: number64(body, 64),
            data_length: number64(body, 72),
            runs: Vec::new(),
            blocks: 0,
        };
        Ok((index, number64(body, 80)))
    }

    /// Reads consecutive rows and their runs, which lie one behind the other too.
    fn rows(
        &self,
        rows: Range<u32>,
        runs_at: u64,
        all_runs: u64,
        name: Option<u32>,
        into: &mut Index,
    ) -> Result<(), ShuffleError> {
        let table = self.bytes((HEADER + rows.start as usize * ROW) as u64, rows.len() * ROW)?;
        for (number, row) in rows.zip(table.chunks_exact(ROW)) {
            let row = Row::decode(row);
            let subpartition = name.unwrap_or(number);
            let end = row.first.saturating_add(u64::from(row.runs));
            if end > all_runs {
                return Err(self.corrupt(Damage::Index, all_runs, end));
            }
            let at = runs_at + row.first * RUN as u64;
            let runs = self.bytes(at, row.runs as usize * RUN)?;
            let found = row.checksum(self.identity, subpartition, &runs);
            if found != row.crc {
                return Err(self.corrupt(Damage::Index, u64::from(row.crc), u64::from(found)));
            }
            into.blocks += u64::from(row.blocks);
            into.runs.extend(runs.chunks_exact(RUN).map(|run| Run {
                subpartition,
                offset: number64(run, 0),
                length: number64(run, 8),
            }));
        }
        Ok(())
    }

    fn bytes(&self, at: u64, length: usize) -> Result<Vec<u8>, ShuffleError> {
        let end = at.saturating_add(length as u64);
        if end > self.length {
            return Err(self.corrupt(Damage::Length, end, self.length));
        }
        let mut bytes = vec![0; length];
        match self.file.read_at(at, &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.source.kind() == ErrorKind::UnexpectedEof => {
                Err(self.corrupt(Damage::Length, end, self.length))
            }
            Err(error) => Err(storage_error(self.partition, error)),
        }
    }

    fn corrupt(&self, damage: Damage, expected: u64, found: u64) -> ShuffleError {
        ShuffleError::Corrupt { partition: *self.partition, damage, expected, found }
    }
}

/// Deletes a partition's files, as far as they are there: the index first.
pub(super) fn delete(
    store: &dyn SpillStore,
    partition: &PartitionIdentity,
) -> Result<(), StoreError> {
    let gone = |result: Result<(), StoreError>| match result {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    };
    let name = index_name(partition);
    match store.open(FileRole::PartitionIndex, &name) {
        Err(error) if error.is_not_found() => return Ok(()),
        _ => {}
    }
    let unique = Index::unique_of(store, *partition);
    gone(store.delete(FileRole::PartitionIndex, &name))?;
    if let Some(unique) = unique {
        return gone(store.delete(FileRole::PartitionData, &data_name(partition, unique)));
    }
    // The index cannot be read: any data file of the partition that no writer holds is its own.
    for name in store.list(FileRole::PartitionData, &format!("{}.", base_name(partition)))? {
        gone(store.delete(FileRole::PartitionData, &name))?;
    }
    Ok(())
}
