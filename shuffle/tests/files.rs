//! What the file shuffle promises beyond the contract: files, memory, order of reading, faults.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use element::option_table::Compression;
use element::{
    Batch, ByteSize, Control, DirectoryStore, FaultPlan, FaultyStore, FileRole, MemoryBudget,
    MemoryStore, Operation, SpillStore, SubpartitionIndex,
};
use slackwater_shuffle::testing::{read_blocks, read_records, result_partition, write_blocks};
use slackwater_shuffle::{
    BlockingOptions, BlockingReader, BlockingWriter, FileShuffle, FileShuffleOptions,
    PartitionWriter, ReadError, ReadMode, ShuffleError, ShuffleService, WriteError,
};

fn in_memory() -> (MemoryStore, FileShuffle) {
    let store = MemoryStore::new();
    (store.clone(), FileShuffle::new(Arc::new(store)))
}

fn names(store: &dyn SpillStore) -> Vec<String> {
    store.list(FileRole::PartitionData, "").expect("listed")
}

fn options(memory: u64, sort_threshold: u32) -> BlockingOptions {
    let memory = MemoryBudget::new(ByteSize(memory));
    BlockingOptions { memory, sort_threshold, ..BlockingOptions::default() }
}

/// Records 0 to `records`, record n to subpartition n * 7919 % `subpartitions`.
fn write_numbers(
    service: &dyn ShuffleService,
    subpartitions: u32,
    records: u64,
    options: &BlockingOptions,
) -> Result<BlockingWriter<u64>, WriteError> {
    let descriptor = result_partition(0, subpartitions);
    let partition = service.writer(&descriptor)?;
    let mut writer = BlockingWriter::new(partition, subpartitions, options);
    for start in (0..records).step_by(1_000) {
        let values: Vec<u64> = (start..(start + 1_000).min(records)).collect();
        let target =
            |value: &u64| SubpartitionIndex((value * 7_919 % u64::from(subpartitions)) as u32);
        let targets: Vec<_> = values.iter().map(target).collect();
        writer.scatter(Batch::unstamped(values), &targets)?;
        // tF9: a flush is harmless in the middle of the records.
        writer.flush()?;
    }
    writer.broadcast(Control::EndOfInput)?;
    writer.finish()?;
    Ok(writer)
}

fn check_numbers(service: &Arc<dyn ShuffleService>, subpartitions: u32, records: u64) {
    let descriptor = result_partition(0, subpartitions);
    let mut expected = vec![Vec::new(); subpartitions as usize];
    for value in 0..records {
        expected[(value * 7_919 % u64::from(subpartitions)) as usize].push(value);
    }
    for (index, expected) in (0..).zip(expected) {
        let found: Vec<u64> =
            read_records(service, &descriptor, index..index + 1).expect("nothing is wrong");
        assert_eq!(found, expected, "subpartition {index}, in the order of emission");
    }
}

/// T14.
#[test]
fn a_partition_is_one_data_file_and_one_index_file() {
    let (store, shuffle) = in_memory();
    let service: Arc<dyn ShuffleService> = Arc::new(shuffle);
    write_numbers(service.as_ref(), 500, 100_000, &options(1 << 20, 64)).expect("written");
    let names = names(&store);
    assert_eq!(names.len(), 2, "{names:?}");
    check_numbers(&service, 500, 100_000);
    service.release(&result_partition(0, 500).identity).expect("released");
    assert!(self::names(&store).is_empty());
}

/// T15, T18: the sort variant leaves in regions, the hash variant block by block; both give the same.
#[test]
fn the_variant_is_chosen_by_the_number_of_consumers() {
    for (subpartitions, sorts, memory) in [(63, false, 8 << 20), (64, true, 1 << 20)] {
        let (_, shuffle) = in_memory();
        let service: Arc<dyn ShuffleService> = Arc::new(shuffle);
        let writer = write_numbers(service.as_ref(), subpartitions, 300_000, &options(memory, 64));
        let writer = writer.expect("written");
        assert_eq!(writer.sorts(), sorts);
        if sorts {
            assert!(writer.regions() > 1, "memory was short: {} regions", writer.regions());
        } else {
            assert_eq!(writer.regions(), 1, "only what was left at the end");
        }
        check_numbers(&service, subpartitions, 300_000);
    }
}

