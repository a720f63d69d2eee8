//! Drives a chain that begins with a source: reader to head.

use std::collections::VecDeque;
use std::sync::Arc;

use element::{Barrier, BarrierKind, CheckpointId, Control, RecordAttributes, Timestamp};

use super::{Driver, Step};
use crate::context::{OperatorContext, OperatorSnapshot};
use crate::error::TaskError;
use crate::events::{TaskEvent, TaskMail};
use crate::output::{Output, Pump, Signal};
use crate::source::{AnyReader, ReaderPoll};

/// Reads one source reader.
pub struct SourceDriver<T> {
    reader: Box<dyn AnyReader<T>>,
    head: Box<dyn Output<T>>,
    context: Arc<OperatorContext>,
    barriers: VecDeque<Barrier>,
    /// Mail that came behind a barrier which has not passed. Read earlier, its splits would lie in the
    /// checkpoint twice: the enumerator has handed them out after it had stored what is left.
    behind_barrier: VecDeque<TaskMail>,
    /// The savepoint for which event time has been ended.
    drained: Option<CheckpointId>,
    flag: bool,
    sent_flag: Option<bool>,
    asked: bool,
    no_more: bool,
    stopped: bool,
    flushed: bool,
    ended: bool,
}

impl<T: Send> SourceDriver<T> {
    /// Moves what `reader` yields into `head`. `is_backlog` is the flag as it stands: it goes out
    /// before any record (K11, D2). `splits` are those that a checkpoint gives back.
    ///
    /// # Errors
    ///
    /// [`TaskError::Source`] if a restored split cannot be read.
    pub fn new(
        mut reader: Box<dyn AnyReader<T>>,
        head: Box<dyn Output<T>>,
        is_backlog: bool,
        splits: &[Vec<u8>],
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        for split in splits {
            reader.add_split(split).map_err(failed(context))?;
        }
        Ok(Self {
            reader,
            head,
            context: Arc::clone(context),
            barriers: VecDeque::new(),
            behind_barrier: VecDeque::new(),
            drained: None,
            flag: is_backlog,
            sent_flag: None,
            asked: false,
            no_more: false,
            stopped: false,
            flushed: true,
            ended: false,
        })
    }

    fn end(&mut self) -> Result<Step, TaskError> {
        self.ended = true;
        self.head.signal(Signal::Stream(Control::Watermark(Timestamp::MAX)))?;
        self.head.signal(Signal::Stream(Control::EndOfInput))?;
        Ok(Step::Progress)
    }

    fn send_flag(&mut self) -> Result<(), TaskError> {
        if self.sent_flag == Some(self.flag) {
            return Ok(());
        }
        self.sent_flag = Some(self.flag);
        let attributes =
            if self.flag { RecordAttributes::BACKLOG } else { RecordAttributes::live(None) };
        self.head.signal(Signal::Stream(Control::Attributes(attributes)))
    }

    /// Reads one piece of mail.
    fn take(&mut self, mail: TaskMail) -> Result<(), TaskError> {
        match mail {
            TaskMail::Splits(splits) => {
                self.asked = false;
                for split in splits {
                    self.reader.add_split(&split).map_err(failed(&self.context))?;
                }
            }
            TaskMail::NoMoreSplits => self.no_more = true,
            // Nothing follows the end: the channel counts as live already (D2).
            TaskMail::Backlog(_) if self.ended => {}
            TaskMail::Backlog(is_backlog) => {
                // The flag before goes out first, so that a backlog without records is one too (M31).
                self.send_flag()?;
                self.flag = is_backlog;
                self.send_flag()?;
            }
            TaskMail::ReaderEvent(event) => {
                self.asked = false;
                self.reader.enumerator_event(&event).map_err(failed(&self.context))?;
            }
            TaskMail::Trigger(barrier) if self.ended => {
                self.context.tell(TaskEvent::Declined {
                    id: barrier.id,
                    reason: format!("source `{}` has ended", self.context.name),
                });
            }
            TaskMail::Trigger(barrier) => self.barriers.push_back(barrier),
            TaskMail::AlignTo(limit) => {
                self.context.task.alignment.set_limit(limit);
                // What the reader has nothing of from here on is its own affair, and counts as idle.
                self.flushed = false;
            }
            TaskMail::Stop => self.stopped = true,
            TaskMail::Complete(_) | TaskMail::Aborted(_) | TaskMail::Finished => {}
        }
        Ok(())
    }

