//! [`Aligning`]: tells the JobMaster how far a source's subtask has come, every interval, if that is news.

use std::time::Duration;

use element::Timestamp;

use crate::context::OperatorContext;
use crate::events::TaskEvent;
use crate::source::alignment::{AlignmentReport, AlignmentState, WatermarkAlignment};

/// Below it, reports would be all that a task does.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// The reports of one subtask.
pub(super) struct Aligning {
    alignment: WatermarkAlignment,
    next: Timestamp,
    said: AlignmentState,
    /// Whether it waited for its enumerator when it was last asked. Once may be chance: an answer is
    /// on its way between any two splits.
    waited: bool,
}

impl Aligning {
    pub(super) fn new(mut alignment: WatermarkAlignment, context: &OperatorContext) -> Self {
        alignment.update_interval = alignment.update_interval.max(LEAST_INTERVAL);
        let next = context.task.clock.now() + alignment.update_interval;
        context.task.deadline.at(next);
        Self { alignment, next, said: AlignmentState::NoWatermark, waited: false }
    }

    /// Time has passed: a report, if one is due.
    pub(super) fn at_time(
        &mut self,
        now: Timestamp,
        reached: Option<Timestamp>,
        is_idle: bool,
        context: &OperatorContext,
    ) {
        if self.said == AlignmentState::Ended {
            return;
        }
        if self.next <= now {
            self.next = now + self.alignment.update_interval;
            let waits = context.task.alignment.waits();
            let waited = std::mem::replace(&mut self.waited, waits);
            self.say(
                match reached {
                    _ if is_idle || (waits && waited) => AlignmentState::Idle,
                    Some(reached) => AlignmentState::At(reached),
                    None => AlignmentState::NoWatermark,
                },
                context,
            );
        }
        context.task.deadline.at(self.next);
    }

    /// Nothing more will be read.
    pub(super) fn end(&mut self, context: &OperatorContext) {
        self.say(AlignmentState::Ended, context);
    }

    fn say(&mut self, state: AlignmentState, context: &OperatorContext) {
        if state != self.said {
            self.said = state;
            let WatermarkAlignment { group, max_drift, .. } = self.alignment.clone();
            context.tell(TaskEvent::Alignment(AlignmentReport { group, max_drift, state }));
        }
    }
}