/// T15: where memory is plenty, a region leaves with a stretch for each subpartition, 1 MiB at least and
/// 8 MiB at most while each has 4 KiB, and a writer holds no more than it is worth.
#[test]
fn a_region_leaves_with_a_stretch_for_each_subpartition() {
    for (subpartitions, records, region) in [(64, 1_000_000, 1 << 20), (2_000, 2_200_000, 8 << 20)]
    {
        let (_, shuffle) = in_memory();
        let service: Arc<dyn ShuffleService> = Arc::new(shuffle);
        let options = options(64 << 20, 64);
        let writer = write_numbers(service.as_ref(), subpartitions, records, &options);
        let regions = writer.expect("written").regions();
        assert_eq!(regions, (records * 8).div_ceil(region), "of {region} bytes each");
        assert!(options.memory.peak().0 <= 3 * region, "{} held", options.memory.peak());
        check_numbers(&service, subpartitions, records);
    }
}

/// T15, tF2, tF12: memory stays within its budget whatever the number of consumers, and a writer with
/// none at all goes on.
#[test]
fn memory_does_not_grow_with_the_number_of_consumers() {
    for subpartitions in [1, 200, 2_000] {
        for memory in [0, 1 << 20] {
            let (_, shuffle) = in_memory();
            let service: Arc<dyn ShuffleService> = Arc::new(shuffle);
            let options = options(memory, 64);
            let records = if memory == 0 { 20_000 } else { 400_000 };
            let written = write_numbers(service.as_ref(), subpartitions, records, &options);
            drop(written.expect("written"));
            assert!(options.memory.peak() <= ByteSize(memory));
            assert_eq!(options.memory.used(), ByteSize(0), "all is given back");
            check_numbers(&service, subpartitions, records);
        }
    }
}

/// T16.
#[test]
fn what_is_for_all_is_stored_once() {
    let (_, shuffle) = in_memory();
    let service: Arc<dyn ShuffleService> = Arc::new(shuffle);
    let bytes = |subpartitions| {
        let descriptor = result_partition(subpartitions, subpartitions);
        let partition = service.writer(&descriptor).expect("a writer is given");
        let mut writer =
            BlockingWriter::<u64>::new(partition, subpartitions, &options(1 << 20, 64));
        for start in (0..100_000).step_by(1_000) {
            let batch = Batch::unstamped((start..start + 1_000).collect());
            writer.emit_all(batch, Batch::clone).expect("taken");
        }
        let finished = writer.finish().expect("finished").expect("a partition");
        for index in [0, subpartitions - 1] {
            let records: Vec<u64> =
                read_records(&service, &descriptor, index..index + 1).expect("nothing is wrong");
            assert!(records.into_iter().eq(0..100_000));
        }
        finished.bytes
    };
    let (one, thousand) = (bytes(1), bytes(1_000));
    assert!(thousand < one + 1_000 * 24 + 4_096, "{one} for one, {thousand} for a thousand");
}