    fn barrier(&mut self, barrier: Barrier) -> Result<Step, TaskError> {
        let snapshot = OperatorSnapshot {
            uid: self.context.uid.clone(),
            items: self.reader.snapshot(),
            ..OperatorSnapshot::default()
        };
        self.context.snapshots.lock().push(snapshot);
        self.head.signal(Signal::Stream(Control::Barrier(barrier)))?;
        Ok(Step::Snapshot(barrier))
    }

    /// A checkpoint is given up: its barrier is not sent any more, for who stops behind a barrier would
    /// wait for a savepoint that never comes. Time that has ended for it cannot begin again, and all
    /// records from here on would be late: the task begins anew.
    fn aborted(&mut self, id: CheckpointId) -> Result<(), TaskError> {
        self.barriers.retain(|barrier| barrier.id != id);
        self.behind_barrier
            .retain(|mail| !matches!(mail, TaskMail::Trigger(barrier) if barrier.id == id));
        if self.drained == Some(id) && !self.ended {
            return Err(TaskError::DrainAborted { source_name: self.context.name.clone(), id });
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Step, TaskError> {
        let polled = if self.context.task.alignment.is_ahead() {
            ReaderPoll::Later(None)
        } else {
            let polled = self.reader.poll().map_err(failed(&self.context))?;
            let waits = matches!(polled, ReaderPoll::NeedSplit | ReaderPoll::AwaitEnumerator);
            self.context.task.alignment.set_waits(waits);
            polled
        };
        let until = match polled {
            ReaderPoll::Batch(batch) => {
                self.flushed = false;
                self.context.metrics.source_read(batch.len());
                if self.flag {
                    self.context.metrics.backlog_records(batch.len());
                }
                if !batch.is_empty() {
                    self.head.batch(batch)?;
                }
                return Ok(Step::Progress);
            }
            ReaderPoll::NeedSplit if self.no_more => return self.end(),
            ReaderPoll::NeedSplit if !self.asked => {
                self.asked = true;
                self.context.tell(TaskEvent::SplitRequest);
                None
            }
            ReaderPoll::NeedSplit | ReaderPoll::AwaitEnumerator => None,
            ReaderPoll::Event(event) => {
                self.context.tell(TaskEvent::ReaderEvent(event));
                return Ok(Step::Progress);
            }
            ReaderPoll::Watermark(mark) => {
                self.flushed = false;
                self.head.signal(Signal::Stream(Control::Watermark(mark)))?;
                return Ok(Step::Progress);
            }
            ReaderPoll::Later(until) => until,
        };
        if !self.flushed {
            self.flushed = true;
            self.head.signal(Signal::Flush)?;
            return Ok(Step::Progress);
        }
        Ok(Step::Wait(until))
    }
}

fn failed(context: &OperatorContext) -> impl Fn(anyhow::Error) -> TaskError + '_ {
    move |source| TaskError::Source { source_name: context.name.clone(), source }
}

impl<T: Send> Driver for SourceDriver<T> {
    fn step(&mut self) -> Result<Step, TaskError> {
        match self.head.pump()? {
            Pump::HeldUp => return Ok(Step::Wait(None)),
            Pump::Progress => return Ok(Step::Progress),
            Pump::Idle if self.ended => return Ok(Step::Done),
            Pump::Idle => {}
        }
        self.send_flag()?;
        if let Some(barrier) = self.barriers.front().copied() {
            if barrier.kind == BarrierKind::DrainWithSavepoint && self.drained != Some(barrier.id) {
                self.drained = Some(barrier.id);
                self.head.signal(Signal::Stream(Control::Watermark(Timestamp::MAX)))?;
                return Ok(Step::Progress);
            }
            self.barriers.pop_front();
            return self.barrier(barrier);
        }
        while let Some(mail) = self.behind_barrier.pop_front() {
            self.take(mail)?;
            if !self.barriers.is_empty() {
                return Ok(Step::Progress);
            }
        }
        if self.stopped { self.end() } else { self.read() }
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.flushed = false;
        if let Signal::Aborted(id) = signal {
            self.aborted(id)?;
        }
        self.head.signal(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        self.head.pump()
    }

    fn mail(&mut self, mail: TaskMail) -> Result<(), TaskError> {
        if self.barriers.is_empty() && self.behind_barrier.is_empty() {
            return self.take(mail);
        }
        self.behind_barrier.push_back(mail);
        Ok(())
    }
}
