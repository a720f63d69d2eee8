//! Pipelined channels and their writer: bounds, wakes, order, coalescing, failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use element::{
    BATCH_RECORDS, Batch, ByteSize, Control, StreamElement, SubpartitionIndex, Timestamp,
};
use slackwater_shuffle::{
    ChannelCapacity, ChannelEvent, ChannelReader, Flow, GateEvent, InputGate, NoWake,
    PartitionWriter, PipelinedReceiver, PipelinedWriter, ReadError, TrySendError, Wake, WriteError,
    pipelined, pipelined_weighed,
};

#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn wakes(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn batch(values: impl IntoIterator<Item = u64>) -> StreamElement<u64> {
    StreamElement::Batch(Batch::unstamped(values.into_iter().collect()))
}

fn capacity(batches: usize, bytes: u64) -> ChannelCapacity {
    ChannelCapacity { batches, bytes: ByteSize(bytes) }
}

fn values(event: ChannelEvent<u64>) -> Vec<u64> {
    match event {
        ChannelEvent::Element(StreamElement::Batch(batch)) => batch.into_parts().0,
        other => panic!("a batch expected, not {other:?}"),
    }
}

#[test]
fn a_full_channel_hands_the_element_back_and_wakes_once_half_is_free() {
    let (producer, consumer) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let (mut sender, mut receiver) = pipelined(capacity(4, 1 << 20), producer.clone(), consumer);
    (0..4).for_each(|n| sender.try_send(batch([n])).expect("there is room"));
    assert_eq!(sender.try_send(batch([9])), Err(TrySendError::Full(batch([9]))));
    assert_eq!(sender.queued(), 4);
    receiver.poll().expect("an element");
    assert_eq!(producer.wakes(), 0, "a quarter is free");
    receiver.poll().expect("an element");
    assert_eq!(producer.wakes(), 1, "half is free");
    receiver.poll().expect("an element");
    assert_eq!(producer.wakes(), 1, "only who is held up is woken");
    sender.try_send(batch([9])).expect("there is room again");
}

#[test]
fn bytes_bound_a_channel_and_one_giant_passes_an_empty_one() {
    let weigh = |value: &u64| usize::try_from(*value).unwrap_or(usize::MAX);
    let (mut sender, mut receiver) =
        pipelined_weighed(capacity(100, 1_000), weigh, Arc::new(NoWake), Arc::new(NoWake));
    sender.try_send(batch([5_000])).expect("a giant passes an empty channel");
    assert!(matches!(sender.try_send(batch([1])), Err(TrySendError::Full(_))));
    assert_eq!(values(receiver.poll().expect("the giant")), [5_000]);
    sender.try_send(batch([600])).expect("it is empty again");
    assert!(matches!(sender.try_send(batch([600])), Err(TrySendError::Full(_))));
    sender.try_send(batch([300])).expect("less fits");
    assert_eq!(sender.queued_bytes(), ByteSize(900));
    receiver.poll().expect("the first");
    receiver.poll().expect("the second");
    assert_eq!(sender.queued_bytes(), ByteSize(0));
}

#[test]
fn a_consumer_is_woken_only_when_it_waits() {
    let consumer = Arc::new(Count::default());
    let (mut sender, mut receiver) =
        pipelined(capacity(8, 1 << 20), Arc::new(NoWake), consumer.clone());
    sender.try_send(batch([1])).expect("there is room");
    assert_eq!(consumer.wakes(), 0, "it has not said that it waits");
    receiver.poll().expect("an element");
    assert_eq!(receiver.poll().expect("nothing"), ChannelEvent::Empty);
    sender.try_send(batch([2])).expect("there is room");
    sender.try_send(batch([3])).expect("there is room");
    assert_eq!(consumer.wakes(), 1);
}

#[test]
fn the_end_comes_once_and_then_ended() {
    let (mut sender, mut receiver) =
        pipelined::<u64>(capacity(8, 1 << 20), Arc::new(NoWake), Arc::new(NoWake));
    let end = StreamElement::Control(Control::EndOfInput);
    sender.try_send(end.clone()).expect("there is room");
    drop(sender);
    assert_eq!(receiver.poll().expect("the end"), ChannelEvent::Element(end));
    for _ in 0..2 {
        assert_eq!(receiver.poll().expect("behind the end"), ChannelEvent::Ended);
    }
}

#[test]
fn either_end_that_goes_wakes_the_other() {
    let (producer, consumer) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let (mut sender, receiver) =
        pipelined(capacity(1, 1 << 20), producer.clone(), consumer.clone());
    sender.try_send(batch([1])).expect("there is room");
    assert!(sender.try_send(batch([2])).is_err());
    drop(receiver);
    assert_eq!(producer.wakes(), 1);
    assert_eq!(sender.try_send(batch([2])), Err(TrySendError::Closed(batch([2]))));
    drop(sender);
    assert!(consumer.wakes() >= 1);
}

