//! The input gate through its public face: fairness, backlog, alignment, the end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use element::{
    Barrier, BarrierKind, Batch, CheckpointId, Control, RecordAttributes, StreamElement, Timestamp,
};
use slackwater_shuffle::{
    ChannelCapacity, ChannelEvent, ChannelReader, GateEvent, InputGate, NoWake, PipelinedSender,
    ReadError, pipelined,
};

type Queue = Arc<Mutex<VecDeque<StreamElement<u32>>>>;

/// A channel filled by hand, which counts its polls.
#[derive(Clone, Default)]
struct Scripted {
    queue: Queue,
    polls: Arc<AtomicU64>,
}

impl Scripted {
    fn say(&self, control: Control) {
        self.queue.lock().expect("nobody panicked").push_back(StreamElement::Control(control));
    }

    fn send(&self, value: u32) {
        self.queue
            .lock()
            .expect("nobody panicked")
            .push_back(StreamElement::Batch(Batch::unstamped(vec![value])));
    }

    fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }
}

impl ChannelReader<u32> for Scripted {
    fn poll(&mut self) -> Result<ChannelEvent<u32>, ReadError> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        let next = self.queue.lock().expect("nobody panicked").pop_front();
        Ok(next.map_or(ChannelEvent::Empty, ChannelEvent::Element))
    }
}

struct Setup {
    channels: Vec<Scripted>,
    gate: RefCell<InputGate<u32>>,
}

fn setup(channels: usize) -> Setup {
    let channels = vec![(); channels].into_iter().map(|()| Scripted::default()).collect::<Vec<_>>();
    let boxed =
        channels.iter().map(|channel| Box::new(channel.clone()) as Box<dyn ChannelReader<_>>);
    let gate = RefCell::new(InputGate::new(boxed.collect()));
    Setup { channels, gate }
}

impl Setup {
    /// What the gate gives until it is empty, in words.
    fn drain(&self) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            match self.gate.borrow_mut().poll().expect("scripted channels do not fail") {
                GateEvent::Empty => return said,
                GateEvent::Batch { batch, .. } => {
                    said.extend(batch.values().iter().map(u32::to_string));
                }
                GateEvent::Watermark(watermark) => said.push(format!("at {watermark}")),
                GateEvent::Attributes(RecordAttributes { is_backlog: true, .. }) => {
                    said.push("backlog".to_owned());
                }
                GateEvent::Attributes(_) => said.push("live".to_owned()),
                GateEvent::Idle => said.push("idle".to_owned()),
                GateEvent::Active => said.push("active".to_owned()),
                GateEvent::Barrier(barrier) => said.push(format!("barrier {}", barrier.id)),
                GateEvent::Cancelled(id) => said.push(format!("cancelled {id}")),
                GateEvent::EndOfInput => said.push("end".to_owned()),
            }
        }
    }
}

fn barrier(id: u64) -> Control {
    Control::Barrier(Barrier { id: CheckpointId(id), kind: BarrierKind::ExactlyOnce })
}

fn loose_barrier(id: u64) -> Control {
    Control::Barrier(Barrier { id: CheckpointId(id), kind: BarrierKind::AtLeastOnce })
}

#[test]
fn nothing_behind_an_aligned_barrier_passes_before_it_is_complete() {
    let setup = setup(2);
    let [a, b] = [&setup.channels[0], &setup.channels[1]];
    a.send(1);
    a.say(barrier(1));
    a.send(2);
    b.send(10);
    assert_eq!(setup.drain(), ["1", "10"]);
    assert_eq!(setup.gate.borrow().aligning(), Some(CheckpointId(1)));
    assert_eq!(setup.gate.borrow().held_channels(), 1);
    b.send(11);
    b.say(barrier(1));
    b.send(12);
    let mut said = setup.drain();
    assert_eq!(said[..2], ["11", "barrier 1"]);
    said[2..].sort();
    assert_eq!(said[2..], ["12", "2"]);
    assert_eq!(setup.gate.borrow().held_channels(), 0);
}

#[test]
fn a_held_channel_is_not_polled() {
    let setup = setup(2);
    setup.channels[0].say(barrier(1));
    setup.drain();
    let before = setup.channels[0].polls();
    setup.channels[0].send(1);
    assert!(setup.drain().is_empty());
    assert_eq!(setup.channels[0].polls(), before);
}

#[test]
fn at_least_once_barriers_hold_nobody_and_may_overlap() {
    let setup = setup(2);
    let [a, b] = [&setup.channels[0], &setup.channels[1]];
    a.say(loose_barrier(1));
    a.send(1);
    a.say(loose_barrier(2));
    a.send(2);
    assert_eq!(setup.drain(), ["1", "2"]);
    b.say(loose_barrier(1));
    assert_eq!(setup.drain(), ["barrier 1"]);
    b.say(loose_barrier(2));
    assert_eq!(setup.drain(), ["barrier 2"]);
}

#[test]
fn a_later_barrier_cancels_the_alignment_and_lets_the_held_go_on() {
    let setup = setup(2);
    let [a, b] = [&setup.channels[0], &setup.channels[1]];
    a.say(barrier(1));
    a.send(1);
    a.say(barrier(2));
    a.send(2);
    assert!(setup.drain().is_empty());
    b.say(barrier(2));
    assert_eq!(setup.drain(), ["cancelled 1", "1", "barrier 2", "2"]);
    b.say(barrier(1));
    b.send(10);
    assert_eq!(setup.drain(), ["10"], "a barrier that came too late is dropped");
}

