//! [`Simulation`]: the whole engine in one thread, in an order that a seed decides.
//!
//! ```text
//!   whoever waits --advance--> a due fault, or one turn of one actor, or the clock moves
//!        ^-------------------------------------------'
//! ```
//!
//! Every choice comes from the seed: which actor that can go on gets the next turn, which ones are
//! slow for a while, when the clock moves though nobody waits for it, and by how much. Nothing reads
//! another clock, so a seed replays exactly. An actor that waits gets a turn only when it was woken or
//! its time has come: a lost wake is found as a simulation that is stuck.
//!
//! Left out on purpose: threads of a disk store and of asynchronous calls, which go on by themselves.

mod chance;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use element::{Clock, FaultyStore, ManualClock, MemoryStore, SpillStore, Timestamp};
use parking_lot::Mutex;

pub use chance::Chance;

use crate::executor::{Actor, Turn};

/// Where time begins: some day, so that processing time is positive and plain to read.
const START: Timestamp = Timestamp(1_000_000_000);

/// Turns after which a simulation counts as stuck: what beats for ever hides that nothing else goes on.
const MOST_TURNS: u64 = 1_000_000;

/// The clock moves by itself once in so many turns.
const TICK_ONE_IN: u64 = 24;

/// One entry of a trace: which actor had the turn, what it came to, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// The actor, by the order in which actors were started.
    pub actor: u64,
    /// What the turn came to.
    pub turn: Turn,
    /// Processing time before it, in milliseconds.
    pub at: i64,
}

/// Something that happens before a turn.
type Event = Box<dyn FnOnce() + Send>;

struct Slot {
    name: String,
    /// Out while it has its turn.
    actor: Option<Box<dyn Actor>>,
    /// `None` if it can go on; else what it waits for, as processing time.
    waits: Option<Option<i64>>,
    _ended: Sender<()>,
}

struct State {
    chance: Chance,
    actors: BTreeMap<u64, Slot>,
    next: u64,
    turns: u64,
    /// Turns until pace is chosen anew.
    pace_ends: u64,
    /// Actors that get a turn only when no other can go on.
    slow: Vec<u64>,
    /// Of 16 turns, those for which the actor of the last one is kept.
    sticky: u64,
    last: u64,
    events: BTreeMap<u64, Vec<Event>>,
    trace: Option<Vec<TraceEntry>>,
    stuck: Option<String>,
}

/// One thread's worth of engine. Clones are the same simulation.
#[derive(Clone)]
pub struct Simulation {
    state: Arc<Mutex<State>>,
    clock: ManualClock,
    faults: FaultyStore,
}

/// What is done next.
enum Next {
    Event(Event),
    Turn(u64, Box<dyn Actor>),
    Tick,
    Stuck(String),
}

impl Simulation {
    /// A simulation whose choices all come from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            chance: Chance::new(seed),
            actors: BTreeMap::new(),
            next: 0,
            turns: 0,
            pace_ends: 0,
            slow: Vec::new(),
            sticky: 0,
            last: 0,
            events: BTreeMap::new(),
            trace: None,
            stuck: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            clock: ManualClock::at(START),
            faults: FaultyStore::new(Arc::new(MemoryStore::new())),
        }
    }

    /// Keeps a trace from here on.
    #[must_use]
    pub fn traced(self) -> Self {
        self.state.lock().trace = Some(Vec::new());
        self
    }

    /// The turns so far, if a trace is kept.
    #[must_use]
    pub fn trace(&self) -> Vec<TraceEntry> {
        self.state.lock().trace.clone().unwrap_or_default()
    }

    /// How many turns there were.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.state.lock().turns
    }

    /// Why it cannot go on, with what each actor waits for; `None` while it can.
    #[must_use]
    pub fn stuck(&self) -> Option<String> {
        self.state.lock().stuck.clone()
    }

    /// The clock of everything in it.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// What goes wrong with its files: sorted runs, partitions and checkpoints count as one store.
    #[must_use]
    pub fn faults(&self) -> &FaultyStore {
        &self.faults
    }

    /// Files in memory, which fail when [`faults`](Self::faults) says so.
    pub(crate) fn files(&self) -> Arc<dyn SpillStore> {
        Arc::new(self.faults.over(Arc::new(MemoryStore::new())))
    }

    /// Has something happen before the turn of this number: a fault, a command, a question. Nothing
    /// happens if the simulation ends before. Several of one number happen in the order of the calls.
    pub fn at_turn(&self, turn: u64, event: impl FnOnce() + Send + 'static) {
        self.state.lock().events.entry(turn).or_default().push(Box::new(event));
    }

    /// Takes an actor in; the other end of what is handed back is dropped with it.
    pub(crate) fn add(&self, name: String, actor: Box<dyn Actor>) -> Receiver<()> {
        let (ended, end) = crossbeam_channel::bounded(0);
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        if state.stuck.is_none() {
            let slot = Slot { name, actor: Some(actor), waits: None, _ended: ended };
            state.actors.insert(id, slot);
        }
        end
    }

    /// Lets one thing happen. False if nothing ever will again.
    pub(crate) fn advance(&self) -> bool {
        let now = self.clock.now().0;
        let next = {
            let mut state = self.state.lock();
            if state.stuck.is_some() {
                return false;
            }
            state.choose(now)
        };
        match next {
            Next::Event(event) => event(),
            Next::Turn(id, actor) => self.turn(id, actor, now),
            Next::Tick => self.tick(now),
            Next::Stuck(reason) => {
                self.give_up(reason);
                return false;
            }
        }
        true
    }

    /// Lets things happen until a message is there; `None` if none will come.
    pub(crate) fn receive<T>(&self, receiver: &Receiver<T>) -> Option<T> {
        loop {
            match receiver.try_recv() {
                Ok(message) => return Some(message),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if self.advance() => {}
                Err(TryRecvError::Empty) => return None,
            }
        }
    }

    fn turn(&self, id: u64, mut actor: Box<dyn Actor>, now: i64) {
        let turn = actor.turn();
        let mut state = self.state.lock();
        if let Some(trace) = &mut state.trace {
            trace.push(TraceEntry { actor: id, turn, at: now });
        }
        let over = turn == Turn::Done || state.stuck.is_some();
        if over {
            let slot = state.actors.remove(&id);
            drop(state);
            // First the actor, then whoever waits for its end.
            drop(actor);
            drop(slot);
        } else if let Some(slot) = state.actors.get_mut(&id) {
            slot.actor = Some(actor);
            slot.waits = match turn {
                Turn::Wait(limit) => Some(limit.map(|limit| due(self.clock.now().0, limit))),
                _ => None,
            };
        }
    }

    /// The clock moves: to what somebody waits for if nobody can go on, else a little.
    fn tick(&self, now: i64) {
        let mut state = self.state.lock();
        let by = 1 + i64::try_from(state.chance.below(3)).unwrap_or(0);
        let ids: Vec<u64> = state.actors.keys().copied().collect();
        let goes_on = ids.into_iter().any(|id| state.is_able(id, now));
        let due = state.next_due().filter(|_| !goes_on);
        self.clock.set(Timestamp(due.map_or(now + by, |due| due.max(now + 1))));
    }

    /// Ends every actor, for none can go on.
    fn give_up(&self, reason: String) {
        let actors = {
            let mut state = self.state.lock();
            state.stuck = Some(reason);
            // One that has its turn is dropped behind it.
            let idle = |slot: &Slot| slot.actor.is_some();
            let ids: Vec<u64> =
                state.actors.iter().filter(|(_, slot)| idle(slot)).map(|(id, _)| *id).collect();
            ids.into_iter().filter_map(|id| state.actors.remove(&id)).collect::<Vec<_>>()
        };
        drop(actors);
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("turns", &self.turns()).finish_non_exhaustive()
    }
}

