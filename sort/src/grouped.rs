//! [`Groups`]: a sorted stream seen key by key.
//!
//! A group's records are read as they are asked for; a group that is dropped half way is skipped when
//! the next one is asked for. Holds one key, and no record.

use crate::{SortError, SortStats, SortedRecord, SortedStream};

/// Keys of a sorted stream, each once, in order, with their records.
#[derive(Debug)]
pub struct Groups {
    stream: SortedStream,
    /// The key of the current group.
    key: Vec<u8>,
    /// Whether there has been a group; the first key may be empty.
    has_key: bool,
    /// What is known of the stream's current record.
    position: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// It has been handed out, or there is none yet: the stream must go on.
    Behind,
    /// It is the first of the current group, and nobody has asked for it.
    FirstOfGroup,
    /// It is the first of the next group.
    FirstOfNext,
    /// The stream has ended.
    Ended,
}

impl Groups {
    pub(crate) fn new(stream: SortedStream) -> Self {
        Self { stream, key: Vec::new(), has_key: false, position: Position::Behind }
    }

    /// The next key with its records, or `None` at the end. What is left of the group before is
    /// skipped, at the cost of reading it.
    ///
    /// # Errors
    ///
    /// As [`SortedStream::next`].
    #[expect(clippy::should_implement_trait, reason = "groups are lent, which Iterator cannot")]
    pub fn next(&mut self) -> Result<Option<Group<'_>>, SortError> {
        while matches!(self.position, Position::Behind | Position::FirstOfGroup) {
            self.step()?;
        }
        if self.position == Position::Ended {
            return Ok(None);
        }
        let key = self.stream.current().map_or(&[][..], |record| record.key);
        self.key.clear();
        self.key.extend_from_slice(key);
        self.has_key = true;
        self.position = Position::FirstOfGroup;
        Ok(Some(Group { groups: self, is_complete: false }))
    }

    /// The counts of the sort.
    #[must_use]
    pub fn stats(&self) -> SortStats {
        self.stream.stats()
    }

    /// Goes to the next record of the current key; false when there is none.
    fn step(&mut self) -> Result<bool, SortError> {
        if self.position == Position::Ended {
            return Ok(false);
        }
        match self.stream.advance() {
            Ok(true) => {}
            Ok(false) => {
                self.position = Position::Ended;
                return Ok(false);
            }
            Err(error) => {
                self.position = Position::Ended;
                return Err(*error);
            }
        }
        let has_key = self.has_key;
        let is_same = self.stream.current().is_some_and(|record| has_key && record.key == self.key);
        self.position = if is_same { Position::Behind } else { Position::FirstOfNext };
        Ok(is_same)
    }
}

/// One key and its records, by timestamp, then arrival.
#[derive(Debug)]
pub struct Group<'a> {
    groups: &'a mut Groups,
    is_complete: bool,
}

impl Group<'_> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.groups.key
    }

    /// The next record of this key, or `None` when there is none.
    ///
    /// # Errors
    ///
    /// As [`SortedStream::next`].
    #[expect(clippy::should_implement_trait, reason = "records are lent, which Iterator cannot")]
    pub fn next(&mut self) -> Result<Option<SortedRecord<'_>>, SortError> {
        if self.is_complete {
            return Ok(None);
        }
        if self.groups.position == Position::FirstOfGroup {
            self.groups.position = Position::Behind;
        } else if !self.groups.step()? {
            self.is_complete = true;
            return Ok(None);
        }
        Ok(self.groups.stream.current())
    }
}