/// tF10: what a failed producer has sent is given, then the failure; nothing is taken for an end.
#[test]
fn a_producer_that_goes_early_leaves_an_error_behind_its_elements() {
    let (sender, mut receiver) =
        pipelined(capacity(8, 1 << 20), Arc::new(NoWake), Arc::new(NoWake));
    let mut writer = PipelinedWriter::new(vec![sender]);
    writer.emit(SubpartitionIndex(0), Batch::unstamped(vec![1])).expect("taken");
    writer.flush().expect("flushed");
    writer.emit(SubpartitionIndex(0), Batch::unstamped(vec![2])).expect("taken");
    drop(writer);
    assert_eq!(values(receiver.poll().expect("what was sent")), [1]);
    assert!(matches!(receiver.poll(), Err(ReadError::Abandoned)));
}

type Edge = (PipelinedWriter<u64>, Vec<PipelinedReceiver<u64>>);

fn edge(consumers: usize, capacity: ChannelCapacity) -> Edge {
    let ends = (0..consumers).map(|_| pipelined(capacity, Arc::new(NoWake), Arc::new(NoWake)));
    let (senders, receivers) = ends.unzip();
    (PipelinedWriter::new(senders), receivers)
}

fn drain(receiver: &mut PipelinedReceiver<u64>) -> Vec<StreamElement<u64>> {
    let mut elements = Vec::new();
    while let ChannelEvent::Element(element) = receiver.poll().expect("the producer lives") {
        elements.push(element);
    }
    elements
}

#[test]
fn small_batches_are_joined_and_controls_keep_their_place() {
    let (mut writer, mut receivers) = edge(2, ChannelCapacity::default());
    for n in 0..10 {
        writer.emit(SubpartitionIndex(0), Batch::unstamped(vec![n])).expect("taken");
    }
    assert!(drain(&mut receivers[0]).is_empty(), "no batch is full");
    let watermark = Control::Watermark(Timestamp(5));
    writer.broadcast(watermark).expect("taken");
    writer.emit(SubpartitionIndex(0), Batch::unstamped(vec![10])).expect("taken");
    writer.flush().expect("flushed");
    let control = StreamElement::Control(watermark);
    assert_eq!(drain(&mut receivers[0]), [batch(0..10), control.clone(), batch([10])]);
    assert_eq!(drain(&mut receivers[1]), [control]);
}

