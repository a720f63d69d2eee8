//! [`CheckpointCoordinator`]: when a checkpoint begins, who still owes its part, when it is whole.
//!
//! A state machine without clock, threads or files: the JobMaster tells it the time and what has
//! happened, and does what it decides. The two intervals are those of FLIP-309: the normal one, and
//! the one while any source is in backlog, where 0 means none at all (decision D5). When the last
//! source has left backlog and every task has drained, one checkpoint is due at once (decision D4).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use element::option_table::{self, CheckpointingMode};
use element::{
    Barrier, BarrierKind, CheckpointId, ConfigError, Configuration, SubtaskIndex, VertexId,
};

use super::{OperatorEntry, OperatorState};

/// How often, and how strictly.
#[derive(Clone, Debug)]
pub struct CheckpointSettings {
    /// Time between checkpoints; `None`: none.
    pub interval: Option<Duration>,
    /// The same in backlog; `None`: as `interval`; zero: none.
    pub interval_during_backlog: Option<Duration>,
    /// What they promise.
    pub mode: CheckpointingMode,
    /// After so long they are given up.
    pub timeout: Duration,
    /// Least time from the end of one to the start of the next.
    pub min_pause: Duration,
    /// How many at once.
    pub max_concurrent: u32,
    /// Failures in a row that are borne.
    pub tolerable_failures: u32,
}

impl CheckpointSettings {
    /// As the options say.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], also for an interval in backlog that is below the normal one and not 0 (K3).
    pub fn of(config: &Configuration) -> Result<Self, ConfigError> {
        let interval = config.get(&option_table::CHECKPOINT_INTERVAL)?;
        let in_backlog = config.get(&option_table::CHECKPOINT_INTERVAL_DURING_BACKLOG)?;
        if interval.is_some_and(|interval| interval.is_zero()) {
            return Err(ConfigError::Refused {
                key: option_table::CHECKPOINT_INTERVAL.key.to_owned(),
                reason: "0 is no interval: leave the option out for no checkpoints".to_owned(),
            });
        }
        if let (Some(interval), Some(in_backlog)) = (interval, in_backlog)
            && !in_backlog.is_zero()
            && in_backlog < interval
        {
            return Err(ConfigError::Refused {
                key: option_table::CHECKPOINT_INTERVAL_DURING_BACKLOG.key.to_owned(),
                reason: format!(
                    "{in_backlog:?} is below the normal interval of {interval:?}, and not 0"
                ),
            });
        }
        Ok(Self {
            interval,
            interval_during_backlog: in_backlog,
            mode: config.get(&option_table::CHECKPOINT_MODE)?,
            timeout: config.get(&option_table::CHECKPOINT_TIMEOUT)?,
            min_pause: config.get(&option_table::CHECKPOINT_MIN_PAUSE)?,
            max_concurrent: config.get(&option_table::CHECKPOINT_MAX_CONCURRENT)?.max(1),
            tolerable_failures: config.get(&option_table::CHECKPOINT_TOLERABLE_FAILURES)?,
        })
    }
}

/// A subtask of a vertex.
pub type Participant = (VertexId, SubtaskIndex);

/// What the JobMaster is to do.
#[derive(Debug)]
pub enum Decision {
    /// Begin a checkpoint: enumerators store, then sources are triggered.
    Trigger(Barrier),
    /// All parts are there: write the manifest, name it, tell the tasks.
    Complete {
        /// The checkpoint.
        barrier: Barrier,
        /// Its parts.
        operators: Vec<OperatorEntry>,
        /// What the enumerators stored.
        enumerators: Vec<(String, Vec<u8>)>,
        /// How long it took.
        took: Duration,
    },
    /// Give one up, and remove what was written.
    Abort {
        /// The checkpoint.
        id: CheckpointId,
        /// Why.
        reason: String,
    },
    /// Too many failures in a row: the job fails.
    Fail {
        /// The checkpoint that failed last.
        id: CheckpointId,
        /// Why.
        reason: String,
    },
}

#[derive(Debug)]
struct Pending {
    barrier: Barrier,
    begun: Duration,
    owing: BTreeSet<Participant>,
    operators: Vec<OperatorEntry>,
    enumerators: Vec<(String, Vec<u8>)>,
}

/// The next checkpoint by timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    /// None: checkpoints are off, or off while in backlog.
    Off,
    /// At this time, pauses apart.
    At(Duration),
}

