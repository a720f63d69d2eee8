//! A channel read while it is written: typed elements move from task to task in one process.
//!
//! One producer, one consumer, a bounded crossbeam queue between them. Elements move, they are never
//! encoded. The bound is in batches and in estimated bytes; one element always passes an empty queue,
//! however large, so nothing can be stuck.
//!
//! ```text
//! producer: push; if the consumer waits, wake it          full: say "held up", look once more
//! consumer: pop; if the producer is held up and half of    empty: say "waiting", look once more
//!           the queue is free, wake it
//! ```
//!
//! Each side writes its own flag, then looks at the queue; the other changes the queue, then looks at
//! the flag; a sequentially consistent fence stands between, so no wake is lost. No lock is held
//! while a wake is sent.
//!
//! Left out on purpose: several producers. A gate joins channels, so each keeps its own order.

mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use element::{Batch, ByteSize, StreamElement};

use crate::{ChannelEvent, ChannelReader, ReadError, TrySendError, Wake};

pub use writer::PipelinedWriter;

/// How much a pipelined channel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelCapacity {
    /// Elements, at least 1.
    pub batches: usize,
    /// Bytes, by estimate. One element passes an empty channel whatever its size.
    pub bytes: ByteSize,
}

impl Default for ChannelCapacity {
    fn default() -> Self {
        Self { batches: 8, bytes: ByteSize::mib(4) }
    }
}

/// Makes a channel. `producer` is woken when room comes back, `consumer` when elements come.
/// A record counts as the bytes of its type, without what it has on the heap.
pub fn pipelined<T: Send>(
    capacity: ChannelCapacity,
    producer: Arc<dyn Wake>,
    consumer: Arc<dyn Wake>,
) -> (PipelinedSender<T>, PipelinedReceiver<T>) {
    pipelined_weighed(capacity, |_| size_of::<T>(), producer, consumer)
}

/// Makes a channel that asks `weigh` for the bytes of some records of each batch and takes the rest
/// of the batch to be like them. For records: [`element::Record::estimated_bytes`].
pub fn pipelined_weighed<T: Send>(
    capacity: ChannelCapacity,
    weigh: fn(&T) -> usize,
    producer: Arc<dyn Wake>,
    consumer: Arc<dyn Wake>,
) -> (PipelinedSender<T>, PipelinedReceiver<T>) {
    let (sender, receiver) = bounded(capacity.batches.max(1));
    let shared = Arc::new(Shared {
        queued_bytes: AtomicUsize::new(0),
        held_up: AtomicBool::new(false),
        waiting: AtomicBool::new(false),
        limit: capacity.bytes.as_usize(),
        batches: capacity.batches.max(1),
    });
    let sender =
        PipelinedSender { queue: Some(sender), shared: Arc::clone(&shared), consumer, weigh };
    let receiver = PipelinedReceiver {
        queue: Some(receiver),
        shared,
        producer,
        ended: false,
        #[cfg(debug_assertions)]
        order: element::ElementOrder::new(false),
    };
    (sender, receiver)
}

/// What both ends see.
#[derive(Debug)]
struct Shared {
    /// Estimated bytes in the queue; the producer adds before it pushes, the consumer takes off
    /// after it popped, so it is never less than what is there.
    queued_bytes: AtomicUsize,
    /// The producer has found no room and must be woken. Set by the producer, cleared by whoever
    /// acts on it.
    held_up: AtomicBool,
    /// The consumer has found nothing and must be woken. Set by the consumer, cleared by whoever
    /// acts on it.
    waiting: AtomicBool,
    limit: usize,
    batches: usize,
}

/// An element and the bytes it was taken for.
#[derive(Debug)]
struct Weighed<T> {
    element: StreamElement<T>,
    bytes: usize,
}

/// The producer's end of a pipelined channel.
///
/// Dropped before `EndOfInput` was sent, it leaves the consumer with [`ReadError::Abandoned`] behind
/// what was sent.
pub struct PipelinedSender<T> {
    /// `None` only while being dropped.
    queue: Option<Sender<Weighed<T>>>,
    shared: Arc<Shared>,
    consumer: Arc<dyn Wake>,
    weigh: fn(&T) -> usize,
}

impl<T: Send> PipelinedSender<T> {
    /// Sends an element, if there is room, and wakes the consumer if that waits.
    ///
    /// # Errors
    ///
    /// [`TrySendError::Full`] hands the element back: the producer is woken when about half of the
    /// channel is free. [`TrySendError::Closed`] hands it back when the receiver has gone.
    pub fn try_send(
        &mut self,
        element: StreamElement<T>,
    ) -> Result<(), TrySendError<StreamElement<T>>> {
        let bytes = self.weight_of(&element);
        match self.push(Weighed { element, bytes }) {
            Err(TrySendError::Full(refused)) => {
                self.shared.held_up.store(true, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                // Room may have come between the refusal and the flag: nobody would say so.
                self.push(refused)
            }
            other => other,
        }
        .map_err(|refused| match refused {
            TrySendError::Full(weighed) => TrySendError::Full(weighed.element),
            TrySendError::Closed(weighed) => TrySendError::Closed(weighed.element),
        })
    }

    /// Elements in the channel at this moment.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.as_ref().map_or(0, Sender::len)
    }

    /// Estimated bytes in the channel at this moment.
    #[must_use]
    pub fn queued_bytes(&self) -> ByteSize {
        ByteSize(self.shared.queued_bytes.load(Ordering::Relaxed) as u64)
    }

