//! A source in one thread: its enumerator and readers, their mail, checkpoints and crashes, in the order
//! that a seed gives.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use element::{ManualClock, SubtaskIndex, Timestamp};
use runtime::events::TaskMail;
use runtime::source::{
    AnyEnumerator, AnyReader, EnumeratorOrders, ReaderContext, ReaderPoll, SourceSides, TypedSource,
};
use slackwater::{ChangeCaptureSource, ChangeKind};

use crate::table::{Chance, Item, Table};

enum Mail {
    Task(TaskMail),
    /// A barrier: the reader stores itself when it comes to it.
    Trigger,
}

enum Word {
    SplitRequest,
    Event(Vec<u8>),
}

/// What a reader has stored for a barrier, and how much it had sent by then.
type Stored = (Vec<Vec<u8>>, usize);

struct Side {
    reader: Box<dyn AnyReader<Item>>,
    mail: VecDeque<Mail>,
    flag: bool,
    asked: bool,
    no_more: bool,
    ended: bool,
    sent: Vec<Item>,
    stored: Option<Stored>,
}

/// A complete checkpoint: the enumerator's part and the readers' splits.
#[derive(Clone, Default)]
struct Checkpoint {
    enumerator: Option<Vec<u8>>,
    splits: Vec<Vec<u8>>,
}

pub(crate) struct Sim {
    source: Arc<dyn TypedSource<Item>>,
    chance: Chance,
    enumerator: Box<dyn AnyEnumerator>,
    sides: Vec<Side>,
    words: VecDeque<(usize, Word)>,
    /// The enumerator's part of the checkpoint that is under way.
    pending: Option<Vec<u8>>,
    last: Checkpoint,
    /// What has been sent for good, in epochs between crashes.
    pub(crate) sent: Vec<Item>,
    /// How many crashes and checkpoints there were.
    pub(crate) crashes: u32,
    pub(crate) checkpoints: u32,
}

impl Sim {
    pub(crate) fn new(table: Table, seed: u64, readers: usize) -> Self {
        let source: Arc<dyn TypedSource<Item>> = Arc::new(ChangeCaptureSource::new(table));
        let enumerator = source.enumerator(1, None).unwrap();
        let mut sim = Self {
            source,
            chance: Chance::from_seed(seed),
            enumerator,
            sides: Vec::new(),
            words: VecDeque::new(),
            pending: None,
            last: Checkpoint::default(),
            sent: Vec::new(),
            crashes: 0,
            checkpoints: 0,
        };
        sim.open(readers);
        sim
    }

    /// Makes enumerator and readers from the last checkpoint.
    fn open(&mut self, readers: usize) {
        let Checkpoint { enumerator, splits } = self.last.clone();
        let parallelism = u32::try_from(readers).unwrap();
        self.enumerator = self.source.enumerator(parallelism, enumerator.as_deref()).unwrap();
        let orders = self.enumerator.start().unwrap();
        let flag = orders.is_backlog.unwrap_or(false);
        self.words.clear();
        self.pending = None;
        self.sides = (0..readers)
            .map(|subtask| {
                let context = ReaderContext {
                    subtask: SubtaskIndex(u32::try_from(subtask).unwrap()),
                    parallelism,
                    clock: Arc::new(ManualClock::at(Timestamp::from_millis(0))),
                    metrics: Arc::default(),
                    sides: SourceSides::default(),
                };
                let mut reader = self.source.reader(&context).unwrap();
                for split in splits.iter().skip(subtask).step_by(readers) {
                    reader.add_split(split).unwrap();
                }
                Side {
                    reader,
                    mail: VecDeque::new(),
                    flag,
                    asked: false,
                    no_more: false,
                    ended: false,
                    sent: Vec::new(),
                    stored: None,
                }
            })
            .collect();
    }

    fn carry_out(&mut self, orders: EnumeratorOrders) {
        for (reader, mail) in orders.mail {
            match (reader, mail) {
                (Some(reader), mail) => {
                    self.sides[reader.0 as usize].mail.push_back(Mail::Task(mail));
                }
                (None, TaskMail::Backlog(flag)) => {
                    for side in &mut self.sides {
                        side.mail.push_back(Mail::Task(TaskMail::Backlog(flag)));
                    }
                }
                (None, other) => panic!("{other:?} for all readers"),
            }
        }
    }

    fn hear(&mut self) {
        let Some((from, word)) = self.words.pop_front() else { return };
        let reader = SubtaskIndex(u32::try_from(from).unwrap());
        let orders = match word {
            Word::SplitRequest => self.enumerator.split_requested(reader),
            Word::Event(event) => self.enumerator.reader_event(reader, &event),
        };
        self.carry_out(orders.unwrap());
    }

