//! The reader of a captured table: chunk by chunk, then the log for the chunks it has read.
//!
//! ```text
//!   waiting --begin--> reading --merged--> sending --last row--> followed
//!                                                                   |  LogBegins
//!                                                                   v
//!                                                               following
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use element::{BATCH_RECORDS, Batch};

use super::chunk::{ChunkRead, ChunkStep};
use super::log::{Following, change_of};
use super::split::{CaptureSplit, Followed, KeyRange, Word};
use super::{CapturedTable, Change, ChangeKind, ChangeOf, KeyOf, LogPoll, PositionOf, RowOf};
use crate::{ReaderPoll, SourceReader};

type SplitOf<C> = CaptureSplit<KeyOf<C>, RowOf<C>, PositionOf<C>>;

/// A chunk whose rows are on their way.
struct Sending<C: CapturedTable> {
    chunk: Followed<KeyOf<C>, PositionOf<C>>,
    rows: VecDeque<(KeyOf<C>, RowOf<C>)>,
}

impl<C: CapturedTable> Sending<C> {
    fn stored(&self) -> SplitOf<C> {
        CaptureSplit::Rows(self.chunk.clone(), self.rows.iter().cloned().collect())
    }
}

/// A chunk that is to be read, or whose rows are to be sent.
enum Unsent<C: CapturedTable> {
    Chunk(u32, KeyRange<KeyOf<C>>),
    Rows(Sending<C>),
}

/// Reads the chunks of one subtask.
pub(super) struct Reader<C: CapturedTable> {
    table: Arc<C>,
    waiting: VecDeque<Unsent<C>>,
    reading: Option<ChunkRead<C>>,
    sending: Option<Sending<C>>,
    followed: Vec<Followed<KeyOf<C>, PositionOf<C>>>,
    /// Chunks that have been sent without the enumerator's knowing.
    unsaid: Vec<u32>,
    /// Whether all chunks of all readers have been sent.
    log_begins: bool,
    following: Option<Following<C>>,
}

impl<C: CapturedTable> Reader<C> {
    pub(super) fn over(table: Arc<C>) -> Self {
        Self {
            table,
            waiting: VecDeque::new(),
            reading: None,
            sending: None,
            followed: Vec::new(),
            unsaid: Vec::new(),
            log_begins: false,
            following: None,
        }
    }

    /// About a thousand rows of the chunk that is being sent.
    fn send(sending: &mut Sending<C>) -> Batch<ChangeOf<C>> {
        let count = sending.rows.len().min(BATCH_RECORDS);
        let position = &sending.chunk.upto;
        let rows = sending.rows.drain(..count).map(|(key, row)| Change {
            key,
            kind: ChangeKind::Read(row),
            position: position.clone(),
        });
        Batch::unstamped(rows.collect())
    }

    /// A step of the snapshot's part.
    fn snapshot_part(&mut self) -> anyhow::Result<ReaderPoll<ChangeOf<C>>> {
        if let Some(mut sending) = self.sending.take() {
            let batch = Self::send(&mut sending);
            if sending.rows.is_empty() {
                self.unsaid.push(sending.chunk.number);
                self.followed.push(sending.chunk);
            } else {
                self.sending = Some(sending);
            }
            return Ok(ReaderPoll::Batch(batch));
        }
        if !self.unsaid.is_empty() {
            return Ok(ReaderPoll::Event(Word::Sent(std::mem::take(&mut self.unsaid)).say()));
        }
        if let Some(reading) = &mut self.reading {
            match reading.step(&self.table)? {
                ChunkStep::Progress => {}
                ChunkStep::Wait(again) => return Ok(ReaderPoll::Later(again)),
                ChunkStep::Read(chunk, rows) => {
                    self.reading = None;
                    self.sending = Some(Sending { chunk, rows: rows.into_iter().collect() });
                }
            }
            return Ok(ReaderPoll::Batch(Batch::default()));
        }
        match self.waiting.pop_front() {
            Some(Unsent::Chunk(number, range)) => {
                self.reading = Some(ChunkRead::begin(&*self.table, number, range)?);
            }
            Some(Unsent::Rows(sending)) => self.sending = Some(sending),
            None if self.log_begins && !self.followed.is_empty() => {
                let chunks = std::mem::take(&mut self.followed);
                self.following = Following::open(&*self.table, chunks)?;
            }
            None => return Ok(ReaderPoll::NeedSplit),
        }
        Ok(ReaderPoll::Batch(Batch::default()))
    }
}

impl<C: CapturedTable> SourceReader<ChangeOf<C>, SplitOf<C>> for Reader<C> {
    fn add_split(&mut self, split: SplitOf<C>) {
        match split {
            CaptureSplit::Chunk(number, range) => {
                self.waiting.push_back(Unsent::Chunk(number, range));
            }
            CaptureSplit::Rows(chunk, rows) => {
                self.waiting.push_back(Unsent::Rows(Sending { chunk, rows: rows.into() }));
            }
            CaptureSplit::Followed(chunk) => {
                self.unsaid.push(chunk.number);
                self.followed.push(chunk);
            }
        }
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<ChangeOf<C>>> {
        let Some(following) = &mut self.following else { return self.snapshot_part() };
        Ok(match following.poll()? {
            LogPoll::Entries(entries) => {
                let changes = entries.into_iter().map(change_of::<C>);
                ReaderPoll::Batch(Batch::unstamped(changes.collect()))
            }
            LogPoll::Nothing { again, .. } => ReaderPoll::Later(again),
            LogPoll::End => ReaderPoll::NeedSplit,
        })
    }

    fn snapshot(&mut self) -> Vec<SplitOf<C>> {
        let followed = match &self.following {
            Some(following) => following.followed(),
            None => self.followed.clone(),
        };
        let mut splits: Vec<_> = followed.into_iter().map(CaptureSplit::Followed).collect();
        splits.extend(self.sending.as_ref().map(Sending::stored));
        if let Some((number, range)) = self.reading.as_ref().map(ChunkRead::unread) {
            splits.push(CaptureSplit::Chunk(number, range));
        }
        splits.extend(self.waiting.iter().map(|waiting| match waiting {
            Unsent::Chunk(number, range) => CaptureSplit::Chunk(*number, range.clone()),
            Unsent::Rows(sending) => sending.stored(),
        }));
        splits
    }

    fn enumerator_event(&mut self, event: &[u8]) -> anyhow::Result<()> {
        self.log_begins |= Word::hear(event)? == Word::LogBegins;
        Ok(())
    }
}
