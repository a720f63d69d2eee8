//! The contract of a shuffle service, as a test suite that any implementation can run.
//!
//! Feature `testing`. [`check_shuffle_service`] runs over [`crate::FileShuffle`] in this crate's tests
//! and over the service of `examples/memory_shuffle.rs`; who brings a shuffle of their own runs it
//! over theirs. It panics with a sentence where the contract is broken.
//!
//! Left out on purpose: damage, for only the service knows where its bytes lie.

use std::ops::Range;
use std::sync::Arc;

use element::{
    Attempt, Batch, Control, DataSetId, EdgeId, Generation, JobId, PartitionId, Record,
    RecordAttributes, StreamElement, SubpartitionIndex, SubtaskIndex, Timestamp,
};

use crate::{
    BlockingOptions, BlockingReader, BlockingWriter, ChannelEvent, ChannelReader,
    PartitionDescriptor, PartitionIdentity, PartitionWriter, ReadError, ShuffleError,
    ShuffleService,
};

/// The result partition of a producer in job 1.
#[must_use]
pub fn result_partition(producer: u32, subpartitions: u32) -> PartitionDescriptor {
    let id = PartitionId {
        job: JobId(1),
        attempt: Attempt(0),
        edge: EdgeId(3),
        producer: SubtaskIndex(producer),
    };
    PartitionDescriptor::new(id, subpartitions)
}

/// Writes blocks, each to a subpartition or to all (`None`), and finishes.
///
/// # Panics
///
/// If the service fails.
pub fn write_blocks<'a>(
    service: &dyn ShuffleService,
    descriptor: &PartitionDescriptor,
    blocks: impl IntoIterator<Item = (Option<u32>, &'a [u8])>,
) -> crate::FinishedPartition {
    let mut writer = service.writer(descriptor).expect("a writer is given");
    for (subpartition, block) in blocks {
        match subpartition {
            Some(index) => writer.write(SubpartitionIndex(index), block),
            None => writer.write_broadcast(block),
        }
        .expect("a block is taken");
    }
    writer.finish().expect("a partition is finished")
}

/// All blocks of some subpartitions.
///
/// # Errors
///
/// The service's or its reader's.
pub fn read_blocks(
    service: &dyn ShuffleService,
    descriptor: &PartitionDescriptor,
    subpartitions: Range<u32>,
) -> Result<Vec<Vec<u8>>, ShuffleError> {
    let mut reader = service.reader(descriptor, subpartitions)?;
    let mut blocks = Vec::new();
    while let Some(block) = reader.next()? {
        blocks.push(block.to_vec());
    }
    Ok(blocks)
}

/// All elements of a channel that has all it will ever have; the end of the input included.
///
/// # Errors
///
/// The channel's.
///
/// # Panics
///
/// If the channel says that it is empty.
pub fn read_elements<T>(
    channel: &mut dyn ChannelReader<T>,
) -> Result<Vec<StreamElement<T>>, ReadError> {
    let mut elements = Vec::new();
    loop {
        match channel.poll()? {
            ChannelEvent::Element(element) => elements.push(element),
            ChannelEvent::Ended => return Ok(elements),
            ChannelEvent::Empty => panic!("a finished partition has nothing to wait for"),
        }
    }
}

/// All records of some subpartitions, as a task reads them.
///
/// # Errors
///
/// The channel's.
pub fn read_records<T: Record>(
    service: &Arc<dyn ShuffleService>,
    descriptor: &PartitionDescriptor,
    subpartitions: Range<u32>,
) -> Result<Vec<T>, ReadError> {
    let mut reader = BlockingReader::new(Arc::clone(service), descriptor.clone(), subpartitions);
    let elements = read_elements(&mut reader)?;
    Ok(elements
        .into_iter()
        .flat_map(|element| match element {
            StreamElement::Batch(batch) => batch.into_parts().0,
            StreamElement::Control(_) => Vec::new(),
        })
        .collect())
}

/// Runs the whole contract; `make` gives a fresh, empty service each time.
///
/// # Panics
///
/// Where the contract is broken.
pub fn check_shuffle_service(make: impl Fn() -> Arc<dyn ShuffleService>) {
    blocks_come_back_in_order(make().as_ref());
    broadcast_blocks_keep_their_place(make().as_ref());
    nothing_is_there_before_the_end(make().as_ref());
    partitions_can_be_read_again_and_at_once(make().as_ref());
    release_is_complete_and_harmless(make().as_ref());
    identities_are_apart(make().as_ref());
    another_attempt_replaces(make().as_ref());
    wrong_subpartitions_are_refused(make().as_ref());
    sparse_and_empty_partitions_are_read(make().as_ref());
    records_travel_with_their_controls(&make());
}

