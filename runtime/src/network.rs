//! [`Network`]: pipelined channels between the tasks of one attempt, within this process.
//!
//! Either end may come first: the one that does makes the channel and leaves the other end here,
//! with a waker that is filled in when its task comes. One network an attempt, so that a stale task
//! cannot meet a fresh one.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use element::{EdgeId, SubtaskIndex};
use parking_lot::Mutex;
use shuffle::{ChannelCapacity, PipelinedReceiver, PipelinedSender, Wake};

/// Names one channel of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChannelKey {
    /// The edge.
    pub edge: EdgeId,
    /// The subtask that writes.
    pub producer: SubtaskIndex,
    /// The subtask that reads.
    pub consumer: SubtaskIndex,
}

/// A waker that is known later than the channel it belongs to.
#[derive(Default)]
struct LateWake(OnceLock<Arc<dyn Wake>>);

impl Wake for LateWake {
    fn wake(&self) {
        if let Some(waker) = self.0.get() {
            waker.wake();
        }
    }
}

struct Waiting {
    end: Box<dyn Any + Send>,
    waker: Arc<LateWake>,
}

/// The channels of one attempt whose other end has not come yet.
#[derive(Default)]
pub struct Network {
    waiting: Mutex<HashMap<ChannelKey, Waiting>>,
    capacity: ChannelCapacity,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Network({} half open)", self.waiting.lock().len())
    }
}

impl Network {
    /// A network whose channels hold `capacity`.
    #[must_use]
    pub fn new(capacity: ChannelCapacity) -> Self {
        Self { waiting: Mutex::default(), capacity }
    }

    /// The writing end of a channel.
    pub fn sender<T: Send + 'static>(
        &self,
        key: ChannelKey,
        producer: Arc<dyn Wake>,
    ) -> PipelinedSender<T> {
        self.meet(key, producer, |producer, consumer| {
            let (sender, receiver) = shuffle::pipelined::<T>(self.capacity, producer, consumer);
            (sender, Box::new(receiver))
        })
    }

    /// The reading end of a channel.
    pub fn receiver<T: Send + 'static>(
        &self,
        key: ChannelKey,
        consumer: Arc<dyn Wake>,
    ) -> PipelinedReceiver<T> {
        self.meet(key, consumer, |consumer, producer| {
            let (sender, receiver) = shuffle::pipelined::<T>(self.capacity, producer, consumer);
            (receiver, Box::new(sender))
        })
    }

    /// Ends that nobody has come for, dropped, so that who holds the other end notices.
    pub fn abandon(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        drop(waiting);
    }

    /// Takes the end that the other task left, or makes both and leaves the other one. One lock
    /// around the two, so that tasks may be wired by any thread; nobody is woken under it.
    fn meet<End: 'static>(
        &self,
        key: ChannelKey,
        mine: Arc<dyn Wake>,
        make: impl FnOnce(Arc<dyn Wake>, Arc<dyn Wake>) -> (End, Box<dyn Any + Send>),
    ) -> End {
        let mut waiting = self.waiting.lock();
        match waiting.remove(&key) {
            None => {
                let other = Arc::new(LateWake::default());
                let (end, left) = make(mine, Arc::clone(&other) as _);
                waiting.insert(key, Waiting { end: left, waker: other });
                end
            }
            Some(left) => {
                drop(waiting);
                // Only this end's task fills it in, once.
                let _ = left.waker.0.set(Arc::clone(&mine));
                // What was sent before the waker was known is looked for now.
                mine.wake();
                *left.end.downcast::<End>().expect("both ends of an edge have one type")
            }
        }
    }
}