impl State {
    fn choose(&mut self, now: i64) -> Next {
        if let Some(mut due) = self.events.first_entry().filter(|first| *first.key() <= self.turns)
        {
            let event = (!due.get().is_empty()).then(|| due.get_mut().remove(0));
            if due.get().is_empty() {
                due.remove();
            }
            if let Some(event) = event {
                return Next::Event(event);
            }
        }
        self.turns += 1;
        if self.turns > MOST_TURNS {
            return Next::Stuck(self.describe("it takes too many turns", now));
        }
        if self.chance.one_in(TICK_ONE_IN) {
            return Next::Tick;
        }
        let Some(id) = self.pick(now) else {
            return match self.next_due() {
                Some(_) => Next::Tick,
                None => Next::Stuck(self.describe("nobody can go on", now)),
            };
        };
        self.last = id;
        let Some(slot) = self.actors.get_mut(&id) else { return Next::Tick };
        let Some(mut actor) = slot.actor.take() else { return Next::Tick };
        if slot.waits.take().is_some() {
            actor.wait(Some(Duration::ZERO));
        }
        Next::Turn(id, actor)
    }

    /// Whether an actor can go on.
    fn is_able(&self, id: u64, now: i64) -> bool {
        self.actors.get(&id).is_some_and(|slot| match (&slot.actor, slot.waits) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(actor), Some(until)) => {
                until.is_some_and(|until| until <= now) || actor.is_ready()
            }
        })
    }

    fn next_due(&self) -> Option<i64> {
        self.actors.values().filter_map(|slot| slot.actor.as_ref().and(slot.waits.flatten())).min()
    }

    /// Pace lasts for a while: some actors are slow, and the one that had the last turn goes on more
    /// or less often. An even choice each time would hardly ever starve anybody.
    fn pick(&mut self, now: i64) -> Option<u64> {
        let mut ids: Vec<u64> = self.actors.keys().copied().collect();
        if self.pace_ends <= self.turns {
            self.pace_ends = self.turns + 1 + self.chance.below(400);
            self.sticky = self.chance.pick(&[0, 8, 15]);
            let slow = self.chance.below(4);
            self.slow = (0..slow).map(|_| self.chance.pick(&ids)).collect();
        }
        if self.chance.below(16) < self.sticky && self.is_able(self.last, now) {
            return Some(self.last);
        }
        let mut slow = Vec::new();
        while !ids.is_empty() {
            let id = self.take_any(&mut ids)?;
            if self.slow.contains(&id) {
                slow.push(id);
            } else if self.is_able(id, now) {
                return Some(id);
            }
        }
        while !slow.is_empty() {
            let id = self.take_any(&mut slow)?;
            if self.is_able(id, now) {
                return Some(id);
            }
        }
        None
    }

    fn take_any(&mut self, ids: &mut Vec<u64>) -> Option<u64> {
        let at = usize::try_from(self.chance.below(ids.len() as u64)).ok()?;
        (at < ids.len()).then(|| ids.swap_remove(at))
    }

    fn describe(&self, what: &str, now: i64) -> String {
        let actors = self.actors.values().map(|slot| match (&slot.actor, slot.waits) {
            (None, _) => format!("{} waits within its turn", slot.name),
            (_, None) => format!("{} can go on", slot.name),
            (_, Some(None)) => format!("{} waits to be woken", slot.name),
            (_, Some(Some(until))) => format!("{} waits for {} ms", slot.name, until - now),
        });
        let actors: Vec<String> = actors.collect();
        format!("{what} after {} turns: {}", self.turns, actors.join(", "))
    }
}

fn due(now: i64, limit: Duration) -> i64 {
    let millis = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
    now.saturating_add(millis)
}