fn blocks_come_back_in_order(service: &dyn ShuffleService) {
    let descriptor = result_partition(0, 3);
    let large = vec![7; 3 << 20];
    let blocks: [(Option<u32>, &[u8]); 6] = [
        (Some(2), b"a"),
        (Some(0), b"b"),
        (Some(2), &large),
        (Some(2), b""),
        (Some(0), b"e"),
        (Some(2), b"f"),
    ];
    let finished = write_blocks(service, &descriptor, blocks);
    assert_eq!(finished.identity, descriptor.identity);
    assert_eq!(finished.subpartitions, 3);
    let read = |range| read_blocks(service, &descriptor, range).expect("blocks are read");
    assert_eq!(read(0..1), [b"b".to_vec(), b"e".to_vec()]);
    assert_eq!(read(1..2), Vec::<Vec<u8>>::new(), "nothing was written to it");
    assert_eq!(read(2..3), [b"a".to_vec(), large, Vec::new(), b"f".to_vec()]);
    assert_eq!(read(0..3).len(), 6, "a range has the blocks of all its subpartitions");
    assert_eq!(read(1..1).len(), 0, "an empty range has none");
}

fn broadcast_blocks_keep_their_place(service: &dyn ShuffleService) {
    let descriptor = result_partition(0, 2);
    let blocks: [(Option<u32>, &[u8]); 5] =
        [(Some(0), b"a"), (None, b"x"), (Some(1), b"b"), (None, b"y"), (Some(0), b"c")];
    write_blocks(service, &descriptor, blocks);
    let read = |range| {
        let blocks = read_blocks(service, &descriptor, range).expect("blocks are read");
        String::from_utf8(blocks.concat()).expect("blocks are text")
    };
    assert_eq!(read(0..1), "axyc");
    assert_eq!(read(1..2), "xby");
    let both = read(0..2);
    assert_eq!(both.matches(['x', 'y']).count(), 2, "a broadcast block comes once in a range");
}

fn nothing_is_there_before_the_end(service: &dyn ShuffleService) {
    let descriptor = result_partition(0, 1);
    let mut writer = service.writer(&descriptor).expect("a writer is given");
    writer.write(SubpartitionIndex(0), b"half").expect("a block is taken");
    assert_lost(read_blocks(service, &descriptor, 0..1));
    drop(writer);
    assert_lost(read_blocks(service, &descriptor, 0..1));
}

#[track_caller]
fn assert_lost<V: std::fmt::Debug>(result: Result<V, ShuffleError>) {
    assert!(matches!(result, Err(ShuffleError::Lost { .. })), "lost expected, not {result:?}");
}

fn partitions_can_be_read_again_and_at_once(service: &dyn ShuffleService) {
    let descriptor = result_partition(0, 2);
    let blocks: Vec<Vec<u8>> = (0..200_u8).map(|n| vec![n; 1_000]).collect();
    let of = |parity: u32| blocks.iter().skip(parity as usize).step_by(2).cloned();
    let all = (0..).zip(&blocks).map(|(n, block)| (Some(n % 2), block.as_slice()));
    write_blocks(service, &descriptor, all);
    for _ in 0..2 {
        let mut even = service.reader(&descriptor, 0..1).expect("a reader is given");
        let mut odd = service.reader(&descriptor, 1..2).expect("a reader is given");
        for (first, second) in of(0).zip(of(1)) {
            assert_eq!(even.next().expect("even blocks"), Some(first.as_slice()));
            assert_eq!(odd.next().expect("odd blocks"), Some(second.as_slice()));
        }
        assert_eq!(even.next().expect("the end"), None);
        assert_eq!(even.next().expect("the end, again"), None);
    }
}

fn release_is_complete_and_harmless(service: &dyn ShuffleService) {
    let descriptor = result_partition(0, 1);
    service.release(&descriptor.identity).expect("releasing nothing is harmless");
    for _ in 0..2 {
        write_blocks(service, &descriptor, [(Some(0), b"kept".as_slice())]);
        let mut reader = service.reader(&descriptor, 0..1).expect("a reader is given");
        service.release(&descriptor.identity).expect("released");
        match reader.next() {
            Ok(block) => assert_eq!(block, Some(b"kept".as_slice())),
            Err(error) => assert_lost(Err::<(), _>(error)),
        }
        assert_lost(read_blocks(service, &descriptor, 0..1));
        service.release(&descriptor.identity).expect("releasing twice is harmless");
    }
}

fn identities_are_apart(service: &dyn ShuffleService) {
    let data_set = |set, generation, producer| {
        let identity = PartitionIdentity::DataSet {
            data_set: DataSetId(set),
            generation: Generation(generation),
            attempt: Attempt(0),
            producer: SubtaskIndex(producer),
        };
        PartitionDescriptor::new(identity, 1)
    };
    let descriptors = [
        result_partition(0, 1),
        result_partition(1, 1),
        data_set(1, 0, 3),
        data_set(1, 1, 3),
        data_set(1, 0, 4),
        data_set(u128::MAX, 0, 3),
    ];
    for (number, descriptor) in (0_u8..).zip(&descriptors) {
        write_blocks(service, descriptor, [(Some(0), [number].as_slice())]);
    }
    service.release(&descriptors[1].identity).expect("released");
    for (number, descriptor) in (0_u8..).zip(&descriptors) {
        match number {
            1 => assert_lost(read_blocks(service, descriptor, 0..1)),
            _ => assert_eq!(read_blocks(service, descriptor, 0..1).expect("kept"), [[number]]),
        }
    }
}

