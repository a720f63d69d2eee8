//! [`CombiningOutput`]: the end of a producer's chain that combines, then writes to the edge.
//!
//! ```text
//!   batch mode: from the start         keys that hardly repeat
//!   mixed mode: some records     .------------------------------.
//!   behind `backlog`             |                              |
//!        Pass ----> Table -------'--> Emptying ----> Pass until the phase ends
//!         ^   ^--------------------------'  '----> what waited: barrier, `live`, end of input
//!         '------------ after a barrier or idleness in the phase: Table again
//! ```
//!
//! A table is a [`CombiningSorter`], so it holds its budget and spills beyond it. What is said about
//! records stays behind those it was said after: a barrier, the end of the backlog and the end of input
//! wait until the table is empty, and the least that a watermark can do is to come with them. Live
//! records pass at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use element::{Batch, ByteSize, Control, Key, MemoryBudget, Record, Timestamp, option_table};
use graph::ResolvedMode;
use sort::{CombinedStream, CombiningSorter, SorterOptions, SpillTarget};

use super::Combined;
use crate::backlog::{FoldCombiner, FoldedKeys, fold_batch};
use crate::context::TaskContext;
use crate::error::TaskError;
use crate::operator::either::Either;
use crate::operator::function::Fold;
use crate::operator::selector::KeySelector;
use crate::output::{BatchBuffer, Output, Pump, Signal};
use crate::user::UserCode;

/// Partial results handed over in one piece of work.
const PIECE: usize = 2_048;

/// Records after which a producer looks whether it gains anything, and the part of them, one in so many,
/// that must have combined: few at first, for keys that are many repeat later.
const TRIALS: [(u64, u64); 2] = [(1 << 17, 8), (1 << 19, 2)];

/// The same, once as many records as in the first trial are there, for a table that has begun to spill:
/// its keys do not fit.
const SPILLED: u64 = 2;

/// Records of a backlog that pass before a table is begun: one that is as short gains nothing by it, and
/// whoever watches the consumer sees at once that it collects.
const SHORT: u64 = 4_096;

/// A table has one part in so many of the memory of a sorted input.
const SHARE: u64 = 4;

/// The least memory that a table is given.
const LEAST_MEMORY: ByteSize = ByteSize::kib(64);

/// Tables made so far: their files are told apart by it.
static TABLES: AtomicU64 = AtomicU64::new(0);

/// Where a producer's records go.
enum Way<T, C: Fold<T>> {
    /// Into the table.
    Table(Box<CombiningSorter<FoldCombiner<C, T>>>),
    /// The table is handed over, piece by piece.
    Emptying(Box<CombinedStream<FoldCombiner<C, T>>>),
    /// On as they are.
    Pass,
}

/// The bytes of a key, what its records have combined to, and their latest timestamp.
type Held<P> = (Vec<u8>, P, Option<Timestamp>);

/// Whether records are to be combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// They are live.
    Live,
    /// They are history.
    Backlog,
    /// They are history, but hardly combine.
    GivenUp,
}

/// The end of a producer's chain: combines, then writes to the edge.
pub(super) struct CombiningOutput<T, K, C: Fold<T>> {
    selector: KeySelector<T, K>,
    fold: Arc<C>,
    way: Way<T, C>,
    phase: Phase,
    /// Whether the whole input is one backlog.
    is_batch: bool,
    /// Records of the phase that have passed before its first table.
    passed: u64,
    options: SorterOptions,
    /// Records taken into the table, and whether it was found spilling.
    taken: u64,
    has_spilled: bool,
    /// The next partial result to be handed over. It is held back, for the last one of a table stands
    /// for all records that those before it do not: each of them for one.
    held: Option<Held<C::Partial>>,
    /// Records of the table that none stands for yet.
    unsaid: u64,
    keys: FoldedKeys,
    buffer: BatchBuffer<Combined<T, C::Partial>>,
    next: Box<dyn Output<Combined<T, C::Partial>>>,
    /// What waits until the table is empty.
    pending: VecDeque<Control>,
    user: UserCode,
    /// The operator that is combined for: errors of its functions are its own.
    name: String,
}

