//! [`Heartbeats`]: which workers are asked whether they are there, and which count as lost.
//!
//! ```text
//!   every interval:  asked -(answered)-> fine, until the next round
//!                      '----(no answer for the time-out, by the session's clock)----> lost
//! ```
//!
//! The time-out runs from the question, not from the last answer: a machine that was suspended, or a
//! clock that jumps, makes nobody lost who then answers. Left out on purpose: sending and losing;
//! the session's ResourceManager does both.
//!
//! Source: FLIP-6, "Heartbeats" (`heartbeat.interval`, `heartbeat.timeout`).

use std::collections::BTreeMap;
use std::time::Duration;

use element::TaskManagerId;

/// What is open between a ResourceManager and its workers.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    interval: Duration,
    timeout: Duration,
    /// The number of the last round.
    round: u64,
    /// When the next round is due.
    next: Duration,
    /// The oldest question of each worker that has no answer.
    unanswered: BTreeMap<TaskManagerId, Question>,
}

#[derive(Clone, Copy, Debug)]
struct Question {
    round: u64,
    asked: Duration,
}

/// What is to be done at one time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// Whom to ask, by this number.
    pub(crate) ask: Vec<(TaskManagerId, u64)>,
    /// Who has not answered in time.
    pub(crate) lost: Vec<TaskManagerId>,
}

impl Heartbeats {
    pub(crate) fn new(interval: Duration, timeout: Duration, now: Duration) -> Self {
        let next = now.saturating_add(interval);
        Self { interval, timeout, round: 0, next, unanswered: BTreeMap::new() }
    }

    /// A worker has answered every question up to this number.
    pub(crate) fn answered(&mut self, worker: TaskManagerId, round: u64) {
        if self.unanswered.get(&worker).is_some_and(|question| question.round <= round) {
            self.unanswered.remove(&worker);
        }
    }

    /// When there is something to do again.
    pub(crate) fn next_deadline(&self) -> Duration {
        let overdue = self.unanswered.values().map(|q| q.asked.saturating_add(self.timeout));
        overdue.fold(self.next, Duration::min)
    }

    /// What is to be done now. A worker that waits to be lost is not asked again.
    pub(crate) fn poll(&mut self, now: Duration, workers: &[TaskManagerId]) -> Round {
        self.unanswered.retain(|worker, _| workers.contains(worker));
        let timeout = self.timeout;
        let overdue = |question: &Question| now.saturating_sub(question.asked) >= timeout;
        let unanswered = self.unanswered.iter().filter(|(_, question)| overdue(question));
        let lost: Vec<TaskManagerId> = unanswered.map(|(worker, _)| *worker).collect();
        self.unanswered.retain(|_, question| !overdue(question));
        let mut ask = Vec::new();
        if now >= self.next {
            self.round += 1;
            self.next = now.saturating_add(self.interval);
            for worker in workers.iter().filter(|worker| !lost.contains(worker)) {
                if !self.unanswered.contains_key(worker) {
                    self.unanswered.insert(*worker, Question { round: self.round, asked: now });
                    ask.push((*worker, self.round));
                }
            }
        }
        Round { ask, lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: TaskManagerId = TaskManagerId(1);
    const TWO: TaskManagerId = TaskManagerId(2);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn beats() -> Heartbeats {
        Heartbeats::new(seconds(10), seconds(50), Duration::ZERO)
    }

    #[test]
    fn a_worker_that_does_not_answer_in_time_is_lost_and_the_other_is_not() {
        let mut beats = beats();
        assert_eq!(beats.poll(seconds(9), &[ONE, TWO]), Round::default());
        let round = beats.poll(seconds(10), &[ONE, TWO]);
        assert_eq!(round.ask, [(ONE, 1), (TWO, 1)]);
        beats.answered(TWO, 1);
        assert_eq!(beats.poll(seconds(59), &[ONE, TWO]).ask, [(TWO, 2)], "one question at a time");
        assert_eq!(beats.next_deadline(), seconds(60));
        assert_eq!(beats.poll(seconds(60), &[ONE, TWO]).lost, [ONE]);
        assert_eq!(beats.poll(seconds(61), &[TWO]).lost, []);
    }

    /// A suspended machine: everybody was silent, and nobody had been asked.
    #[test]
    fn a_clock_that_jumps_makes_nobody_lost() {
        let mut beats = beats();
        let round = beats.poll(seconds(3_600), &[ONE]);
        assert_eq!((round.ask, round.lost), (vec![(ONE, 1)], vec![]));
    }

    #[test]
    fn an_answer_to_an_earlier_question_is_no_answer_to_this_one() {
        let mut beats = beats();
        beats.poll(seconds(10), &[ONE]);
        beats.answered(ONE, 1);
        beats.poll(seconds(20), &[ONE]);
        beats.answered(ONE, 1);
        assert_eq!(beats.poll(seconds(70), &[ONE]).lost, [ONE]);
    }
}
