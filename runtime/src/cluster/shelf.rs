//! [`Shelf`]: named caches on disk, which outlive the program that made them.
//!
//! ```text
//!  <execution.cache.dir>/dataset-<id>-...     partitions, as on workers, and synced
//!  <execution.cache.dir>/<id>.cache           name, fingerprint, parts with checksums; written last
//! ```
//!
//! A cache without its manifest is not there. One program at a time should use a name: of two that
//! make it at once the later one's manifest counts, and parts of the other are noticed by checksum.
//! Left out on purpose: what a fingerprint cannot tell, which is all that a program reads past its
//! sources (its clock, its environment, a service, another file), and the records of collections and
//! generators that are not in the binary.

use std::fs;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use element::{
    Attempt, DataSetId, DirectoryStore, Generation, SubtaskIndex, TaskManagerId, decode_exact,
    encode_to_vec, hash_key_bytes,
};
use shuffle::{
    FileShuffle, FileShuffleOptions, PartitionDescriptor, PartitionIdentity, ResultPartitionReader,
    ResultPartitionWriter, ShuffleError, ShuffleService,
};

use super::data_set::{DataSetPart, Parts};

/// Who is said to hold what lies on the shelf from an earlier run.
pub(crate) const SHELF: TaskManagerId = TaskManagerId(u64::MAX);

/// What a named cache was made of.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Fingerprint {
    /// A hash of the program's steps above it, their names and connections.
    pub plan: u64,
    /// The schema of its records.
    pub schema: String,
    /// The sources above it: name, and what tells their contents.
    pub sources: Vec<(String, String)>,
    /// A hash of the program's binary, and so of all its functions.
    pub binary: u64,
}

impl Fingerprint {
    /// What has changed since, as a clause; `None` if nothing has.
    #[must_use]
    pub fn difference(&self, now: &Self) -> Option<String> {
        let mut changed = Vec::new();
        if self.binary != now.binary {
            changed.push("the program's binary has changed".to_owned());
        }
        if self.plan != now.plan {
            changed.push("the steps above it have changed".to_owned());
        }
        if self.schema != now.schema {
            changed
                .push(format!("its records have changed from {} to {}", self.schema, now.schema));
        }
        if self.sources.len() != now.sources.len() {
            changed.push("it has other sources".to_owned());
        }
        for ((name, before), (_, after)) in self.sources.iter().zip(&now.sources) {
            if before != after {
                changed.push(format!("source `{name}` has changed from {before} to {after}"));
            }
        }
        (!changed.is_empty()).then(|| changed.join(", "))
    }
}

/// A named cache, as its manifest has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCache {
    /// Its name.
    pub name: String,
    /// What it was made of.
    pub fingerprint: Fingerprint,
    /// Which making.
    pub generation: Generation,
    /// What the job took that made it.
    pub made_in: Duration,
    /// Bytes at rest.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Its parts.
    pub(crate) parts: Parts,
}

impl NamedCache {
    /// How many parts it has.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.parts.len()
    }
}

/// A part in a manifest: attempt, producer, checksum, bytes and rows.
type StoredPart = (u32, u32, Option<u32>, u64, u64);

/// A manifest: name; plan, schema, sources, binary; generation and milliseconds; parts.
type Stored = (String, (u64, String, Vec<(String, String)>, u64), (u32, u64), Vec<StoredPart>);

/// Why the shelf cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be used", path.display())]
pub struct ShelfError {
    path: PathBuf,
    source: io::Error,
}

/// The directory of named caches.
#[derive(Debug)]
pub struct Shelf {
    directory: PathBuf,
    files: Arc<FileShuffle>,
}

