//! `execution.shuffle.compression` and `execution.cache.compression`: what is at rest is packed as the
//! options say, by block, and raw where packing would make it larger.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use slackwater::JobError;
use slackwater::options::Compression;
use slackwater::prelude::*;
use slackwater::shuffle::{
    DirectoryStore, FileShuffle, FinishedPartition, PartitionDescriptor, PartitionIdentity,
    ResultPartitionReader, ResultPartitionWriter, ShuffleError, ShuffleService, SubpartitionIndex,
};

const ROWS: u64 = 2_000;

/// What was written: whether of a data set, the compression asked for, the bytes at rest.
type Written = Arc<Mutex<Vec<(bool, Compression, u64)>>>;

/// Files, and a note of each partition that is finished.
#[derive(Debug)]
struct Noting {
    inner: FileShuffle,
    written: Written,
}

struct NotingWriter {
    inner: Box<dyn ResultPartitionWriter>,
    compression: Compression,
    written: Written,
}

impl ShuffleService for Noting {
    fn writer(
        &self,
        descriptor: &PartitionDescriptor,
    ) -> Result<Box<dyn ResultPartitionWriter>, ShuffleError> {
        Ok(Box::new(NotingWriter {
            inner: self.inner.writer(descriptor)?,
            compression: descriptor.compression,
            written: Arc::clone(&self.written),
        }))
    }

    fn reader(
        &self,
        descriptor: &PartitionDescriptor,
        subpartitions: Range<u32>,
    ) -> Result<Box<dyn ResultPartitionReader>, ShuffleError> {
        self.inner.reader(descriptor, subpartitions)
    }

    fn release(&self, partition: &PartitionIdentity) -> Result<(), ShuffleError> {
        self.inner.release(partition)
    }
}

impl ResultPartitionWriter for NotingWriter {
    fn write(&mut self, subpartition: SubpartitionIndex, block: &[u8]) -> Result<(), ShuffleError> {
        self.inner.write(subpartition, block)
    }

    fn write_broadcast(&mut self, block: &[u8]) -> Result<(), ShuffleError> {
        self.inner.write_broadcast(block)
    }

    fn finish(self: Box<Self>) -> Result<FinishedPartition, ShuffleError> {
        let finished = self.inner.finish()?;
        let is_kept = matches!(finished.identity, PartitionIdentity::DataSet { .. });
        self.written.lock().unwrap().push((is_kept, self.compression, finished.bytes));
        Ok(finished)
    }
}

/// A row of text that repeats itself, or of bytes that do not.
fn row(i: u64, is_text: bool) -> (u64, Vec<u64>) {
    let mix = |x: u64| (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(31);
    let noise = |x: u64| mix(mix(mix(x.wrapping_mul(0x9E37_79B9_7F4A_7C15))));
    (i, (0..16).map(|at| if is_text { i % 3 } else { noise(i * 16 + at + 1) }).collect())
}

/// One exchange and one data set, with a compression each; bytes at rest of both.
fn run(shuffle: Compression, cache: Compression, is_text: bool) -> Result<(u64, u64), JobError> {
    let directory = tempfile::tempdir().unwrap();
    let inner = FileShuffle::new(Arc::new(DirectoryStore::new(directory.path())));
    let written = Written::default();
    let env = StreamExecutionEnvironment::builder()
        .shuffle(Noting { inner, written: Arc::clone(&written) })
        // Of several readers the quicker takes more, and each writes headers of its own.
        .set(&options::PARALLELISM, Some(1))
        .set(&options::SHUFFLE_COMPRESSION, shuffle)
        .set(&options::CACHE_COMPRESSION, cache)
        .set(&options::RESTART_STRATEGY, Some(options::RestartStrategy::None))
        .build();
    let rows = env.generate(ROWS, move |i| row(i, is_text)).rebalance().map(|row| row);
    let kept = rows.name("kept").cache();
    kept.count()?;
    let mut read = kept.execute_and_collect()?.into_iter().collect::<Vec<_>>();
    read.sort_unstable();
    assert_eq!(read, (0..ROWS).map(|i| row(i, is_text)).collect::<Vec<_>>());
    let written = written.lock().unwrap();
    let at_rest = |of_data_set: bool, asked: Compression| {
        let ours = written.iter().filter(|(is_kept, ..)| *is_kept == of_data_set);
        let (compressions, bytes): (Vec<_>, Vec<_>) = ours.map(|note| (note.1, note.2)).unzip();
        assert!(compressions.iter().all(|found| *found == asked), "{compressions:?}");
        bytes.iter().sum::<u64>()
    };
    // Each job reads counts and rows over an exchange of its own; the first alone makes the rows.
    Ok((at_rest(false, shuffle), at_rest(true, cache)))
}

#[test]
fn exchanges_and_data_sets_are_packed_as_their_options_say() {
    let (plain, plain_kept) = run(Compression::None, Compression::None, true).unwrap();
    let packed: &[Compression] = if cfg!(feature = "zstd") {
        &[Compression::Lz4, Compression::Zstd]
    } else {
        &[Compression::Lz4]
    };
    for compression in packed {
        let (exchanged, kept) = run(*compression, Compression::None, true).unwrap();
        assert!(exchanged < plain / 2, "{compression:?}: {exchanged} of {plain}");
        assert_eq!(kept, plain_kept, "the other option says how data sets are packed");
        let (exchanged, kept) = run(Compression::None, *compression, true).unwrap();
        assert!(kept < plain_kept / 2, "{compression:?}: {kept} of {plain_kept}");
        assert_eq!(exchanged, plain);
    }
}

#[test]
fn what_packing_would_make_larger_is_at_rest_as_it_is() {
    let plain = run(Compression::None, Compression::None, false).unwrap();
    let packed = run(Compression::Lz4, Compression::Lz4, false).unwrap();
    assert!(packed.0 <= plain.0 && packed.1 <= plain.1, "{packed:?} of {plain:?}");
    if cfg!(feature = "zstd") {
        let packed = run(Compression::Zstd, Compression::Zstd, false).unwrap();
        assert!(packed.0 <= plain.0 && packed.1 <= plain.1, "{packed:?} of {plain:?}");
    }
}

/// A build without zstd refuses it by name, and writes nothing else in its place.
#[cfg(not(feature = "zstd"))]
#[test]
fn a_compression_that_the_build_lacks_is_refused_by_name() {
    for (shuffle, cache) in
        [(Compression::Zstd, Compression::None), (Compression::None, Compression::Zstd)]
    {
        let error = run(shuffle, cache, true).unwrap_err();
        let mut chain = format!("{error}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            chain += &format!(": {cause}");
            source = cause.source();
        }
        assert!(chain.contains("`Zstd` is not supported"), "{chain}");
    }
}
