//! The log of a captured table: read in order, and filtered by the chunks that are followed.

use super::split::Followed;
use super::{
    CaptureError, CapturedTable, Change, ChangeKind, ChangeOf, KeyOf, LogEntry, LogPoll, LogReader,
    LogReaderOf, PositionOf, RowOf,
};

/// A log reader whose entries are checked: each lies above the one before it.
pub(super) struct Ascending<C: CapturedTable> {
    reader: LogReaderOf<C>,
    /// Every entry up to here has been given.
    read_to: PositionOf<C>,
}

impl<C: CapturedTable> Ascending<C> {
    pub(super) fn open(table: &C, after: PositionOf<C>) -> anyhow::Result<Self> {
        Ok(Self { reader: table.read_log(&after)?, read_to: after })
    }
}

impl<C: CapturedTable> LogReader<KeyOf<C>, RowOf<C>, PositionOf<C>> for Ascending<C> {
    fn poll(&mut self) -> anyhow::Result<LogPoll<KeyOf<C>, RowOf<C>, PositionOf<C>>> {
        let polled = self.reader.poll()?;
        match &polled {
            LogPoll::Entries(entries) => {
                for LogEntry { position, .. } in entries {
                    if *position <= self.read_to {
                        return Err(CaptureError::EntriesOutOfOrder {
                            position: format!("{position:?}"),
                            before: format!("{:?}", self.read_to),
                        }
                        .into());
                    }
                    self.read_to = position.clone();
                }
            }
            LogPoll::Nothing { read_to, .. } if *read_to > self.read_to => {
                self.read_to = read_to.clone();
            }
            LogPoll::Nothing { .. } | LogPoll::End => {}
        }
        Ok(polled)
    }
}

/// The chunks of one reader, followed in the log.
pub(super) struct Following<C: CapturedTable> {
    log: Ascending<C>,
    /// In order of their ranges; not empty.
    chunks: Vec<Followed<KeyOf<C>, PositionOf<C>>>,
}

impl<C: CapturedTable> Following<C> {
    /// Opens the log behind the least position of `chunks`; `None` if there are none.
    pub(super) fn open(
        table: &C,
        mut chunks: Vec<Followed<KeyOf<C>, PositionOf<C>>>,
    ) -> anyhow::Result<Option<Self>> {
        chunks.sort_by(|a, b| a.range.from.cmp(&b.range.from));
        let Some(after) = chunks.iter().map(|chunk| &chunk.upto).min() else { return Ok(None) };
        let log = Ascending::open(table, after.clone())?;
        Ok(Some(Self { log, chunks }))
    }

    /// The next changes of the chunks: those above what has been sent.
    pub(super) fn poll(&mut self) -> anyhow::Result<LogPoll<KeyOf<C>, RowOf<C>, PositionOf<C>>> {
        let mut polled = self.log.poll()?;
        if let LogPoll::Entries(entries) = &mut polled {
            entries.retain(|entry| self.is_news(entry));
        }
        Ok(polled)
    }

    fn is_news(&self, entry: &LogEntry<KeyOf<C>, RowOf<C>, PositionOf<C>>) -> bool {
        let starts_before = |chunk: &Followed<_, _>| {
            chunk.range.from.as_ref().is_none_or(|from| *from <= entry.key)
        };
        let behind = self.chunks.partition_point(starts_before);
        let chunk = behind.checked_sub(1).and_then(|place| self.chunks.get(place));
        chunk.is_some_and(|chunk| chunk.range.contains(&entry.key) && entry.position > chunk.upto)
    }

    /// The chunks, each with the position up to which its changes have been sent.
    pub(super) fn followed(&self) -> Vec<Followed<KeyOf<C>, PositionOf<C>>> {
        let read_to = &self.log.read_to;
        let reached = |chunk: &Followed<_, PositionOf<C>>| Followed {
            upto: chunk.upto.clone().max(read_to.clone()),
            ..chunk.clone()
        };
        self.chunks.iter().map(reached).collect()
    }
}

/// A log's entry as the source sends it.
pub(super) fn change_of<C: CapturedTable>(
    entry: LogEntry<KeyOf<C>, RowOf<C>, PositionOf<C>>,
) -> ChangeOf<C> {
    let LogEntry { position, key, row } = entry;
    Change { key, kind: row.map_or(ChangeKind::Delete, ChangeKind::Upsert), position }
}