impl Shelf {
    /// A shelf in a directory, which need not exist.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        let store = Arc::new(DirectoryStore::new(directory));
        let options = FileShuffleOptions { sync: true, ..FileShuffleOptions::default() };
        let files = Arc::new(FileShuffle::with_options(vec![store], options));
        Self { directory: directory.to_owned(), files }
    }

    /// Who reads and writes its partitions.
    #[must_use]
    pub fn service(&self) -> Arc<dyn ShuffleService> {
        Arc::clone(&self.files) as _
    }

    fn manifest(&self, id: DataSetId) -> PathBuf {
        self.directory.join(format!("{id}.cache"))
    }

    fn failed(&self, source: io::Error) -> ShelfError {
        ShelfError { path: self.directory.clone(), source }
    }

    /// A cache by name; `None` if there is none, or its manifest is not whole.
    #[must_use]
    pub fn load(&self, name: &str) -> Option<NamedCache> {
        let id = DataSetId::named(name);
        let cache = decode(id, &fs::read(self.manifest(id)).ok()?)?;
        (cache.name == name).then_some(cache)
    }

    /// Whether every part of a cache is there and is the one that the manifest means.
    pub(crate) fn check(&self, cache: &NamedCache) -> Result<(), ShuffleError> {
        cache.parts.values().try_for_each(|part| {
            self.files.reader(&part.descriptor, 0..part.descriptor.subpartitions).map(drop)
        })
    }

    /// Makes a cache count whose parts lie here.
    ///
    /// # Errors
    ///
    /// [`ShelfError`]; what was there before counts still.
    pub(crate) fn store(&self, id: DataSetId, cache: &NamedCache) -> Result<(), ShelfError> {
        let place = self.manifest(id);
        let unfinished = place.with_extension("unfinished");
        fs::create_dir_all(&self.directory)
            .and_then(|()| fs::write(&unfinished, encode(cache)))
            .and_then(|()| fs::File::open(&unfinished)?.sync_all())
            .and_then(|()| fs::rename(&unfinished, &place))
            .map_err(|source| self.failed(source))
    }

    /// A cache no longer counts. Its parts are dropped by their holders.
    pub(crate) fn forget(&self, id: DataSetId) {
        match fs::remove_file(self.manifest(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(data_set = %id, %error, "a named cache could not be forgotten");
            }
            _ => {}
        }
    }

    /// Every cache with a whole manifest, by name.
    ///
    /// # Errors
    ///
    /// [`ShelfError`] if the directory cannot be read; none yet is no error.
    pub fn list(&self) -> Result<Vec<NamedCache>, ShelfError> {
        let mut found = Vec::new();
        for path in self.paths()? {
            let id = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".cache"));
            let id = id.and_then(|id| u128::from_str_radix(id, 16).ok()).map(DataSetId);
            if let (Some(id), Ok(bytes)) = (id, fs::read(&path)) {
                found.extend(decode(id, &bytes));
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Removes a cache by name, with every file of it, also those that a crash has left; whether there
    /// was one.
    ///
    /// # Errors
    ///
    /// [`ShelfError`] if a file cannot be removed.
    pub fn free(&self, name: &str) -> Result<bool, ShelfError> {
        let id = DataSetId::named(name);
        let was_there = self.manifest(id).exists();
        self.forget(id);
        let prefixes = [format!("dataset-{id}-"), format!("{id}.")];
        for path in self.paths()? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            if name.is_some_and(|name| prefixes.iter().any(|prefix| name.starts_with(prefix))) {
                fs::remove_file(&path).map_err(|source| self.failed(source))?;
            }
        }
        Ok(was_there)
    }

    fn paths(&self) -> Result<Vec<PathBuf>, ShelfError> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| self.failed(source))?,
        };
        entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()
            .map_err(|source| self.failed(source))
    }
}

/// The bytes of a manifest, behind a hash of them.
fn encode(cache: &NamedCache) -> Vec<u8> {
    let print = cache.fingerprint.clone();
    let parts = cache.parts.iter().map(|(producer, part)| {
        let attempt = match part.descriptor.identity {
            PartitionIdentity::DataSet { attempt, .. } => attempt.0,
            PartitionIdentity::Result(_) => 0,
        };
        (attempt, producer.0, part.descriptor.checksum, part.bytes, part.rows)
    });
    let took = u64::try_from(cache.made_in.as_millis()).unwrap_or(u64::MAX);
    let stored: Stored = (
        cache.name.clone(),
        (print.plan, print.schema, print.sources, print.binary),
        (cache.generation.0, took),
        parts.collect(),
    );
    let body = encode_to_vec(&stored);
    let mut bytes = hash_key_bytes(&body).0.to_le_bytes().to_vec();
    bytes.extend_from_slice(&body);
    bytes
}