    fn read_mail(&mut self, at: usize) {
        let side = &mut self.sides[at];
        match side.mail.pop_front() {
            None => {}
            Some(Mail::Trigger) => {
                side.stored = Some((side.reader.snapshot(), side.sent.len()));
                self.complete();
            }
            Some(Mail::Task(TaskMail::Splits(splits))) => {
                side.asked = false;
                splits.iter().for_each(|split| side.reader.add_split(split).unwrap());
            }
            Some(Mail::Task(TaskMail::NoMoreSplits)) => side.no_more = true,
            Some(Mail::Task(TaskMail::Backlog(flag))) => side.flag = flag,
            Some(Mail::Task(TaskMail::ReaderEvent(event))) => {
                side.asked = false;
                side.reader.enumerator_event(&event).unwrap();
            }
            Some(Mail::Task(other)) => panic!("{other:?} for a reader"),
        }
    }

    fn poll(&mut self, at: usize) {
        let side = &mut self.sides[at];
        match side.reader.poll().unwrap() {
            ReaderPoll::Batch(batch) => {
                for (change, _) in batch.into_records() {
                    // K9: in backlog until the log begins.
                    assert_eq!(side.flag, matches!(change.kind, ChangeKind::Read(_)), "{change:?}");
                    side.sent.push(change);
                }
            }
            ReaderPoll::NeedSplit if side.no_more => side.ended = true,
            ReaderPoll::NeedSplit if !side.asked => {
                side.asked = true;
                self.words.push_back((at, Word::SplitRequest));
            }
            ReaderPoll::Event(event) => self.words.push_back((at, Word::Event(event))),
            ReaderPoll::NeedSplit | ReaderPoll::AwaitEnumerator | ReaderPoll::Later(_) => {}
            ReaderPoll::Watermark(mark) => panic!("a watermark: {mark:?}"),
        }
    }

    fn trigger(&mut self) {
        if self.pending.is_some() || self.sides.iter().any(|side| side.ended) {
            return;
        }
        self.pending = Some(self.enumerator.snapshot().unwrap());
        self.sides.iter_mut().for_each(|side| side.mail.push_back(Mail::Trigger));
    }

    fn complete(&mut self) {
        if self.sides.iter().any(|side| side.stored.is_none()) {
            return;
        }
        let enumerator = self.pending.take();
        let mut splits = Vec::new();
        for side in &mut self.sides {
            let (stored, upto) = side.stored.take().unwrap();
            splits.extend(stored);
            let rest = side.sent.split_off(upto);
            self.sent.append(&mut side.sent);
            side.sent = rest;
        }
        self.last = Checkpoint { enumerator, splits };
        self.checkpoints += 1;
    }

    /// Everything since the last checkpoint is gone; another number of readers goes on from it.
    fn crash(&mut self) {
        self.crashes += 1;
        let readers = 1 + self.chance.below(4) as usize;
        self.open(readers);
    }

    /// Runs to the end; at most so many crashes.
    pub(crate) fn run(&mut self, crashes: u32) {
        for _ in 0..200_000 {
            if self.sides.iter().all(|side| side.ended) {
                for side in &mut self.sides {
                    self.sent.append(&mut side.sent);
                }
                return;
            }
            let at = self.chance.below(self.sides.len() as u64) as usize;
            match self.chance.below(100) {
                0..=24 => self.hear(),
                25..=49 => self.read_mail(at),
                50..=93 if !self.sides[at].ended => self.poll(at),
                94..=97 => self.trigger(),
                98..=99 if self.crashes < crashes => self.crash(),
                _ => {}
            }
        }
        panic!("a reader never ends");
    }
}

/// The naive reference: of each key one row, and then each change that came after that row stood so.
pub(crate) fn check(table: &Table, sent: &[Item]) {
    let (before, log, after) = table.history();
    let mut by_key: BTreeMap<u32, Vec<&Item>> = BTreeMap::new();
    for change in sent {
        by_key.entry(change.key).or_default().push(change);
    }
    let mut keys: Vec<u32> = log.iter().map(|entry| entry.key).collect();
    keys.extend(before.keys().chain(by_key.keys()));
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let sent = by_key.remove(&key).unwrap_or_default();
        let (read, changes) = match sent.split_first() {
            Some((first, rest)) if matches!(first.kind, ChangeKind::Read(_)) => {
                (first.kind.clone().into_row(), rest)
            }
            _ => (None, &*sent),
        };
        let logged: Vec<_> = log.iter().filter(|entry| entry.key == key).collect();
        assert!(changes.len() <= logged.len(), "key {key}: {sent:?} of {logged:?}");
        let (merged, later) = logged.split_at(logged.len() - changes.len());
        let stood = merged.last().map_or(before.get(&key).copied(), |entry| entry.row);
        assert_eq!(read, stood, "key {key}: {sent:?} of {logged:?}");
        for (change, entry) in changes.iter().zip(later) {
            assert_eq!(change.position, entry.position, "key {key}: {sent:?} of {logged:?}");
            assert_eq!(change.kind.clone().into_row(), entry.row);
        }
        let last = sent.last().and_then(|change| change.kind.clone().into_row());
        assert_eq!(last, after.get(&key).copied(), "key {key} at the end");
    }
}