/// T17.
#[test]
fn blocks_are_compressed_and_stay_raw_where_they_would_grow() {
    let (_, shuffle) = in_memory();
    let text = b"the tide turns and turns again; ".repeat(1_000);
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(32_000)
    .collect();
    let mut sizes = Vec::new();
    let compressions: &[Compression] = if cfg!(feature = "zstd") {
        &[Compression::None, Compression::Lz4, Compression::Zstd]
    } else {
        &[Compression::None, Compression::Lz4]
    };
    for compression in compressions {
        for block in [&text, &noise] {
            let descriptor = result_partition(0, 1).compressed(*compression);
            let blocks = [(Some(0), block.as_slice())];
            sizes.push(write_blocks(&shuffle, &descriptor, blocks).bytes);
            let found = read_blocks(&shuffle, &descriptor, 0..1).expect("nothing is wrong");
            assert_eq!(found, [block.as_slice()]);
        }
    }
    for packed in sizes[2..].chunks(2) {
        assert!(packed[0] < sizes[0] / 10, "text shrinks: {sizes:?}");
        assert_eq!(packed[1], sizes[1], "noise is raw: {sizes:?}");
    }
    let refused = shuffle.writer(&result_partition(1, 1).compressed(Compression::Zstd));
    assert_eq!(refused.is_ok(), cfg!(feature = "zstd"));
}

/// A store that watches where it is read.
#[derive(Debug)]
struct Watched {
    inner: MemoryStore,
    offsets: Arc<parking_lot::Mutex<Vec<u64>>>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
}

impl SpillStore for Watched {
    fn create(
        &self,
        role: FileRole,
        name: &str,
    ) -> Result<Box<dyn element::StoreWriter>, element::StoreError> {
        self.inner.create(role, name)
    }

    fn open(
        &self,
        role: FileRole,
        name: &str,
    ) -> Result<Box<dyn element::StoreReader>, element::StoreError> {
        let inner = self.inner.open(role, name)?;
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_open.fetch_max(open, Ordering::SeqCst);
        let offsets = (role == FileRole::PartitionData).then(|| Arc::clone(&self.offsets));
        Ok(Box::new(WatchedReader { inner, offsets, open: Arc::clone(&self.open) }))
    }

    fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), element::StoreError> {
        self.inner.rename(role, from, to)
    }

    fn delete(&self, role: FileRole, name: &str) -> Result<(), element::StoreError> {
        self.inner.delete(role, name)
    }

    fn list(&self, role: FileRole, prefix: &str) -> Result<Vec<String>, element::StoreError> {
        self.inner.list(role, prefix)
    }

    fn local_path(&self, _: &str) -> Option<std::path::PathBuf> {
        None
    }
}

#[derive(Debug)]
struct WatchedReader {
    inner: Box<dyn element::StoreReader>,
    offsets: Option<Arc<parking_lot::Mutex<Vec<u64>>>>,
    open: Arc<AtomicUsize>,
}

impl element::StoreReader for WatchedReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), element::StoreError> {
        if let Some(offsets) = &self.offsets {
            offsets.lock().push(offset);
        }
        self.inner.read_at(offset, into)
    }

    fn len(&self) -> Result<u64, element::StoreError> {
        self.inner.len()
    }
}

