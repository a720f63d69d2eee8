//! Blocking partitions against writing and reading the same bytes by hand.
//!
//! Two producers write keyed records for many consumers, then every consumer reads its part of both
//! partitions; numbers of consumers can be given as arguments. One consumer stands for a cached result:
//! written by reference into one subpartition, read by a thread a partition; its writing is also timed
//! alone. By hand: the bytes of the records, copied into 1 MiB buffers, written to one file a producer,
//! mapped and folded, without subpartitions, checksums, batches or decoding.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use element::{
    BATCH_RECORDS, Batch, CodecError, Control, DirectoryStore, Record, Schema, SchemaError,
    SubpartitionIndex, Value,
};
use slackwater_shuffle::testing::result_partition;
use slackwater_shuffle::{
    BlockingOptions, BlockingReader, BlockingWriter, ChannelReader, FileShuffle, GateEvent,
    InputGate, PartitionWriter, ShuffleService,
};

mod common;
use common::{compare, mix, scaled};

const PRODUCERS: u32 = 2;

/// A hundred bytes with a number in front.
#[derive(Clone, Copy)]
struct Hundred([u8; 100]);

impl Hundred {
    fn generate(i: u64) -> Self {
        let mut record = [i as u8; 100];
        record[..8].copy_from_slice(&mix(i).to_le_bytes());
        Self(record)
    }

    fn fold(bytes: &[u8]) -> u64 {
        let number = bytes.first_chunk::<8>().copied().map_or(0, u64::from_le_bytes);
        number ^ u64::from(bytes[99])
    }
}

impl Record for Hundred {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let (head, rest) = input.split_first_chunk().ok_or(CodecError::Short {
            what: "record",
            needed: 100,
            left: input.len(),
        })?;
        *input = rest;
        Ok(Self(*head))
    }

    fn schema() -> Schema {
        <[u8; 100]>::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        Err(value.mismatch("Hundred"))
    }
}

fn write(service: &dyn ShuffleService, producer: u32, consumers: u32, records: u64) {
    let descriptor = result_partition(producer, consumers);
    let partition = service.writer(&descriptor).expect("a writer is given");
    let mut writer = BlockingWriter::new(partition, consumers, &BlockingOptions::default());
    let mut next = u64::from(producer);
    let mut targets = Vec::new();
    while next < records {
        let batch = (next..records).step_by(PRODUCERS as usize).take(BATCH_RECORDS);
        let values: Vec<_> = batch.map(Hundred::generate).collect();
        next += values.len() as u64 * u64::from(PRODUCERS);
        if consumers == 1 {
            let batch = Batch::unstamped(values);
            writer.emit_ref(SubpartitionIndex(0), &batch).expect("records are taken");
            continue;
        }
        targets.clear();
        targets.extend(values.iter().map(|value| {
            let high = u32::from_le_bytes([value.0[4], value.0[5], value.0[6], value.0[7]]);
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
                let folds = batch.values().iter().map(|record| Hundred::fold(&record.0));
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
        bytes.chunks_exact(100).map(Hundred::fold).fold(0, u64::wrapping_add)
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
            buffer.extend_from_slice(&Hundred::generate(i).0);
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
            || ours(directory, consumers, records),
            || by_hand(directory, records),
        );
    }
}