/// Decides about the checkpoints of one job.
#[derive(Debug)]
pub struct CheckpointCoordinator {
    settings: CheckpointSettings,
    next_id: u64,
    pending: BTreeMap<CheckpointId, Pending>,
    armed: Armed,
    last_end: Option<Duration>,
    in_backlog: BTreeSet<Participant>,
    draining: BTreeSet<Participant>,
    switching: bool,
    failures: u32,
}

impl CheckpointCoordinator {
    /// A job that begins at `now`, whose ids go on behind `last`.
    #[must_use]
    pub fn new(settings: CheckpointSettings, last: CheckpointId, now: Duration) -> Self {
        let mut coordinator = Self {
            settings,
            next_id: last.0 + 1,
            pending: BTreeMap::new(),
            armed: Armed::Off,
            last_end: None,
            in_backlog: BTreeSet::new(),
            draining: BTreeSet::new(),
            switching: false,
            failures: 0,
        };
        coordinator.arm(now);
        coordinator
    }

    /// Whether any source is in backlog.
    #[must_use]
    pub fn is_backlog(&self) -> bool {
        !self.in_backlog.is_empty()
    }

    /// Whether checkpoints are off at this moment because of backlog.
    #[must_use]
    pub fn is_off_for_backlog(&self) -> bool {
        let zero = self.settings.interval_during_backlog == Some(Duration::ZERO);
        zero && (self.is_backlog() || !self.draining.is_empty())
    }

    fn interval(&self) -> Option<Duration> {
        let normal = self.settings.interval?;
        if self.is_off_for_backlog() {
            return None;
        }
        match self.settings.interval_during_backlog {
            Some(in_backlog) if self.is_backlog() => Some(in_backlog),
            _ => Some(normal),
        }
    }

    fn arm(&mut self, now: Duration) {
        self.armed = self.interval().map_or(Armed::Off, |interval| Armed::At(now + interval));
    }

    /// A source begins or ends its backlog: a whole source by its vertex and subtask 0, or one
    /// subtask by lag.
    pub fn backlog(&mut self, who: Participant, is_backlog: bool, now: Duration) -> Vec<Decision> {
        let before = self.is_backlog();
        if is_backlog {
            self.in_backlog.insert(who);
        } else {
            self.in_backlog.remove(&who);
        }
        let mut decisions = Vec::new();
        if before == self.is_backlog() {
            return decisions;
        }
        if self.is_off_for_backlog() {
            decisions.extend(self.abort_all("the source is in backlog"));
        } else {
            self.switching |= before;
        }
        if !self.is_backlog() {
            self.switching = true;
        }
        self.arm(now);
        decisions.extend(self.poll(now));
        decisions
    }

    /// A task's sorted input collects, or has drained.
    pub fn collecting(&mut self, who: Participant, collects: bool, now: Duration) -> Vec<Decision> {
        if collects {
            self.draining.insert(who);
        } else if self.draining.remove(&who) && !self.is_off_for_backlog() {
            self.arm(now);
        }
        self.poll(now)
    }