impl<T: Record, K: Key, C: Fold<T>> CombiningOutput<T, K, C> {
    /// Combines for the operator `name`.
    pub(super) fn new(
        selector: KeySelector<T, K>,
        fold: Arc<C>,
        next: Box<dyn Output<Combined<T, C::Partial>>>,
        context: &TaskContext,
        name: &str,
    ) -> Result<Self, TaskError> {
        let wanted = context.config.get(&option_table::SORTED_INPUTS_MEMORY)?;
        let memory = wanted.min(context.memory.total()).0 / SHARE;
        let memory = MemoryBudget::new(ByteSize(memory).max(LEAST_MEMORY));
        let prefix =
            format!("job-{}-combine-{}", context.job, TABLES.fetch_add(1, Ordering::Relaxed));
        let options =
            SorterOptions::new(memory, SpillTarget::new(Arc::clone(&context.spill), prefix))
                .with_cancel(context.cancelled.clone());
        let is_batch = context.mode == ResolvedMode::Batch;
        let mut output = Self {
            way: Way::Pass,
            phase: if is_batch { Phase::Backlog } else { Phase::Live },
            is_batch,
            passed: 0,
            options,
            selector,
            fold,
            taken: 0,
            has_spilled: false,
            held: None,
            unsaid: 0,
            keys: FoldedKeys::default(),
            buffer: BatchBuffer::default(),
            next,
            pending: VecDeque::new(),
            user: UserCode::of_operator(name),
            name: name.to_owned(),
        };
        output.begin_table();
        Ok(output)
    }

    /// Begins a table where records are to be combined, and nothing else is still to be done.
    fn begin_table(&mut self) {
        let is_long = self.is_batch || self.passed >= SHORT;
        if self.phase == Phase::Backlog
            && is_long
            && self.pending.is_empty()
            && matches!(self.way, Way::Pass)
        {
            let combiner = FoldCombiner::new(Arc::clone(&self.fold));
            let table = CombiningSorter::new(combiner, self.options.clone());
            self.way = Way::Table(Box::new(table));
            (self.taken, self.has_spilled) = (0, false);
        }
    }

    /// Ends the table's time.
    fn finish(&mut self) -> Result<(), TaskError> {
        self.way = match std::mem::replace(&mut self.way, Way::Pass) {
            // Partial results of runs are merged there, by the user's function.
            Way::Table(table) => {
                self.unsaid = self.taken;
                let finished = self.user.run_batch(|_| Ok(table.finish()))?;
                Way::Emptying(Box::new(finished.map_err(TaskError::sort(&self.name))?))
            }
            other => other,
        };
        Ok(())
    }

