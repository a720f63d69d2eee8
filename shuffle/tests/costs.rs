//! What a partition at rest costs, by counts: writes, copies, maps.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use element::{
    Batch, DirectoryStore, FaultyStore, FileRole, MemoryStore, Operation, SpillStore, StoreError,
    StoreReader, StoreWriter, SubpartitionIndex,
};
use slackwater_shuffle::testing::{read_blocks, read_records, result_partition, write_blocks};
use slackwater_shuffle::{
    BlockingOptions, BlockingWriter, FileShuffle, PartitionWriter, ShuffleService,
};

/// What was written to data files.
#[derive(Debug, Default)]
struct Counts {
    writes: AtomicU64,
    bytes: AtomicU64,
    /// Bytes that did not lie in the first part of a write, where the shuffle's own buffer is.
    in_place: AtomicU64,
}

/// A store in memory that counts.
#[derive(Debug, Default)]
struct Counting {
    inner: MemoryStore,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct CountingWriter {
    inner: Box<dyn StoreWriter>,
    counts: Option<Arc<Counts>>,
}

impl SpillStore for Counting {
    fn create(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreWriter>, StoreError> {
        let inner = self.inner.create(role, name)?;
        let counts = (role == FileRole::PartitionData).then(|| Arc::clone(&self.counts));
        Ok(Box::new(CountingWriter { inner, counts }))
    }

    fn open(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreReader>, StoreError> {
        self.inner.open(role, name)
    }

    fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), StoreError> {
        self.inner.rename(role, from, to)
    }

    fn delete(&self, role: FileRole, name: &str) -> Result<(), StoreError> {
        self.inner.delete(role, name)
    }

    fn list(&self, role: FileRole, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.inner.list(role, prefix)
    }

    fn local_path(&self, _: &str) -> Option<PathBuf> {
        None
    }
}

impl StoreWriter for CountingWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.write_parts(&[bytes])
    }

    fn write_parts(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        if let Some(counts) = &self.counts {
            let bytes = |parts: &[&[u8]]| parts.iter().map(|part| part.len() as u64).sum();
            counts.writes.fetch_add(1, Ordering::Relaxed);
            counts.bytes.fetch_add(bytes(parts), Ordering::Relaxed);
            counts.in_place.fetch_add(bytes(&parts[1..]), Ordering::Relaxed);
        }
        self.inner.write_parts(parts)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.inner.sync()
    }
}

/// What is at rest is written by few and large calls, whatever the blocks.
#[test]
fn a_data_file_is_written_by_pieces_of_256_kib() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let shuffle = FileShuffle::new(Arc::new(store.clone()));
    let block = vec![7; 5_000];
    let blocks = (0..1_000).map(|n| (Some(n % 3), block.as_slice()));
    let finished = write_blocks(&shuffle, &result_partition(0, 3), blocks);
    let index = 1;
    assert_eq!(store.count(Operation::Write), finished.bytes.div_ceil(256 << 10) + index);
}

/// Records are encoded into blocks, and blocks are written from where they lie: by few calls, and but
/// for the end of a region and less than a piece now and then without another copy.
#[test]
fn blocks_are_written_from_where_they_lie() {
    for subpartitions in [1, 2, 5, 200] {
        let store = Counting::default();
        let counts = Arc::clone(&store.counts);
        let service: Arc<dyn ShuffleService> = Arc::new(FileShuffle::new(Arc::new(store)));
        let descriptor = result_partition(0, subpartitions);
        let partition = service.writer(&descriptor).expect("a writer is given");
        let mut writer = BlockingWriter::new(partition, subpartitions, &BlockingOptions::default());
        for n in 0..200_u64 {
            let values: Vec<[u8; 100]> = (0..1_000).map(|i| [(n + i) as u8; 100]).collect();
            let targets: Vec<_> = (0..1_000_u64)
                .map(|i| {
                    SubpartitionIndex(((n * 31 + i * 7_919) % u64::from(subpartitions)) as u32)
                })
                .collect();
            writer.scatter(Batch::unstamped(values), &targets).expect("taken");
        }
        writer.finish().expect("finished");
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (writes, bytes) = (count(&counts.writes), count(&counts.bytes));
        assert!(bytes > 20_000_000, "{bytes} bytes");
        assert!(writes * (180 << 10) <= bytes, "{subpartitions}: {writes} writes, {bytes} bytes");
        let in_place = count(&counts.in_place);
        assert!(in_place * 10 >= bytes * 8, "{subpartitions}: {in_place} of {bytes} in place");
        let found: usize = (0..subpartitions)
            .map(|index| {
                let found: Vec<[u8; 100]> =
                    read_records(&service, &descriptor, index..index + 1).expect("read");
                found.len()
            })
            .sum();
        assert_eq!(found, 200_000);
    }
}

/// The files of a directory that this process has in its memory, where the system tells.
fn maps(directory: &Path) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let directory = directory.display().to_string();
    maps.lines().filter(|line| line.contains(&directory)).collect()
}

/// A map outlives its reader, for the next consumer's sake, and goes when its partition is released:
/// the disk has its place back.
#[test]
fn a_partition_is_mapped_once_for_consumers_in_turn() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let disk = FaultyStore::new(Arc::new(DirectoryStore::new(directory.path())));
    let service: Arc<dyn ShuffleService> = Arc::new(FileShuffle::new(Arc::new(disk.clone())));
    let descriptor = result_partition(0, 100);
    let block = [1; 1_000];
    let blocks = || (0..100).map(|index| (Some(index), block.as_slice()));
    write_blocks(service.as_ref(), &descriptor, blocks());
    disk.plan(None);
    for index in 0..100 {
        let found = read_blocks(service.as_ref(), &descriptor, index..index + 1).expect("read");
        assert_eq!(found, [block]);
    }
    assert_eq!(disk.count(Operation::Open), 100 + 1, "the index of each consumer, and the data");
    assert_eq!(maps(directory.path()).is_empty(), cfg!(not(target_os = "linux")));
    // Another making of it: the map of the one before goes with the first reader.
    write_blocks(service.as_ref(), &descriptor, blocks());
    read_blocks(service.as_ref(), &descriptor, 0..1).expect("read");
    assert!(!maps(directory.path()).contains("(deleted)"), "the one before has gone");
    service.release(&descriptor.identity).expect("released");
    assert_eq!(maps(directory.path()), "", "released");
}