fn decode(id: DataSetId, bytes: &[u8]) -> Option<NamedCache> {
    let (hash, body) = bytes.split_first_chunk::<8>()?;
    if hash_key_bytes(body).0 != u64::from_le_bytes(*hash) {
        return None;
    }
    let (name, (plan, schema, sources, binary), (generation, took), parts) =
        decode_exact::<Stored>(body).ok()?;
    let generation = Generation(generation);
    let of = u32::try_from(parts.len()).ok()?;
    let parts: Parts = parts
        .into_iter()
        .map(|(attempt, producer, checksum, bytes, rows)| {
            let producer = SubtaskIndex(producer);
            let attempt = Attempt(attempt);
            let identity =
                PartitionIdentity::DataSet { data_set: id, generation, attempt, producer };
            let mut descriptor = PartitionDescriptor::new(identity, 1);
            descriptor.checksum = checksum;
            (producer, DataSetPart { worker: SHELF, descriptor, of, bytes, rows, external: true })
        })
        .collect();
    Some(NamedCache {
        name,
        fingerprint: Fingerprint { plan, schema, sources, binary },
        generation,
        made_in: Duration::from_millis(took),
        bytes: parts.values().map(|part| part.bytes).sum(),
        rows: parts.values().map(|part| part.rows).sum(),
        parts,
    })
}

/// A shuffle whose named data sets lie on the shelf, and all else where it lay before.
#[derive(Debug)]
pub(crate) struct ShelvingShuffle {
    pub(crate) inner: Arc<dyn ShuffleService>,
    pub(crate) shelf: Arc<dyn ShuffleService>,
}

impl ShelvingShuffle {
    fn place_of(&self, partition: &PartitionIdentity) -> &dyn ShuffleService {
        if is_named(partition) { &*self.shelf } else { &*self.inner }
    }
}

fn is_named(partition: &PartitionIdentity) -> bool {
    matches!(partition, PartitionIdentity::DataSet { data_set, .. } if data_set.is_named())
}

impl ShuffleService for ShelvingShuffle {
    fn writer(
        &self,
        descriptor: &PartitionDescriptor,
    ) -> Result<Box<dyn ResultPartitionWriter>, ShuffleError> {
        self.place_of(&descriptor.identity).writer(descriptor)
    }

    fn reader(
        &self,
        descriptor: &PartitionDescriptor,
        subpartitions: Range<u32>,
    ) -> Result<Box<dyn ResultPartitionReader>, ShuffleError> {
        self.place_of(&descriptor.identity).reader(descriptor, subpartitions)
    }

    fn release(&self, partition: &PartitionIdentity) -> Result<(), ShuffleError> {
        self.place_of(partition).release(partition)
    }

    fn survives_worker_loss(&self) -> bool {
        self.inner.survives_worker_loss()
    }

    fn outlives_worker(&self, partition: &PartitionIdentity) -> bool {
        is_named(partition) || self.inner.outlives_worker(partition)
    }
}

/// A hash of a file's bytes. Costs one read of the file.
///
/// # Errors
///
/// What the system says.
pub fn hash_file(path: &Path) -> io::Result<u64> {
    let mut file = fs::File::open(path)?;
    let mut hash = 0_u64;
    let mut chunk = Vec::with_capacity(CHUNK + 8);
    loop {
        chunk.clear();
        chunk.extend_from_slice(&hash.to_le_bytes());
        if (&mut file).take(CHUNK as u64).read_to_end(&mut chunk)? == 0 {
            return Ok(hash);
        }
        hash = hash_key_bytes(&chunk).0;
    }
}

/// Bytes of a file that are hashed at once.
const CHUNK: usize = 1 << 20;