/// tF9: a flush in the middle of the records loses and doubles nothing.
#[test]
fn scattered_records_arrive_once_in_order_whatever_is_flushed() {
    let (mut writer, mut receivers) = edge(3, capacity(10_000, 1 << 30));
    let mut expected = vec![Vec::new(); 3];
    for step in 0..50_u64 {
        let values: Vec<u64> = (step * 777..(step + 1) * 777).collect();
        let targets: Vec<_> = values
            .iter()
            .map(|value| {
                SubpartitionIndex(u32::from((value * value % 7) > 2) + u32::from(value % 5 == 0))
            })
            .collect();
        for (value, target) in values.iter().zip(&targets) {
            expected[target.0 as usize].push(*value);
        }
        writer.scatter(Batch::unstamped(values), &targets).expect("taken");
        if step % 7 == 0 {
            writer.flush().expect("flushed");
        }
    }
    writer.flush().expect("flushed");
    for (receiver, expected) in receivers.iter_mut().zip(expected) {
        let batches = drain(receiver);
        let sizes = batches.iter().map(|element| match element {
            StreamElement::Batch(batch) => batch.len(),
            StreamElement::Control(_) => 0,
        });
        assert!(sizes.max() <= Some(BATCH_RECORDS));
        let found: Vec<u64> =
            batches.into_iter().flat_map(|b| values(ChannelEvent::Element(b))).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn records_with_and_without_timestamps_are_not_joined() {
    let (mut writer, mut receivers) = edge(1, ChannelCapacity::default());
    let stamped = Batch::stamped(vec![2], vec![Timestamp(7)]);
    writer.emit(SubpartitionIndex(0), Batch::unstamped(vec![1])).expect("taken");
    writer.emit(SubpartitionIndex(0), stamped.clone()).expect("taken");
    writer.emit(SubpartitionIndex(0), Batch::unstamped(vec![3])).expect("taken");
    writer.flush().expect("flushed");
    let expected = [batch([1]), StreamElement::Batch(stamped), batch([3])];
    assert_eq!(drain(&mut receivers[0]), expected);
}

/// R2.
#[test]
fn what_is_for_all_reaches_every_channel() {
    let (mut writer, mut receivers) = edge(3, ChannelCapacity::default());
    writer.emit_all(Batch::unstamped(vec![1, 2]), Batch::clone).expect("taken");
    writer.broadcast(Control::Idle).expect("taken");
    for receiver in &mut receivers {
        assert_eq!(drain(receiver), [batch([1, 2]), StreamElement::Control(Control::Idle)]);
    }
}

#[test]
fn what_does_not_fit_is_queued_in_order_and_pumped_later() {
    let (mut writer, mut receivers) = edge(1, capacity(2, 1 << 20));
    for n in 0..5 {
        writer.emit(SubpartitionIndex(0), Batch::unstamped(vec![n])).expect("taken");
        writer.flush().expect("flushed");
    }
    writer.broadcast(Control::EndOfInput).expect("taken");
    assert_eq!(writer.queued(), 4);
    assert_eq!(writer.pump().expect("pumped"), Flow::HeldUp);
    assert!(matches!(writer.finish(), Err(WriteError::HeldUp { queued: 4 })));
    let mut found = Vec::new();
    while writer.pump().expect("pumped") == Flow::HeldUp {
        found.extend(drain(&mut receivers[0]));
    }
    assert_eq!(writer.finish().expect("finished"), None);
    found.extend(drain(&mut receivers[0]));
    let end = StreamElement::Control(Control::EndOfInput);
    assert_eq!(found, [batch([0]), batch([1]), batch([2]), batch([3]), batch([4]), end]);
    assert!(matches!(writer.flush(), Err(WriteError::Finished)));
}

#[test]
fn a_subpartition_that_is_not_there_is_named() {
    let (mut writer, _receivers) = edge(2, ChannelCapacity::default());
    let refused = writer.emit(SubpartitionIndex(2), Batch::unstamped(vec![1]));
    assert!(matches!(refused, Err(WriteError::NoSuchSubpartition { subpartitions: 2, .. })));
}

/// tF3, tF4, tF5, tF12, tF13: tasks that park on the smallest channels, each producer feeding each
/// consumer, all come to their end: no wake is lost and nobody waits for a lock.
#[test]
fn threads_that_park_on_the_smallest_channels_come_to_their_end() {
    const RECORDS: u64 = 20_000;
    for bytes in [1, 1 << 20] {
        let sum = exchange(2, 2, RECORDS, capacity(1, bytes));
        assert_eq!(sum, 2 * (0..RECORDS).sum::<u64>());
    }
}

/// A wake for a thread that is not started yet.
#[derive(Default)]
struct Late(std::sync::OnceLock<std::thread::Thread>);

impl Wake for Late {
    fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

impl Late {
    fn is_me(&self) {
        self.0.set(std::thread::current()).expect("one thread a task");
    }
}

fn exchange(producers: usize, consumers: usize, records: u64, capacity: ChannelCapacity) -> u64 {
    let wakes = |n| (0..n).map(|_| Arc::new(Late::default())).collect::<Vec<_>>();
    let (producing, consuming) = (wakes(producers), wakes(consumers));
    let mut inputs: Vec<Vec<Box<dyn ChannelReader<u64>>>> =
        consuming.iter().map(|_| vec![]).collect();
    let mut writers = Vec::new();
    for producer in &producing {
        let mut senders = Vec::new();
        for (input, consumer) in inputs.iter_mut().zip(&consuming) {
            let (sender, receiver) = pipelined(capacity, producer.clone(), consumer.clone());
            senders.push(sender);
            input.push(Box::new(receiver));
        }
        writers.push(PipelinedWriter::new(senders));
    }
    std::thread::scope(|scope| {
        for (writer, me) in writers.into_iter().zip(&producing) {
            scope.spawn(move || produce(writer, me, records));
        }
        let sums = inputs
            .into_iter()
            .zip(&consuming)
            .map(|(input, me)| scope.spawn(move || consume(InputGate::new(input), me)));
        let sums: Vec<_> = sums.collect();
        sums.into_iter().map(|sum| sum.join().expect("a consumer ends well")).sum()
    })
}

fn produce(mut writer: PipelinedWriter<u64>, me: &Late, records: u64) {
    me.is_me();
    let pump = |writer: &mut PipelinedWriter<u64>| {
        while writer.pump().expect("the consumers live") == Flow::HeldUp {
            std::thread::park();
        }
    };
    for start in (0..records).step_by(10) {
        let values: Vec<u64> = (start..start + 10).collect();
        let targets: Vec<_> =
            values.iter().map(|value| SubpartitionIndex(u32::from(value % 3 == 0))).collect();
        writer.scatter(Batch::unstamped(values), &targets).expect("the consumers live");
        writer.flush().expect("the consumers live");
        pump(&mut writer);
    }
    writer.broadcast(Control::EndOfInput).expect("the consumers live");
    pump(&mut writer);
    writer.finish().expect("everything has left");
}

fn consume(mut gate: InputGate<u64>, me: &Late) -> u64 {
    me.is_me();
    let mut sum = 0;
    loop {
        match gate.poll().expect("the producers live") {
            GateEvent::Batch { batch, .. } => sum += batch.values().iter().sum::<u64>(),
            GateEvent::EndOfInput => return sum,
            GateEvent::Empty => std::thread::park(),
            _ => {}
        }
    }
}
