//! [`AlignmentGroups`]: how far each aligned source of a job may go (FLIP-182).
//!
//! Told by the subtasks' reports and ends; answers with the limits that have changed. Without a clock:
//! the subtasks report by theirs. A subtask that goes, to end or to begin anew, leaves nothing behind.

use std::collections::BTreeMap;

use element::Timestamp;

use crate::checkpoint::Participant;
use crate::source::alignment::{AlignmentReport, AlignmentState};

/// A limit that has changed; `None`: there is none any more.
pub(super) type Limit = (Participant, Option<Timestamp>);

struct Member {
    report: AlignmentReport,
    /// What it was told last.
    limit: Option<Timestamp>,
}

/// The aligned subtasks of a job, by group.
#[derive(Default)]
pub(super) struct AlignmentGroups {
    members: BTreeMap<Participant, Member>,
}

impl AlignmentGroups {
    /// A subtask reports. Costs a pass over its group.
    pub(super) fn report(&mut self, who: Participant, report: AlignmentReport) -> Vec<Limit> {
        let group = report.group.clone();
        let limit = self.members.get(&who).and_then(|member| member.limit);
        self.members.insert(who, Member { report, limit });
        self.news(&group)
    }

    /// A subtask is gone, for good or to begin anew without a limit.
    pub(super) fn leave(&mut self, who: Participant) -> Vec<Limit> {
        match self.members.remove(&who) {
            Some(member) => self.news(&member.report.group),
            None => Vec::new(),
        }
    }

    /// The limits of a group that are not what its members were told.
    fn news(&mut self, group: &str) -> Vec<Limit> {
        let reached = |member: &Member| match member.report.state {
            AlignmentState::At(reached) => Some(reached),
            AlignmentState::NoWatermark | AlignmentState::Idle | AlignmentState::Ended => None,
        };
        let in_group = |member: &&Member| member.report.group == group;
        let least = self.members.values().filter(in_group).filter_map(reached).min();
        let mut news = Vec::new();
        for (who, member) in &mut self.members {
            let limit = least.map(|least| least + member.report.max_drift);
            if member.report.group == group && member.limit != limit {
                member.limit = limit;
                news.push((*who, limit));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use element::{SubtaskIndex, VertexId};

    use super::*;

    fn subtask(i: u32) -> Participant {
        (VertexId(0), SubtaskIndex(i))
    }

    fn at(millis: i64) -> AlignmentState {
        AlignmentState::At(Timestamp::from_millis(millis))
    }

    /// Reports of subtasks with a drift of 10 ms, or `None` for one that goes; the limits that follow,
    /// by subtask, each in the order of the reports.
    #[track_caller]
    fn check(said: &[(u32, Option<AlignmentState>)], expected: &[(u32, Option<i64>)]) {
        let mut groups = AlignmentGroups::default();
        let mut told = Vec::new();
        for (who, state) in said {
            told.extend(match state {
                Some(state) => groups.report(
                    subtask(*who),
                    AlignmentReport {
                        group: "pace".to_owned(),
                        max_drift: Duration::from_millis(10),
                        state: *state,
                    },
                ),
                None => groups.leave(subtask(*who)),
            });
        }
        let told: Vec<_> = told
            .into_iter()
            .map(|((_, who), limit)| (who.0, limit.map(Timestamp::as_millis)))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn the_least_watermark_of_the_group_sets_the_limit() {
        check(
            &[(0, Some(at(100))), (1, Some(at(20))), (1, Some(at(50))), (0, Some(at(110)))],
            &[(0, Some(110)), (0, Some(30)), (1, Some(30)), (0, Some(60)), (1, Some(60))],
        );
    }

    /// tW22: without split or watermark, idle, ended, failed: nobody waits for such a one.
    #[test]
    fn who_has_nothing_to_say_holds_nobody_back() {
        use AlignmentState::{Ended, Idle, NoWatermark};
        check(&[(0, Some(at(100))), (1, Some(NoWatermark))], &[(0, Some(110)), (1, Some(110))]);
        for gone in [Some(Idle), Some(Ended), None] {
            let mut expected = vec![(0, Some(110)), (0, Some(30)), (1, Some(30)), (0, Some(110))];
            expected.extend(gone.map(|_| (1, Some(110))));
            check(&[(0, Some(at(100))), (1, Some(at(20))), (1, gone)], &expected);
        }
        // All idle: no limit at all, and a limit again when one comes back.
        check(
            &[(0, Some(at(100))), (0, Some(Idle)), (0, Some(at(120)))],
            &[(0, Some(110)), (0, None), (0, Some(130))],
        );
        check(&[(0, Some(NoWatermark)), (0, Some(Ended)), (0, None)], &[]);
    }

    /// tW22: a subtask that begins anew is told its limit again.
    #[test]
    fn a_subtask_that_begins_anew_is_told_its_limit_again() {
        let restart = [(0, Some(at(0))), (1, Some(at(0))), (1, None), (1, Some(at(0)))];
        check(&restart, &[(0, Some(10)), (1, Some(10)), (1, Some(10))]);
    }

    /// tW21: the end of time and a drift give no overflow.
    #[test]
    fn the_end_of_time_has_a_limit() {
        let end = AlignmentState::At(Timestamp::MAX);
        check(&[(0, Some(end))], &[(0, Some(i64::MAX))]);
    }
}
