//! Blocking partitions against writing and reading the same bytes by hand.
//!
//! Two producers write keyed records for many consumers, then every consumer reads its part of both
//! partitions; numbers of consumers can be given as arguments. One consumer stands for a cached result:
//! written by reference into one subpartition, read by a thread a partition; its writing is also timed
//! alone.
//!
//! By hand: the same bytes on the same file system, copied into 1 MiB buffers and written by two threads
//! to one file each, then mapped and folded by two threads out of the page cache, every byte looked at;
//! without subpartitions, checksums, batches or decoding. Both delete their files within the time, and
//! before each as much memory as the files take is filled and given back (`common::compare`).

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use element::{BATCH_RECORDS, Batch, Control, DirectoryStore, SubpartitionIndex};
use slackwater_shuffle::testing::result_partition;
use slackwater_shuffle::{
    BlockingOptions, BlockingReader, BlockingWriter, ChannelReader, FileShuffle, GateEvent,
    InputGate, PartitionWriter, ShuffleService,
};

mod common;
use common::{compare, mix, scaled};

const PRODUCERS: u32 = 2;

/// A hundred bytes with a number in front.
type Hundred = [u8; 100];

fn generate(i: u64) -> Hundred {
    let mut record = [i as u8; 100];
    record[..8].copy_from_slice(&mix(i).to_le_bytes());
    record
}

/// Looks at every byte.
fn fold(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word)).fold(0, u64::wrapping_add);
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

fn write(service: &dyn ShuffleService, producer: u32, consumers: u32, records: u64) {
    let descriptor = result_partition(producer, consumers);
    let partition = service.writer(&descriptor).expect("a writer is given");
    let mut writer = BlockingWriter::new(partition, consumers, &BlockingOptions::default());
    let mut next = u64::from(producer);
    let mut targets = Vec::new();
    while next < records {
        let batch = (next..records).step_by(PRODUCERS as usize).take(BATCH_RECORDS);
        let values: Vec<_> = batch.map(generate).collect();
        next += values.len() as u64 * u64::from(PRODUCERS);
        if consumers == 1 {
            let batch = Batch::unstamped(values);
            writer.emit_ref(SubpartitionIndex(0), &batch).expect("records are taken");
            continue;
        }
        targets.clear();
        targets.extend(values.iter().map(|value| {
            let high = u32::from_le_bytes([value[4], value[5], value[6], value[7]]);
            SubpartitionIndex(((u64::from(high) * u64::from(consumers)) >> 32) as u32)
        }));
        writer.scatter(Batch::unstamped(values), &targets).expect("records are taken");
    }
    writer.broadcast(Control::EndOfInput).expect("the end is taken");
    writer.finish().expect("finished");
}

/// What one consumer reads of some producers.
fn read(
    service: &Arc<dyn ShuffleService>,
    producers: Range<u32>,
    consumer: u32,
    consumers: u32,
) -> u64 {
    let channel = |producer| {
        let descriptor = result_partition(producer, consumers);
        let range = consumer..consumer + 1;
        let reader = BlockingReader::<Hundred>::new(Arc::clone(service), descriptor, range);
        Box::new(reader) as Box<dyn ChannelReader<Hundred>>
    };
    let mut gate = InputGate::new(producers.map(channel).collect());
    let mut sum = 0_u64;
    loop {
        match gate.poll().expect("nothing is wrong") {
            GateEvent::Batch { batch, .. } => {
                let folds = batch.values().iter().map(|record| fold(record));
                sum = folds.fold(sum, u64::wrapping_add);
            }
            GateEvent::EndOfInput => return sum,
            _ => {}
        }
    }
}

fn ours(directory: &Path, consumers: u32, records: u64) -> u64 {
    let service = ours_written(directory, consumers, records);
    let sum = on_two_threads(|thread| {
        if consumers == 1 {
            return read(&service, thread..thread + 1, 0, 1);
        }
        (thread..consumers)
            .step_by(2)
            .map(|consumer| read(&service, 0..PRODUCERS, consumer, consumers))
            .fold(0, u64::wrapping_add)
    });
    release(service.as_ref(), consumers);
    sum
}

fn ours_written(directory: &Path, consumers: u32, records: u64) -> Arc<dyn ShuffleService> {
    let store = Arc::new(DirectoryStore::new(directory));
    let service: Arc<dyn ShuffleService> = Arc::new(FileShuffle::new(store));
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let service = &service;
            scope.spawn(move || write(service.as_ref(), producer, consumers, records));
        }
    });
    service
}

fn release(service: &dyn ShuffleService, consumers: u32) {
    for producer in 0..PRODUCERS {
        let identity = result_partition(producer, consumers).identity;
        service.release(&identity).expect("released");
    }
}

fn on_two_threads(work: impl Fn(u32) -> u64 + Sync) -> u64 {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work(1));
        work(0).wrapping_add(other.join().expect("ends well"))
    })
}

fn by_hand(directory: &Path, records: u64) -> u64 {
    by_hand_written(directory, records);
    let sum = on_two_threads(|producer| {
        let bytes = read_back(&raw(directory, producer));
        bytes.chunks_exact(100).map(fold).fold(0, u64::wrapping_add)
    });
    remove_raw(directory);
    sum
}

fn raw(directory: &Path, producer: u32) -> PathBuf {
    directory.join(format!("raw-{producer}"))
}

fn by_hand_written(directory: &Path, records: u64) {
    on_two_threads(|producer| {
        let mut file = File::create(raw(directory, producer)).expect("created");
        let mut buffer = Vec::with_capacity(1 << 20);
        for i in (u64::from(producer)..records).step_by(PRODUCERS as usize) {
            if buffer.len() + 100 > 1 << 20 {
                file.write_all(&buffer).expect("written");
                buffer.clear();
            }
            buffer.extend_from_slice(&generate(i));
        }
        file.write_all(&buffer).expect("written");
        0
    });
}

fn remove_raw(directory: &Path) {
    for producer in 0..PRODUCERS {
        std::fs::remove_file(raw(directory, producer)).expect("removed");
    }
}

#[expect(unsafe_code, reason = "the reference maps its file, as ours does")]
fn read_back(path: &Path) -> memmap2::Mmap {
    let file = File::open(path).expect("opened");
    // SAFETY: nobody else knows the file, and it is not written any more.
    unsafe { memmap2::Mmap::map(&file) }.expect("mapped")
}

fn main() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let directory = directory.path();
    let records = scaled(10_000_000);
    let chosen: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    for consumers in if chosen.is_empty() { vec![1, 2, 200, 2_000] } else { chosen } {
        if consumers == 1 {
            compare(
                "blocking, 2 to 1, 100-byte records, written",
                records,
                100,
                100 * records,
                || {
                    release(ours_written(directory, 1, records).as_ref(), 1);
                    records
                },
                || {
                    by_hand_written(directory, records);
                    remove_raw(directory);
                    records
                },
            );
        }
        compare(
            &format!("blocking, 2 to {consumers}, 100-byte records, write and read"),
            records,
            100,
            100 * records,
            || ours(directory, consumers, records),
            || by_hand(directory, records),
        );
    }
}
