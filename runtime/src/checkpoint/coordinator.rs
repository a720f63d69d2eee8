//! [`CheckpointCoordinator`]: when a checkpoint begins, who still owes its part, when it is whole.
//!
//! A state machine without clock, threads or files: the JobMaster tells it the time and what has
//! happened, and does what it decides. The two intervals are those of FLIP-309: the normal one, and
//! the one while any source is in backlog, where 0 means none at all (decision D5). When the last
//! source has left backlog and every task has drained, one checkpoint is due at once (decision D4).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use element::option_table::CheckpointingMode;
use element::{Barrier, BarrierKind, CheckpointId, SubtaskIndex, VertexId};

use super::{CheckpointSettings, OperatorEntry, OperatorState};

/// A subtask of a vertex.
pub type Participant = (VertexId, SubtaskIndex);

/// Who says that there is a backlog. Any one is enough (K13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BacklogOrigin {
    /// The enumerator of a source.
    Source(VertexId),
    /// The lag of one subtask's watermark (FLIP-328).
    Lag(VertexId, SubtaskIndex),
}

impl BacklogOrigin {
    /// The vertex that it is about.
    #[must_use]
    pub fn vertex(self) -> VertexId {
        match self {
            Self::Source(vertex) | Self::Lag(vertex, _) => vertex,
        }
    }
}

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
    in_backlog: BTreeSet<BacklogOrigin>,
    /// Tasks that collect, drain, or are expected to: until they say that they have drained.
    draining: BTreeSet<Participant>,
    /// Whether a checkpoint is due at the end of the drain (decision D4).
    switching: bool,
    /// The savepoint behind which the job stops, while it is under way or complete: a checkpoint
    /// behind it would lack the parts of tasks that have stopped.
    stopping: Option<CheckpointId>,
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
            stopping: None,
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

    /// Whether checkpoints are off at this moment, and why: with interval 0 while a source is in
    /// backlog, and in every case while records are collected that are in no state yet.
    #[must_use]
    pub fn is_off(&self) -> Option<&'static str> {
        let zero = self.settings.interval_during_backlog == Some(Duration::ZERO);
        if zero && self.is_backlog() {
            Some("the job is in backlog, where no checkpoint is taken")
        } else if !self.draining.is_empty() {
            Some("a task sorts or drains its input, which no checkpoint covers")
        } else {
            None
        }
    }

    /// Whether checkpoints of the job's own are off, and why. As savepoints are, but that a durable
    /// backlog has them while sources are in backlog: operators then store what they have collected.
    fn is_off_for_checkpoints(&self) -> Option<&'static str> {
        self.is_off().filter(|_| !self.stores_backlog())
    }

    fn stores_backlog(&self) -> bool {
        self.settings.durable_backlog && self.is_backlog()
    }

    fn interval(&self) -> Option<Duration> {
        let normal = self.settings.interval?;
        if self.is_off_for_checkpoints().is_some() || self.stopping.is_some() {
            return None;
        }
        match self.settings.interval_during_backlog {
            Some(in_backlog) if self.is_backlog() && !in_backlog.is_zero() => Some(in_backlog),
            _ => Some(normal),
        }
    }

    /// A task has collected so much of a backlog that it should be stored: a checkpoint is due, as
    /// soon as pause and number allow.
    pub fn wanted(&mut self, now: Duration) -> Vec<Decision> {
        if self.stores_backlog() && self.interval().is_some() {
            self.armed = Armed::At(now);
        }
        self.poll(now)
    }

    fn arm(&mut self, now: Duration) {
        self.armed = self.interval().map_or(Armed::Off, |interval| Armed::At(now + interval));
    }

    /// A backlog begins or ends.
    pub fn backlog(
        &mut self,
        who: BacklogOrigin,
        is_backlog: bool,
        now: Duration,
    ) -> Vec<Decision> {
        let before = self.is_backlog();
        if is_backlog {
            self.in_backlog.insert(who);
        } else {
            self.in_backlog.remove(&who);
        }
        if before == self.is_backlog() {
            return Vec::new();
        }
        self.switching |= before;
        self.changed(now)
    }

    /// A task's sorted input collects, or has drained.
    pub fn collecting(&mut self, who: Participant, collects: bool, now: Duration) -> Vec<Decision> {
        let changes = if collects { self.draining.insert(who) } else { self.draining.remove(&who) };
        if changes { self.changed(now) } else { Vec::new() }
    }

    /// What follows from a backlog or a drain that has begun or ended.
    fn changed(&mut self, now: Duration) -> Vec<Decision> {
        let mut decisions = Vec::new();
        if let Some(reason) = self.is_off_for_checkpoints() {
            decisions = self.abort_all(reason);
        }
        self.arm(now);
        decisions.extend(self.poll(now));
        decisions
    }

    /// When to be asked again.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let timer = match self.armed {
            Armed::At(time) if self.has_room() => Some(self.after_pause(time)),
            // One that is under way ends first, and that is an event of its own.
            Armed::At(_) | Armed::Off => None,
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

    /// Whether one more checkpoint may be under way; savepoints take no room.
    fn has_room(&self) -> bool {
        let checkpoints =
            self.pending.values().filter(|pending| !pending.barrier.kind.is_savepoint());
        let taken = checkpoints.count();
        taken < self.settings.max_concurrent as usize
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
            decisions.extend(match self.stores_backlog() {
                // It may have waited behind a drain, which is nobody's fault.
                true => self.declined(id, "it has timed out", now),
                false => self.failed(id, "it has timed out", now),
            });
        }
        let due = match self.armed {
            Armed::Off => false,
            Armed::At(time) => self.has_room() && self.after_pause(time) <= now,
        };
        // At the switch one is due at once, whatever the pause, and beside one under way (D4).
        let at_switch = self.switching && self.draining.is_empty() && !self.is_backlog();
        let wanted = self.interval().is_some() && (due || at_switch);
        if wanted {
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

    /// The id of the first checkpoint that is not yet triggered.
    #[must_use]
    pub fn next_id(&self) -> CheckpointId {
        CheckpointId(self.next_id)
    }

    /// The next id, for a checkpoint of this kind.
    pub fn next_barrier(&mut self, kind: BarrierKind) -> Barrier {
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
        match self.is_off() {
            Some(reason) => Err(reason.to_owned()),
            None if self.stopping.is_some() => Err("the job stops behind a savepoint".to_owned()),
            None => Ok(self.next_barrier(kind)),
        }
    }

    /// Whether a checkpoint still waits for some of its parts.
    #[must_use]
    pub fn is_pending(&self, id: CheckpointId) -> bool {
        self.pending.contains_key(&id)
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
        if barrier.kind.stops() {
            self.stopping = Some(barrier.id);
            self.armed = Armed::Off;
        }
    }

    /// Parts that nobody has to be asked for.
    pub fn add_parts(&mut self, id: CheckpointId, parts: Vec<OperatorEntry>) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.operators.extend(parts);
        }
    }

    /// Checkpoints under way that wait for a task's part, oldest first.
    #[must_use]
    pub fn owed_by(&self, who: Participant) -> Vec<CheckpointId> {
        let owing = self.pending.iter().filter(|(_, pending)| pending.owing.contains(&who));
        owing.map(|(id, _)| *id).collect()
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
            let entries = states.into_iter().map(|state| OperatorEntry { subtask: who.1.0, state });
            pending.operators.extend(entries);
        }
        self.complete_if_whole(id, now)
    }

    /// A task has ended: it owes nothing any more.
    pub fn ended(&mut self, who: Participant, now: Duration) -> Vec<Decision> {
        let mut decisions = self.collecting(who, false, now);
        decisions.extend(self.backlog(BacklogOrigin::Lag(who.0, who.1), false, now));
        let ids: Vec<CheckpointId> = self.pending.keys().copied().collect();
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
            .filter(|(_, pending)| !pending.barrier.kind.is_savepoint())
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
        if !self.give_up(id, now) {
            return Vec::new();
        }
        self.failures += 1;
        let mut decisions = vec![Decision::Abort { id, reason: reason.to_owned() }];
        if self.failures > self.settings.tolerable_failures {
            decisions.push(Decision::Fail { id, reason: reason.to_owned() });
        }
        decisions
    }

    /// A task cannot take its part, which is nobody's fault: the checkpoint is given up.
    pub fn declined(&mut self, id: CheckpointId, reason: &str, now: Duration) -> Vec<Decision> {
        if !self.give_up(id, now) {
            return Vec::new();
        }
        vec![Decision::Abort { id, reason: reason.to_owned() }]
    }

    /// Forgets one that is under way; false if it is not.
    fn give_up(&mut self, id: CheckpointId, now: Duration) -> bool {
        if self.pending.remove(&id).is_none() {
            return false;
        }
        self.last_end = Some(now);
        self.goes_on(id, now);
        true
    }

    /// The job does not stop behind this savepoint after all: checkpoints come again.
    pub fn goes_on(&mut self, id: CheckpointId, now: Duration) {
        if self.stopping == Some(id) {
            self.stopping = None;
            self.arm(now);
        }
    }

    /// Tasks of these vertices begin anew at `now`: their sources say again whether they are in
    /// backlog (K10).
    pub fn restarted(&mut self, vertices: &BTreeSet<VertexId>, now: Duration) {
        self.in_backlog.retain(|origin| !vertices.contains(&origin.vertex()));
        self.draining.retain(|(vertex, _)| !vertices.contains(vertex));
        self.switching &= !self.in_backlog.is_empty() || !self.draining.is_empty();
        self.arm(now);
    }

    /// Gives all up, for a reason that is no failure.
    pub fn abort_all(&mut self, reason: &str) -> Vec<Decision> {
        self.stopping = None;
        std::mem::take(&mut self.pending)
            .into_keys()
            .map(|id| Decision::Abort { id, reason: reason.to_owned() })
            .collect()
    }
}
