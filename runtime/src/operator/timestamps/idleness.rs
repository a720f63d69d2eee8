//! [`Idleness`]: when a subtask that has nothing to read holds nobody up any more.
//!
//! Counted from the moment at which the reader or the gate says that it has nothing, not from the last
//! record: a subtask that is held back has not asked, however long that takes (tW23), and under a
//! steady load the count never gets anywhere (tW24).

use std::time::Duration;

use element::Timestamp;

use crate::context::OperatorContext;

/// Whether one subtask is idle.
pub(super) struct Idleness {
    after: Option<Duration>,
    /// Since when there has been nothing to read; from the start until the first record.
    empty_since: Option<Timestamp>,
    is_idle: bool,
}

impl Idleness {
    /// Idle `after` so long with nothing to read; never without.
    pub(super) fn new(after: Option<Duration>, context: &OperatorContext) -> Self {
        let mut idleness = Self { after, empty_since: None, is_idle: false };
        idleness.has_nothing(context);
        idleness
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// There was nothing to read when somebody looked.
    pub(super) fn has_nothing(&mut self, context: &OperatorContext) {
        if let (Some(after), None) = (self.after, self.empty_since)
            && !context.task.alignment.is_ahead()
        {
            let now = context.task.clock.now();
            self.empty_since = Some(now);
            context.task.deadline.at(now + after);
        }
    }

    /// Records have come. True if the subtask was idle until now.
    pub(super) fn has_records(&mut self) -> bool {
        self.empty_since = None;
        std::mem::take(&mut self.is_idle)
    }

    /// Time has passed. True if the subtask is idle from now on.
    pub(super) fn at_time(&mut self, now: Timestamp, context: &OperatorContext) -> bool {
        let (Some(after), Some(since), false) = (self.after, self.empty_since, self.is_idle) else {
            return false;
        };
        self.is_idle = since + after <= now;
        if !self.is_idle {
            context.task.deadline.at(since + after);
        }
        self.is_idle
    }
}