#[test]
fn a_cancelled_checkpoint_lets_the_held_go_on_and_drops_its_late_barriers() {
    let setup = setup(2);
    let [a, b] = [&setup.channels[0], &setup.channels[1]];
    a.say(barrier(3));
    a.send(1);
    assert!(setup.drain().is_empty());
    assert!(setup.gate.borrow_mut().cancel_alignment(CheckpointId(3)));
    assert!(!setup.gate.borrow_mut().cancel_alignment(CheckpointId(3)), "twice is harmless");
    assert_eq!(setup.drain(), ["1"]);
    b.say(barrier(3));
    b.send(2);
    assert_eq!(setup.drain(), ["2"]);
    a.say(barrier(4));
    b.say(barrier(4));
    assert_eq!(setup.drain(), ["barrier 4"]);
}

#[test]
fn a_channel_that_ends_completes_the_alignment() {
    let setup = setup(3);
    setup.channels[0].say(barrier(1));
    setup.channels[1].say(barrier(1));
    setup.channels[0].say(Control::EndOfInput);
    setup.channels[1].say(Control::EndOfInput);
    assert!(setup.drain().is_empty());
    setup.channels[2].say(Control::EndOfInput);
    assert_eq!(setup.drain(), ["barrier 1", "at +inf", "end"]);
    assert!(setup.drain().is_empty(), "the end comes once");
}

#[test]
fn barriers_need_only_the_channels_that_have_not_ended() {
    let setup = setup(2);
    setup.channels[0].say(Control::EndOfInput);
    setup.drain();
    setup.channels[1].say(barrier(1));
    setup.channels[1].send(1);
    assert_eq!(setup.drain(), ["barrier 1", "1"]);
}

/// R1, D11: attributes, then the watermark, in their place between the records.
#[test]
fn attributes_travel_in_order_with_records() {
    let setup = setup(1);
    let channel = &setup.channels[0];
    channel.say(Control::Attributes(RecordAttributes::BACKLOG));
    channel.send(1);
    channel.say(Control::Attributes(RecordAttributes::live(Some(Timestamp(9)))));
    channel.send(2);
    assert_eq!(setup.drain(), ["backlog", "1", "live", "at 9ms", "2"]);
}

/// tF18: two edges from one producer are two channels.
#[test]
fn a_stream_joined_with_itself_keeps_its_watermarks_and_backlog_apart() {
    let setup = setup(2);
    for control in [
        Control::Attributes(RecordAttributes::BACKLOG),
        Control::Attributes(RecordAttributes::live(Some(Timestamp(4)))),
        Control::Watermark(Timestamp(6)),
        Control::EndOfInput,
    ] {
        setup.channels.iter().for_each(|channel| channel.say(control));
    }
    assert_eq!(setup.drain(), ["backlog", "live", "at 4ms", "at 6ms", "at +inf", "end"]);
}

/// tW19: one side idle does not hold the other.
#[test]
fn an_idle_channel_holds_nobody_and_records_wake_it() {
    let setup = setup(2);
    let [a, b] = [&setup.channels[0], &setup.channels[1]];
    b.say(Control::Idle);
    a.say(Control::Watermark(Timestamp(5)));
    assert_eq!(setup.drain(), ["at 5ms"]);
    a.say(Control::Idle);
    assert_eq!(setup.drain(), ["idle"]);
    b.send(1);
    assert_eq!(setup.drain(), ["active", "1"]);
    a.say(Control::Active);
    a.say(Control::Watermark(Timestamp(8)));
    assert!(setup.drain().is_empty(), "the one that came back counts again");
}

#[test]
fn channels_are_read_in_turn() {
    let setup = setup(3);
    for round in 0..100 {
        for (number, channel) in (0_u32..).zip(&setup.channels) {
            channel.send(round * 3 + number);
        }
    }
    let expected: Vec<String> = (0..300).map(|value| value.to_string()).collect();
    assert_eq!(setup.drain(), expected);
}

#[test]
fn one_busy_channel_among_many_costs_two_polls_an_element_at_most() {
    let setup = setup(1_000);
    setup.drain();
    let before: u64 = setup.channels.iter().map(Scripted::polls).sum();
    (0..10_000).for_each(|value| setup.channels[500].send(value));
    let mut gate = setup.gate.borrow_mut();
    for _ in 0..10_000 {
        assert!(matches!(gate.poll(), Ok(GateEvent::Batch { channel: 500, .. })));
    }
    let polls = setup.channels.iter().map(Scripted::polls).sum::<u64>() - before;
    assert!(polls <= 2 * 10_000, "{polls} polls for 10000 elements");
}

#[test]
fn a_quiet_channel_waits_for_a_bounded_number_of_elements_of_a_busy_one() {
    let setup = setup(2);
    setup.drain();
    (0..1_000).for_each(|_| setup.channels[0].send(0));
    let mut gate = setup.gate.borrow_mut();
    gate.poll().expect("a batch");
    setup.channels[1].send(1);
    let waited =
        (0..).take_while(|_| !matches!(gate.poll(), Ok(GateEvent::Batch { channel: 1, .. })));
    assert!(waited.count() <= 65);
}

#[test]
fn a_gate_without_channels_ends_at_once() {
    assert_eq!(setup(0).drain(), ["at +inf", "end"]);
}

#[test]
fn a_failed_producer_is_an_error_and_not_an_end() {
    let capacity = ChannelCapacity::default();
    let (mut sender, receiver): (PipelinedSender<u32>, _) =
        pipelined(capacity, Arc::new(NoWake), Arc::new(NoWake));
    let mut gate = InputGate::new(vec![Box::new(receiver) as Box<dyn ChannelReader<_>>]);
    sender.try_send(StreamElement::Batch(Batch::unstamped(vec![1]))).expect("there is room");
    drop(sender);
    assert!(matches!(gate.poll(), Ok(GateEvent::Batch { .. })));
    assert!(matches!(gate.poll(), Err(ReadError::Abandoned)));
}
