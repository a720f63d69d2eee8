//! [`RunDescription`]: what is recorded of a sealed run, so that another sorter goes on with it.
//!
//! ```text
//! sorter --seal--> descriptions --recorded by the owner--> ... crash ... --resume--> sorter
//!            |                                                               |
//!            +-- the run's bytes and name are durable, its file is kept      +-- names and lengths checked
//! ```
//!
//! A sealed run belongs to whoever has its description: neither the sorter nor its stream deletes it,
//! however they end. Every block's checksum covers the number that its sorter drew, its run and its
//! place, all of which are described: a file that was cut, changed or exchanged meanwhile does not
//! pass. Left out on purpose: where descriptions rest, and which input they cover. A checkpoint or a
//! journal knows that.

use std::sync::Arc;

use element::{CodecError, FileRole, Record, Schema, SchemaError, SpillStore, Value};

use crate::SortError;
use crate::run::{BlockStart, Run};
use crate::run_reader::{RunReader, missing_or_failed};
use crate::spiller::{RunFile, Spiller};

/// One sealed run: its file, and what must be found in it. Written down as a [`Record`].
///
/// Made by [`ExternalSorter::seal`](crate::ExternalSorter::seal) and
/// [`CombiningSorter::seal`](crate::CombiningSorter::seal). It takes about a five-hundredth of the
/// run's bytes, for it holds the run's index.
///
/// ```
/// use std::sync::Arc;
/// use element::{ByteSize, MemoryBudget, MemoryStore, decode_exact, encode_to_vec};
/// use slackwater_sort::{ExternalSorter, RunDescription, SorterOptions, SpillTarget};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new());
/// let target = SpillTarget::new(store.clone(), "journal");
/// let options = SorterOptions::new(MemoryBudget::new(ByteSize::mib(1)), target);
/// let mut sorter = ExternalSorter::new(options.clone().with_durable_runs());
/// sorter.push(b"ebb", 0, b"")?;
/// let recorded = encode_to_vec(&sorter.seal()?);
/// drop(sorter); // a crash: what was not sealed is gone
///
/// let sealed: Vec<RunDescription> = decode_exact(&recorded)?;
/// let mut sorter = ExternalSorter::resume(options.with_durable_runs(), sealed.clone())?;
/// sorter.push(b"flow", 0, b"")?;
/// let mut sorted = sorter.finish()?;
/// assert_eq!(sorted.next()?.map(|record| record.key.to_vec()), Some(b"ebb".to_vec()));
/// drop(sorted);
/// for run in sealed {
///     run.delete(&*store)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDescription {
    pub(crate) name: String,
    pub(crate) sorter: u64,
    pub(crate) number: u64,
    pub(crate) blocks: u64,
    pub(crate) records: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) largest_block: u64,
    pub(crate) largest_packed: u64,
    pub(crate) index: Vec<BlockStart>,
}

/// A description as it is written, in front of its checksum: name; sorter, number, blocks, records;
/// raw and stored bytes; largest block, raw and packed; index of (prefix, offset, block, records
/// before it).
type Written = (String, [u64; 4], [u64; 2], [u64; 2], Vec<[u64; 4]>);

impl RunDescription {
    /// The run's file in its store.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Records in the run.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes of the run's file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// Deletes the run's file: for its owner, when nothing needs it any more. One that is gone is
    /// deleted already.
    ///
    /// # Errors
    ///
    /// [`SortError::Store`] if the file is there and cannot be deleted.
    pub fn delete(&self, store: &dyn SpillStore) -> Result<(), SortError> {
        match store.delete(FileRole::SortRun, &self.name) {
            Err(error) if !error.is_not_found() => Err(SortError::Store(error)),
            _ => Ok(()),
        }
    }

    fn written(&self) -> Written {
        let place = |start: &BlockStart| [start.prefix, start.offset, start.block, start.records];
        (
            self.name.clone(),
            [self.sorter, self.number, self.blocks, self.records],
            [self.raw_bytes, self.stored_bytes],
            [self.largest_block, self.largest_packed],
            self.index.iter().map(place).collect(),
        )
    }

    fn read(written: Written) -> Self {
        let (name, counts, bytes, largest, index) = written;
        let [sorter, number, blocks, records] = counts;
        let [raw_bytes, stored_bytes] = bytes;
        let [largest_block, largest_packed] = largest;
        let place = |[prefix, offset, block, records]: [u64; 4]| BlockStart {
            prefix,
            offset,
            block,
            records,
        };
        Self {
            name,
            sorter,
            number,
            blocks,
            records,
            raw_bytes,
            stored_bytes,
            largest_block,
            largest_packed,
            index: index.into_iter().map(place).collect(),
        }
    }
}