    /// When to be asked again.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let timer = match self.armed {
            Armed::Off => None,
            Armed::At(time) => Some(self.after_pause(time)),
        };
        let timeout = self.pending.values().map(|p| p.begun + self.settings.timeout).min();
        match (timer, timeout) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn after_pause(&self, time: Duration) -> Duration {
        self.last_end.map_or(time, |end| time.max(end + self.settings.min_pause))
    }

    /// Time has passed.
    pub fn poll(&mut self, now: Duration) -> Vec<Decision> {
        let late: Vec<CheckpointId> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.begun + self.settings.timeout <= now)
            .map(|(id, _)| *id)
            .collect();
        let mut decisions = Vec::new();
        for id in late {
            decisions.extend(self.failed(id, "it has timed out", now));
        }
        let room = self.pending.len() < self.settings.max_concurrent as usize;
        let due = match self.armed {
            Armed::Off => false,
            Armed::At(time) => self.after_pause(time) <= now,
        };
        // At the switch one is due at once, whatever the pause (D4).
        let at_switch = self.switching && self.draining.is_empty() && !self.is_backlog();
        if self.settings.interval.is_some() && room && (due || at_switch) && !self.is_off_for_backlog() {
            self.switching = false;
            self.arm(now);
            let kind = match self.settings.mode {
                CheckpointingMode::ExactlyOnce => BarrierKind::ExactlyOnce,
                CheckpointingMode::AtLeastOnce => BarrierKind::AtLeastOnce,
            };
            decisions.push(Decision::Trigger(self.next_barrier(kind)));
        }
        decisions
    }

    fn next_barrier(&mut self, kind: BarrierKind) -> Barrier {
        let id = CheckpointId(self.next_id);
        self.next_id += 1;
        Barrier { id, kind }
    }

    /// A savepoint is asked for.
    ///
    /// # Errors
    ///
    /// Why not (decision D13).
    pub fn savepoint(&mut self, kind: BarrierKind) -> Result<Barrier, String> {
        if self.is_off_for_backlog() {
            return Err("the job is in backlog, where no checkpoint is taken".to_owned());
        }
        Ok(self.next_barrier(kind))
    }

    /// A checkpoint was triggered: `owing` have to acknowledge.
    pub fn begun(
        &mut self,
        barrier: Barrier,
        owing: BTreeSet<Participant>,
        enumerators: Vec<(String, Vec<u8>)>,
        now: Duration,
    ) {
        let pending = Pending { barrier, begun: now, owing, operators: Vec::new(), enumerators };
        self.pending.insert(barrier.id, pending);
    }

    /// A task has written its part.
    pub fn acknowledged(
        &mut self,
        id: CheckpointId,
        who: Participant,
        states: Vec<OperatorState>,
        now: Duration,
    ) -> Vec<Decision> {
        let Some(pending) = self.pending.get_mut(&id) else { return Vec::new() };
        if pending.owing.remove(&who) {
            let entries =
                states.into_iter().map(|state| OperatorEntry { subtask: who.1.0, state });
            pending.operators.extend(entries);
        }
        self.complete_if_whole(id, now)
    }

    /// A task has ended: it owes nothing any more.
    pub fn ended(&mut self, who: Participant, now: Duration) -> Vec<Decision> {
        self.draining.remove(&who);
        let ids: Vec<CheckpointId> = self.pending.keys().copied().collect();
        let mut decisions = Vec::new();
        for id in ids {
            if let Some(pending) = self.pending.get_mut(&id)
                && pending.owing.remove(&who)
            {
                decisions.extend(self.complete_if_whole(id, now));
            }
        }
        decisions
    }

    fn complete_if_whole(&mut self, id: CheckpointId, now: Duration) -> Vec<Decision> {
        if !self.pending.get(&id).is_some_and(|pending| pending.owing.is_empty()) {
            return Vec::new();
        }
        let mut decisions = Vec::new();
        // A newer one that is whole makes those before it useless, savepoints apart.
        let older: Vec<CheckpointId> = self
            .pending
            .range(..id)
            .filter(|(_, pending)| {
                matches!(pending.barrier.kind, BarrierKind::ExactlyOnce | BarrierKind::AtLeastOnce)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in older {
            self.pending.remove(&id);
            decisions.push(Decision::Abort { id, reason: "a newer one is complete".to_owned() });
        }
        if let Some(pending) = self.pending.remove(&id) {
            self.failures = 0;
            self.last_end = Some(now);
            decisions.push(Decision::Complete {
                barrier: pending.barrier,
                operators: pending.operators,
                enumerators: pending.enumerators,
                took: now.saturating_sub(pending.begun),
            });
        }
        decisions
    }

    /// A part could not be written.
    pub fn failed(&mut self, id: CheckpointId, reason: &str, now: Duration) -> Vec<Decision> {
        if self.pending.remove(&id).is_none() {
            return Vec::new();
        }
        self.last_end = Some(now);
        self.failures += 1;
        let mut decisions = vec![Decision::Abort { id, reason: reason.to_owned() }];
        if self.failures > self.settings.tolerable_failures {
            decisions.push(Decision::Fail { id, reason: reason.to_owned() });
        }
        decisions
    }

    /// The job begins anew at `now`: sources say again whether they are in backlog.
    pub fn restarted(&mut self, now: Duration) {
        self.in_backlog.clear();
        self.draining.clear();
        self.switching = false;
        self.arm(now);
    }

    /// Gives all up, for a reason that is no failure.
    pub fn abort_all(&mut self, reason: &str) -> Vec<Decision> {
        std::mem::take(&mut self.pending)
            .into_keys()
            .map(|id| Decision::Abort { id, reason: reason.to_owned() })
            .collect()
    }
}