    /// Hands up to `most` partial results over. True when none is left.
    fn empty(&mut self, most: usize) -> Result<bool, TaskError> {
        let Self { way, buffer, next, name, user, held, unsaid, .. } = self;
        let Way::Emptying(stream) = way else { return Ok(true) };
        let failed = TaskError::sort(name);
        let done = user.run_batch(|_| {
            for _ in 0..most {
                let coming = stream.next().map_err(&failed)?.map(|record| {
                    let timestamp = Some(Timestamp::from_millis(record.timestamp))
                        .filter(|timestamp| *timestamp != Timestamp::MIN);
                    let key = record.key.get(size_of::<u64>()..).unwrap_or_default().to_vec();
                    (key, record.accumulator, timestamp)
                });
                let is_last = coming.is_none();
                if let Some((key, partial, timestamp)) = std::mem::replace(held, coming) {
                    let records = if is_last { *unsaid } else { 1 };
                    *unsaid -= records;
                    let partial = Either::Right(Box::new((key, partial, records)));
                    buffer.push(partial, timestamp, &mut **next)?;
                }
                if is_last {
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        if done {
            self.way = Way::Pass;
            self.buffer.flush(&mut *self.next)?;
        }
        Ok(done)
    }

    /// Whether the table, of which `before` records are older than the last batch, gains too little.
    fn hardly_combines(&mut self, before: u64) -> bool {
        let Way::Table(table) = &self.way else { return false };
        let stats = table.stats();
        let gains_less = |part: u64| stats.combined.saturating_mul(part) < self.taken;
        let tried = TRIALS.iter().any(|(records, part)| {
            before < *records && self.taken >= *records && gains_less(*part)
        });
        let is_spilling = stats.runs > 0 && self.taken >= TRIALS[0].0;
        let spills = is_spilling && !self.has_spilled && gains_less(SPILLED);
        self.has_spilled = is_spilling;
        tried || spills
    }

    /// Sends what is said of records, and takes note of it.
    fn send(&mut self, control: Control) -> Result<(), TaskError> {
        self.next.signal(Signal::Stream(control))?;
        match control {
            Control::Attributes(attributes) if !self.is_batch => {
                match (attributes.is_backlog, self.phase) {
                    (false, _) => self.phase = Phase::Live,
                    (true, Phase::Live) => (self.phase, self.passed) = (Phase::Backlog, 0),
                    (true, Phase::Backlog | Phase::GivenUp) => {}
                }
            }
            Control::EndOfInput => self.phase = Phase::Live,
            _ => {}
        }
        self.begin_table();
        Ok(())
    }

    fn control(&mut self, control: Control) -> Result<(), TaskError> {
        let is_live = matches!(control, Control::Attributes(it) if !it.is_backlog);
        let ends_table = match control {
            Control::Attributes(_) => is_live && !self.is_batch,
            Control::Barrier(_) | Control::Idle | Control::EndOfInput => true,
            Control::Watermark(_) | Control::Active => false,
        };
        let is_beside = matches!(control, Control::Attributes(_)) && !ends_table;
        let is_free = self.pending.is_empty() && (is_beside || matches!(self.way, Way::Pass));
        if is_free {
            return self.send(control);
        }
        match (self.pending.back_mut(), control) {
            // The later one says all that the earlier did.
            (Some(Control::Watermark(last)), Control::Watermark(later)) => *last = later,
            _ => self.pending.push_back(control),
        }
        if ends_table { self.finish() } else { Ok(()) }
    }

    /// Does all that is pending at once: more records have come before the task had a turn for it.
    fn settle(&mut self) -> Result<(), TaskError> {
        while !self.empty(PIECE)? {}
        while let Some(control) = self.pending.pop_front() {
            self.send(control)?;
        }
        self.begin_table();
        Ok(())
    }
}

impl<T: Record, K: Key, C: Fold<T>> Output<T> for CombiningOutput<T, K, C> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        if !matches!(self.way, Way::Table(_)) {
            self.settle()?;
        }
        let Self { way, selector, fold, keys, user, name, .. } = self;
        let Way::Table(table) = way else {
            self.passed += batch.len() as u64;
            let (values, timestamps) = batch.into_parts();
            let values = values.into_iter().map(Either::Left).collect();
            self.next.batch(Batch::new(values, timestamps))?;
            self.begin_table();
            return Ok(());
        };
        let before = self.taken;
        self.taken += batch.len() as u64;
        user.run_batch(|position| {
            fold_batch(batch, selector, &**fold, keys, table, position, name)
        })?;
        if self.hardly_combines(before) {
            self.phase = Phase::GivenUp;
            self.finish()?;
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        match signal {
            Signal::Stream(control) => self.control(control),
            other => self.next.signal(other),
        }
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        match self.next.pump()? {
            Pump::Idle => {}
            other => return Ok(other),
        }
        if matches!(self.way, Way::Table(_)) {
            return Ok(Pump::Idle);
        }
        if !self.empty(PIECE)? {
            return Ok(Pump::Progress);
        }
        match self.pending.pop_front() {
            Some(control) => {
                self.send(control)?;
                Ok(Pump::Progress)
            }
            None => {
                self.begin_table();
                Ok(Pump::Idle)
            }
        }
    }
}
