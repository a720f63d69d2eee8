//! [`ChunkRead`]: one chunk between two positions of the log.
//!
//! The position before the read is `low`, the one after it `high`. What the rows show of the changes
//! between the two is chance; merged in order they make it right, for each carries its whole row.

use std::collections::BTreeMap;

use element::{BATCH_RECORDS, Timestamp};

use super::log::Ascending;
use super::split::{Followed, KeyRange};
use super::{CapturedTable, KeyOf, LogPoll, LogReader, PositionOf, RowOf, RowReader};

type Rows<C> = BTreeMap<KeyOf<C>, RowOf<C>>;

/// A chunk under way. It stands at its beginning in a checkpoint: nothing of it has been sent.
pub(super) struct ChunkRead<C: CapturedTable> {
    number: u32,
    range: KeyRange<KeyOf<C>>,
    rows: Rows<C>,
    stage: Stage<C>,
}

enum Stage<C: CapturedTable> {
    Rows { low: PositionOf<C>, reader: RowReader<KeyOf<C>, RowOf<C>> },
    Changes { high: PositionOf<C>, log: Ascending<C> },
}

/// What a step of a chunk's read came to.
pub(super) enum ChunkStep<C: CapturedTable> {
    /// There is more to do.
    Progress,
    /// The log is not there yet; ask again at this time.
    Wait(Option<Timestamp>),
    /// All changes up to the chunk's high position are merged.
    Read(Followed<KeyOf<C>, PositionOf<C>>, Rows<C>),
}

impl<C: CapturedTable> ChunkRead<C> {
    /// Notes the low position, and begins.
    pub(super) fn begin(table: &C, number: u32, range: KeyRange<KeyOf<C>>) -> anyhow::Result<Self> {
        let low = table.position()?;
        let stage = Stage::Rows { low, reader: table.read_chunk(&range)? };
        Ok(Self { number, range, rows: Rows::<C>::new(), stage })
    }

    /// The chunk as it is stored.
    pub(super) fn unread(&self) -> (u32, KeyRange<KeyOf<C>>) {
        (self.number, self.range.clone())
    }

    /// Reads about a thousand rows, or polls the log once.
    pub(super) fn step(&mut self, table: &C) -> anyhow::Result<ChunkStep<C>> {
        match &mut self.stage {
            Stage::Rows { low, reader } => {
                for _ in 0..BATCH_RECORDS {
                    let Some(row) = reader.next() else {
                        let high = table.position()?;
                        if high <= *low {
                            return Ok(self.is_read(high));
                        }
                        let log = Ascending::open(table, low.clone())?;
                        self.stage = Stage::Changes { high, log };
                        break;
                    };
                    let (key, row) = row?;
                    self.rows.insert(key, row);
                }
                Ok(ChunkStep::Progress)
            }
            Stage::Changes { high, log } => {
                let high = high.clone();
                match log.poll()? {
                    LogPoll::Entries(entries) => {
                        for entry in entries {
                            if entry.position > high {
                                return Ok(self.is_read(high));
                            }
                            if !self.range.contains(&entry.key) {
                                continue;
                            }
                            match entry.row {
                                Some(row) => self.rows.insert(entry.key, row),
                                None => self.rows.remove(&entry.key),
                            };
                        }
                        Ok(ChunkStep::Progress)
                    }
                    LogPoll::Nothing { read_to, again } if read_to < high => {
                        Ok(ChunkStep::Wait(again))
                    }
                    LogPoll::Nothing { .. } | LogPoll::End => Ok(self.is_read(high)),
                }
            }
        }
    }

    fn is_read(&mut self, upto: PositionOf<C>) -> ChunkStep<C> {
        let range = self.range.clone();
        let followed = Followed { number: self.number, range, upto };
        ChunkStep::Read(followed, std::mem::take(&mut self.rows))
    }
}
