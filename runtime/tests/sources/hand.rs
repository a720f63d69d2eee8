//! A source in a test's hands: its mail is delivered at once, its readers are polled one by one.

use std::sync::Arc;

use element::{ManualClock, SubtaskIndex, Timestamp};
use slackwater_runtime::events::TaskMail;
use slackwater_runtime::source::{
    AnyEnumerator, AnyReader, EnumeratorOrders, ReaderContext, ReaderPoll, SourceSides, TypedSource,
};

/// One reader and what it has been told.
pub(crate) struct Side<T> {
    pub(crate) reader: Box<dyn AnyReader<T>>,
    pub(crate) sent: Vec<T>,
    /// The flag, and every change of it.
    pub(crate) flags: Vec<bool>,
    pub(crate) no_more: bool,
    pub(crate) ended: bool,
    /// Every split that it was ever given.
    pub(crate) assigned: Vec<Vec<u8>>,
    asked: bool,
}

/// A checkpoint: what the enumerator and each reader stored.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    enumerator: Vec<u8>,
    splits: Vec<Vec<u8>>,
}

pub(crate) struct Hand<T> {
    source: Arc<dyn TypedSource<T>>,
    enumerator: Box<dyn AnyEnumerator>,
    pub(crate) sides: Vec<Side<T>>,
}

/// A reader of `source` that nobody has told anything.
pub(crate) fn reader_of<T>(source: &dyn TypedSource<T>, subtask: u32) -> Box<dyn AnyReader<T>> {
    let context = ReaderContext {
        subtask: SubtaskIndex(subtask),
        parallelism: 1,
        clock: Arc::new(ManualClock::at(Timestamp::from_millis(0))),
        metrics: Arc::default(),
        sides: SourceSides::default(),
    };
    source.reader(&context).unwrap()
}

impl<T> Hand<T> {
    pub(crate) fn new(source: Arc<dyn TypedSource<T>>, readers: u32) -> Self {
        Self::open(source, readers, None)
    }

    pub(crate) fn restored(source: Arc<dyn TypedSource<T>>, readers: u32, from: &Stored) -> Self {
        Self::open(source, readers, Some(from))
    }

    fn open(source: Arc<dyn TypedSource<T>>, readers: u32, from: Option<&Stored>) -> Self {
        let stored = from.map(|from| from.enumerator.as_slice());
        let mut enumerator = source.enumerator(readers, stored).unwrap();
        let mut orders = enumerator.start().unwrap();
        let flag = orders.is_backlog.unwrap_or(false);
        let sides = (0..readers).map(|subtask| {
            let mut reader = reader_of(&*source, subtask);
            let splits = from.map(|from| from.splits.as_slice()).unwrap_or_default();
            for split in splits.iter().skip(subtask as usize).step_by(readers as usize) {
                reader.add_split(split).unwrap();
            }
            Side {
                reader,
                sent: Vec::new(),
                flags: vec![flag],
                no_more: false,
                ended: false,
                assigned: Vec::new(),
                asked: false,
            }
        });
        let sides = sides.collect();
        // The flag goes with the readers' deployment.
        orders.mail.retain(|(_, mail)| !matches!(mail, TaskMail::Backlog(_)));
        let mut hand = Self { source, enumerator, sides };
        hand.carry_out(orders);
        hand
    }

    fn carry_out(&mut self, orders: EnumeratorOrders) {
        for (reader, mail) in orders.mail {
            match (reader, mail) {
                (None, TaskMail::Backlog(flag)) => {
                    for side in
                        self.sides.iter_mut().filter(|side| side.flags.last() != Some(&flag))
                    {
                        side.flags.push(flag);
                    }
                }
                (Some(reader), mail) => self.sides[reader.0 as usize].take(mail),
                (None, other) => panic!("{other:?} for all readers"),
            }
        }
    }

    /// One poll of a reader, and what follows from it. False if it had nothing to do.
    pub(crate) fn poll(&mut self, at: usize) -> bool {
        let side = &mut self.sides[at];
        if side.ended {
            return false;
        }
        let reader = SubtaskIndex(u32::try_from(at).unwrap());
        let orders = match side.reader.poll().unwrap() {
            ReaderPoll::Batch(batch) => {
                side.sent.extend(batch.into_records().map(|(value, _)| value));
                return true;
            }
            ReaderPoll::NeedSplit if side.no_more => {
                side.ended = true;
                return true;
            }
            ReaderPoll::NeedSplit if !side.asked => {
                side.asked = true;
                self.enumerator.split_requested(reader)
            }
            ReaderPoll::Event(event) => self.enumerator.reader_event(reader, &event),
            ReaderPoll::NeedSplit
            | ReaderPoll::AwaitEnumerator
            | ReaderPoll::Later(_)
            | ReaderPoll::Watermark(_) => {
                return false;
            }
        };
        self.carry_out(orders.unwrap());
        true
    }

    /// Polls a reader until it has nothing to do.
    pub(crate) fn run(&mut self, at: usize) {
        while self.poll(at) {}
    }

    /// Polls all readers in turn until they have ended.
    pub(crate) fn run_all(&mut self) {
        while !self.sides.iter().all(|side| side.ended) {
            let moved = (0..self.sides.len()).filter(|at| self.poll(*at)).count();
            assert!(moved > 0, "every reader waits");
        }
    }

    pub(crate) fn store(&mut self) -> Stored {
        let enumerator = self.enumerator.snapshot().unwrap();
        let splits = self.sides.iter_mut().flat_map(|side| side.reader.snapshot()).collect();
        Stored { enumerator, splits }
    }

    pub(crate) fn source(&self) -> &dyn TypedSource<T> {
        &*self.source
    }
}

impl<T: Clone + Ord> Hand<T> {
    /// What all readers have sent, in order of size.
    pub(crate) fn sorted(&self) -> Vec<T> {
        let mut all: Vec<T> = self.sides.iter().flat_map(|side| side.sent.clone()).collect();
        all.sort();
        all
    }
}

impl<T> Side<T> {
    fn take(&mut self, mail: TaskMail) {
        match mail {
            TaskMail::Splits(splits) => {
                self.asked = false;
                for split in splits {
                    self.reader.add_split(&split).unwrap();
                    self.assigned.push(split);
                }
            }
            TaskMail::NoMoreSplits => self.no_more = true,
            TaskMail::ReaderEvent(event) => {
                self.asked = false;
                self.reader.enumerator_event(&event).unwrap();
            }
            other => panic!("{other:?} for a reader"),
        }
    }
}