impl Drop for WatchedReader {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn watched() -> (Arc<Watched>, Arc<dyn ShuffleService>) {
    let store = Arc::new(Watched {
        inner: MemoryStore::new(),
        offsets: Arc::default(),
        open: Arc::default(),
        most_open: Arc::default(),
    });
    let shuffle = FileShuffle::new(Arc::clone(&store) as Arc<dyn SpillStore>);
    (store, Arc::new(shuffle))
}

/// tF7, T15: each consumer reads its file front to back, region by region.
#[test]
fn reads_follow_the_offsets() {
    let (store, service) = watched();
    write_numbers(service.as_ref(), 100, 400_000, &options(1 << 20, 64)).expect("written");
    let descriptor = result_partition(0, 100);
    for range in [0..1, 57..58, 0..100] {
        store.offsets.lock().clear();
        read_records::<u64>(&service, &descriptor, range.clone()).expect("nothing is wrong");
        let offsets = store.offsets.lock();
        assert!(offsets.len() > 1, "{range:?}");
        assert!(offsets.is_sorted(), "{range:?}: {offsets:?}");
    }
}

/// tF8, tF13, tF15: files and buffers belong to readers at work, not to all that there are.
#[test]
fn open_files_do_not_grow_with_the_number_of_consumers() {
    let (store, service) = watched();
    write_numbers(service.as_ref(), 2_000, 50_000, &options(1 << 20, 64)).expect("written");
    store.most_open.store(0, Ordering::SeqCst);
    let descriptor = result_partition(0, 2_000);
    let readers: Vec<_> = (0..2_000)
        .map(|index| service.reader(&descriptor, index..index + 1).expect("a reader is given"))
        .collect();
    assert!(store.most_open.load(Ordering::SeqCst) <= 2, "the data file, and one index in passing");
    assert!(store.offsets.lock().is_empty(), "nobody has read ahead");
    drop(readers);
    assert_eq!(store.open.load(Ordering::SeqCst), 0);
}

/// tF14: making a reader touches no file, so deploying a task does not wait for a disk.
#[test]
fn a_blocking_reader_opens_its_partition_at_its_first_poll() {
    let (store, service) = watched();
    let reader = BlockingReader::<u64>::new(service, result_partition(0, 1), 0..1);
    assert_eq!(store.most_open.load(Ordering::SeqCst), 0);
    drop(reader);
}

/// tF6, T15: sixteen threads read one partition at once, each by position.
#[test]
fn sixteen_threads_read_one_partition_at_once() {
    for read in [ReadMode::Mapped, ReadMode::Positional] {
        let directory = tempfile::tempdir().expect("a directory is made");
        let store: Arc<dyn SpillStore> = Arc::new(DirectoryStore::new(directory.path()));
        let options_of_files = FileShuffleOptions { read, sync: false };
        let service: Arc<dyn ShuffleService> =
            Arc::new(FileShuffle::with_options(vec![store], options_of_files));
        write_numbers(service.as_ref(), 16, 50_000, &options(1 << 18, 1)).expect("written");
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| check_numbers(&service, 16, 50_000));
            }
        });
    }
}

/// tF19: one broken directory of three fails nobody.
#[test]
fn a_store_that_refuses_files_is_passed_over() {
    let broken = FaultyStore::new(Arc::new(MemoryStore::new()));
    let refuse = FaultPlan {
        operation: Operation::Create,
        nth: 1,
        and_after: true,
        kind: ErrorKind::ReadOnlyFilesystem,
    };
    broken.plan(Some(refuse));
    let stores: Vec<Arc<dyn SpillStore>> =
        vec![Arc::new(MemoryStore::new()), Arc::new(broken.clone()), Arc::new(MemoryStore::new())];
    let shuffle = FileShuffle::with_options(stores, FileShuffleOptions::default());
    for producer in 0..12 {
        let descriptor = result_partition(producer, 1);
        write_blocks(&shuffle, &descriptor, [(Some(0), [7].as_slice())]);
        assert_eq!(read_blocks(&shuffle, &descriptor, 0..1).expect("it is there"), [[7]]);
    }
    assert!(broken.count(Operation::Create) > 0, "its turn came");
    assert_eq!(shuffle.partitions().expect("listed").len(), 12);
}

/// tF20: two tasks of one index share a directory, and so do two shuffles.
#[test]
fn files_of_different_tasks_never_share_a_name() {
    let (store, first) = in_memory();
    let second = FileShuffle::new(Arc::new(store.clone()));
    let mut of_other_edge = result_partition(0, 1);
    if let slackwater_shuffle::PartitionIdentity::Result(id) = &mut of_other_edge.identity {
        id.edge = element::EdgeId(30);
    }
    let here = first.writer(&result_partition(0, 1)).expect("a writer is given");
    let there = second.writer(&result_partition(0, 1)).expect("a writer is given");
    let beside = first.writer(&of_other_edge).expect("a writer is given");
    assert_eq!(names(&store).len(), 3);
    for writer in [here, there, beside] {
        writer.finish().expect("finished");
    }
    assert_eq!(
        first.partitions().expect("listed").len(),
        2,
        "the later one has replaced the earlier"
    );
}

