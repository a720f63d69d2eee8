//! [`AsyncFunction`]: a slow function, called for several records at a time.
//!
//! ```text
//!   records -> waiting, in order of arrival -----------------------> out: in that order, or
//!                 |            ^                                     as they are done, but never
//!                 v            | results, and a wake of the task     past a watermark
//!              threads, as many as calls at a time
//! ```
//!
//! The task never waits for a call: a finished one wakes it. Records that wait are in every checkpoint
//! and are called anew after a restore, so calls are made at least once. A call that takes too long
//! fails the job or gives a substitute; its thread is busy until the call returns.
//!
//! Source: FLIP-12, "asynchronous I/O".

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use element::{Barrier, Batch, Control, Record, Timestamp, decode_exact, encode_to_vec};

use super::Operator;
use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::output::{BatchBuffer, Output, Pump, Signal};
use crate::user::panic_message;

/// In which order results leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncOrder {
    /// In that of the records.
    Ordered,
    /// As they are done; only watermarks and other controls keep their place.
    Unordered,
}

/// How calls are made.
#[derive(Clone, Copy, Debug)]
pub struct AsyncSettings {
    /// Calls at a time, each on a thread of its own.
    pub concurrency: usize,
    /// How long a record may wait for its result.
    pub timeout: Duration,
    /// In which order results leave.
    pub order: AsyncOrder,
}

/// A record took longer than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no result after {0:?}")]
pub struct AsyncTimeout(pub Duration);

/// The function: blocks its thread, not the task's.
pub type AsyncCall<T, U> = dyn Fn(T) -> anyhow::Result<U> + Send + Sync;

/// What stands in for a result that does not come in time.
pub type Substitute<T, U> = dyn Fn(T) -> Option<U> + Send + Sync;

type Outcome<U> = Result<Option<U>, TaskError>;

enum Waiting<T, U> {
    Record { id: u64, value: T, at: Option<Timestamp>, until: Timestamp, done: Option<Outcome<U>> },
    Control(Control),
}

/// Calls a function on threads. Head of its chain.
pub struct AsyncFunction<T, U> {
    settings: AsyncSettings,
    substitute: Option<Arc<Substitute<T, U>>>,
    waiting: VecDeque<Waiting<T, U>>,
    records: usize,
    next_id: u64,
    ended: bool,
    calls: Sender<(u64, T)>,
    results: Receiver<(u64, Outcome<U>)>,
    buffer: BatchBuffer<U>,
    context: Arc<OperatorContext>,
}

impl<T: Record + Clone, U: Send + 'static> AsyncFunction<T, U> {
    /// Starts the threads, and calls anew for what a checkpoint says was waiting.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if a thread cannot be started or a stored record not be read.
    pub fn open(
        settings: AsyncSettings,
        call: &Arc<AsyncCall<T, U>>,
        substitute: Option<Arc<Substitute<T, U>>>,
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        let (calls, to_call) = crossbeam_channel::unbounded();
        let (tell, results) = crossbeam_channel::unbounded();
        for _ in 0..settings.concurrency.max(1) {
            spawn(Arc::clone(call), to_call.clone(), tell.clone(), Arc::clone(context))?;
        }
        let mut operator = Self {
            settings,
            substitute,
            waiting: VecDeque::new(),
            records: 0,
            next_id: 1,
            ended: false,
            calls,
            results,
            buffer: BatchBuffer::default(),
            context: Arc::clone(context),
        };
        let restored = context.restored.lock().take().unwrap_or_default();
        for item in restored.items {
            let (at, value) = decode_exact(&item)
                .map_err(|source| TaskError::Codec { operator: context.name.clone(), source })?;
            operator.call(value, at)?;
        }
        Ok(operator)
    }

    fn call(&mut self, value: T, at: Option<Timestamp>) -> Result<(), TaskError> {
        let id = self.next_id;
        self.next_id += 1;
        let until = self.context.task.clock.now() + self.settings.timeout;
        self.context.task.deadline.at(until);
        if self.calls.send((id, value.clone())).is_err() {
            return Err(self.failed(id, anyhow::anyhow!("no thread takes calls any more")));
        }
        self.records += 1;
        self.waiting.push_back(Waiting::Record { id, value, at, until, done: None });
        Ok(())
    }

    fn failed(&self, record: u64, source: anyhow::Error) -> TaskError {
        TaskError::User { operator: self.context.name.clone(), record: Some(record), source }
    }

    /// Takes in what has come back, and lets go what may leave.
    fn advance(&mut self, out: &mut dyn Output<U>) -> Result<bool, TaskError> {
        let mut came = false;
        for (id, outcome) in self.results.try_iter() {
            came = true;
            let with_id = |entry: &&mut Waiting<T, U>| matches!(entry, Waiting::Record { id: other, .. } if *other == id);
            // A record whose time is over is no longer there.
            if let Some(Waiting::Record { done, .. }) = self.waiting.iter_mut().find(with_id) {
                done.get_or_insert(outcome);
            }
        }
        self.leave(out)?;
        Ok(came)
    }

    fn leave(&mut self, out: &mut dyn Output<U>) -> Result<(), TaskError> {
        if self.settings.order == AsyncOrder::Unordered {
            self.leave_out_of_order(out)?;
        }
        while let Some(first) = self.waiting.front_mut() {
            match first {
                Waiting::Record { done, at, .. } => {
                    let Some(outcome) = done.take() else { break };
                    let at = *at;
                    self.waiting.pop_front();
                    self.records -= 1;
                    if let Some(result) = outcome? {
                        self.buffer.push(result, at, out)?;
                    }
                }
                Waiting::Control(control) => {
                    let control = *control;
                    self.waiting.pop_front();
                    self.buffer.flush(out)?;
                    out.signal(Signal::Stream(control))?;
                }
            }
        }
        self.buffer.flush(out)
    }

    /// Lets go every result before the first control.
    fn leave_out_of_order(&mut self, out: &mut dyn Output<U>) -> Result<(), TaskError> {
        let is_control = |entry: &Waiting<T, U>| matches!(entry, Waiting::Control(_));
        let segment = self.waiting.iter().position(is_control).unwrap_or(self.waiting.len());
        let behind = self.waiting.split_off(segment);
        for mut entry in std::mem::replace(&mut self.waiting, behind).into_iter().rev() {
            let left = match &mut entry {
                Waiting::Record { done, at, .. } => done.take().map(|outcome| (outcome, *at)),
                Waiting::Control(_) => None,
            };
            match left {
                Some((outcome, at)) => {
                    self.records -= 1;
                    if let Some(result) = outcome? {
                        self.buffer.push(result, at, out)?;
                    }
                }
                None => self.waiting.push_front(entry),
            }
        }
        Ok(())
    }

    /// Gives up records whose time is over.
    fn time_out(&mut self, now: Timestamp) {
        let mut next = None;
        for entry in &mut self.waiting {
            let Waiting::Record { value, until, done, .. } = entry else { continue };
            if done.is_some() {
                continue;
            }
            if *until > now {
                next = Some(next.map_or(*until, |before: Timestamp| before.min(*until)));
                continue;
            }
            *done = Some(match &self.substitute {
                Some(substitute) => Ok(substitute(value.clone())),
                None => Err(TaskError::User {
                    operator: self.context.name.clone(),
                    record: None,
                    source: AsyncTimeout(self.settings.timeout).into(),
                }),
            });
        }
        if let Some(next) = next {
            self.context.task.deadline.at(next);
        }
    }
}