    fn push(&mut self, weighed: Weighed<T>) -> Result<(), TrySendError<Weighed<T>>> {
        let Some(queue) = &self.queue else {
            return Err(TrySendError::Closed(weighed));
        };
        let bytes = weighed.bytes;
        let before = self.shared.queued_bytes.load(Ordering::SeqCst);
        if before > 0 && before.saturating_add(bytes) > self.shared.limit {
            return Err(TrySendError::Full(weighed));
        }
        self.shared.queued_bytes.fetch_add(bytes, Ordering::SeqCst);
        let sent = queue.try_send(weighed).map_err(|refused| {
            self.shared.queued_bytes.fetch_sub(bytes, Ordering::SeqCst);
            match refused {
                crossbeam_channel::TrySendError::Full(weighed) => TrySendError::Full(weighed),
                crossbeam_channel::TrySendError::Disconnected(weighed) => {
                    TrySendError::Closed(weighed)
                }
            }
        });
        if sent.is_ok() {
            fence(Ordering::SeqCst);
            if self.shared.waiting.load(Ordering::Relaxed)
                && self.shared.waiting.swap(false, Ordering::SeqCst)
            {
                self.consumer.wake();
            }
        }
        sent
    }

    fn weight_of(&self, element: &StreamElement<T>) -> usize {
        match element {
            StreamElement::Batch(batch) => weight_of_batch(batch, self.weigh),
            StreamElement::Control(_) => size_of::<StreamElement<T>>(),
        }
    }
}

/// Asks for eight records at most, evenly spread.
fn weight_of_batch<T>(batch: &Batch<T>, weigh: fn(&T) -> usize) -> usize {
    const SAMPLES: usize = 8;
    let values = batch.values();
    let step = values.len().div_ceil(SAMPLES).max(1);
    let (count, sum) =
        values.iter().step_by(step).fold((0_usize, 0_usize), |(count, sum), value| {
            (count + 1, sum.saturating_add(weigh(value)))
        });
    let stamps = batch.timestamps().map_or(0, size_of_val);
    (sum / count.max(1)).saturating_mul(values.len()).saturating_add(stamps).max(1)
}

impl<T> Drop for PipelinedSender<T> {
    fn drop(&mut self) {
        // The queue is closed before the consumer looks, else it would wait for ever.
        self.queue = None;
        self.consumer.wake();
    }
}

impl<T> std::fmt::Debug for PipelinedSender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipelinedSender").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// The consumer's end of a pipelined channel.
pub struct PipelinedReceiver<T> {
    /// `None` only while being dropped.
    queue: Option<Receiver<Weighed<T>>>,
    shared: Arc<Shared>,
    producer: Arc<dyn Wake>,
    ended: bool,
    /// The grammar of the channel, checked where debug assertions are on.
    #[cfg(debug_assertions)]
    order: element::ElementOrder,
}

impl<T> PipelinedReceiver<T> {
    fn pop(&mut self) -> Result<Weighed<T>, TryRecvError> {
        self.queue.as_ref().map_or(Err(TryRecvError::Disconnected), Receiver::try_recv)
    }

    /// Gives room back, and wakes the producer once half of the channel is free.
    fn made_room(&self, bytes: usize) {
        let left = self.shared.queued_bytes.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        fence(Ordering::SeqCst);
        if !self.shared.held_up.load(Ordering::Relaxed) {
            return;
        }
        let queued = self.queue.as_ref().map_or(0, Receiver::len);
        let half_free = queued <= self.shared.batches / 2 && left <= self.shared.limit / 2;
        if (half_free || queued == 0) && self.shared.held_up.swap(false, Ordering::SeqCst) {
            self.producer.wake();
        }
    }

    fn received(&mut self, weighed: Weighed<T>) -> ChannelEvent<T> {
        self.made_room(weighed.bytes);
        let element = weighed.element;
        #[cfg(debug_assertions)]
        debug_assert!(self.order.admits(&element), "the channel breaks its grammar");
        self.ended = matches!(element, StreamElement::Control(element::Control::EndOfInput));
        ChannelEvent::Element(element)
    }
}

impl<T: Send> ChannelReader<T> for PipelinedReceiver<T> {
    fn poll(&mut self) -> Result<ChannelEvent<T>, ReadError> {
        if self.ended {
            return Ok(ChannelEvent::Ended);
        }
        match self.pop() {
            Ok(weighed) => return Ok(self.received(weighed)),
            Err(TryRecvError::Disconnected) => return Err(ReadError::Abandoned),
            // Set and fenced by an earlier look: whoever pushes sees it.
            Err(TryRecvError::Empty) if self.shared.waiting.load(Ordering::Relaxed) => {
                return Ok(ChannelEvent::Empty);
            }
            Err(TryRecvError::Empty) => {}
        }
        self.shared.waiting.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        match self.pop() {
            Ok(weighed) => {
                self.shared.waiting.store(false, Ordering::SeqCst);
                Ok(self.received(weighed))
            }
            Err(TryRecvError::Disconnected) => Err(ReadError::Abandoned),
            Err(TryRecvError::Empty) => Ok(ChannelEvent::Empty),
        }
    }
}

impl<T> Drop for PipelinedReceiver<T> {
    fn drop(&mut self) {
        // The queue is closed before the producer looks, else it would wait for ever.
        self.queue = None;
        self.producer.wake();
    }
}

impl<T> std::fmt::Debug for PipelinedReceiver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipelinedReceiver").field("shared", &self.shared).finish_non_exhaustive()
    }
}
