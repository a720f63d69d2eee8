//! [`JobRun`]: a job as it gets its turns, from its first run to the word of its end.
//!
//! ```text
//!   begins -> (repairs) -> runs -> settles -> over
//!                 |          ^        '--> cached data is lost: (repairs), once more
//!                 '----------'------------------'
//! ```

use std::time::Duration;

use crossbeam_channel::Sender;

use super::attempts::{Attempts, Begun, Ended, First, Prepared, Repaired, Replan};
use super::jobs::{Registered, Settling};
use crate::executor::{Actor, Turn};
use crate::report::CacheOutcome;

/// Where a job is.
enum Stage {
    Begins(First),
    Runs(Box<Prepared>),
    Settles(Box<Settling>),
    Over,
}

/// A job that runs, with its fallback. Says how it ended to whoever holds the other end of `tell`.
pub(super) struct JobRun {
    attempts: Attempts,
    replan: Replan,
    stage: Stage,
    repaired: Repaired,
    /// Why it runs a second time.
    again: Option<String>,
    tell: Sender<Ended>,
    /// Its place among the jobs that run, given back when it is over.
    registered: Option<Registered>,
}

impl JobRun {
    pub(super) fn new(
        attempts: Attempts,
        first: First,
        replan: Replan,
        tell: Sender<Ended>,
        registered: Registered,
    ) -> Self {
        Self {
            attempts,
            replan,
            stage: Stage::Begins(first),
            repaired: Repaired::new(),
            again: None,
            tell,
            registered: Some(registered),
        }
    }

    /// A run is over: the next one begins, or the job has ended.
    fn ended(&mut self, mut ended: Ended) -> Turn {
        if let Some(reason) = self.again.take() {
            ended.outcome.recovered.insert(0, reason);
            return self.over(ended);
        }
        match self.attempts.second(ended, &self.replan, &mut self.repaired) {
            Ok(begun) => self.runs(begun),
            Err(first) => self.over(*first),
        }
    }

    fn runs(&mut self, (run, again): Begun) -> Turn {
        self.stage = Stage::Runs(run);
        self.again = again;
        Turn::Progress
    }

    fn over(&mut self, mut ended: Ended) -> Turn {
        for cache in ended.caches.iter_mut().filter(|cache| cache.is_hit()) {
            if let Some((reason, parts)) = self.repaired.remove(&cache.data_set) {
                cache.outcome = CacheOutcome::Repaired { reason, parts };
            }
        }
        if self.tell.send(ended).is_err() {
            tracing::debug!(job = %self.attempts.name, "nobody waits for the job's end");
        }
        self.registered = None;
        Turn::Done
    }
}

impl Actor for JobRun {
    fn turn(&mut self) -> Turn {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Begins(first) => {
                match self.attempts.begin(first, &self.replan, &mut self.repaired) {
                    Ok(begun) => self.runs(begun),
                    Err(ended) => self.over(*ended),
                }
            }
            Stage::Runs(mut run) => match run.turn() {
                Turn::Done => {
                    self.stage = Stage::Settles(Box::new(run.settle()));
                    Turn::Progress
                }
                turn => {
                    self.stage = Stage::Runs(run);
                    turn
                }
            },
            Stage::Settles(settling) if settling.is_answered() => self.ended(settling.end()),
            Stage::Settles(settling) => {
                self.stage = Stage::Settles(settling);
                Turn::Wait(None)
            }
            Stage::Over => Turn::Done,
        }
    }

    fn is_ready(&self) -> bool {
        match &self.stage {
            Stage::Runs(run) => run.is_ready(),
            Stage::Settles(settling) => settling.is_answered(),
            Stage::Begins(_) | Stage::Over => true,
        }
    }

    fn wait(&mut self, limit: Option<Duration>) {
        match &self.stage {
            Stage::Runs(run) => run.wait(limit),
            Stage::Settles(settling) => settling.wait(),
            Stage::Begins(_) | Stage::Over => {}
        }
    }
}