/// tF10, tF11: whatever operation fails, an error says so, nothing can be read and nothing is left.
#[test]
fn a_write_that_fails_leaves_nothing_behind() {
    for operation in [Operation::Create, Operation::Write, Operation::Sync, Operation::Rename] {
        for nth in 1..=4 {
            let memory = MemoryStore::new();
            let store = FaultyStore::new(Arc::new(memory.clone()));
            let files = FileShuffleOptions { read: ReadMode::Mapped, sync: true };
            let shuffle = FileShuffle::with_options(vec![Arc::new(store.clone())], files);
            let plan = FaultPlan { operation, nth, and_after: false, kind: ErrorKind::StorageFull };
            store.plan(Some(plan));
            let written = write_numbers(&shuffle, 8, 300_000, &options(1 << 20, 64));
            let failed = store.count(operation) >= nth;
            assert_eq!(written.is_err(), failed, "{operation} {nth}");
            drop(written);
            let read = shuffle.reader(&result_partition(0, 8), 0..8);
            if failed {
                assert!(matches!(read, Err(ShuffleError::Lost { .. })), "{operation} {nth}");
                assert!(names(&memory).is_empty(), "{operation} {nth}: {:?}", names(&memory));
            } else {
                assert!(read.is_ok(), "{operation} {nth}");
            }
        }
    }
}

#[test]
fn a_read_that_fails_is_an_error_and_may_be_tried_again() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let service: Arc<dyn ShuffleService> = Arc::new(FileShuffle::new(Arc::new(store.clone())));
    write_numbers(service.as_ref(), 2, 300_000, &options(1 << 18, 1)).expect("written");
    let descriptor = result_partition(0, 2);
    let mut failures = 0;
    for nth in 1.. {
        let kind = ErrorKind::PermissionDenied;
        let plan = FaultPlan { operation: Operation::Read, nth, and_after: false, kind };
        store.plan(Some(plan));
        match read_records::<u64>(&service, &descriptor, 0..1) {
            Ok(records) => {
                assert_eq!(records.len(), 150_000);
                break;
            }
            Err(ReadError::Partition(ShuffleError::Storage { .. })) => failures += 1,
            other => panic!("read {nth}: {other:?}"),
        }
    }
    assert!(failures > 4, "{failures} reads failed, one by one");
}

#[test]
fn rubbish_of_writers_that_are_gone_is_discarded() {
    let (store, shuffle) = in_memory();
    write_blocks(&shuffle, &result_partition(0, 1), [(Some(0), b"kept".as_slice())]);
    let writer = shuffle.writer(&result_partition(1, 1)).expect("a writer is given");
    std::mem::forget(writer);
    assert_eq!(names(&store).len(), 3);
    let after = FileShuffle::new(Arc::new(store.clone()));
    assert_eq!(after.discard_unfinished().expect("discarded"), 1);
    assert_eq!(names(&store).len(), 2);
    assert_eq!(read_blocks(&after, &result_partition(0, 1), 0..1).expect("kept"), [b"kept"]);
    assert_eq!(after.discard_unfinished().expect("discarded"), 0);
}

/// A29: a release while a reader is at work: it goes on with what it had, and the files are gone.
#[test]
fn a_reader_under_way_outlives_a_release() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let service: Arc<dyn ShuffleService> =
        Arc::new(FileShuffle::new(Arc::new(DirectoryStore::new(directory.path()))));
    let descriptor = result_partition(0, 1);
    let block = vec![5; 300_000];
    write_blocks(service.as_ref(), &descriptor, (0..10).map(|_| (Some(0), block.as_slice())));
    let mut reader = service.reader(&descriptor, 0..1).expect("a reader is given");
    reader.next().expect("a block");
    service.release(&descriptor.identity).expect("released");
    for _ in 1..10 {
        assert_eq!(reader.next().expect("a block"), Some(block.as_slice()));
    }
    assert_eq!(reader.next().expect("the end"), None);
    assert_eq!(std::fs::read_dir(directory.path()).expect("listed").count(), 0);
}
