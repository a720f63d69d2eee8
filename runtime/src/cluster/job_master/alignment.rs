//! Aligned sources: their reports, and the limits that follow from them.

use super::JobMaster;
use crate::checkpoint::Participant;
use crate::cluster::alignment::Limit;
use crate::events::TaskMail;
use crate::source::alignment::AlignmentReport;

impl JobMaster {
    /// A subtask of a source says how far it has come.
    pub(super) fn alignment_reported(&mut self, who: Participant, report: AlignmentReport) {
        let limits = self.alignment.report(who, report);
        self.align(limits);
    }

    /// A task is gone: its group waits for it no longer.
    pub(super) fn leave_alignment(&mut self, who: Participant) {
        let limits = self.alignment.leave(who);
        self.align(limits);
    }

    fn align(&mut self, limits: Vec<Limit>) {
        for (who, limit) in limits {
            self.mail_participant(who, TaskMail::AlignTo(limit));
        }
    }
}