fn another_attempt_replaces(service: &dyn ShuffleService) {
    let descriptor = result_partition(0, 1);
    let first = write_blocks(service, &descriptor, [(Some(0), b"first".as_slice())]);
    let mut aborted = service.writer(&descriptor).expect("a writer is given");
    aborted.write(SubpartitionIndex(0), b"aborted").expect("a block is taken");
    drop(aborted);
    let read = |descriptor| read_blocks(service, descriptor, 0..1);
    assert_eq!(read(&descriptor).expect("the first stays"), [b"first"]);
    let second = write_blocks(service, &descriptor, [(Some(0), b"second".as_slice())]);
    assert_eq!(read(&descriptor).expect("the second replaces it"), [b"second"]);
    let as_second = descriptor.clone().as_finished(&second);
    assert_eq!(read(&as_second).expect("it is the one asked for"), [b"second"]);
    let stale = read(&descriptor.clone().as_finished(&first));
    let noticed = matches!(stale, Err(ShuffleError::Corrupt { .. } | ShuffleError::Lost { .. }));
    assert!(noticed, "another making of a partition is not the one asked for: {stale:?}");
}

fn wrong_subpartitions_are_refused(service: &dyn ShuffleService) {
    let descriptor = result_partition(0, 2);
    let mut writer = service.writer(&descriptor).expect("a writer is given");
    let refused = writer.write(SubpartitionIndex(2), b"beyond");
    assert!(matches!(refused, Err(ShuffleError::NoSuchSubpartition { asked: 2, .. })));
    drop(writer);
    write_blocks(service, &descriptor, []);
    let refused = read_blocks(service, &descriptor, 1..3);
    assert!(matches!(refused, Err(ShuffleError::NoSuchSubpartition { asked: 3, .. })));
}

fn sparse_and_empty_partitions_are_read(service: &dyn ShuffleService) {
    let empty = result_partition(0, 2_000);
    write_blocks(service, &empty, []);
    let sparse = result_partition(1, 2_000);
    let blocks = [(Some(1_999), b"z".as_slice()), (Some(3), b"a"), (Some(1_999), b"y")];
    write_blocks(service, &sparse, blocks);
    for index in 0..2_000 {
        let read = |descriptor| read_blocks(service, descriptor, index..index + 1);
        assert!(read(&empty).expect("an empty partition is one").is_empty());
        let expected: &[&[u8]] = match index {
            3 => &[b"a"],
            1_999 => &[b"z", b"y"],
            _ => &[],
        };
        assert_eq!(read(&sparse).expect("a sparse partition is read"), expected);
    }
}

fn records_travel_with_their_controls(service: &Arc<dyn ShuffleService>) {
    let descriptor = result_partition(0, 2);
    for sort_threshold in [1, 3] {
        let partition = service.writer(&descriptor).expect("a writer is given");
        let options = BlockingOptions { sort_threshold, ..BlockingOptions::default() };
        let mut writer = BlockingWriter::<u64>::new(partition, 2, &options);
        let mut emit = |step: u64| {
            let targets: Vec<_> = (0..100).map(|n| SubpartitionIndex(n % 2)).collect();
            let values = (step * 100..(step + 1) * 100).collect();
            writer.scatter(Batch::unstamped(values), &targets).expect("records are taken");
            let watermark = Control::Watermark(Timestamp(step.cast_signed()));
            writer.broadcast(watermark).expect("a control is taken");
        };
        (0..10).for_each(&mut emit);
        let live = Control::Attributes(RecordAttributes::live(None));
        writer.broadcast(live).expect("a control is taken");
        writer.broadcast(Control::EndOfInput).expect("the end is taken");
        let finished = writer.finish().expect("finished").expect("a blocking edge has a partition");
        assert_eq!(finished.records, Some(1_000));
        check_records(service, &descriptor, live);
    }
}

fn check_records(
    service: &Arc<dyn ShuffleService>,
    descriptor: &PartitionDescriptor,
    live: Control,
) {
    for parity in 0..2 {
        let range = parity..parity + 1;
        let mut reader = BlockingReader::new(Arc::clone(service), descriptor.clone(), range);
        let elements = read_elements::<u64>(&mut reader).expect("a subpartition is read");
        let mut expected = Vec::new();
        for step in 0..10_u64 {
            let values = (step * 100..(step + 1) * 100).filter(|n| n % 2 == u64::from(parity));
            expected.push(StreamElement::Batch(Batch::unstamped(values.collect())));
            let watermark = Control::Watermark(Timestamp(step.cast_signed()));
            expected.push(StreamElement::Control(watermark));
        }
        expected.push(StreamElement::Control(live));
        expected.push(StreamElement::Control(Control::EndOfInput));
        assert_eq!(elements, expected, "order of emission, controls in their places");
    }
    let mut all: Vec<u64> = read_records(service, descriptor, 0..2).expect("a range is read");
    all.sort_unstable();
    assert!(all.into_iter().eq(0..1_000), "a range has the records of all its subpartitions");
}
