//! The pipelined keyed exchange against crossbeam channels of vectors by hand.
//!
//! Two producers generate records, route them by the hash of a 64-bit key and send batches to two
//! consumers, which fold them. By hand: the same batches over one bounded channel a consumer, filled in
//! place, without gate, status, timestamps or back pressure in bytes.

use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use element::{BATCH_RECORDS, Batch, Control, MaxParallelism, SubpartitionIndex, hash_key_bytes};
use slackwater_shuffle::{
    ChannelCapacity, ChannelReader, Flow, GateEvent, InputGate, PartitionWriter, PipelinedWriter,
    Wake, key_targets, pipelined,
};

mod common;
use common::{compare, mix, scaled};

const PARALLELISM: usize = 2;

/// A record of some size with a key in front.
trait Sample: Copy + Send + 'static {
    fn generate(i: u64) -> Self;
    fn key(&self) -> u64;
    fn fold(&self) -> u64;
}

impl Sample for [u8; 100] {
    fn generate(i: u64) -> Self {
        let mut record = [i as u8; 100];
        record[..8].copy_from_slice(&mix(i).to_le_bytes());
        record
    }

    fn key(&self) -> u64 {
        u64::from_le_bytes([self[0], self[1], self[2], self[3], self[4], self[5], self[6], self[7]])
    }

    fn fold(&self) -> u64 {
        self.key() ^ i64::from(self[99] as i8).cast_unsigned()
    }
}

impl Sample for (u64, u64) {
    fn generate(i: u64) -> Self {
        (mix(i), i)
    }

    fn key(&self) -> u64 {
        self.0
    }

    fn fold(&self) -> u64 {
        self.0 ^ self.1
    }
}

#[derive(Default)]
struct Late(OnceLock<Thread>);

impl Wake for Late {
    fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

fn ours<T: Sample>(records: u64) -> u64 {
    let wakes = || (0..PARALLELISM).map(|_| Arc::new(Late::default())).collect::<Vec<_>>();
    let (producing, consuming) = (wakes(), wakes());
    let mut inputs: Vec<Vec<Box<dyn ChannelReader<T>>>> =
        consuming.iter().map(|_| Vec::new()).collect();
    let mut writers = Vec::new();
    for producer in &producing {
        let mut senders = Vec::new();
        for (input, consumer) in inputs.iter_mut().zip(&consuming) {
            let capacity = ChannelCapacity::default();
            let (sender, receiver) = pipelined(capacity, producer.clone(), consumer.clone());
            senders.push(sender);
            input.push(Box::new(receiver));
        }
        writers.push(PipelinedWriter::new(senders));
    }
    std::thread::scope(|scope| {
        for (number, (writer, me)) in (0..).zip(writers.into_iter().zip(&producing)) {
            scope.spawn(move || produce(writer, me, number, records));
        }
        let consumers = inputs
            .into_iter()
            .zip(&consuming)
            .map(|(input, me)| scope.spawn(move || consume(InputGate::new(input), me)));
        let consumers: Vec<_> = consumers.collect();
        let sums = consumers.into_iter().map(|consumer| consumer.join().expect("ends well"));
        sums.fold(0, u64::wrapping_add)
    })
}

fn produce<T: Sample>(mut writer: PipelinedWriter<T>, me: &Late, number: u64, records: u64) {
    me.0.set(std::thread::current()).expect("one thread a task");
    let (mut scratch, mut targets) = (Vec::new(), Vec::<SubpartitionIndex>::new());
    let mut next = number;
    while next < records {
        let batch = (next..records).step_by(PARALLELISM).take(BATCH_RECORDS);
        let values: Vec<T> = batch.map(T::generate).collect();
        next += (values.len() * PARALLELISM) as u64;
        let (max, parallelism) = (MaxParallelism::DEFAULT, PARALLELISM as u32);
        key_targets(&values, T::key, max, parallelism, &mut scratch, &mut targets);
        writer.scatter(Batch::unstamped(values), &targets).expect("the consumers live");
        pump(&mut writer);
    }
    writer.broadcast(Control::EndOfInput).expect("the consumers live");
    pump(&mut writer);
}

fn pump<T: Sample>(writer: &mut PipelinedWriter<T>) {
    let mut turns = 0;
    while writer.pump().expect("the consumers live") == Flow::HeldUp {
        wait(&mut turns);
    }
}

/// As channels that block do: gives the core away a few times before it parks.
fn wait(turns: &mut u32) {
    *turns += 1;
    if turns.is_multiple_of(8) { std::thread::park() } else { std::thread::yield_now() }
}

fn consume<T: Sample>(mut gate: InputGate<T>, me: &Late) -> u64 {
    me.0.set(std::thread::current()).expect("one thread a task");
    let (mut sum, mut turns) = (0, 0);
    loop {
        match gate.poll().expect("the producers live") {
            GateEvent::Batch { batch, .. } => {
                sum = batch.values().iter().map(T::fold).fold(sum, u64::wrapping_add);
                turns = 0;
            }
            GateEvent::EndOfInput => return sum,
            GateEvent::Empty => wait(&mut turns),
            _ => {}
        }
    }
}

fn by_hand<T: Sample>(records: u64) -> u64 {
    let channels = (0..PARALLELISM).map(|_| crossbeam_channel::bounded::<Vec<T>>(16));
    let (senders, receivers): (Vec<_>, Vec<_>) = channels.unzip();
    std::thread::scope(|scope| {
        for number in 0..PARALLELISM as u64 {
            let senders = senders.clone();
            scope.spawn(move || {
                let empty = || Vec::with_capacity(BATCH_RECORDS);
                let mut open: Vec<Vec<T>> = senders.iter().map(|_| empty()).collect();
                for i in (number..records).step_by(PARALLELISM) {
                    let record = T::generate(i);
                    let hash = hash_key_bytes(&record.key().to_be_bytes());
                    let max = MaxParallelism::DEFAULT;
                    let target = max.subtask_of(hash, PARALLELISM as u32).0 as usize;
                    open[target].push(record);
                    if open[target].len() == BATCH_RECORDS {
                        let full = std::mem::replace(&mut open[target], empty());
                        senders[target].send(full).expect("the consumer lives");
                    }
                }
                for (sender, rest) in senders.iter().zip(open) {
                    sender.send(rest).expect("the consumer lives");
                }
            });
        }
        drop(senders);
        let consumers: Vec<_> = receivers
            .into_iter()
            .map(|receiver| {
                scope.spawn(move || {
                    let batches = receiver.iter();
                    batches.fold(0_u64, |sum, batch| {
                        batch.iter().map(T::fold).fold(sum, u64::wrapping_add)
                    })
                })
            })
            .collect();
        let sums = consumers.into_iter().map(|consumer| consumer.join().expect("ends well"));
        sums.fold(0, u64::wrapping_add)
    })
}

fn main() {
    let records = scaled(20_000_000);
    compare(
        "keyed exchange, 2 to 2, 100-byte records",
        records,
        100,
        0,
        || ours::<[u8; 100]>(records),
        || by_hand::<[u8; 100]>(records),
    );
    let records = scaled(50_000_000);
    compare(
        "keyed exchange, 2 to 2, 16-byte records",
        records,
        16,
        0,
        || ours::<(u64, u64)>(records),
        || by_hand::<(u64, u64)>(records),
    );
}