/// Starts a thread that makes calls until nobody asks for any; it is not waited for at the end, for a
/// call may hang.
fn spawn<T: Send + 'static, U: Send + 'static>(
    call: Arc<AsyncCall<T, U>>,
    to_call: Receiver<(u64, T)>,
    tell: Sender<(u64, Outcome<U>)>,
    context: Arc<OperatorContext>,
) -> Result<(), TaskError> {
    let name = context.name.clone();
    let work = move || {
        for (id, value) in to_call {
            let outcome = match catch_unwind(AssertUnwindSafe(|| call(value))) {
                Ok(result) => result.map(Some).map_err(|source| TaskError::User {
                    operator: context.name.clone(),
                    record: Some(id),
                    source,
                }),
                Err(panic) => Err(TaskError::Panic {
                    operator: context.name.clone(),
                    record: Some(id),
                    message: panic_message(&*panic),
                }),
            };
            if tell.send((id, outcome)).is_err() {
                return;
            }
            context.task.deadline.wake();
        }
    };
    let started = std::thread::Builder::new().name("async call".to_owned()).spawn(work);
    started.map(drop).map_err(|source| TaskError::User {
        operator: name,
        record: None,
        source: source.into(),
    })
}

impl<T: Record + Clone, U: Send + 'static> Operator<T, U> for AsyncFunction<T, U> {
    fn batch(&mut self, batch: Batch<T>, out: &mut dyn Output<U>) -> Result<(), TaskError> {
        for (value, at) in batch.into_records() {
            self.call(value, at)?;
        }
        self.advance(out).map(drop)
    }

    fn signal(&mut self, signal: Signal, out: &mut dyn Output<U>) -> Result<(), TaskError> {
        match signal {
            Signal::Stream(control) => {
                self.ended |= control == Control::EndOfInput;
                self.waiting.push_back(Waiting::Control(control));
                self.advance(out).map(drop)
            }
            Signal::ProcessingTime(now) => {
                self.advance(out)?;
                self.time_out(now);
                self.leave(out)?;
                out.signal(signal)
            }
            other => out.signal(other),
        }
    }

    fn pump(&mut self, out: &mut dyn Output<U>) -> Result<Pump, TaskError> {
        if self.advance(out)? {
            return Ok(Pump::Progress);
        }
        // More is read while threads are free; the end waits for all.
        let full = self.records >= self.settings.concurrency.max(1);
        let ending = self.ended && !self.waiting.is_empty();
        Ok(if full || ending { Pump::HeldUp } else { Pump::Idle })
    }

    fn snapshot(
        &mut self,
        _: Barrier,
        _: &mut dyn Output<U>,
    ) -> Result<Option<OperatorSnapshot>, TaskError> {
        let items = self.waiting.iter().filter_map(|entry| match entry {
            Waiting::Record { value, at, .. } => Some(encode_to_vec(&(*at, value.clone()))),
            Waiting::Control(_) => None,
        });
        Ok(Some(OperatorSnapshot {
            uid: self.context.uid.clone(),
            items: items.collect(),
            ..OperatorSnapshot::default()
        }))
    }
}
