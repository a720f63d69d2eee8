//! [`Manifest`]: what a checkpoint consists of, in one file.
//!
//! ```text
//! manifest := "SLKWCHKP" version:u32 length:u32 crc32:u32 body
//! body     := checkpoint id, job name, operators, enumerators   (records, little-endian)
//! ```

use element::{CheckpointId, CodecError, Record, Timestamp};
use state::SnapshotHandle;

use super::{OperatorState, SealedBacklog};

const MAGIC: &[u8; 8] = b"SLKWCHKP";
/// 2: a handle of keyed state names the shared files; collected backlogs are stored. 3: records of a sorted
/// backlog lie without the hash of their key.
const VERSION: u32 = 3;

/// What one operator's subtask stored.
#[derive(Clone, Debug)]
pub struct OperatorEntry {
    /// Which subtask.
    pub subtask: u32,
    /// What it stored.
    pub state: OperatorState,
}

/// What a checkpoint consists of.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    /// The checkpoint.
    pub id: CheckpointId,
    /// The job's name.
    pub job: String,
    /// What operators stored, by vertex, subtask and place in the chain.
    pub operators: Vec<OperatorEntry>,
    /// What the enumerators of sources stored, by uid.
    pub enumerators: Vec<(String, Vec<u8>)>,
}

impl Manifest {
    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        self.id.0.encode(&mut body);
        self.job.encode(&mut body);
        (self.operators.len() as u64).encode(&mut body);
        for entry in &self.operators {
            entry.subtask.encode(&mut body);
            entry.state.uid.encode(&mut body);
            entry.state.watermark.map(|mark| mark.0).encode(&mut body);
            entry.state.items.encode(&mut body);
            entry.state.keyed.encode(&mut body);
            entry.state.backlog.is_some().encode(&mut body);
            if let Some(backlog) = &entry.state.backlog {
                backlog.encode(&mut body);
            }
        }
        self.enumerators.encode(&mut body);
        let mut file = MAGIC.to_vec();
        VERSION.encode(&mut file);
        u32::try_from(body.len()).unwrap_or(u32::MAX).encode(&mut file);
        crc32fast::hash(&body).encode(&mut file);
        file.extend_from_slice(&body);
        file
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    ///
    /// What is wrong with them, as a clause.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let input = &mut &*bytes;
        let Some((magic, rest)) = input.split_first_chunk::<8>() else {
            return Err("the manifest is cut".to_owned());
        };
        if magic != MAGIC {
            return Err("the file is no manifest".to_owned());
        }
        *input = rest;
        let read =
            |input: &mut &[u8]| u32::decode(input).map_err(|_| "the manifest is cut".to_owned());
        let version = read(input)?;
        if version != VERSION {
            return Err(format!("the manifest has version {version}, known is {VERSION}"));
        }
        let (length, checksum) = (read(input)?, read(input)?);
        if input.len() != length as usize {
            return Err(format!("the manifest has {} bytes, {length} expected", input.len()));
        }
        let found = crc32fast::hash(input);
        if found != checksum {
            return Err(format!("the manifest has checksum {found:08x}, {checksum:08x} expected"));
        }
        Self::decode_body(input).map_err(|error| format!("the manifest is damaged: {error}"))
    }

    fn decode_body(input: &mut &[u8]) -> Result<Self, CodecError> {
        let id = CheckpointId(u64::decode(input)?);
        let job = String::decode(input)?;
        let count = u64::decode(input)?;
        let mut operators = Vec::new();
        for _ in 0..count {
            let subtask = u32::decode(input)?;
            let uid = String::decode(input)?;
            let watermark = Option::<i64>::decode(input)?.map(Timestamp);
            let items = Vec::<Vec<u8>>::decode(input)?;
            let keyed = Option::<SnapshotHandle>::decode(input)?;
            let stored = bool::decode(input)?;
            let backlog = stored.then(|| SealedBacklog::decode(input)).transpose()?;
            let state = OperatorState { uid, keyed, items, watermark, backlog };
            operators.push(OperatorEntry { subtask, state });
        }
        let enumerators = Vec::<(String, Vec<u8>)>::decode(input)?;
        Ok(Self { id, job, operators, enumerators })
    }
}