impl Record for RunDescription {
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.written().encode(out);
        let checksum = crc32fast::hash(out.get(start..).unwrap_or_default());
        checksum.encode(out);
    }

    /// Refuses bytes that are not as they were written, as a tag that no description has.
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let whole = *input;
        let written = Written::decode(input)?;
        let bytes = whole.get(..whole.len() - input.len()).unwrap_or_default();
        let found = u32::decode(input)?;
        if found != crc32fast::hash(bytes) {
            let what = "description of a run, by its checksum";
            return Err(CodecError::Tag { what, found: found.into() });
        }
        Ok(Self::read(written))
    }

    fn schema() -> Schema {
        <(Written, u32)>::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        <(Written, u32)>::from_value(value).map(|(written, _)| Self::read(written))
    }

    fn estimated_bytes(&self) -> usize {
        size_of::<Self>() + self.name.len() + size_of_val(self.index.as_slice())
    }
}

/// Describes those of `runs` that are not described yet; their files are kept from here on.
pub(crate) fn describe(runs: &mut [Run]) -> Vec<RunDescription> {
    runs.iter_mut()
        .filter(|run| !run.file.is_kept)
        .map(|run| {
            run.file.is_kept = true;
            description_of(run)
        })
        .collect()
}

fn description_of(run: &Run) -> RunDescription {
    RunDescription {
        name: run.file.name.clone(),
        sorter: run.sorter,
        number: run.number,
        blocks: run.blocks,
        records: run.records,
        raw_bytes: run.raw_bytes,
        stored_bytes: run.stored_bytes,
        largest_block: run.largest_block,
        largest_packed: run.largest_packed,
        index: run.index.clone(),
    }
}

/// The runs that are described, each of the length that it must have. Their files are kept.
///
/// # Errors
///
/// [`SortError::Missing`] or [`SortError::Damaged`] for the first that is not as described.
pub(crate) fn adopt(
    descriptions: Vec<RunDescription>,
    spiller: &Spiller,
) -> Result<Vec<Run>, SortError> {
    descriptions.into_iter().map(|description| adopt_one(description, spiller)).collect()
}

fn adopt_one(description: RunDescription, spiller: &Spiller) -> Result<Run, SortError> {
    let store = &spiller.options.spill.store;
    let name = &description.name;
    let length = store
        .open(FileRole::SortRun, name)
        .and_then(|reader| reader.len())
        .map_err(|error| missing_or_failed(name, 0, error))?;
    if length != description.stored_bytes {
        let what = "the file has not the length that was recorded";
        return Err(SortError::Damaged { run: name.clone(), block: 0, what, source: None });
    }
    Ok(run_of(description, spiller))
}

fn run_of(description: RunDescription, spiller: &Spiller) -> Run {
    let mut file = RunFile::new(spiller, description.name);
    file.is_kept = true;
    Run {
        file,
        sorter: description.sorter,
        number: description.number,
        blocks: description.blocks,
        records: description.records,
        raw_bytes: description.raw_bytes,
        stored_bytes: description.stored_bytes,
        largest_block: description.largest_block,
        largest_packed: description.largest_packed,
        index: description.index,
    }
}

/// Reads all of the kept ones of `runs`, and holds every block against its checksum. Gives the number
/// of records in them.
pub(crate) fn verify(runs: &[Run], spiller: &mut Spiller) -> Result<u64, SortError> {
    let mut records = 0;
    for run in runs.iter().filter(|run| run.file.is_kept) {
        let again = Arc::new(run_of(description_of(run), spiller));
        let mut reader = RunReader::open(again, spiller)?;
        let read = read_all(&mut reader, spiller);
        let taken = reader.take_loan();
        spiller.account.give(taken);
        records += read?;
    }
    spiller.account.trim();
    Ok(records)
}

/// Records between two looks at the cancel flag.
const CHECK_EVERY: u64 = 1 << 14;

fn read_all(reader: &mut RunReader, spiller: &Spiller) -> Result<u64, SortError> {
    let mut records = 0;
    while reader.advance()? {
        records += 1;
        if records % CHECK_EVERY == 0 {
            spiller.check_cancel()?;
        }
    }
    Ok(records)
}
